/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Packs rows into the pages of bpf/abi/unwind.h. Adjacent rows with the same rule are merged; gaps
 * between rows are ABI_CFA_NONE; pages with nothing else are omitted.
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
	uint32_t left_out; /* pages with too many rows, and rows whose rule did not fit a page */
};

/* Receives a page of PAGE->size bytes for the 64 KiB at ADDRESS. After an error no more follow. */
typedef int unwind_page_sink(void *context, uint64_t address, const struct abi_unwind_page *page);

struct unwind_pages *unwind_pages_create(unwind_page_sink *sink, void *context);
void unwind_pages_destroy(struct unwind_pages *p);
/* Adds a row: RULE is valid in [low, high). Ascending; overlap with an earlier row is cut off. */
void unwind_pages_row(
	struct unwind_pages *p, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule);
/* Adds COUNT rows, none of them empty; the last one is valid up to HIGH. */
void unwind_pages_rows(
	struct unwind_pages *p, const struct unwind_row *rows, size_t count, uint64_t high);
/* Writes the last page. Returns the sink's first error. */
int unwind_pages_finish(struct unwind_pages *p, struct unwind_counts *ret_counts);
