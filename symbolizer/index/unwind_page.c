/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index/unwind.h"

#include "base/cleanup.h"

enum { STEP_SHIFT = 12 };

/* The parts of a page whose counts agree with its size. */
struct parts {
	const uint16_t *addresses;
	const uint8_t *numbers;
	const struct abi_unwind_rule *rules;
};

static bool find_parts(const struct abi_unwind_page *page, size_t size, struct parts *ret_parts)
{
	const uint8_t *bytes = (const uint8_t *)page;
	size_t numbers, rules;

	if (size < sizeof(*page) || page->size > size || page->row_count > ABI_UNWIND_PAGE_ROWS ||
		!page->rule_count || page->rule_count > ABI_UNWIND_PAGE_RULES)
		return false;
	numbers = sizeof(*page) + page->row_count * sizeof(uint16_t);
	rules = (numbers + page->row_count + 3) & ~(size_t)3;
	if (page->size != rules + page->rule_count * sizeof(struct abi_unwind_rule))
		return false;
	*ret_parts = (struct parts){
		.addresses = (const uint16_t *)(const void *)(bytes + sizeof(*page)),
		.numbers = bytes + numbers,
		.rules = (const struct abi_unwind_rule *)(const void *)(bytes + rules),
	};
	return true;
}

static bool rows_make_sense(const struct abi_unwind_page *page, const struct parts *parts)
{
	for (uint32_t i = 0; i < page->row_count; i++) {
		if (i && parts->addresses[i] <= parts->addresses[i - 1])
			return false;
		if (parts->numbers[i] >= page->rule_count)
			return false;
	}
	return true;
}

static bool steps_make_sense(const struct abi_unwind_page *page, const struct parts *parts)
{
	uint32_t row = 0;

	for (uint32_t i = 0; i < ABI_UNWIND_STEPS; i++) {
		while (row < page->row_count && parts->addresses[row] < i << STEP_SHIFT)
			row++;
		if (page->steps[i] != row)
			return false;
	}
	return true;
}

static bool rules_make_sense(const struct abi_unwind_page *page, const struct parts *parts)
{
	for (uint32_t i = 0; i < page->rule_count; i++) {
		const struct abi_unwind_rule *rule = &parts->rules[i];

		if (rule->cfa >= ABI_CFA_KINDS || rule->fp >= ABI_REG_KINDS ||
			rule->ra > ABI_REG_UNSUPPORTED)
			return false;
	}
	return true;
}

bool unwind_page_check(const struct abi_unwind_page *page, size_t size)
{
	struct parts parts;

	return find_parts(page, size, &parts) && rows_make_sense(page, &parts) &&
	       steps_make_sense(page, &parts) && rules_make_sense(page, &parts);
}

bool unwind_rule_at(const struct abi_unwind_page *page, size_t size, uint32_t page_offset,
	struct abi_unwind_rule *ret_rule)
{
	struct parts parts;
	uint32_t low, high, number = 0;

	if (page_offset >> ABI_UNWIND_PAGE_SHIFT || !find_parts(page, size, &parts))
		return false;
	high = MIN(page->steps[(page_offset >> STEP_SHIFT) + 1], page->row_count);
	low = MIN(page->steps[page_offset >> STEP_SHIFT], high);
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (parts.addresses[middle] <= page_offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low)
		number = parts.numbers[low - 1];
	if (number >= page->rule_count)
		return false;
	*ret_rule = parts.rules[number];
	return true;
}
