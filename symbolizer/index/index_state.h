/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by index.c, index_unwind.c and functions.c only. */
#include "symbolizer/index/format.h"
#include "symbolizer/index/index.h"

enum { INDEX_SEGMENTS_AT_HAND = 4 };

struct index {
	const uint8_t *map;
	size_t size;
	struct index_header header; /* a copy, so it cannot change after the check */
	/* Copies of the first ones: each question begins with them, and files mostly have one. */
	struct index_segment segments[INDEX_SEGMENTS_AT_HAND];
	bool touched; /* pages of the mapping may be resident */
};

/* Readers do not change an index, but they make its pages resident. */
static inline void index_touch(const struct index *index)
{
	((struct index *)(uintptr_t)index)->touched = true;
}

/* Both inside the mapping: index_open() checked each table's place and size. */
static inline const void *index_table_start(
	const struct index *index, enum index_table_number number)
{
	index_touch(index);
	return index->map + index->header.tables[number].offset;
}

static inline size_t index_table_count(const struct index *index, enum index_table_number number)
{
	return index->header.tables[number].count;
}

/* A terminated string in the mapping; "" for an offset that is none. */
static inline const char *index_string_at(const struct index *index, uint32_t offset)
{
	const char *strings = index_table_start(index, INDEX_STRINGS);

	return offset < index_table_count(index, INDEX_STRINGS) ? strings + offset : "";
}
