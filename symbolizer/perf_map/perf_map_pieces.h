/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which function of a perf map is at which address. Knows nothing of files and names: a piece names
 * its function by an offset that grows with each line.
 */
#include <stddef.h>
#include <stdint.h>

/* Its user keeps to less; here it bounds what one step may make of it. */
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
/* The pieces of LINES that are not covered by a later one. Sorts LINES. */
int pieces_flatten(struct pieces *lines, struct pieces *out);
/* BOTTOM with TOP over it. */
int pieces_lay_over(const struct pieces *bottom, const struct pieces *top, struct pieces *out);
