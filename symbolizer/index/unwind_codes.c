/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index/unwind_codes.h"

#include <string.h>

#include "base/cleanup.h"

enum {
	NUMBER_NIBBLES = 2,
	NEAR_DISTANCES = 1 << 4 * ABI_CODE_NEAR_NIBBLES,
	/* Codes with one nibble of distance are tried from 1 on, from 17, and so forth. */
	SHORT_SHIFT = 4,
	SHORT_RANGES = 3,
};

/* A code that could be, and how many nibbles it saves. */
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

void unwind_codes_count(struct unwind_codes *c, enum abi_change kind, uint32_t distance)
{
	struct unwind_coded *coded = &c->coded[kind][distance % UNWIND_CODED_DISTANCES];

	if (distance >= UNWIND_CODED_DISTANCES || coded->count++)
		return;
	coded->code = ABI_CHANGE_OTHER;
	coded->nibbles = (uint8_t)(2 + named(kind) + ABI_CODE_NEAR_NIBBLES);
	c->distances[kind][c->distance_counts[kind]++] = (uint8_t)distance;
}

/* What a code that takes so many nibbles would save. */
static uint32_t gain_of(const struct unwind_coded *coded, uint32_t nibbles)
{
	return coded->nibbles > nibbles ? coded->count * (uint32_t)(coded->nibbles - nibbles) : 0;
}

static void consider(struct candidate *best, uint32_t least, uint32_t nibbles, uint32_t gain)
{
	if (gain > best->gain)
		*best = (struct candidate){ .least = least, .nibbles = nibbles, .gain = gain };
}

static struct candidate best_of(const struct unwind_codes *c, uint32_t kind)
{
	uint32_t shorts[SHORT_RANGES] = { 0 }, all = 0, nibbles = 1 + named(kind);
	struct candidate best = { 0 };

	for (uint32_t i = 0; i < c->distance_counts[kind]; i++) {
		uint32_t distance = c->distances[kind][i], range = (distance - 1) >> SHORT_SHIFT;
		const struct unwind_coded *coded = &c->coded[kind][distance];

		consider(&best, distance, 0, gain_of(coded, nibbles));
		if (range < SHORT_RANGES)
			shorts[range] += gain_of(coded, nibbles + 1);
		all += gain_of(coded, nibbles + 2);
	}
	for (uint32_t range = 0; range < SHORT_RANGES; range++)
		consider(&best, 1 + (range << SHORT_SHIFT), 1, shorts[range]);
	consider(&best, 1, 2, all);
	return best;
}

static void take_code(struct unwind_codes *c, uint32_t kind, const struct candidate *chosen)
{
	const uint32_t nibbles = 1 + named(kind) + chosen->nibbles;

	for (uint32_t i = 0; i < c->distance_counts[kind]; i++) {
		uint32_t distance = c->distances[kind][i];
		struct unwind_coded *coded = &c->coded[kind][distance];

		if (distance < chosen->least || coded->nibbles <= nibbles ||
			distance - chosen->least >= 1U << 4 * chosen->nibbles)
			continue;
		coded->nibbles = (uint8_t)nibbles;
		coded->code = (uint8_t)c->count;
	}
	c->codes[c->count++] = (uint16_t)(kind | chosen->nibbles << ABI_CODE_NIBBLES_SHIFT |
					  chosen->least << ABI_CODE_LEAST_SHIFT);
}

void unwind_codes_choose(struct unwind_codes *c)
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

uint64_t unwind_codes_nibbles(const struct unwind_codes *c, enum abi_change kind, uint32_t distance,
	uint8_t number, uint32_t *ret_count)
{
	uint32_t code = ABI_CHANGE_OTHER, nibbles, least = 1, count = 1;
	bool far = distance > NEAR_DISTANCES;
	uint64_t bits;

	if (distance < UNWIND_CODED_DISTANCES)
		code = c->coded[kind][distance].code;
	bits = code;
	if (code == ABI_CHANGE_OTHER) {
		nibbles = far ? ABI_CODE_FAR_NIBBLES : ABI_CODE_NEAR_NIBBLES;
		bits |= (uint64_t)(kind | (far ? ABI_CHANGE_FAR : 0)) << 4 * count++;
	} else {
		nibbles = c->codes[code] >> ABI_CODE_NIBBLES_SHIFT & ABI_CODE_NIBBLES;
		least = c->codes[code] >> ABI_CODE_LEAST_SHIFT;
	}
	if (kind == ABI_CHANGE_TO) {
		bits |= (uint64_t)number << 4 * count;
		count += NUMBER_NIBBLES;
	}
	*ret_count = count + nibbles;
	return bits | (uint64_t)(distance - least) << 4 * count;
}
