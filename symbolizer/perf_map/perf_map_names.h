/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names of a perf map's functions in line order, and their limits. */
#include "base/buffer.h"
#include "symbolizer/perf_map/perf_map_pieces.h"

enum {
	NAMES_LIMIT = 1 << 20, /* functions */
	NAMES_TEXT_BYTES = 64 << 20,
};

/*
 * Removes names without a piece from TEXT, which moves the others. If there are still too many,
 * also removes the oldest names with their pieces, down to three quarters of the limit or half of
 * the text. *RET_DROPPED is the number of pieces removed.
 */
int names_keep_newest(struct pieces *pieces, struct buffer *text, uint64_t *ret_dropped);
