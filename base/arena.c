/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 - 32 };

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	max_align_t bytes[];
};

void arena_init(struct arena *a, size_t limit_bytes)
{
	*a = (struct arena){ .limit_bytes = limit_bytes };
}

void arena_reset(struct arena *a)
{
	while (a->chunks) {
		struct arena_chunk *chunk = a->chunks;

		a->chunks = chunk->next;
		free(chunk);
	}
	a->used_bytes = 0;
	a->total_bytes = 0;
	a->error = 0;
}

void arena_deinit(struct arena *a)
{
	arena_reset(a);
}

static int add_chunk(struct arena *a, size_t need)
{
	size_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES;
	struct arena_chunk *chunk;

	if (size > a->limit_bytes - a->total_bytes)
		size = need;
	if (size > a->limit_bytes - a->total_bytes)
		return -E2BIG;
	chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		return -ENOMEM;
	chunk->next = a->chunks;
	chunk->size = size;
	a->chunks = chunk;
	a->used_bytes = 0;
	a->total_bytes += size;
	return 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
	size_t rounded = (size + 7) & ~(size_t)7;
	int err = rounded < size ? -E2BIG : 0;
	void *room;

	if (!err && (!a->chunks || rounded > a->chunks->size - a->used_bytes))
		err = add_chunk(a, rounded);
	if (err) {
		a->error = err;
		return NULL;
	}
	room = (char *)a->chunks->bytes + a->used_bytes;
	a->used_bytes += rounded;
	return room;
}

void *arena_zalloc(struct arena *a, size_t size)
{
	void *room = arena_alloc(a, size);

	return room ? memset(room, 0, size) : NULL;
}

char *arena_strndup(struct arena *a, const char *text, size_t length)
{
	char *copy = arena_alloc(a, length + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}
