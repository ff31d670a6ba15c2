/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A hash table from a 64-bit key to a 64-bit value, open addressing, bounded. Keys are compared
 * whole: a caller whose real key is longer hashes it and compares its own record (as base/intern.h
 * does). Not for several threads at once.
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
/* True and *RET_VALUE when KEY is there. */
bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value);
/* Sets or replaces. -E2BIG over the limit, -ENOMEM. */
int map_set(struct map *m, uint64_t key, uint64_t value);
bool map_remove(struct map *m, uint64_t key);
void map_clear(struct map *m);
/*
 * Gives memory back when few of the slots are used, as after a burst. Not in the middle of a walk.
 */
void map_trim(struct map *m);
/* Walks all entries: start with *ITERATOR = 0, ends with false. The map must not change meanwhile.
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
