/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A module's unwind tables: what .eh_frame (or .debug_frame, where it is all there is) and a Go
 * program's pclntab say, as the pages of bpf/abi/unwind.h. Made in the sandbox, kept in the index
 * file, handed out as bytes.
 */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/cfi/eh_frame.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/sources.h"
#include "symbolizer/indexer/writer/writer.h"

/*
 * Reads the tables of IMAGE into the writer, what sections say of functions inside SKIP left out
 * (Go code, which the pclntab describes). Broken entries and rows that nobody understands are
 * counted there. -ENOENT: there are none. -E2BIG: over a limit; what was read stays.
 */
int unwind_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w);

/*
 * The same from sections: at an address that several describe, the first of them counts. What they
 * leave out from the file's ENTRY_POINT on (0: it has none) has no caller.
 */
int unwind_read_sections(const struct cfi_section *sections, size_t count, uint64_t entry_point,
	const struct source_range *skip, struct index_writer *w);

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
