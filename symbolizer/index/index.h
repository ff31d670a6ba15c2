/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A module index: everything that symbolization asks of one module, in one read-only mapped file.
 * It was written by a sandboxed process that read a foreign file, so the reader trusts nothing in
 * it: each offset is checked at use, a lie in the file gives a wrong or missing name and never an
 * access outside the mapping. The layout is in format.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_hash.h"
#include "base/module_id.h"
#include "symbolizer/index/debug_names.h"
#include "symbolizer/index/facts.h"

struct index;

enum index_source {
	INDEX_SOURCE_SYMTAB = 1 << 0,
	INDEX_SOURCE_DYNSYM = 1 << 1,
	INDEX_SOURCE_DWARF = 1 << 2,
	INDEX_SOURCE_PCLNTAB = 1 << 3,
	INDEX_SOURCE_DWARF_PARTIAL = 1 << 4, /* some units could not be read */
	INDEX_SOURCE_COMPANIONS =
		1 << 5, /* other files were offered (whether they were right or not) */
	INDEX_SOURCE_NOT_SHARED = 1 << 6, /* what dwz moved out is missing: none was offered */
	INDEX_SOURCE_SPLIT = 1 << 7, /* files with split DWARF were offered, right or not */
};

/* What the file itself is like, whatever other files say of it. */
enum index_kind {
	INDEX_STATIC = 1 << 0, /* it asks for no dynamic linker */
	INDEX_STRIPPED = 1 << 1, /* it has no symbol table of its own */
};

enum { INDEX_MAX_FRAMES = 256 }; /* of one address's inline chain */

struct index_frame {
	const char *name; /* for people (demangled); never "" */
	const char *linkage; /* as in the symbol table; equals `name` where nothing was mangled */
	const char *file; /* path, or "" when unknown */
	uint32_t line; /* 0 = unknown */
	uint32_t column; /* 0 = unknown */
	uint32_t start_line; /* of the function; 0 = unknown */
};

/*
 * Maps an index file. -EBADMSG: not an index, another version, a wrong checksum or a shape that
 * makes no sense. The fd may be closed afterwards.
 */
int index_open(int fd, struct index **ret_index);
void index_destroy(struct index *index);

/*
 * The frames at ELF_ADDR, innermost first: the inline chain and the function around it. Returns
 * their number, 0 when no function is known there. Strings live as long as the index. The address
 * is looked up as it is: a return address is the caller's to step back from.
 */
size_t index_lookup(
	const struct index *index, uint64_t elf_addr, struct index_frame *ret_frames, size_t max);

struct index_segment {
	uint64_t address; /* p_vaddr */
	uint64_t size;
	uint64_t file_off; /* p_offset */
};
/* Executable segments, ascending. */
size_t index_segment_count(const struct index *index);
struct index_segment index_segment(const struct index *index, size_t number);
/* File offset → ELF address by its segment (each has a load bias of its own). */
bool index_address(
	const struct index *index, uint64_t file_off, uint64_t *ret_elf_addr, size_t *ret_segment);

/* Whether its code keeps a frame pointer wherever its unwind tables have nothing. */
bool index_keeps_fp(const struct index *index);
/* NULL when the module is not a Go program. */
const struct index_go *index_go(const struct index *index);
const struct build_id *index_build_id(const struct index *index);
/* The build ID that a toolchain of its own wrote, such as Go's; "" = none. */
const char *index_text_build_id(const struct index *index);
/* Of the file that it was built from. */
const struct file_hash *index_file_hash(const struct index *index);
/* False: it was built from another file than ID, as far as that has a content hash. */
bool index_is_of(const struct index *index, const struct module_id *id);
const char *index_toolchain(const struct index *index); /* "GCC 12.2.0", … ; "" = not known */
uint32_t index_kind(const struct index *index); /* enum index_kind */
uint32_t index_sources(const struct index *index); /* enum index_source */
/*
 * What the file that it was built from says of its debug information. *RET_OF_DEBUG: the alternate
 * is named by the debug file and not by the file itself.
 */
void index_debug_names(
	const struct index *index, struct debug_names *ret_names, bool *ret_of_debug);
/* The file has DWARF of its own, readable or not. */
bool index_has_own_dwarf(const struct index *index);
/* Neither lines nor a debug file that could have had them: one that is found now would help. */
bool index_lacks_debug(const struct index *index);
/* It names a file that dwz made, or .dwo files, of which none were there. */
bool index_lacks_shared(const struct index *index);
bool index_lacks_split(const struct index *index);
/* Paths of files that have what is missing here, as the compiler wrote them: .dwo files. */
size_t index_wanted_count(const struct index *index);
const char *index_wanted(const struct index *index, size_t number);
size_t index_bytes(const struct index *index); /* of the mapping */
const void *index_file(const struct index *index); /* its index_bytes() bytes */
/* Lets the kernel take back the mapping's pages; the next look-up reads them again. */
void index_forget_pages(const struct index *index);
