/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The index file, little-endian:
 *
 *	header | tables, each aligned to 64 | checksum (8 bytes, XXH3 of all before it)
 *
 * Addresses are 32-bit offsets from the header's base, the lowest executable address. A page table
 * narrows each search to a cache line or two: pages[p] is the first entry at or above p << shift;
 * its last element is the number of entries. For the same reason an entry's payload is stored next
 * to its address.
 *
 *	span:  code from this address up to the next span's belongs to this node
 *	node:  a function, or one inlined call inside its parent, which has a lower number
 *	row:   code from this address up to the next row's comes from this line
 *	unwind page: how to find the callers of 64 KiB of code (bpf/abi/unwind.h), as BPF reads it
 *	function: a name of an entry, and where that function returns (functions.h); only in an
 *	       index that was requested with functions
 *
 * Strings are byte offsets into the string table, which starts and ends with a NUL.
 */
#include <stdint.h>

#include "base/file_hash.h"
#include "base/module_id.h"
#include "symbolizer/index/facts.h"

enum {
	INDEX_VERSION = 29,
	INDEX_FILE_BITS = 20, /* of index_row.place; the others are the column, 0 if too large */
	INDEX_COLUMN_BITS = 32 - INDEX_FILE_BITS,
	INDEX_CHECKSUM_BYTES = 8,
	INDEX_ALIGN = 64, /* of each table: a cache line */
};
static const uint64_t INDEX_MAGIC = UINT64_C(0x58444e494d485446); /* "FTHMINDX" */
static const uint32_t INDEX_NO_NODE = UINT32_MAX;
/*
 * A span's node from here up to INDEX_NO_NODE: a function without a name, whose start is as many
 * bytes before the span's.
 */
static const uint32_t INDEX_NAMELESS = UINT32_C(1) << 31;

enum index_table_number {
	INDEX_SEGMENTS, /* struct index_segment_entry */
	INDEX_SPANS, /* struct index_span, ascending */
	INDEX_SPAN_PAGES, /* uint32_t */
	INDEX_NODES, /* struct index_node */
	INDEX_ROWS, /* struct index_row, ascending */
	INDEX_ROW_PAGES, /* uint32_t */
	INDEX_FILES, /* uint32_t: string */
	INDEX_STRINGS, /* char */
	INDEX_UNWIND_PAGES, /* struct index_unwind_entry, ascending */
	INDEX_UNWIND_WORDS, /* uint32_t: the pages' bytes */
	INDEX_WANTED, /* uint32_t: string */
	INDEX_FUNCTIONS, /* struct index_function_entry, ascending by address */
	INDEX_RETURNS, /* uint32_t: address of a return instruction */
	INDEX_TABLES
};

struct index_table {
	uint64_t offset; /* in the file */
	uint64_t count; /* of elements */
};

struct index_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes; /* checksum included */
	uint64_t base; /* ELF address of offset 0 */
	uint32_t sources; /* enum index_source */
	uint32_t span_shift, row_shift;
	uint32_t text_build_id; /* string */
	uint32_t toolchain; /* string */
	uint32_t kind; /* enum index_kind */
	struct build_id build_id;
	uint8_t padding[3];
	struct file_hash file_hash;
	struct index_runtime runtime;
	struct index_unwind unwind;
	struct index_debug debug;
	struct index_table tables[INDEX_TABLES];
};

struct index_segment_entry {
	uint64_t address, size, file_off;
};

struct index_span {
	uint32_t address;
	uint32_t node; /* INDEX_NO_NODE: no function; INDEX_NAMELESS + distance: no name */
};

struct index_node {
	uint32_t parent; /* INDEX_NO_NODE: a function */
	uint32_t name, linkage;
	uint32_t start_line;
	uint32_t call_file; /* string */
	uint32_t call_line, call_column;
	uint32_t reserved; /* two nodes to a cache line */
};

struct index_row {
	uint32_t address;
	uint32_t line; /* 0 = unknown */
	uint32_t place; /* number in INDEX_FILES, column << INDEX_FILE_BITS */
};

struct index_unwind_entry {
	uint32_t page; /* ELF address >> 16, relative to the base's */
	uint32_t place; /* index into INDEX_UNWIND_WORDS */
};

/* Several with one address are names of one function; they share its returns. */
struct index_function_entry {
	uint32_t address;
	uint32_t name, linkage;
	uint32_t flags; /* enum index_function_flags */
	uint32_t first_return, return_count; /* in INDEX_RETURNS */
	uint32_t stack_check, restart_off; /* see struct index_function */
};

static inline uint32_t index_element_bytes(enum index_table_number table)
{
	switch (table) {
	case INDEX_SEGMENTS:
		return sizeof(struct index_segment_entry);
	case INDEX_SPANS:
		return sizeof(struct index_span);
	case INDEX_NODES:
		return sizeof(struct index_node);
	case INDEX_ROWS:
		return sizeof(struct index_row);
	case INDEX_STRINGS:
		return 1;
	case INDEX_UNWIND_PAGES:
		return sizeof(struct index_unwind_entry);
	case INDEX_FUNCTIONS:
		return sizeof(struct index_function_entry);
	default:
		return sizeof(uint32_t);
	}
}

_Static_assert(sizeof(struct build_id) == 21, "build IDs are written as they are");
_Static_assert(sizeof(struct file_hash) == 16, "file hashes are written as they are");
_Static_assert(sizeof(struct index_runtime) == 48, "facts are written as they are");
_Static_assert(sizeof(struct index_unwind) == 24, "unwind figures are written as they are");
_Static_assert(sizeof(struct index_debug) == 40, "names of debug files are written as they are");
_Static_assert(sizeof(struct index_header) == 56 + 24 + 16 + 48 + 24 + 40 + 16 * INDEX_TABLES,
	"no padding in the header");
