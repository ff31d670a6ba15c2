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

const struct abi_unwind_page *page_finish(struct page_writer *w)
{
	struct abi_unwind_page *page = (void *)w->bytes;
	size_t at = sizeof(*page);

	memset(w->bytes, 0, sizeof(w->bytes));
	page->row_count = (uint16_t)w->row_count;
	page->rule_count = (uint16_t)w->rule_count;
	for (uint32_t step = 0; step < ABI_UNWIND_STEPS; step++)
		while (page->steps[step] < w->row_count &&
			w->addresses[page->steps[step]] < step << 12)
			page->steps[step]++;
	memcpy(w->bytes + at, w->addresses, w->row_count * sizeof(w->addresses[0]));
	at += w->row_count * sizeof(w->addresses[0]);
	memcpy(w->bytes + at, w->numbers, w->row_count);
	at = (at + w->row_count + 3) & ~(size_t)3;
	memcpy(w->bytes + at, w->rules, w->rule_count * sizeof(w->rules[0]));
	at += w->rule_count * sizeof(w->rules[0]);
	assert(at <= PAGE_WRITER_BYTES);
	page->size = (uint32_t)at;
	return page;
}

struct abi_unwind_rule page_rule_at(const struct page_writer *w, uint16_t offset)
{
	uint8_t number = 0;

	for (uint32_t i = 0; i < w->row_count && w->addresses[i] <= offset; i++)
		number = w->numbers[i];
	return w->rules[number];
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
