/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Memory that dies together: what lives for one window or one build is allocated here and freed in
 * one call. Bounded; nothing is freed singly.
 */
#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* the newest first */
	size_t used_bytes; /* of the newest chunk */
	size_t total_bytes; /* of all chunks */
	size_t limit_bytes;
	int error; /* of the last allocation that failed: -E2BIG over the limit, or -ENOMEM */
};

void arena_init(struct arena *a, size_t limit_bytes);
void arena_deinit(struct arena *a);
/* SIZE bytes aligned to 8, not cleared; NULL on failure, for which see `error`. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);
/* A copy of LENGTH bytes of TEXT with a NUL after them. */
char *arena_strndup(struct arena *a, const char *text, size_t length);
/* Gives everything back but keeps the limit: for the next window. */
void arena_reset(struct arena *a);
