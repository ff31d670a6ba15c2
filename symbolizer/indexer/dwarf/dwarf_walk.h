/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions and inlined calls of one unit, written as nodes and ranges. */
#include "symbolizer/indexer/dwarf/dwarf_line.h"
#include "symbolizer/indexer/dwarf/dwarf_names.h"

struct dwarf_range {
	uint64_t low, high;
};

struct dwarf_walker {
	struct dwarf *d;
	struct index_writer *w;
	struct dwarf_names *names;
	struct dwarf_lines *lines; /* the unit's, for the files of call sites */
	/* Of the entry at hand; kept for its memory. */
	struct dwarf_range *ranges;
	size_t range_count, range_capacity;
};

void dwarf_walker_deinit(struct dwarf_walker *walker);
/* Walks U, an opened unit; NUMBER is what its nodes carry. -EBADMSG, -ENOMEM, -E2BIG. */
int dwarf_walk(struct dwarf_walker *walker, struct dwarf_unit *u, uint32_t number);
