/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the namespace, class or function around an entry. DWARF has no parent pointers, so a unit
 * is scanned for scopes on the first lookup in it. Only functions without a linkage name need this.
 */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

struct dwarf_scope;

struct dwarf_scopes {
	struct dwarf_scope *items; /* of several units; each unit's are contiguous and in order */
	size_t count, capacity;
	struct map units; /* offset of the unit → index << 32 | count of its scopes in `items` */
	uint64_t scanned_bytes; /* of .debug_info so far; units may be scanned repeatedly */
};

void dwarf_scopes_init(struct dwarf_scopes *s);
void dwarf_scopes_deinit(struct dwarf_scopes *s);
/*
 * Gets the offset of the scope around the entry at OFFSET in U; 0 if it is the unit itself or
 * unknown. Only -ENOMEM is an error.
 */
int dwarf_scope_around(struct dwarf_scopes *s, struct dwarf *d, const struct dwarf_unit *u,
	uint64_t offset, uint64_t *ret_scope);
