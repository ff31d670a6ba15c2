/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Packs rows into the pages of bpf/abi/unwind.h. It does not know where rows come from, nor where
 * pages go. Neighbours with the same rule become one row; what lies between rows is ABI_CFA_NONE;
 * a page that says nothing else is not made.
 */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/cfi/unwind_row.h"

struct unwind_pages;

struct unwind_counts {
	uint32_t pages;
	uint32_t rows;
	uint32_t unsupported; /* rows whose rule is ABI_CFA_UNSUPPORTED */
	uint32_t left_out; /* pages with more rows, rows with more rules than a page can hold */
};

/* ADDRESS is the first of the page's 64 KiB; PAGE->size bytes. An error ends the work. */
typedef int unwind_page_sink(void *context, uint64_t address, const struct abi_unwind_page *page);

struct unwind_pages *unwind_pages_create(unwind_page_sink *sink, void *context);
void unwind_pages_destroy(struct unwind_pages *p);
/* RULE is valid in [low, high). Ascending; what overlaps an earlier row is cut off. */
void unwind_pages_row(
	struct unwind_pages *p, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule);
/* The same of many; the last one is valid up to HIGH. None is empty. */
void unwind_pages_rows(
	struct unwind_pages *p, const struct unwind_row *rows, size_t count, uint64_t high);
/* After the last row. Returns the sink's first error. */
int unwind_pages_finish(struct unwind_pages *p, struct unwind_counts *ret_counts);
