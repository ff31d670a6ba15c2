/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes a page of unwind tables (bpf/abi/unwind.h) row by row in its plainest form: no change has
 * a code, each one names its rule, and all rules are wide.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"

enum { PAGE_WRITER_ROWS = 6000, PAGE_WRITER_RULES = 16, PAGE_WRITER_BYTES = 65536 };

struct page_writer {
	uint32_t row_count, rule_count;
	uint16_t addresses[PAGE_WRITER_ROWS];
	uint8_t numbers[PAGE_WRITER_ROWS];
	struct abi_unwind_rule rules[PAGE_WRITER_RULES];
	_Alignas(8) uint8_t bytes[PAGE_WRITER_BYTES]; /* result of page_finish() */
};

/* Starts a page; rule 0 is valid from its beginning. */
void page_begin(struct page_writer *w, struct abi_unwind_rule first);
/* Adds a rule from OFFSET on; offsets ascend. */
void page_row(struct page_writer *w, uint16_t offset, struct abi_unwind_rule rule);
const struct abi_unwind_page *page_finish(struct page_writer *w);
/* The rule at OFFSET, found by a linear search. */
struct abi_unwind_rule page_rule_at(const struct page_writer *w, uint16_t offset);

/* Common rules: x86_64's return address is always just below the CFA. */
struct abi_unwind_rule rule_none(void);
struct abi_unwind_rule rule_sp(int offset); /* frame pointer untouched */
struct abi_unwind_rule rule_fp(int offset); /* frame pointer saved below the return address */
struct abi_unwind_rule rule_of(enum abi_cfa kind);
