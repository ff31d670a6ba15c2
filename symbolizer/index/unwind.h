/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A module's unwind tables: what .eh_frame (or .debug_frame, where it is all there is) says, as the
 * pages of bpf/abi/unwind.h. Made in the sandbox, kept in the index file, handed out as bytes.
 */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/index/elf_image.h"
#include "symbolizer/index/index.h"
#include "symbolizer/index/writer.h"

/* Reads the tables of IMAGE into the writer. *RET_BROKEN counts entries (FDEs) given up. */
int unwind_read(struct elf_image *image, struct index_writer *w, uint32_t *ret_broken);

/*
 * The page of ELF_ADDR: *RET_PAGE points into the mapping and *RET_SIZE is its size. False where
 * the module has no table for that page. The bytes were written by a process that read a foreign
 * file, so the page's header is checked here (counts against size), its rules by BPF.
 */
bool index_unwind_page(const struct index *index, uint64_t elf_addr,
	const struct abi_unwind_page **ret_page, size_t *ret_size);
/* Pages of the module that have a table, and their bytes together. */
size_t index_unwind_page_count(const struct index *index);
size_t index_unwind_bytes(const struct index *index);
/* The rule at an ELF address, as BPF finds it: for tests, and for walks in user space. */
bool unwind_rule_at(const struct abi_unwind_page *page, size_t size, uint32_t page_offset,
	struct abi_unwind_rule *ret_rule);
