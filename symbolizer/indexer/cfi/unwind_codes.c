/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/cfi/unwind_codes.h"

#include <string.h>

#include "base/cleanup.h"

enum {
	NUMBER_NIBBLES = 2,
	NEAR_DISTANCES = 1 << 4 * ABI_CODE_NEAR_NIBBLES,
	/* Codes with one nibble of distance are tried with least distances 1, 17, 33. */
	SHORT_SHIFT = 4,
	SHORT_RANGES = 3,
	/* Position of a rule's number in changes with a code, and without one. */
	CODED_NUMBER_SHIFT = 4,
	OTHER_NUMBER_SHIFT = 8,
};

/* A possible code, and how many nibbles it saves. */
struct candidate {
	uint32_t least, nibbles, gain;
};

void unwind_codes_init(struct unwind_codes *c)
{
	memset(c, 0, sizeof(*c));
}

static uint32_t named(uint32_t kind)
{
	return kind == ABI_CHANGE_TO ? NUMBER_NIBBLES : 0;
}

void unwind_codes_add(struct unwind_codes *c, enum abi_change kind, uint32_t distance)
{
	struct unwind_coded *coded = &c->coded[kind][distance];

	coded->bits = ABI_CHANGE_OTHER;
	coded->nibbles = (uint8_t)(2 + named(kind) + ABI_CODE_NEAR_NIBBLES);
	c->distances[kind][c->distance_counts[kind]++] = (uint8_t)distance;
}

static void consider(struct candidate *best, uint32_t least, uint32_t nibbles, uint32_t gain)
{
	if (gain > best->gain)
		*best = (struct candidate){ .least = least, .nibbles = nibbles, .gain = gain };
}

/*
 * How many nibbles a code with one or two nibbles of distance saves per change, indexed by how many
 * more nibbles the change takes now than the minimum of its kind.
 */
static const uint8_t saved_by_one[] = { 0, 0, 1, 2 }, saved_by_two[] = { 0, 0, 0, 1 };

/*
 * The compared number includes the index in the kind's list, so that the first of equal candidates
 * wins. That avoids branches, which would be unpredictable here.
 */
static struct candidate best_of(const struct unwind_codes *c, uint32_t kind)
{
	uint32_t shorts[UNWIND_CODED_DISTANCES >> SHORT_SHIFT] = { 0 }, all = 0, most = 0;
	const uint32_t nibbles = 1 + named(kind), count = c->distance_counts[kind];
	struct candidate best = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t distance = c->distances[kind][i];
		const struct unwind_coded *coded = &c->coded[kind][distance];
		const uint32_t more = coded->nibbles - nibbles, gain = coded->count * more;

		most = MAX(most, gain << 8 | (UNWIND_CODED_DISTANCES - 1 - i));
		shorts[(distance - 1) >> SHORT_SHIFT] += coded->count * saved_by_one[more];
		all += coded->count * saved_by_two[more];
	}
	if (count)
		consider(&best, c->distances[kind][UNWIND_CODED_DISTANCES - 1 - (most & 0xff)], 0,
			most >> 8);
	for (uint32_t range = 0; range < SHORT_RANGES; range++)
		consider(&best, 1 + (range << SHORT_SHIFT), 1, shorts[range]);
	consider(&best, 1, 2, all);
	return best;
}

/* Branch-free, like best_of(). */
static void take_code(struct unwind_codes *c, uint32_t kind, const struct candidate *chosen)
{
	const uint32_t nibbles = 1 + named(kind) + chosen->nibbles,
		       count = c->distance_counts[kind];
	const uint32_t range = 1U << 4 * chosen->nibbles, code = c->count;

	for (uint32_t i = 0; i < count; i++) {
		const uint32_t distance = c->distances[kind][i];
		struct unwind_coded *coded = &c->coded[kind][distance];
		const bool takes = (distance - chosen->least < range) & (coded->nibbles > nibbles);

		coded->nibbles = takes ? (uint8_t)nibbles : coded->nibbles;
		coded->bits = takes ? code : coded->bits;
	}
	c->codes[c->count++] = (uint16_t)(kind | chosen->nibbles << ABI_CODE_NIBBLES_SHIFT |
					  chosen->least << ABI_CODE_LEAST_SHIFT);
}

/* Completes the bits of a change. */
static void write_out(const struct unwind_codes *c, enum abi_change kind, uint32_t distance,
	struct unwind_coded *coded)
{
	const uint32_t code = coded->bits;
	uint32_t count = 1 + named(kind), least = 1;

	coded->number_shift = CODED_NUMBER_SHIFT;
	if (code == ABI_CHANGE_OTHER) {
		coded->bits |= (uint32_t)kind << 4;
		coded->number_shift = OTHER_NUMBER_SHIFT;
		count++;
	} else {
		least = c->codes[code] >> ABI_CODE_LEAST_SHIFT;
	}
	coded->bits |= (distance - least) << 4 * count;
}

static void choose_codes(struct unwind_codes *c)
{
	struct candidate best[ABI_CHANGE_KINDS];

	for (uint32_t kind = 0; kind < ABI_CHANGE_KINDS; kind++)
		best[kind] = best_of(c, kind);
	while (c->count < ABI_CHANGE_OTHER) {
		uint32_t kind = 0;

		for (uint32_t i = 1; i < ABI_CHANGE_KINDS; i++)
			if (best[i].gain > best[kind].gain)
				kind = i;
		if (!best[kind].gain)
			return;
		take_code(c, kind, &best[kind]);
		best[kind] = best_of(c, kind);
	}
}

void unwind_codes_choose(struct unwind_codes *c)
{
	choose_codes(c);
	for (uint32_t kind = 0; kind < ABI_CHANGE_KINDS; kind++) {
		for (uint32_t i = 0; i < c->distance_counts[kind]; i++) {
			uint32_t distance = c->distances[kind][i];

			write_out(c, kind, distance, &c->coded[kind][distance]);
		}
	}
}

uint64_t unwind_codes_far_nibbles(
	enum abi_change kind, uint32_t distance, uint8_t number, uint32_t *ret_count)
{
	bool far = distance > NEAR_DISTANCES;
	uint32_t count = 2 + named(kind);
	uint64_t bits = ABI_CHANGE_OTHER | (uint32_t)(kind | (far ? ABI_CHANGE_FAR : 0)) << 4;

	bits |= (uint64_t)number << OTHER_NUMBER_SHIFT;
	*ret_count = count + (far ? ABI_CODE_FAR_NIBBLES : ABI_CODE_NEAR_NIBBLES);
	return bits | (uint64_t)(distance - 1) << 4 * count;
}
