/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the writer's files only: writer.c collects, writer_flatten.c and writer_lines.c order,
 * writer_output.c writes the file. A big module has millions of these records, so they are compact:
 * 32-bit offsets from the base, strings as numbers.
 */
#include <stdbool.h>

#include "base/intern.h"
#include "base/map.h"
#include "symbolizer/index/format.h"
#include "symbolizer/indexer/writer/spans.h"
#include "symbolizer/indexer/writer/writer.h"

struct code_range {
	uint64_t low, high;
};

struct build_node {
	uint32_t parent, linkage, name, start_line;
	uint32_t call_file, call_line, call_column;
	uint32_t root; /* the enclosing function; itself for a function */
	uint32_t unit;
	uint32_t depth : 31; /* inlining depth; 0 = a function */
	uint32_t is_foreign : 1; /* from a debug file */
};

struct build_rows {
	struct index_row *items;
	size_t count, capacity;
};

struct build_sequence {
	uint32_t low, high, unit;
	uint32_t first_row, row_count;
};

struct build_symbol {
	uint32_t low, high; /* high 0 while the size is unknown */
	uint32_t limit;
	uint32_t name;
	uint8_t rank;
	bool is_resolver, is_stub, is_label;
	bool is_foreign; /* from a debug file */
};

/* One function, by an entry for unwinding. */
struct build_extent {
	uint32_t low, high;
	bool is_nameless; /* no symbol covers its first byte; set by writer_extents_settle() */
};

struct build_extents {
	struct build_extent *items;
	size_t count, capacity;
};

struct index_writer {
	struct index_segment_entry *segments;
	size_t segment_count, segment_capacity;
	struct code_range *code; /* sorted and merged once `code_closed` */
	size_t code_count, code_capacity;
	bool code_closed;
	uint64_t base;
	bool is_foreign; /* what the sources write now comes from a debug file */
	const uint64_t *asked; /* addresses; NULL = all of the code */
	size_t asked_count;
	uint64_t unasked, unasked_end; /* a range without any of them */
	struct map asked_starts; /* where nodes' ranges start that cover one */

	struct intern strings;
	struct map file_numbers; /* string → number in `files` */
	uint32_t *files; /* strings; 0 is "" */
	size_t file_count, file_capacity;
	uint32_t last_file, last_file_number;

	struct build_node *nodes;
	size_t node_count, node_capacity;
	struct interval *ranges; /* of nodes */
	size_t range_count, range_capacity;
	struct build_symbol *symbols;
	size_t symbol_count, symbol_capacity;
	struct build_extents extents, code_extents; /* by an entry; by the code itself */
	struct build_rows rows;
	struct build_sequence *sequences;
	size_t sequence_count, sequence_capacity;
	bool in_sequence;
	struct build_sequence sequence; /* the current one */
	uint32_t sequence_limit; /* end of the code around the sequence */

	/* Made by writer_flatten(). Ids are nodes, or INDEX_NAMELESS and up as in the file. */
	struct spans spans;
	struct writer_lines *lines; /* made by writer_lines_prepare() */

	struct index_unwind_entry *unwind_pages;
	size_t unwind_page_count, unwind_page_capacity;
	uint32_t *unwind_words;
	size_t unwind_word_count, unwind_word_capacity;
	struct index_unwind unwind;

	struct index_function_entry *functions; /* names are strings */
	size_t function_count, function_capacity;
	uint32_t *returns;
	size_t return_count, return_capacity;

	uint32_t *wanted; /* strings */
	size_t wanted_count, wanted_capacity;

	struct work work;
	bool is_bounded; /* by `work` */

	struct index_runtime runtime;
	struct index_debug debug; /* with strings by number */
	struct build_id build_id;
	struct file_hash file_hash;
	uint32_t text_build_id, toolchain, kind;
	uint32_t sources;
};

enum { WRITER_MAX_NODES = 1 << 25, WRITER_MAX_ROWS = 1 << 27 };

/*
 * writer.c: called with the first address; then the code ranges are final: sorted, merged, and cut
 * to 4 GiB from their start, the base.
 */
int writer_close_code(struct index_writer *w);
/* writer.c: the offset of a code address and of the end of the code around it. False: no code. */
bool writer_code_offset(
	const struct index_writer *w, uint64_t address, uint32_t *ret_offset, uint32_t *ret_end);
/* writer_flatten.c: sorts the symbols and gives nodes their linkage names. May be repeated. */
int writer_link_symbols(struct index_writer *w);
/*
 * writer_extents.c. Sorts the extents, which the others need. From where on addresses are SYMBOL's:
 * its start or the byte before. The end of SYMBOL, which has no size, if no other symbol comes
 * before.
 */
void writer_extents_sort(struct index_writer *w);
uint32_t writer_extent_begin(const struct index_writer *w, const struct build_symbol *symbol);
uint32_t writer_extent_end(const struct index_writer *w, const struct build_symbol *symbol);
/*
 * Adds a range for each extent, with ids from FIRST_ID on; later turns those ids in the spans into
 * what the file says of code without a name.
 */
int writer_extents_add_ranges(struct index_writer *w, uint32_t first_id);
void writer_extents_settle(struct index_writer *w, uint32_t first_id);
void writer_extents_free(struct index_writer *w);
/* writer_flatten.c: turns ranges and symbols into spans. */
int writer_flatten(struct index_writer *w);
/*
 * writer_lines.c: after writer_flatten(), passes the rows to SINK, ascending and without overlap.
 */
typedef void writer_row_sink(void *context, const struct index_row *row);
int writer_lines_prepare(struct index_writer *w);
void writer_lines_destroy(struct writer_lines *lines);
void writer_lines_each(const struct index_writer *w, writer_row_sink *sink, void *context);
/* writer_link.c: needs symbols sorted by address, the best one of an address last. */
int writer_link_names(struct index_writer *w);
/* writer_functions.c: sorts them, and drops names that are there twice. */
void writer_order_functions(struct index_writer *w);
/* writer_output.c */
int writer_output(struct index_writer *w, int fd);
