/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Split DWARF (DWARF 5, 3.1.2 and 7.3.2; GNU's form of version 4): the entries of a unit are in a
 * .dwo file, or with those of others in a package (.dwp). The program keeps a skeleton of the unit
 * with what the linker had to relocate: addresses, line table, base of the range lists.
 */
#include "symbolizer/indexer/dwarf/dwarf_walk.h"

struct dwarf_split {
	struct dwarf d; /* of the file */
	struct dwarf_names names;
	struct dwarf_walker walker;
	uint32_t *skeletons; /* by unit: number of the skeleton in the program, DWARF_NO_SKELETON */
};

enum { DWARF_NO_SKELETON = UINT32_MAX };

/*
 * Reads the units of SOURCE and joins them to their skeletons in PROGRAM by their 64-bit IDs; a
 * skeleton whose unit is found becomes `elsewhere`. IDS are the skeletons' (dwarf_split_ids).
 * -ENOMEM, -E2BIG.
 */
int dwarf_split_open(struct dwarf_split *s, const struct dwarf_split_source *source,
	struct dwarf *program, const struct map *ids);
void dwarf_split_deinit(struct dwarf_split *s);
/* The skeletons of PROGRAM: ID → number of the unit. */
int dwarf_split_ids(struct dwarf *program, struct map *ids);
