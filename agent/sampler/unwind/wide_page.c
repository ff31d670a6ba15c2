/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/wide_page.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/index/unwind_rule.h"

/* Offsets and sizes of a page's parts, in bytes; what lies before the rules is `head`. */
struct wide_page_parts {
	size_t head, rules, wide, changes;
};

static struct wide_page_parts wide_page_parts_of(const struct abi_unwind_page *page)
{
	size_t buckets = (size_t)1 << (ABI_UNWIND_PAGE_SHIFT - page->bucket_shift);
	struct wide_page_parts parts = {
		.head = sizeof(*page) + (buckets + 2) * sizeof(uint16_t),
		.rules = page->rule_count * sizeof(uint32_t),
		.wide = page->wide_count * sizeof(struct abi_unwind_rule),
	};

	parts.changes = page->size - parts.head - parts.rules - parts.wide;
	return parts;
}

/* The wide form of BITS; WIDE are the page's wide rules. */
static struct abi_unwind_rule wide_page_rule(uint32_t bits, const uint8_t *wide)
{
	struct abi_unwind_rule rule;

	if ((bits & ABI_RULE_CFA) != ABI_RULE_WIDE)
		return unwind_rule_of_bits(bits);
	memcpy(&rule, wide + (bits >> ABI_RULE_FP_SHIFT) * sizeof(rule), sizeof(rule));
	return rule;
}

struct abi_unwind_page *wide_page_of(const struct abi_unwind_page *page)
{
	const struct wide_page_parts parts = wide_page_parts_of(page);
	const uint8_t *rules = (const uint8_t *)page + parts.head;
	const size_t wide_bytes = page->rule_count * sizeof(struct abi_unwind_rule);
	const size_t size = page->size - parts.wide + wide_bytes;
	struct abi_unwind_page *result = malloc(size);
	uint8_t *to;

	if (!result)
		return NULL;
	memcpy(result, page, parts.head);
	to = (uint8_t *)result + parts.head;
	for (uint32_t i = 0; i < page->rule_count; i++) {
		uint32_t bits = ABI_RULE_WIDE | i << ABI_RULE_FP_SHIFT, packed;
		struct abi_unwind_rule rule;

		memcpy(&packed, rules + i * sizeof(packed), sizeof(packed));
		rule = wide_page_rule(packed, rules + parts.rules);
		memcpy(to + i * sizeof(bits), &bits, sizeof(bits));
		memcpy(to + parts.rules + i * sizeof(rule), &rule, sizeof(rule));
	}
	memcpy(to + parts.rules + wide_bytes, rules + parts.rules + parts.wide, parts.changes);
	result->size = (uint32_t)size;
	result->wide_count = page->rule_count;
	return result;
}
