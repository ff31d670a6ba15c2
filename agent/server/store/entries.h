/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of stored files in memory, sorted by time: 24 bytes a file, as there may be hundreds of
 * thousands; names are kept once. Which of them is the oldest is not for the times alone to say:
 * they come from a wall clock, which may have been wrong. Knows nothing of the disk.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/store/file_name.h"
#include "base/intern.h"

enum { ENTRIES_LIMIT = 1 << 22 };

static const uint64_t ENTRY_LARGEST_BYTES = UINT32_MAX;

struct entry {
	int64_t time_tenths;
	uint32_t duration_tenths;
	uint32_t label; /* in `labels` */
	uint32_t size_bytes;
	uint32_t order; /* in which they came; wraps, compared by difference */
};

struct entries {
	struct entry *all;
	size_t first, end; /* what is before FIRST is gone */
	size_t capacity;
	uint32_t next_order;
	struct intern labels;
	size_t label_limit;
	uint64_t block_bytes; /* of all, in whole blocks */
};

/* NAME_LIMIT different names at most; 0 = many. */
int entries_init(struct entries *e, size_t name_limit);
void entries_deinit(struct entries *e);
static inline size_t entries_count(const struct entries *e)
{
	return e->end - e->first;
}
static inline const struct entry *entries_at(const struct entries *e, size_t place)
{
	return &e->all[e->first + place];
}
/* -E2BIG: too many files or names, or larger than ENTRY_LARGEST_BYTES. */
int entries_add(struct entries *e, const struct file_name *name, uint64_t size_bytes);
/*
 * The same for many in any order, with one entries_sort() before anything else is asked. They are
 * taken to have come in the order of their times.
 */
int entries_append(struct entries *e, const struct file_name *name, uint64_t size_bytes);
void entries_sort(struct entries *e);
/* The one of that name, or NULL. */
const struct entry *entries_find(const struct entries *e, const struct file_name *name);
void entries_name(const struct entries *e, const struct entry *entry, struct file_name *ret_name);
/*
 * The place of the one that goes first, of some: the earliest, unless one that is dated after
 * NOW_TENTHS came before it. So files of a clock that was ahead go in their turn and do not have
 * everything go that comes after them.
 */
size_t entries_oldest(const struct entries *e, int64_t now_tenths);
void entries_remove(struct entries *e, size_t place);
/* What a file of that size takes on a disk. */
uint64_t entries_block_bytes(uint64_t size_bytes);
