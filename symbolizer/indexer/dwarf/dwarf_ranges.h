/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The addresses that an entry covers: low and high pc, .debug_ranges (DWARF 2 to 4), or
 * .debug_rnglists (DWARF 5, 2.17.3).
 */
#include "symbolizer/indexer/dwarf/dwarf_die.h"

typedef int (*dwarf_range_fn)(void *context, uint64_t low, uint64_t high);

/*
 * Calls FN for each range that is not empty, in the order of the list; an error of FN ends the walk
 * and is returned. No ranges is not an error. Returns -EBADMSG if the list is malformed.
 */
int dwarf_ranges_each(const struct dwarf *d, const struct dwarf_unit *u,
	const struct dwarf_die *die, dwarf_range_fn fn, void *context);
