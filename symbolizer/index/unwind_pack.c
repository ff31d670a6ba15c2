/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules are sorted first, since changes lead to neighbours. Buckets are as large as the time that a
 * search may take allows: it reads half of one on average. Then each row becomes a change from the
 * one before, changes are counted, codes chosen, and all is written.
 */
#include "symbolizer/index/unwind_pack.h"

#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/unwind_rule.h"

enum {
	BUCKET_ROWS = 16, /* on average, at most */
	NEAR_RULES = 2, /* ABI_CHANGE_UP_2 */
};

/* What a reader knows when it comes to a change. */
struct reader {
	uint8_t rule, top, back, entry;
};

/* ---- the order of rules --------------------------------------------------------------------- */

/* By insertion: most pages have few rules, and many come in the right order. */
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

/* The rule that most rows begin that no neighbour leads to. */
static uint8_t find_entry(const struct unwind_pack *p, const struct unwind_rows *rows)
{
	uint32_t counts[ABI_UNWIND_PAGE_RULES] = { 0 };
	uint8_t before = p->place[0], entry = before;

	for (uint32_t i = 0; i < rows->row_count; i++) {
		uint8_t rule = p->place[rows->numbers[i]];

		if (rule > before + NEAR_RULES || before > rule + NEAR_RULES)
			if (++counts[rule] > counts[entry])
				entry = rule;
		before = rule;
	}
	return entry;
}

/* ---- buckets -------------------------------------------------------------------------------- */

static bool bucket_is_too_full(const struct unwind_rows *rows, uint32_t shift)
{
	uint32_t bucket = 0, count = 0;

	for (uint32_t i = 0; i < rows->row_count; i++) {
		uint32_t here = rows->addresses[i] >> shift;

		count = here == bucket ? count + 1 : 1;
		bucket = here;
		if (count > ABI_UNWIND_CHANGES)
			return true;
	}
	return false;
}

static uint32_t choose_shift(const struct unwind_rows *rows)
{
	uint32_t shift = ABI_UNWIND_BUCKET_SHIFT_MAX;

	while (shift > ABI_UNWIND_BUCKET_SHIFT_MIN &&
		(rows->row_count > (uint64_t)BUCKET_ROWS << (ABI_UNWIND_PAGE_SHIFT - shift) ||
			bucket_is_too_full(rows, shift)))
		shift--;
	return shift;
}

/* ---- changes -------------------------------------------------------------------------------- */

static enum abi_change kind_of(const struct reader *r, uint8_t rule)
{
	if (rule == r->rule + 1)
		return ABI_CHANGE_UP;
	if (rule + 1 == r->rule)
		return ABI_CHANGE_DOWN;
	if (rule == r->top)
		return ABI_CHANGE_TOP;
	if (rule == r->back)
		return ABI_CHANGE_BACK;
	if (rule == r->entry)
		return ABI_CHANGE_ENTRY;
	if (rule == r->rule + 2)
		return ABI_CHANGE_UP_2;
	if (rule + 2 == r->rule)
		return ABI_CHANGE_DOWN_2;
	return ABI_CHANGE_TO;
}

static void read_on(struct reader *r, enum abi_change kind, uint8_t rule)
{
	if (kind == ABI_CHANGE_TO)
		r->back = r->rule;
	if (!(kind & 1))
		r->top = rule;
	r->rule = rule;
}

static void add_change(
	struct unwind_pack *p, struct reader *reader, uint32_t distance, uint8_t rule)
{
	enum abi_change kind = kind_of(reader, rule);

	unwind_codes_count(&p->codes, kind, distance);
	p->changes[p->change_count++] = (struct unwind_change){
		.distance = (uint16_t)distance, .kind = (uint8_t)kind, .number = rule
	};
	read_on(reader, kind, rule);
}

/* The changes of BUCKET, from row *AT on; RULE is valid before it. Returns the one after it. */
static uint8_t add_bucket(struct unwind_pack *p, const struct unwind_rows *rows, uint32_t bucket,
	uint32_t *at, uint8_t rule)
{
	uint32_t before = bucket << p->shift, end = before + (1U << p->shift);
	struct reader reader;

	if (*at < rows->row_count && rows->addresses[*at] == before)
		rule = p->place[rows->numbers[(*at)++]];
	p->starts[bucket] = rule;
	reader = (struct reader){ .rule = rule, .top = rule, .back = rule, .entry = p->entry };
	for (; *at < rows->row_count && rows->addresses[*at] < end; ++*at) {
		add_change(p, &reader, rows->addresses[*at] - before, p->place[rows->numbers[*at]]);
		before = rows->addresses[*at];
	}
	p->ends[bucket] = p->change_count;
	return reader.rule;
}

/* How many there are. */
static uint32_t buckets_of(const struct unwind_pack *p)
{
	return 1U << (ABI_UNWIND_PAGE_SHIFT - p->shift);
}

static void find_changes(struct unwind_pack *p, const struct unwind_rows *rows)
{
	uint8_t rule = p->place[0];
	uint32_t at = 0;

	unwind_codes_init(&p->codes);
	p->change_count = 0;
	for (uint32_t bucket = 0; bucket < buckets_of(p); bucket++)
		rule = add_bucket(p, rows, bucket, &at, rule);
	unwind_codes_choose(&p->codes);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put(struct unwind_pack *p, const void *bytes, uint32_t size)
{
	memcpy(p->output.bytes + p->size, bytes, size);
	p->size += size;
}

/* The header and the places of buckets come last. Returns the number of wide rules. */
static uint32_t put_rules(struct unwind_pack *p, const struct unwind_rows *rows)
{
	uint32_t wide[ABI_UNWIND_PAGE_RULES], count = 0;

	p->size = sizeof(p->output.header) + 2 * buckets_of(p) + 4;
	for (uint32_t i = 0; i < rows->rule_count; i++) {
		uint32_t bits = ABI_RULE_WIDE | count << ABI_RULE_FP_SHIFT;

		if (!unwind_rule_narrow(&rows->rules[p->sorted[i]], &bits))
			wide[count++] = p->sorted[i];
		put(p, &bits, sizeof(bits));
	}
	for (uint32_t i = 0; i < count; i++)
		put(p, &rows->rules[wide[i]], sizeof(rows->rules[0]));
	return count;
}

/* One bucket's changes, from number FIRST on. */
static void put_bucket(struct unwind_pack *p, uint32_t bucket, uint32_t first)
{
	uint8_t *at = p->output.bytes + p->size;
	uint64_t bits = p->starts[bucket];
	uint32_t used = 8;

	for (uint32_t i = first; i < p->ends[bucket]; i++) {
		const struct unwind_change *change = &p->changes[i];
		uint32_t nibbles;

		bits |= unwind_codes_nibbles(
				&p->codes, change->kind, change->distance, change->number, &nibbles)
			<< used;
		used += 4 * nibbles;
		/* All eight; what is not used yet comes again. */
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
	put(p, (const uint8_t[4]){ 0 }, -p->size & 3);
}

void unwind_pack(struct unwind_pack *p, const struct unwind_rows *rows, uint32_t flags)
{
	uint32_t wide;

	sort_rules(p, rows);
	p->entry = find_entry(p, rows);
	p->shift = choose_shift(rows);
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
