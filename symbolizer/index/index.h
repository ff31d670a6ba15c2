/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A module index: all that symbolization needs to know about one module, in one read-only mapped
 * file. The file comes from a sandboxed process that parsed a foreign file, so the reader trusts
 * nothing in it: each offset is checked at use, and a forged file yields wrong or missing names,
 * never an access outside the mapping. The layout is in format.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_hash.h"
#include "base/module_id.h"
#include "symbolizer/index/debug_names.h"
#include "symbolizer/index/facts.h"
#include "symbolizer/index/index_frame.h"

struct index;

enum index_source {
	INDEX_SOURCE_SYMTAB = 1 << 0,
	INDEX_SOURCE_DYNSYM = 1 << 1,
	INDEX_SOURCE_DWARF = 1 << 2,
	INDEX_SOURCE_PCLNTAB = 1 << 3,
	INDEX_SOURCE_DWARF_PARTIAL = 1 << 4, /* some units could not be read */
	INDEX_SOURCE_DEBUG_FILES = 1 << 5, /* debug files were offered, matching or not */
	INDEX_SOURCE_NOT_SHARED = 1 << 6, /* the file that dwz made is missing: none was offered */
	INDEX_SOURCE_SPLIT = 1 << 7, /* split DWARF files were offered, matching or not */
	INDEX_SOURCE_FUNCTIONS = 1 << 8, /* requested with functions (functions.h) */
	/* Has names of the addresses that were asked for (sandbox/job.h), and no unwind tables. */
	INDEX_SOURCE_ASKED = 1 << 9,
};

/* Properties of the file itself, without its debug files. */
enum index_kind {
	INDEX_STATIC = 1 << 0, /* no PT_INTERP */
	INDEX_STRIPPED = 1 << 1, /* no .symtab of its own */
};

/*
 * Maps an index file. Returns -EBADMSG if it is not an index, has another version, a wrong checksum
 * or inconsistent tables. The fd may be closed afterwards.
 */
int index_open(int fd, struct index **ret_index);
void index_destroy(struct index *index);

/*
 * Fills in the frames at ELF_ADDR, innermost first: the inline chain and the function around it.
 * Returns their number, 0 if no function is known there. Strings live as long as the index.
 * ELF_ADDR is looked up unchanged: for a return address the caller subtracts 1 first.
 */
size_t index_lookup(
	const struct index *index, uint64_t elf_addr, struct index_frame *ret_frames, size_t max);

/*
 * Finds the function without a name at ELF_ADDR: code that no symbol covers, but an entry for
 * unwinding. Returns false if there is none; never true where index_lookup() finds a name.
 */
bool index_nameless(const struct index *index, uint64_t elf_addr, uint64_t *ret_start);

struct index_segment {
	uint64_t address; /* p_vaddr */
	uint64_t size;
	uint64_t file_off; /* p_offset */
};
/* Executable segments, ascending. */
size_t index_segment_count(const struct index *index);
struct index_segment index_segment(const struct index *index, size_t number);
/* Converts a file offset to an ELF address by its segment (each has its own load bias). */
bool index_address(
	const struct index *index, uint64_t file_off, uint64_t *ret_elf_addr, size_t *ret_segment);

/* The opposite: false if no executable segment has ELF_ADDR. */
bool index_file_off(const struct index *index, uint64_t elf_addr, uint64_t *ret_file_off);

/* Returns true if code without unwind tables keeps a frame pointer. */
bool index_keeps_fp(const struct index *index);
/* The facts of runtime KIND about the program, INDEX_RUNTIME_WORDS; NULL: it has no such runtime.
 */
const uint32_t *index_runtime_facts(const struct index *index, uint32_t kind);
const struct build_id *index_build_id(const struct index *index);
/* The toolchain's own build ID, which is a text; "" = none. */
const char *index_text_build_id(const struct index *index);
/* Hash of the file from which the index was built. */
const struct file_hash *index_file_hash(const struct index *index);
/*
 * Returns false if the index was built from a file other than ID; compares the content hash if ID
 * has one.
 */
bool index_is_of(const struct index *index, const struct module_id *id);
const char *index_toolchain(const struct index *index); /* "GCC 12.2.0", … ; "" = unknown */
uint32_t index_kind(const struct index *index); /* enum index_kind */
uint32_t index_sources(const struct index *index); /* enum index_source */
/*
 * Copies what the indexed file says about its debug information. *RET_OF_DEBUG is true if the
 * alternate is named by the debug file and not by the file itself.
 */
void index_debug_names(
	const struct index *index, struct debug_names *ret_names, bool *ret_of_debug);
/* The file has DWARF of its own, readable or not. */
bool index_has_own_dwarf(const struct index *index);
/* The index has no lines and no debug file was offered: finding one now would help. */
bool index_lacks_debug(const struct index *index);
/* The file names a file made by dwz (shared) or .dwo files (split), and none were found. */
bool index_lacks_shared(const struct index *index);
bool index_lacks_split(const struct index *index);
/* Paths of the missing .dwo files, as the compiler wrote them. */
size_t index_wanted_count(const struct index *index);
const char *index_wanted(const struct index *index, size_t number);
size_t index_bytes(const struct index *index); /* of the mapping */
const void *index_file(const struct index *index); /* its index_bytes() bytes */
/*
 * Lets the kernel reclaim the mapping's pages; the next lookup reads them again. Costs nothing if
 * there was no lookup since the last call.
 */
void index_forget_pages(struct index *index);
