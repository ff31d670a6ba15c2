/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are sorted first, so that changes lead to neighbours. Buckets are as large as lookup time
 * allows: a lookup reads half a bucket on average. Then each row becomes a change from the row
 * before, changes are counted, codes are chosen, and the page is written.
 */
#include "symbolizer/indexer/cfi/unwind_pack.h"

#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/unwind_rule.h"

enum {
	BUCKET_ROWS = 16, /* limit of the average */
	NEAR_RULES = 2, /* ABI_CHANGE_UP_2 */
	CROWD = ABI_UNWIND_CHANGES / 2,
};

/* The state of a reader before a change. */
struct reader {
	uint32_t rule, top, back, entry;
};

/* ---- the order of rules --------------------------------------------------------------------- */

/* Insertion sort: most pages have few rules, often already in order. */
static void sort_rules(struct unwind_pack *p, const struct unwind_rows *rows)
{
	uint64_t kinds[ABI_UNWIND_PAGE_RULES];

	for (uint32_t i = 0; i < rows->rule_count; i++) {
		const struct abi_unwind_rule *rule = &rows->rules[i];
		uint64_t kind = unwind_rule_kind(rule);
		uint32_t at = i;

		for (; at; at--) {
			uint8_t before = p->sorted[at - 1];

			if (kinds[at - 1] < kind ||
				(kinds[at - 1] == kind &&
					rows->rules[before].cfa_off < rule->cfa_off))
				break;
			kinds[at] = kinds[at - 1];
			p->sorted[at] = before;
		}
		kinds[at] = kind;
		p->sorted[at] = (uint8_t)i;
	}
	for (uint32_t i = 0; i < rows->rule_count; i++)
		p->place[p->sorted[i]] = (uint8_t)i;
}

/*
 * Renumbers the rules of rows, and picks as `entry` the rule that most often is not a neighbour of
 * the rule before. Branch-free, because the branches would be unpredictable.
 */
static void place_rules(struct unwind_pack *restrict p, const struct unwind_rows *restrict rows)
{
	uint32_t counts[ABI_UNWIND_PAGE_RULES] = { 0 };
	const uint32_t row_count = rows->row_count;
	uint32_t before = p->place[0], entry = before, most = 0;

	for (uint32_t i = 0; i < row_count; i++) {
		uint32_t rule = p->place[rows->numbers[i]];
		uint32_t count = counts[rule] += rule - before + NEAR_RULES > 2 * NEAR_RULES;

		entry = count > most ? rule : entry;
		most = MAX(most, count);
		p->rules[i] = (uint8_t)rule;
		before = rule;
	}
	p->entry = (uint8_t)entry;
}

/* ---- buckets -------------------------------------------------------------------------------- */

static bool bucket_is_too_full(const struct unwind_rows *rows, uint32_t shift)
{
	uint32_t bucket = 0, count = 0;
	bool crowded = false;

	/* A bucket that is too full has two rows CROWD apart; hardly any page has those. */
	for (uint32_t i = CROWD; i < rows->row_count; i += CROWD)
		crowded |= rows->addresses[i] >> shift == rows->addresses[i - CROWD] >> shift;
	for (uint32_t i = 0; crowded && i < rows->row_count; i++) {
		uint32_t here = rows->addresses[i] >> shift;

		count = here == bucket ? count + 1 : 1;
		bucket = here;
		if (count > ABI_UNWIND_CHANGES)
			return true;
	}
	return false;
}

static uint32_t unwind_pack_choose_shift(const struct unwind_rows *rows)
{
	uint32_t shift = ABI_UNWIND_BUCKET_SHIFT_MAX;

	while (shift > ABI_UNWIND_BUCKET_SHIFT_MIN &&
		(rows->row_count > (uint64_t)BUCKET_ROWS << (ABI_UNWIND_PAGE_SHIFT - shift) ||
			bucket_is_too_full(rows, shift)))
		shift--;
	return shift;
}

/* ---- changes -------------------------------------------------------------------------------- */

/* Order of preference if several kinds fit. */
static const uint8_t ranks[ABI_CHANGE_KINDS] = { ABI_CHANGE_UP, ABI_CHANGE_DOWN, ABI_CHANGE_TOP,
	ABI_CHANGE_BACK, ABI_CHANGE_ENTRY, ABI_CHANGE_UP_2, ABI_CHANGE_DOWN_2, ABI_CHANGE_TO };
enum { RANK_TOP = 2, RANK_BACK = 3, RANK_ENTRY = 4, RANK_TO = 7 };

/* Changes by distance of the rule from the one before: two down to two up, and further. */
struct step {
	uint8_t rank; /* of the kind for this distance */
	uint8_t is_top; /* the reader's `top` becomes the rule */
	uint8_t may_be_top; /* `top` becomes the rule unless it is the reader's `back` or `entry` */
	uint8_t is_far;
};
static const struct step steps[] = { { 6, 0, 0, 0 }, { 1, 0, 0, 0 }, { RANK_TO, 0, 1, 1 },
	{ 0, 1, 0, 0 }, { 5, 0, 1, 0 }, { RANK_TO, 0, 1, 1 } };

/* Tests all kinds, branch-free, because the branches would be unpredictable. */
static enum abi_change unwind_pack_kind_of(
	const struct reader *r, const struct step *step, uint32_t rule)
{
	uint32_t rank = RANK_TO;

	rank = rule == r->entry ? RANK_ENTRY : rank;
	rank = rule == r->back ? RANK_BACK : rank;
	rank = rule == r->top ? RANK_TOP : rank;
	return ranks[MIN(rank, step->rank)];
}

/*
 * Moves the reader to RULE and returns the change. The new state is not derived from the kind: each
 * change depends on the state before, and computing the kind takes long.
 */
static struct unwind_change read_on(struct reader *r, uint32_t distance, uint32_t rule)
{
	const struct step *step =
		&steps[MIN(rule - r->rule + NEAR_RULES, (uint32_t)NEAR_RULES * 2 + 1)];
	const uint32_t is_new = (uint32_t)(rule != r->back) & (uint32_t)(rule != r->entry);
	const uint32_t is_top = -(step->is_top | (step->may_be_top & is_new));
	const uint32_t is_to = -(step->is_far & is_new & (uint32_t)(rule != r->top));
	const struct unwind_change change = {
		.distance = (uint16_t)distance,
		.kind = (uint8_t)unwind_pack_kind_of(r, step, rule),
		.number = (uint8_t)(rule & is_to),
	};

	r->top ^= (r->top ^ rule) & is_top;
	r->back ^= (r->back ^ r->rule) & is_to;
	r->rule = rule;
	return change;
}

/*
 * Adds the changes of the rows from number ROW on that are before offset END in the page. Returns
 * the number of the first row after.
 */
static uint32_t add_changes(struct unwind_pack *restrict p, const struct unwind_rows *restrict rows,
	struct reader *r, uint32_t row, uint32_t end)
{
	const uint32_t row_count = rows->row_count;
	uint32_t before = end - (1U << p->shift), at = p->change_count;
	struct reader reader = *r;

	for (; row < row_count && rows->addresses[row] < end; row++) {
		const uint32_t address = rows->addresses[row];
		const struct unwind_change change =
			read_on(&reader, address - before, p->rules[row]);

		p->changes[at++] = change;
		unwind_codes_count(&p->codes, change.kind, address - before);
		before = address;
	}
	p->change_count = at;
	*r = reader;
	return row;
}

/* Adds the changes of BUCKET, from row *AT on. RULE is valid before it; returns the last rule. */
static uint32_t add_bucket(struct unwind_pack *p, const struct unwind_rows *rows, uint32_t bucket,
	uint32_t *at, uint32_t rule)
{
	const uint32_t low = bucket << p->shift;
	uint32_t row = *at;
	struct reader reader;

	if (row < rows->row_count && rows->addresses[row] == low)
		rule = p->rules[row++];
	p->starts[bucket] = (uint8_t)rule;
	reader = (struct reader){ .rule = rule, .top = rule, .back = rule, .entry = p->entry };
	*at = add_changes(p, rows, &reader, row, low + (1U << p->shift));
	p->ends[bucket] = p->change_count;
	return reader.rule;
}

/* Returns the number of buckets. */
static uint32_t buckets_of(const struct unwind_pack *p)
{
	return 1U << (ABI_UNWIND_PAGE_SHIFT - p->shift);
}

static void find_changes(struct unwind_pack *p, const struct unwind_rows *rows)
{
	uint32_t rule = p->place[0], at = 0;

	unwind_codes_init(&p->codes);
	p->change_count = 0;
	for (uint32_t bucket = 0; bucket < buckets_of(p); bucket++)
		rule = add_bucket(p, rows, bucket, &at, rule);
	unwind_codes_choose(&p->codes);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void unwind_pack_put(struct unwind_pack *p, const void *bytes, uint32_t size)
{
	memcpy(p->output.bytes + p->size, bytes, size);
	p->size += size;
}

/* Leaves room for the header and the bucket table. Returns the number of wide rules. */
static uint32_t put_rules(struct unwind_pack *p, const struct unwind_rows *rows)
{
	uint32_t wide[ABI_UNWIND_PAGE_RULES], count = 0;

	p->size = sizeof(p->output.header) + 2 * buckets_of(p) + 4;
	for (uint32_t i = 0; i < rows->rule_count; i++) {
		uint32_t bits = ABI_RULE_WIDE | count << ABI_RULE_FP_SHIFT;

		if (!unwind_rule_narrow(&rows->rules[p->sorted[i]], &bits))
			wide[count++] = p->sorted[i];
		unwind_pack_put(p, &bits, sizeof(bits));
	}
	for (uint32_t i = 0; i < count; i++)
		unwind_pack_put(p, &rows->rules[wide[i]], sizeof(rows->rules[0]));
	return count;
}

/* Writes one bucket's changes, from number FIRST on. */
static void put_bucket(struct unwind_pack *p, uint32_t bucket, uint32_t first)
{
	uint8_t *at = p->output.bytes + p->size;
	const uint32_t end = p->ends[bucket];
	uint64_t bits = p->starts[bucket];
	uint32_t used = 8;

	for (uint32_t i = first; i < end; i++) {
		const struct unwind_change *change = &p->changes[i];
		uint32_t nibbles;

		bits |= unwind_codes_nibbles(
				&p->codes, change->kind, change->distance, change->number, &nibbles)
			<< used;
		used += 4 * nibbles;
		/* Always writes eight bytes; the next write overwrites the unused ones. */
		memcpy(at, &bits, sizeof(bits));
		at += used / 8;
		bits >>= used / 8 * 8;
		used %= 8;
	}
	bits |= (uint64_t)ABI_CHANGE_OTHER << used;
	memcpy(at, &bits, sizeof(bits));
	p->size = (uint32_t)(at + (used + 7) / 8 - p->output.bytes);
}

static void put_changes(struct unwind_pack *p)
{
	const uint32_t start = p->size, buckets = buckets_of(p);
	uint8_t *places = p->output.bytes + sizeof(p->output.header);
	uint16_t place = 0;

	memset(places, 0, 2 * buckets + 4);
	for (uint32_t bucket = 0; bucket < buckets; bucket++) {
		put_bucket(p, bucket, bucket ? p->ends[bucket - 1] : 0);
		place = (uint16_t)(p->size - start);
		memcpy(places + 2 * (bucket + 1), &place, sizeof(place));
	}
	unwind_pack_put(p, (const uint8_t[4]){ 0 }, -p->size & 3);
}

void unwind_pack(struct unwind_pack *p, const struct unwind_rows *rows, uint32_t flags)
{
	uint32_t wide;

	sort_rules(p, rows);
	place_rules(p, rows);
	p->shift = unwind_pack_choose_shift(rows);
	find_changes(p, rows);
	wide = put_rules(p, rows);
	put_changes(p);
	p->output.header = (struct abi_unwind_page){
		.size = p->size,
		.row_count = (uint16_t)rows->row_count,
		.rule_count = (uint8_t)rows->rule_count,
		.wide_count = (uint8_t)wide,
		.bucket_shift = (uint8_t)p->shift,
		.entry = p->entry,
		.flags = (uint16_t)flags,
	};
	memcpy(p->output.header.codes, p->codes.codes, sizeof(p->codes.codes));
}
