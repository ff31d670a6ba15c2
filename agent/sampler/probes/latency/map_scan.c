/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/map_scan.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* A batch must have room for the largest bucket of the hash table. */
enum { BATCH = 512, MAX_BATCH = 65536 };

static int map_scan_grow(struct map_scan *s, uint32_t capacity)
{
	void *keys = reallocarray(s->keys, capacity, s->key_bytes), *values;

	if (!keys)
		return -ENOMEM;
	s->keys = keys;
	values = reallocarray(s->values, capacity, s->value_bytes);
	if (!values)
		return -ENOMEM;
	s->values = values;
	s->capacity = capacity;
	return 0;
}

int map_scan_init(struct map_scan *s, int map, size_t key_bytes, size_t value_bytes, size_t cpus)
{
	int err;

	*s = (struct map_scan){
		.map = map,
		.key_bytes = key_bytes,
		.value_bytes = value_bytes * MAX(cpus, (size_t)1),
	};
	err = map_scan_grow(s, BATCH);
	if (err)
		map_scan_deinit(s);
	return err;
}

void map_scan_deinit(struct map_scan *s)
{
	free(take(s->keys));
	free(take(s->values));
}

void map_scan_continue(struct map_scan *s, uint32_t place)
{
	s->place = place;
	s->begun = place != 0;
	s->done = false;
}

static int map_scan_read(struct map_scan *s)
{
	uint32_t place = s->place;

	s->count = s->capacity;
	if (!bpf_map_lookup_batch(s->map, s->begun ? &place : NULL, &s->place, s->keys, s->values,
		    &s->count, NULL)) {
		s->begun = true;
		return 0;
	}
	if (errno == ENOENT) {
		s->done = true;
		return 0;
	}
	s->place = place;
	s->count = 0;
	return -errno;
}

int map_scan_next(struct map_scan *s)
{
	int err;

	while ((err = map_scan_read(s)) == -ENOSPC) {
		if (s->capacity >= MAX_BATCH)
			return -E2BIG;
		err = map_scan_grow(s, s->capacity * 2);
		if (err)
			return err;
	}
	return err;
}
