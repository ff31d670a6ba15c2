/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A bounded hash table from 64-bit keys to 64-bit values, with open addressing. A caller with
 * longer keys uses a hash as the key and compares the full key in its own record. Not thread-safe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;

struct map {
	struct map_slot *slots;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
	size_t limit; /* entries */
};

void map_init(struct map *m, size_t limit);
void map_deinit(struct map *m);
/* Returns whether KEY exists; if so, sets *RET_VALUE. */
bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value);
/* Adds or replaces. Returns -E2BIG over the limit, or -ENOMEM. */
int map_set(struct map *m, uint64_t key, uint64_t value);
/* Returns whether KEY existed. */
bool map_remove(struct map *m, uint64_t key);
void map_clear(struct map *m);
/* Frees memory if few slots are used, as after a burst. Not allowed during iteration. */
void map_trim(struct map *m);
/*
 * Iterates over all entries: start with *ITERATOR = 0; returns false at the end. The map must not
 * change meanwhile.
 */
bool map_next(const struct map *m, size_t *iterator, uint64_t *ret_key, uint64_t *ret_value);

static inline void *map_get_pointer(const struct map *m, uint64_t key)
{
	uint64_t value;

	return map_get(m, key, &value) ? (void *)(uintptr_t)value : NULL;
}

static inline int map_set_pointer(struct map *m, uint64_t key, void *pointer)
{
	return map_set(m, key, (uintptr_t)pointer);
}
