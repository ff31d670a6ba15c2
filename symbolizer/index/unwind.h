/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A module's unwind tables as the pages of bpf/abi/unwind.h, made from .eh_frame (or .debug_frame
 * if there is nothing else) and a Go program's pclntab. symbolizer/indexer/cfi/cfi.h builds them in
 * the sandbox; this header hands them out as bytes of the index file.
 */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/index/index.h"

/*
 * Returns the page of ELF_ADDR: *RET_PAGE points into the mapping, *RET_SIZE is its size. Returns
 * false if the module has no table for that page. The bytes come from a process that parsed a
 * foreign file. To avoid reading the whole page for one address, only its counts are checked here:
 * unwind_rule_at() checks what it reads, and a page must pass unwind_page_check() before BPF gets
 * it.
 */
bool index_unwind_page(const struct index *index, uint64_t elf_addr,
	const struct abi_unwind_page **ret_page, size_t *ret_size);
/* Number of pages with a table, and their total bytes. */
size_t index_unwind_page_count(const struct index *index);
size_t index_unwind_bytes(const struct index *index);
/* ELF address of the start of page NUMBER (less than index_unwind_page_count()). */
uint64_t index_unwind_page_address(const struct index *index, size_t number);
/* Results of reading the unwind tables. */
const struct index_unwind *index_unwind_figures(const struct index *index);

/* Returns true if all parts of the page lie within SIZE bytes. */
bool unwind_page_fits(const struct abi_unwind_page *page, size_t size);
/* Returns true if the page satisfies bpf/abi/unwind.h. PAGE is aligned to 4 and has SIZE bytes. */
bool unwind_page_check(const struct abi_unwind_page *page, size_t size);
/*
 * Finds the rule at PAGE_OFFSET as BPF does; for tests and for unwinding in user space. Returns
 * false if the page is malformed.
 */
bool unwind_rule_at(const struct abi_unwind_page *page, size_t size, uint32_t page_offset,
	struct abi_unwind_rule *ret_rule);
