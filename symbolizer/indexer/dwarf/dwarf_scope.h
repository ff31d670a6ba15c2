/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which namespace, class or function an entry stands in. DWARF has no pointers upwards, so a unit
 * is scanned for its scopes when the first of its entries is asked for: only functions without a
 * linkage name need it.
 */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

struct dwarf_scope;

struct dwarf_scopes {
	struct dwarf_scope *items; /* of several units, each unit's together and in order */
	size_t count, capacity;
	struct map units; /* offset of the unit → where its scopes are in `items` */
	uint64_t scanned_bytes; /* of .debug_info so far: references may ask for units in any order
				 */
};

void dwarf_scopes_init(struct dwarf_scopes *s);
void dwarf_scopes_deinit(struct dwarf_scopes *s);
/*
 * The offset of the scope around the entry at OFFSET in U, 0 when it is the unit itself or not
 * known. Only -ENOMEM is an error.
 */
int dwarf_scope_around(struct dwarf_scopes *s, struct dwarf *d, const struct dwarf_unit *u,
	uint64_t offset, uint64_t *ret_scope);
