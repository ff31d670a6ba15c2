/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRIM_CAPACITY = 1024 }; /* slots; the smallest capacity that map_trim() shrinks to */

struct map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

static size_t map_slot_of(const struct map *m, uint64_t key)
{
	key ^= key >> 32;
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(key >> 20) & (m->capacity - 1);
}

void map_init(struct map *m, size_t limit)
{
	*m = (struct map){ .limit = limit };
}

void map_deinit(struct map *m)
{
	free(m->slots);
	*m = (struct map){ .limit = m->limit };
}

void map_clear(struct map *m)
{
	map_deinit(m);
}

/* Returns the slot that holds KEY, or the free slot where KEY would go. */
static struct map_slot *map_find_slot(const struct map *m, uint64_t key)
{
	size_t i = map_slot_of(m, key);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->capacity - 1);
	return &m->slots[i];
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value)
{
	const struct map_slot *slot;

	if (m->count == 0)
		return false;
	slot = map_find_slot(m, key);
	if (!slot->used)
		return false;
	*ret_value = slot->value;
	return true;
}

static int resize(struct map *m, size_t capacity)
{
	struct map other = { .limit = m->limit, .count = m->count, .capacity = capacity };

	other.slots = calloc(capacity, sizeof(*other.slots));
	if (!other.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->capacity; i++) {
		if (m->slots[i].used)
			*map_find_slot(&other, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = other;
	return 0;
}

void map_trim(struct map *m)
{
	size_t capacity = TRIM_CAPACITY;

	while (capacity < m->count * 4)
		capacity *= 2;
	/* Without memory for the smaller table, the large one stays. */
	if (capacity * 4 <= m->capacity)
		(void)resize(m, capacity);
}

int map_set(struct map *m, uint64_t key, uint64_t value)
{
	struct map_slot *slot;
	int err;

	if ((m->count + 1) * 4 > m->capacity * 3) {
		err = resize(m, m->capacity ? m->capacity * 2 : 16);
		if (err)
			return err;
	}
	slot = map_find_slot(m, key);
	if (!slot->used) {
		if (m->count >= m->limit)
			return -E2BIG;
		m->count++;
	}
	*slot = (struct map_slot){ .key = key, .value = value, .used = true };
	return 0;
}

bool map_remove(struct map *m, uint64_t key)
{
	struct map_slot *slot;
	size_t hole, i, home;

	if (m->count == 0)
		return false;
	slot = map_find_slot(m, key);
	if (!slot->used)
		return false;
	m->count--;
	hole = (size_t)(slot - m->slots);
	/* Close the gap: move back entries that lookups would not find past an empty slot. */
	for (i = (hole + 1) & (m->capacity - 1); m->slots[i].used;
		i = (i + 1) & (m->capacity - 1)) {
		home = map_slot_of(m, m->slots[i].key);
		if (((i - home) & (m->capacity - 1)) >= ((i - hole) & (m->capacity - 1))) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].used = false;
	return true;
}

bool map_next(const struct map *m, size_t *iterator, uint64_t *ret_key, uint64_t *ret_value)
{
	for (size_t i = *iterator; i < m->capacity; i++) {
		if (!m->slots[i].used)
			continue;
		*iterator = i + 1;
		*ret_key = m->slots[i].key;
		*ret_value = m->slots[i].value;
		return true;
	}
	return false;
}
