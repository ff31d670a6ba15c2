/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The names of a perf map's functions, in the order of their lines, and how many are kept. */
#include "base/buffer.h"
#include "symbolizer/perf_map/perf_map_pieces.h"

enum {
	NAMES_LIMIT = 1 << 20, /* functions */
	NAMES_TEXT_BYTES = 64 << 20,
};

/*
 * Takes names that no piece has any more out of TEXT, which moves the others; and, where there are
 * still too many, the oldest with their pieces, down to three quarters of the limit or half of the
 * text. How many pieces that were is *RET_DROPPED.
 */
int names_keep_newest(struct pieces *pieces, struct buffer *text, uint64_t *ret_dropped);
