/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes the functions and inlined calls of one unit as nodes and ranges. */
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
	/* Of the current entry; the memory is reused. */
	struct dwarf_range *ranges;
	size_t range_count, range_capacity;
};

void dwarf_walker_deinit(struct dwarf_walker *walker);
/* Walks U, an open unit; NUMBER becomes its nodes' unit. Returns -EBADMSG, -ENOMEM or -E2BIG. */
int dwarf_walk(struct dwarf_walker *walker, struct dwarf_unit *u, uint32_t number);
