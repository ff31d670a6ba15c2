/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A module's unwind tables: what .eh_frame (or .debug_frame, where it is all there is) and a Go
 * program's pclntab say, as the pages of bpf/abi/unwind.h. symbolizer/indexer/cfi/cfi.h makes them
 * in the sandbox; here they are handed out as bytes of the index file.
 */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/index/index.h"

/*
 * The page of ELF_ADDR: *RET_PAGE points into the mapping and *RET_SIZE is its size. False where
 * the module has no table for that page. The bytes were written by a process that read a foreign
 * file: here no more than the page's counts are checked, not to read all of it for one address.
 * unwind_rule_at() checks what it meets, and what BPF gets has to pass unwind_page_check().
 */
bool index_unwind_page(const struct index *index, uint64_t elf_addr,
	const struct abi_unwind_page **ret_page, size_t *ret_size);
/* Pages of the module that have a table, and their bytes together. */
size_t index_unwind_page_count(const struct index *index);
size_t index_unwind_bytes(const struct index *index);
/* The ELF address where page NUMBER (below that count) begins. */
uint64_t index_unwind_page_address(const struct index *index, size_t number);
/* How reading went. */
const struct index_unwind *index_unwind_figures(const struct index *index);

/* Whether the page's parts lie inside of it. */
bool unwind_page_fits(const struct abi_unwind_page *page, size_t size);
/* Whether all in a page is as bpf/abi/unwind.h says. SIZE bytes are there, PAGE is aligned to 4. */
bool unwind_page_check(const struct abi_unwind_page *page, size_t size);
/*
 * The rule at PAGE_OFFSET, as BPF finds it: for tests, and for walks in user space. False: the page
 * makes no sense.
 */
bool unwind_rule_at(const struct abi_unwind_page *page, size_t size, uint32_t page_offset,
	struct abi_unwind_rule *ret_rule);
