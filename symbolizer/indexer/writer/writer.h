/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Collects what the sources (symbols, DWARF, pclntab) know of one module and writes the index file
 * (format.h). Runs only in the sandbox. It does not know where a fact came from, but it keeps what
 * came from one `unit` together: where ranges of two units overlap (identical code folding), an
 * address takes function and line from the same unit.
 *
 * Addresses are ELF addresses of the file. Everything is dropped that does not start in executable
 * code (the tombstones of discarded functions: 0, 1, -1, -2). Errors: -ENOMEM, -E2BIG over a
 * limit; the caller stops at the first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_hash.h"
#include "base/module_id.h"
#include "symbolizer/index/debug_names.h"
#include "symbolizer/index/facts.h"

enum { WRITER_NONE = UINT32_MAX };

struct index_writer;

struct index_writer *index_writer_create(void);
void index_writer_destroy(struct index_writer *w);

/* A loaded executable segment, before everything else. */
struct writer_segment {
	uint64_t address; /* p_vaddr */
	uint64_t size; /* p_memsz */
	uint64_t file_off; /* p_offset */
};
int writer_segment(struct index_writer *w, const struct writer_segment *segment);
/* An executable section: only addresses inside one count as code. None given: the segments. */
int writer_code(struct index_writer *w, uint64_t address, uint64_t size);

/* Text is copied; not NUL-terminated input is fine. Number 0 is "". */
int writer_string(struct index_writer *w, const char *text, size_t size, uint32_t *ret_string);

/* Whether there is executable code at ADDRESS; the end of the code around it. */
int writer_code_at(struct index_writer *w, uint64_t address, bool *ret_found, uint64_t *ret_end);

/* A function (parent WRITER_NONE) or one inlined call of a function inside its parent. */
struct writer_node {
	uint32_t parent; /* node it was inlined into, or WRITER_NONE */
	uint32_t linkage; /* string: the linkage name (mangled), else the plain name */
	uint32_t name; /* string: for people; 0 = demangle the linkage name at the end */
	uint32_t start_line; /* line of the function's declaration; 0 = unknown */
	uint32_t call_file; /* string, for inlined calls: where the parent calls it; 0 = unknown */
	uint32_t call_line; /* 0 = unknown */
	uint32_t call_column; /* 0 = unknown */
	uint32_t unit; /* number of the compile unit, for the overlap rule */
};
int writer_node(struct index_writer *w, const struct writer_node *node, uint32_t *ret_node);
/*
 * NODE covers [low, high). Ranges may come in any order and stick out of the parent's; at each
 * address the deepest node wins, among functions that overlap the first one given.
 */
int writer_range(struct index_writer *w, uint32_t node, uint64_t low, uint64_t high);

/*
 * A line sequence: begin, rows in address order, end. The last row at an address wins; line 0
 * means unknown; nothing is known from the end address on.
 */
int writer_sequence_begin(struct index_writer *w, uint32_t unit);
int writer_row(
	struct index_writer *w, uint64_t address, uint32_t file, uint32_t line, uint32_t column);
int writer_sequence_end(struct index_writer *w, uint64_t end_address);

/* Higher wins where several symbols stand at one address. */
enum writer_symbol_rank {
	WRITER_SYMBOL_NOTYPE,
	WRITER_SYMBOL_LOCAL,
	WRITER_SYMBOL_WEAK,
	WRITER_SYMBOL_GLOBAL,
};
/*
 * A symbol of executable code. SIZE 0 (assembly): it reaches to the next symbol or the end of the
 * section, LIMIT.
 */
int writer_symbol(struct index_writer *w, uint64_t address, uint64_t size, uint64_t limit,
	uint32_t name, enum writer_symbol_rank rank);

void writer_go(struct index_writer *w, const struct index_go *go);
void writer_build_id(struct index_writer *w, const struct build_id *id); /* GNU's */
/* The build ID that a toolchain of its own wrote, as text (string; 0 = none): Go's has slashes. */
void writer_text_build_id(struct index_writer *w, uint32_t text);
void writer_file_hash(struct index_writer *w, const struct file_hash *hash);
/*
 * What the file says of its debug information, and what its debug file says (NULL = none is there):
 * of the latter the alternate counts where it has one.
 */
int writer_debug_names(
	struct index_writer *w, const struct debug_names *own, const struct debug_names *debug);
/* What made the file (string; 0 = not known), and what it is like (enum index_kind). */
void writer_making(struct index_writer *w, uint32_t toolchain, uint32_t kind);

/*
 * A page of unwind tables: SIZE bytes, a multiple of 4, for the 64 KiB of code from ADDRESS on.
 * Pages come ascending.
 */
int writer_unwind_page(struct index_writer *w, uint64_t address, const void *bytes, uint32_t size);
void writer_unwind(struct index_writer *w, const struct index_unwind *unwind);

/*
 * String PATH names a file that has what is missing here (a .dwo file of split DWARF). Those over
 * a limit are not noted.
 */
int writer_wanted(struct index_writer *w, uint32_t path);

/* What is worth knowing of a build, kept in the file; see `enum index_source` in index.h. */
void writer_source(struct index_writer *w, uint32_t source);

/* Demangles, flattens, sorts and writes the whole index file to FD, which is empty. */
int writer_finish(struct index_writer *w, int fd);
