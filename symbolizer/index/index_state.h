/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by index.c and index_unwind.c only. */
#include "symbolizer/index/format.h"
#include "symbolizer/index/index.h"

struct index {
	const uint8_t *map;
	size_t size;
	struct index_header header; /* a copy, so it cannot change after the check */
};

/* Both inside the mapping: index_open() checked each table's place and size. */
static inline const void *index_table_start(
	const struct index *index, enum index_table_number number)
{
	return index->map + index->header.tables[number].offset;
}

static inline size_t index_table_count(const struct index *index, enum index_table_number number)
{
	return index->header.tables[number].count;
}
