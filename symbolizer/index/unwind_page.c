/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads unwind pages in user space. BPF (bpf/unwind/step.bpf.h) masks offsets that lead outside of
 * the page; here such a page is rejected.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/unwind.h"
#include "symbolizer/index/unwind_rule.h"

enum { NIBBLE = 15 };

/* The parts of a page whose counts agree with its size. */
struct parts {
	const struct abi_unwind_page *page;
	const uint16_t *buckets;
	uint32_t bucket_count;
	const uint32_t *rules;
	const struct abi_unwind_rule *wide;
	const uint8_t *changes;
	uint32_t change_bytes;
};

/* State of reading one bucket. */
struct bucket {
	const uint8_t *bytes, *end; /* the page's */
	uint32_t at, nibbles; /* index of the next nibble; number of nibbles */
	uint32_t address; /* of the last change, relative to the bucket */
	uint8_t rule, top, back;
};

static bool find_parts(const struct abi_unwind_page *page, size_t size, struct parts *ret_parts)
{
	const uint8_t *bytes = (const uint8_t *)page;
	size_t rules, wide, changes;
	uint32_t buckets;

	if (size < sizeof(*page) || page->size > size || !page->rule_count ||
		page->wide_count > page->rule_count ||
		page->bucket_shift < ABI_UNWIND_BUCKET_SHIFT_MIN ||
		page->bucket_shift > ABI_UNWIND_BUCKET_SHIFT_MAX)
		return false;
	buckets = 1U << (ABI_UNWIND_PAGE_SHIFT - page->bucket_shift);
	rules = sizeof(*page) + (buckets + 2) * sizeof(uint16_t);
	wide = rules + page->rule_count * sizeof(uint32_t);
	changes = wide + page->wide_count * sizeof(struct abi_unwind_rule);
	if (page->size < changes)
		return false;
	*ret_parts = (struct parts){
		.page = page,
		.buckets = (const uint16_t *)(const void *)(bytes + sizeof(*page)),
		.bucket_count = buckets,
		.rules = (const uint32_t *)(const void *)(bytes + rules),
		.wide = (const struct abi_unwind_rule *)(const void *)(bytes + wide),
		.changes = bytes + changes,
		.change_bytes = (uint32_t)(page->size - changes),
	};
	return true;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static bool makes_sense(const struct abi_unwind_rule *rule)
{
	return rule->cfa < ABI_CFA_KINDS && rule->fp < ABI_REG_KINDS &&
	       rule->ra <= ABI_REG_UNSUPPORTED;
}

static bool unwind_page_rule_of(
	const struct parts *parts, uint32_t number, struct abi_unwind_rule *ret_rule)
{
	struct abi_unwind_rule rule;
	uint32_t bits, wide;

	if (number >= parts->page->rule_count)
		return false;
	bits = parts->rules[number];
	wide = bits >> ABI_RULE_FP_SHIFT;
	if ((bits & ABI_RULE_CFA) != ABI_RULE_WIDE)
		rule = unwind_rule_of_bits(bits);
	else if (wide < parts->page->wide_count)
		rule = parts->wide[wide];
	else
		return false;
	if (!makes_sense(&rule))
		return false;
	*ret_rule = rule;
	return true;
}

static bool rules_make_sense(const struct parts *parts)
{
	struct abi_unwind_rule rule;

	for (uint32_t i = 0; i < parts->page->rule_count; i++)
		if (!unwind_page_rule_of(parts, i, &rule))
			return false;
	return parts->page->entry < parts->page->rule_count;
}

/* ---- changes -------------------------------------------------------------------------------- */

static bool begin_bucket(const struct parts *parts, uint32_t number, struct bucket *ret_bucket)
{
	uint32_t begin = parts->buckets[number], end = parts->buckets[number + 1];
	uint8_t rule;

	if (begin >= end || end > parts->change_bytes)
		return false;
	rule = parts->changes[begin];
	*ret_bucket = (struct bucket){
		.bytes = parts->changes + begin + 1,
		.end = parts->changes + parts->change_bytes,
		.nibbles = 2 * (end - begin - 1),
		.rule = rule,
		.top = rule,
		.back = rule,
	};
	return rule < parts->page->rule_count;
}

/* Returns the next nibbles, at least 15; those beyond the page's end are 0. */
static uint64_t nibbles_of(const struct bucket *b)
{
	const uint8_t *bytes = b->bytes + b->at / 2;
	size_t size = MIN((size_t)(b->end - bytes), sizeof(uint64_t));
	uint64_t bits = 0;

	if (size == sizeof(bits))
		memcpy(&bits, bytes, sizeof(bits));
	else
		memcpy(&bits, bytes, size);
	return bits >> b->at % 2 * 4;
}

/* The code of a change that has none of its own in the page. */
static uint32_t other_code(uint32_t nibble)
{
	uint32_t nibbles = nibble & ABI_CHANGE_FAR ? ABI_CODE_FAR_NIBBLES : ABI_CODE_NEAR_NIBBLES;

	return (nibble & (ABI_CHANGE_KINDS - 1)) | nibbles << ABI_CODE_NIBBLES_SHIFT |
	       1 << ABI_CODE_LEAST_SHIFT;
}

/* Returns the number of the rule that a change leads to, which may not exist. */
static uint32_t changed(
	const struct bucket *b, const struct abi_unwind_page *page, uint32_t kind, uint32_t named)
{
	const uint32_t marks[] = { named, b->back, b->top, page->entry };
	const int steps[] = { 1, -1, 2, -2 };

	if (kind < ABI_CHANGE_UP)
		return marks[kind];
	return b->rule + (uint32_t)steps[kind - ABI_CHANGE_UP];
}

/*
 * Advances to the next change. Returns 1 if there is one, 0 at the end, -EBADMSG if it is
 * malformed.
 */
static int next_change(struct bucket *b, const struct abi_unwind_page *page)
{
	uint32_t code, kind, named, rule, distance, used = 1, left = b->nibbles - b->at;
	uint64_t nibbles;

	if (!left)
		return 0;
	nibbles = nibbles_of(b);
	code = page->codes[nibbles & NIBBLE];
	if ((nibbles & NIBBLE) == ABI_CHANGE_OTHER) {
		/* Padding: the last nibble of a byte. */
		if (left == 1)
			return 0;
		code = other_code(nibbles >> 4 & NIBBLE);
		used++;
	}
	kind = code & (ABI_CHANGE_KINDS - 1);
	named = nibbles >> 4 * used & UINT8_MAX;
	used += kind == ABI_CHANGE_TO ? 2 : 0;
	distance = code >> ABI_CODE_NIBBLES_SHIFT & ABI_CODE_NIBBLES;
	nibbles = (nibbles >> 4 * used) & ((1U << 4 * distance) - 1);
	used += distance;
	distance = (code >> ABI_CODE_LEAST_SHIFT) + (uint32_t)nibbles;
	rule = changed(b, page, kind, named);
	if (used > left || rule >= page->rule_count || !distance)
		return -EBADMSG;
	b->at += used;
	b->address += distance;
	b->back = kind == ABI_CHANGE_TO ? b->rule : b->back;
	b->top = kind & 1 ? b->top : (uint8_t)rule;
	b->rule = (uint8_t)rule;
	return 1;
}

/*
 * Adds the bucket's rows to *ROWS. *RULE is the last rule of the previous bucket on entry, of this
 * one on return.
 */
static bool bucket_makes_sense(
	const struct parts *parts, uint32_t number, uint8_t *rule, uint32_t *rows)
{
	struct bucket b;
	int changes = 0, more;

	if (!begin_bucket(parts, number, &b))
		return false;
	*rows += number && b.rule != *rule;
	while ((more = next_change(&b, parts->page)) > 0)
		changes++;
	*rows += (uint32_t)changes;
	*rule = b.rule;
	return !more && changes <= ABI_UNWIND_CHANGES && !(b.address >> parts->page->bucket_shift);
}

static bool changes_make_sense(const struct parts *parts)
{
	uint32_t rows = 0;
	uint8_t rule = 0;

	for (uint32_t i = 0; i < parts->bucket_count; i++)
		if (!bucket_makes_sense(parts, i, &rule, &rows))
			return false;
	return rows == parts->page->row_count && rows <= ABI_UNWIND_PAGE_ROWS;
}

bool unwind_page_fits(const struct abi_unwind_page *page, size_t size)
{
	struct parts parts;

	return find_parts(page, size, &parts);
}

bool unwind_page_check(const struct abi_unwind_page *page, size_t size)
{
	struct parts parts;

	return find_parts(page, size, &parts) && rules_make_sense(&parts) &&
	       changes_make_sense(&parts);
}

bool unwind_rule_at(const struct abi_unwind_page *page, size_t size, uint32_t page_offset,
	struct abi_unwind_rule *ret_rule)
{
	uint32_t offset;
	struct bucket b;
	struct parts parts;
	uint8_t rule;
	int more;

	if (page_offset >> ABI_UNWIND_PAGE_SHIFT || !find_parts(page, size, &parts) ||
		!begin_bucket(&parts, page_offset >> page->bucket_shift, &b))
		return false;
	offset = page_offset & ((1U << page->bucket_shift) - 1);
	do {
		rule = b.rule;
		more = next_change(&b, page);
	} while (more > 0 && b.address <= offset);
	return more >= 0 && unwind_page_rule_of(&parts, rule, ret_rule);
}
