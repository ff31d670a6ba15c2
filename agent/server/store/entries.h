/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of stored files in memory, sorted by time: 32 bytes a file, as older versions left
 * hundreds of thousands; names are interned. Times alone do not decide which is the oldest: they
 * come from a wall clock that may have been wrong. Knows nothing of the disk.
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
	uint32_t label; /* number in `labels` */
	uint32_t size_bytes;
	uint32_t order; /* order of arrival; wraps, compare by difference */
	uint16_t minutes, generation;
	uint16_t doomed; /* its samples are in another file, since then: entries_doom(); 0 = no */
	uint8_t kind; /* enum file_kind */
	bool stuck; /* could not be merged */
};

struct entries {
	struct entry *all;
	size_t first, end; /* entries before FIRST are removed */
	size_t capacity;
	uint32_t next_order;
	struct intern labels;
	size_t label_limit;
	uint64_t block_bytes; /* total size on disk, in whole blocks */
	size_t doomed; /* how many are */
};

/* NAME_LIMIT: distinct names at most; 0 = the default. */
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
 * Like entries_add(), for bulk loading in any order; call entries_sort() before any other function.
 * Arrival is taken to be in order of time.
 */
int entries_append(struct entries *e, const struct file_name *name, uint64_t size_bytes);
void entries_sort(struct entries *e);
/* The entry of that name, or NULL. */
const struct entry *entries_find(const struct entries *e, const struct file_name *name);
void entries_name(const struct entries *e, const struct entry *entry, struct file_name *ret_name);
/* The place of the first entry that begins at TIME_TENTHS or later; entries_count() = none. */
size_t entries_from(const struct entries *e, int64_t time_tenths);
/* It is to be removed. STAMP: when that was known, in the caller's unit; not 0. */
void entries_doom(struct entries *e, size_t place, uint16_t stamp);
void entries_stick(struct entries *e, size_t place, bool stuck);
/*
 * The place of the entry to remove first: the earliest, unless an entry dated after NOW_TENTHS
 * arrived before it. Files of a clock that was ahead are thus removed in order of arrival, and do
 * not cause the removal of everything newer. E must not be empty.
 */
size_t entries_oldest(const struct entries *e, int64_t now_tenths);
void entries_remove(struct entries *e, size_t place);
/* Removes the entry of that name, if there is one. */
void entries_forget(struct entries *e, const struct file_name *name);
/* The space on disk of a file of that size. */
uint64_t entries_block_bytes(uint64_t size_bytes);
