/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The debugging information entry (DIE) of a function, an inlined call or a scope, with the
 * attributes that the index needs. Values are not resolved (dwarf_form.h).
 */
#include <stdint.h>

#include "base/cursor.h"
#include "symbolizer/indexer/dwarf/dwarf_file.h"

struct dwarf_die {
	uint16_t tag;
	struct dwarf_value name, linkage, origin; /* origin: abstract origin, else specification */
	struct dwarf_value low, high, ranges;
	uint32_t decl_line, call_file, call_line, call_column; /* 0 = absent */
};

/* Reads an entry with abbreviation A at C, after its code. Sets C's `bad` if malformed. */
void dwarf_die_read(struct cursor *c, const struct dwarf_unit *u, const struct dwarf_abbrevs *t,
	const struct dwarf_abbrev *a, struct dwarf_die *ret_die);
/*
 * Reads the entry at OFFSET in .debug_info, in whichever unit it is. Returns -EBADMSG if there is
 * none, or -ENOMEM.
 */
int dwarf_die_at(
	struct dwarf *d, uint64_t offset, struct dwarf_die *ret_die, struct dwarf_unit **ret_unit);
