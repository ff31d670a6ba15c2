/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unwind_page_writer.h"

#include <assert.h>
#include <string.h>

static uint8_t number_of(struct page_writer *w, const struct abi_unwind_rule *rule)
{
	for (uint32_t i = 0; i < w->rule_count; i++)
		if (!memcmp(&w->rules[i], rule, sizeof(*rule)))
			return (uint8_t)i;
	assert(w->rule_count < PAGE_WRITER_RULES);
	w->rules[w->rule_count] = *rule;
	return (uint8_t)w->rule_count++;
}

void page_begin(struct page_writer *w, struct abi_unwind_rule first)
{
	memset(w, 0, sizeof(*w));
	(void)number_of(w, &first);
}

void page_row(struct page_writer *w, uint16_t offset, struct abi_unwind_rule rule)
{
	assert(w->row_count < PAGE_WRITER_ROWS);
	w->addresses[w->row_count] = offset;
	w->numbers[w->row_count++] = number_of(w, &rule);
}

static uint8_t page_number_at(const struct page_writer *w, uint16_t offset)
{
	uint8_t number = 0;

	for (uint32_t i = 0; i < w->row_count && w->addresses[i] <= offset; i++)
		number = w->numbers[i];
	return number;
}

static void put(struct page_writer *w, uint32_t *at, const void *bytes, uint32_t size)
{
	assert(*at + size <= PAGE_WRITER_BYTES);
	memcpy(w->bytes + *at, bytes, size);
	*at += size;
}

/* Appends a change without a code, which names its rule: six nibbles or seven. */
static void put_change(struct page_writer *w, uint32_t *nibble, uint32_t distance, uint8_t number)
{
	const bool far = distance > 256;
	uint32_t bits = ABI_CHANGE_OTHER | (far ? ABI_CHANGE_FAR : 0U) << 4 |
			(uint32_t)number << 8 | (distance - 1) << 16;

	assert(distance && distance <= 4096);
	for (uint32_t i = 0; i < (far ? 7U : 6U); i++, ++*nibble, bits >>= 4) {
		assert(*nibble / 2 < PAGE_WRITER_BYTES);
		w->bytes[*nibble / 2] |= (uint8_t)((bits & 15) << *nibble % 2 * 4);
	}
}

/*
 * Writes the bucket from BEGIN to END: the rule at its start, and its changes, which it adds to
 * row_count. Returns the offset of its end.
 */
static uint32_t put_bucket(struct page_writer *w, uint32_t at, uint32_t begin, uint32_t end)
{
	struct abi_unwind_page *page = (void *)w->bytes;
	uint8_t start = page_number_at(w, (uint16_t)begin);
	uint32_t nibble, before = begin;

	put(w, &at, &start, 1);
	if (begin && start != page_number_at(w, (uint16_t)(begin - 1)))
		page->row_count++;
	nibble = 2 * at;
	for (uint32_t i = 0; i < w->row_count; i++) {
		if (w->addresses[i] <= begin || w->addresses[i] >= end)
			continue;
		put_change(w, &nibble, w->addresses[i] - before, w->numbers[i]);
		before = w->addresses[i];
		page->row_count++;
	}
	if (nibble % 2)
		w->bytes[nibble / 2] |= ABI_CHANGE_OTHER << 4;
	return (nibble + 1) / 2;
}

const struct abi_unwind_page *page_finish(struct page_writer *w)
{
	struct abi_unwind_page *page = (void *)w->bytes;
	const uint32_t shift = w->row_count > 1000 ? 6 : 10, buckets = 0x10000U >> shift;
	uint32_t at = sizeof(*page) + 2 * buckets + 4, changes;

	memset(w->bytes, 0, sizeof(w->bytes));
	*page = (struct abi_unwind_page){
		.rule_count = (uint8_t)w->rule_count,
		.wide_count = (uint8_t)w->rule_count,
		.bucket_shift = (uint8_t)shift,
	};
	for (uint32_t i = 0; i < w->rule_count; i++)
		put(w, &at, &(uint32_t){ ABI_RULE_WIDE | i << ABI_RULE_FP_SHIFT }, 4);
	put(w, &at, w->rules, w->rule_count * (uint32_t)sizeof(w->rules[0]));
	changes = at;
	for (uint32_t i = 0; i < buckets; i++) {
		uint16_t *places = (void *)(w->bytes + sizeof(*page));

		at = put_bucket(w, at, i << shift, (i + 1) << shift);
		places[i + 1] = (uint16_t)(at - changes);
	}
	page->size = (at + 3) & ~3U;
	assert(page->size <= PAGE_WRITER_BYTES);
	return page;
}

struct abi_unwind_rule page_rule_at(const struct page_writer *w, uint16_t offset)
{
	return w->rules[page_number_at(w, offset)];
}

struct abi_unwind_rule rule_none(void)
{
	return rule_of(ABI_CFA_NONE);
}

struct abi_unwind_rule rule_sp(int offset)
{
	return (struct abi_unwind_rule){
		.cfa = ABI_CFA_SP, .cfa_off = offset, .ra = ABI_REG_AT_CFA, .ra_off = -8
	};
}

struct abi_unwind_rule rule_fp(int offset)
{
	return (struct abi_unwind_rule){ .cfa = ABI_CFA_FP,
		.cfa_off = offset,
		.fp = ABI_REG_AT_CFA,
		.fp_off = -16,
		.ra = ABI_REG_AT_CFA,
		.ra_off = -8 };
}

struct abi_unwind_rule rule_of(enum abi_cfa kind)
{
	return (struct abi_unwind_rule){ .cfa = (uint8_t)kind };
}
