/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Collects what the sources (symbols, DWARF, a runtime) know about one module and writes the index
 * file (format.h). Runs only in the sandbox. It does not know where a fact came from, but keeps
 * facts of one `unit` together: where ranges of two units overlap (identical code folding), an
 * address takes function and line from the same unit.
 *
 * Addresses are ELF addresses of the file. Whatever does not start in executable code is dropped
 * (the tombstones of discarded functions: 0, 1, -1, -2). Functions return -ENOMEM, or -E2BIG over a
 * limit; the caller stops at the first error. writer_string() returns -EBADMSG once the work is
 * spent: the source then ends with what it has.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_hash.h"
#include "base/module_id.h"
#include "symbolizer/index/debug_names.h"
#include "symbolizer/index/facts.h"
#include "symbolizer/indexer/writer/work.h"

enum { WRITER_NONE = UINT32_MAX };

struct index_writer;

struct index_writer *index_writer_create(void);
void index_writer_destroy(struct index_writer *w);

/* Adds a loaded executable segment; to be called before everything else. */
struct writer_segment {
	uint64_t address; /* p_vaddr */
	uint64_t size; /* p_memsz */
	uint64_t file_off; /* p_offset */
};
int writer_segment(struct index_writer *w, const struct writer_segment *segment);
/*
 * Adds an executable section: only addresses inside one count as code. Without any, the segments
 * count.
 */
int writer_code(struct index_writer *w, uint64_t address, uint64_t size);

/*
 * Whether what follows comes from a debug file, which may be forged, and not from the module's own
 * file. Only functions with probes make a difference (writer_bodies.h).
 */
void writer_foreign(struct index_writer *w, bool is_foreign);

/* Sets what the next source, of BYTES, may spend (work.h). Until the first call all may. */
void writer_allow(struct index_writer *w, uint64_t bytes);
/* NULL = not bounded. */
struct work *writer_work(struct index_writer *w);

/*
 * From now on only COUNT ADDRESSES, ascending and borrowed, need an answer: ranges and rows that
 * cover none of them may be left out. A source asks so that it can save the work on them.
 */
void writer_ask(struct index_writer *w, const uint64_t *addresses, size_t count);
bool writer_asks(const struct index_writer *w);
const uint64_t *writer_asked(const struct index_writer *w, size_t *ret_count);
/* The number of the first of them that is not below ADDRESS; their count if there is none. */
size_t writer_first_asked(const struct index_writer *w, uint64_t address);
/*
 * Whether a symbol matters, once the functions are known: it covers an address, or may name a
 * function that does. One without a size does not: only the whole index can tell where it ends.
 */
bool writer_asks_symbol(struct index_writer *w, uint64_t address, uint64_t size);
/* Whether an address in [low, high) needs an answer. Fastest for ranges in ascending order. */
bool writer_is_asked(struct index_writer *w, uint64_t low, uint64_t high);

/* Adds a copy of TEXT, which need not be NUL-terminated. String 0 is "". */
int writer_string(struct index_writer *w, const char *text, size_t size, uint32_t *ret_string);

/* Tells whether ADDRESS is executable code, and where the code around it ends. */
int writer_code_at(struct index_writer *w, uint64_t address, bool *ret_found, uint64_t *ret_end);

/* A function (parent WRITER_NONE) or one inlined call of a function inside its parent. */
struct writer_node {
	uint32_t parent; /* node it was inlined into, or WRITER_NONE */
	uint32_t linkage; /* string: the linkage name (mangled), else the plain name */
	uint32_t name; /* string: readable name; 0 = demangle `linkage` at the end */
	uint32_t start_line; /* line of the function's declaration; 0 = unknown */
	uint32_t call_file; /* string, for inlined calls: file of the call; 0 = unknown */
	uint32_t call_line; /* 0 = unknown */
	uint32_t call_column; /* 0 = unknown */
	uint32_t unit; /* number of the compile unit, for the overlap rule */
};
int writer_node(struct index_writer *w, const struct writer_node *node, uint32_t *ret_node);
/*
 * NODE covers [low, high). Ranges may come in any order and exceed the parent's; at each address
 * the deepest node wins, among overlapping functions the first one given.
 */
int writer_range(struct index_writer *w, uint32_t node, uint64_t low, uint64_t high);

/*
 * A line sequence: begin, rows in address order, end. The last row at an address wins; line 0 means
 * unknown; lines are unknown from the end address on.
 */
int writer_sequence_begin(struct index_writer *w, uint32_t unit);
int writer_row(
	struct index_writer *w, uint64_t address, uint32_t file, uint32_t line, uint32_t column);
int writer_sequence_end(struct index_writer *w, uint64_t end_address);

/* The highest rank wins among several symbols at one address. */
enum writer_symbol_rank {
	WRITER_SYMBOL_NOTYPE,
	WRITER_SYMBOL_LOCAL,
	WRITER_SYMBOL_WEAK,
	WRITER_SYMBOL_GLOBAL,
	/* What a symbol is, or-ed to its rank. */
	WRITER_SYMBOL_RESOLVER = 1 << 8, /* STT_GNU_IFUNC */
	WRITER_SYMBOL_STUB = 1 << 9, /* of the procedure linkage table: no function */
	/* One of several in its function, or of others that are gone: may end anywhere. */
	WRITER_SYMBOL_LABEL = 1 << 10,
};
/*
 * Adds a symbol of executable code. SIZE 0 (assembly): it reaches to the end of its extent, without
 * one to the next extent, in each case at most to the next symbol and the end of the section,
 * LIMIT. A label without an extent names nothing.
 */
int writer_symbol(struct index_writer *w, uint64_t address, uint64_t size, uint64_t limit,
	uint32_t name, enum writer_symbol_rank rank);

/*
 * Adds an extent: [low, high) is one function, says an entry for unwinding. Where it has no name,
 * the index has its start. Of overlapping extents the one that starts last counts.
 */
int writer_extent(struct index_writer *w, uint64_t low, uint64_t high);
/*
 * Adds an extent of code without an entry, which the code itself shows. Unlike the others it ends
 * no symbol that has no size: a function of assembly may look like several.
 */
int writer_code_extent(struct index_writer *w, uint64_t low, uint64_t high);

/* Sets the facts of the program's runtime, as struct index_runtime. */
void writer_runtime(
	struct index_writer *w, uint32_t kind, const uint32_t facts[INDEX_RUNTIME_WORDS]);
void writer_build_id(struct index_writer *w, const struct build_id *id); /* GNU's */
/* Sets the toolchain's own build ID as text (string; 0 = none). */
void writer_text_build_id(struct index_writer *w, uint32_t text);
void writer_file_hash(struct index_writer *w, const struct file_hash *hash);
/*
 * Sets what the file says about its debug information, and what its debug file says (NULL = none):
 * the alternate comes from the latter if it names one.
 */
int writer_debug_names(
	struct index_writer *w, const struct debug_names *own, const struct debug_names *debug);
/* Sets the file's toolchain (string; 0 = unknown) and kind (enum index_kind). */
void writer_making(struct index_writer *w, uint32_t toolchain, uint32_t kind);

/*
 * Adds an unwind page: SIZE bytes, a multiple of 4, for the 64 KiB of code at ADDRESS. Pages come
 * in ascending order.
 */
int writer_unwind_page(struct index_writer *w, uint64_t address, const void *bytes, uint32_t size);
void writer_unwind(struct index_writer *w, const struct index_unwind *unwind);

/*
 * Adds return instructions of a function, ascending; *RET_FIRST is the number of the first one.
 * Addresses that are no code are a mistake of the caller: -EBADMSG.
 */
int writer_returns(
	struct index_writer *w, const uint64_t *addresses, size_t count, uint32_t *ret_first);
/* A name of a function, in any order; see struct index_function. */
struct writer_function {
	uint64_t address; /* of the entry */
	uint32_t linkage; /* string */
	uint32_t name; /* string: readable name; 0 = demangle `linkage` at the end */
	uint32_t flags; /* enum index_function_flags */
	uint32_t first_return, return_count; /* as writer_returns() numbered them */
	uint32_t stack_check, restart_off;
};
int writer_function(struct index_writer *w, const struct writer_function *function);

/*
 * Adds string PATH, a file with missing information (a .dwo file of split DWARF). Paths over a
 * limit are dropped.
 */
int writer_wanted(struct index_writer *w, uint32_t path);

/* Notes a property of the build; see `enum index_source` in index.h. */
void writer_source(struct index_writer *w, uint32_t source);

/* Demangles, flattens, sorts and writes the whole index file to FD, which is empty. */
int writer_finish(struct index_writer *w, int fd);
