/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Maps addresses to functions of a perf map. It knows nothing about files and names: a piece refers
 * to its function by a text offset that grows with each line.
 */
#include <stddef.h>
#include <stdint.h>

/* Above perf_map.c's own limits; bounds a single merge. */
enum { PIECES_LIMIT = 1 << 21 };

struct piece {
	uint64_t start;
	uint32_t size;
	uint32_t before; /* bytes of the function that lie before the piece */
	uint32_t name; /* offset in the text */
};

struct pieces {
	struct piece *items;
	size_t count, capacity;
};

static inline uint64_t piece_end(const struct piece *p)
{
	return p->start + p->size;
}

void pieces_deinit(struct pieces *p);
/* Appends the pieces of LINES that no later line covers to OUT. Sorts LINES. */
int pieces_flatten(struct pieces *lines, struct pieces *out);
/* Appends BOTTOM overlaid with TOP to OUT. */
int pieces_lay_over(const struct pieces *bottom, const struct pieces *top, struct pieces *out);
