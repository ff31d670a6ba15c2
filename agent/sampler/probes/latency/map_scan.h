/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads a hash map of BPF in batches (Linux 5.6), with the values of all CPUs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_scan {
	int map;
	size_t key_bytes, value_bytes; /* value_bytes: with those of all CPUs */
	void *keys, *values; /* of the current batch */
	uint32_t count; /* elements in it */
	uint32_t capacity;
	uint32_t place; /* in the map, of the next batch */
	bool begun, done;
};

/* CPUS: possible ones, of a map with values for each; else 0. Returns 0 or -ENOMEM. */
int map_scan_init(struct map_scan *s, int map, size_t key_bytes, size_t value_bytes, size_t cpus);
void map_scan_deinit(struct map_scan *s);
/* Continues another scan, which has come to PLACE; 0 = from the beginning. */
void map_scan_continue(struct map_scan *s, uint32_t place);
/* Reads the next batch; `count` may be 0 before the end. Sets `done` with the last one. */
int map_scan_next(struct map_scan *s);

static inline const void *map_scan_key(const struct map_scan *s, uint32_t i)
{
	return (const char *)s->keys + i * s->key_bytes;
}

/* Of the first CPU; the others follow. */
static inline const void *map_scan_value(const struct map_scan *s, uint32_t i)
{
	return (const char *)s->values + i * s->value_bytes;
}
