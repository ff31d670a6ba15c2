/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What of the writer's contents the index file gets, for writer_output.c. */
#include "symbolizer/indexer/writer/writer_state.h"

/* Nodes and strings that the file contains: only reachable ones, renumbered. */
struct selection {
	uint32_t *node_numbers; /* old → new; UINT32_MAX = omitted */
	uint32_t node_count;
	uint32_t *display; /* linkage string → readable string; 0 = not made yet */
	size_t display_count;
	uint32_t *string_offsets; /* string → offset; 0 = not in the file, or "" */
	uint32_t *strings; /* strings in the file, in order */
	size_t string_count, string_capacity;
	uint64_t string_bytes;
};

/*
 * Names the nodes that the file contains and chooses their strings. RET_SELECTION is to be
 * deinitialized even on error.
 */
int selection_init(struct index_writer *w, struct selection *ret_selection);
void selection_deinit(struct selection *s);
