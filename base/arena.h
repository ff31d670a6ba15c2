/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Arena allocator for objects that share a lifetime, such as one window or one build: all are freed
 * in one call, none individually. The total size is bounded.
 */
#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used_bytes; /* in the newest chunk */
	size_t total_bytes; /* capacity of all chunks */
	size_t limit_bytes;
	int error; /* of the last failed allocation: -E2BIG over the limit, or -ENOMEM */
};

void arena_init(struct arena *a, size_t limit_bytes);
void arena_deinit(struct arena *a);
/* Returns SIZE uninitialized bytes, aligned to 8. NULL on failure; `error` says why. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);
/* Returns a NUL-terminated copy of the first LENGTH bytes of TEXT; NULL on failure. */
char *arena_strndup(struct arena *a, const char *text, size_t length);
/* Frees all allocations but keeps the limit, so the arena can be reused. */
void arena_reset(struct arena *a);
