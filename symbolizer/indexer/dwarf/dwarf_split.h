/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Split DWARF (DWARF 5, 3.1.2 and 7.3.2; GNU's extension of version 4): the entries of a unit are
 * in a .dwo file, or in a package of several units (.dwp). The program has a skeleton of the unit
 * with everything that needs relocation: addresses, line table, base of the range lists.
 */
#include "symbolizer/indexer/dwarf/dwarf_walk.h"

struct dwarf_split {
	struct dwarf d; /* of the .dwo or .dwp file */
	struct dwarf_names names;
	struct dwarf_walker walker;
	uint32_t *skeletons; /* per unit: its skeleton's unit number, or DWARF_NO_SKELETON */
};

enum { DWARF_NO_SKELETON = UINT32_MAX };

/*
 * Reads the units of SOURCE and joins them to their skeletons in PROGRAM by their 64-bit IDs; sets
 * `elsewhere` in skeletons whose unit is found. IDS comes from dwarf_split_ids(). Returns -ENOMEM
 * or -E2BIG.
 */
int dwarf_split_open(struct dwarf_split *s, const struct dwarf_split_source *source,
	struct dwarf *program, const struct map *ids);
void dwarf_split_deinit(struct dwarf_split *s);
/* Fills IDS with the skeletons of PROGRAM: ID → unit number. */
int dwarf_split_ids(struct dwarf *program, struct map *ids);
