/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Abbreviation tables (DWARF 5, 7.5.3), prepared for a fast walk: an entry's role, how to skip it,
 * and where its sibling attribute is. Tables are cached, because units share them and refer to each
 * other's entries; over a limit all tables but the pinned one are evicted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "symbolizer/indexer/dwarf/dwarf_form.h"
#include "symbolizer/indexer/writer/work.h"

enum dwarf_role {
	DWARF_ROLE_OTHER,
	DWARF_ROLE_FUNCTION,
	DWARF_ROLE_INLINED,
	DWARF_ROLE_NAMESPACE,
	DWARF_ROLE_TYPE, /* structures, classes, enumerations: may contain functions, not in C */
	DWARF_ROLE_CODELESS, /* arrays, function types: never contain functions or scopes */
};

struct dwarf_attribute {
	uint16_t name; /* DW_AT_*; 0xffff = out of range */
	uint16_t form; /* DW_FORM_*; 0xffff = out of range */
	int64_t implicit; /* the value, for DW_FORM_implicit_const */
};

/* One step of skipping an entry: BYTES, then one value of FORM (0 = none). */
struct dwarf_skip {
	uint16_t bytes;
	uint16_t form;
};

struct dwarf_abbrev {
	uint64_t code;
	uint16_t tag;
	uint8_t role; /* enum dwarf_role */
	bool children;
	bool has_code; /* has DW_AT_low_pc or DW_AT_ranges */
	uint16_t sibling_form; /* 0 = no DW_AT_sibling, or not at a fixed offset */
	uint32_t sibling_at; /* offset of DW_AT_sibling, from the end of the entry's code */
	uint32_t attribute_first, attribute_count;
	uint32_t skip_first, skip_count;
};

struct dwarf_abbrevs {
	struct dwarf_abbrev *items;
	size_t count, capacity;
	struct dwarf_attribute *attributes;
	size_t attribute_count, attribute_capacity;
	struct dwarf_skip *skips;
	size_t skip_count, skip_capacity;
	bool dense; /* codes are 1, 2, 3 … */
	bool broken; /* malformed or over a limit; kept so that it is read once */
};

struct dwarf_abbrev_cache {
	struct map tables; /* offset and format → struct dwarf_abbrevs * */
	size_t bytes; /* of all tables */
	const struct dwarf_abbrevs *pinned; /* the table of the unit being walked */
	struct work *work; /* spent by reading tables; NULL = not bounded */
};

void dwarf_abbrev_cache_init(struct dwarf_abbrev_cache *cache);
void dwarf_abbrev_cache_deinit(struct dwarf_abbrev_cache *cache);
/*
 * Gets the table at OFFSET in .debug_abbrev (SECTION) for units of FORMAT. The table is valid until
 * the next call, or as long as it is pinned. Returns -EBADMSG, also once the work is spent, or
 * -ENOMEM.
 */
int dwarf_abbrevs_get(struct dwarf_abbrev_cache *cache, const struct cursor *section,
	uint64_t offset, const struct dwarf_format *format,
	const struct dwarf_abbrevs **ret_abbrevs);

const struct dwarf_abbrev *dwarf_abbrev_search(const struct dwarf_abbrevs *t, uint64_t code);

/* Returns the abbreviation with CODE, or NULL. */
static inline const struct dwarf_abbrev *dwarf_abbrev_find(
	const struct dwarf_abbrevs *t, uint64_t code)
{
	if (t->dense)
		return code - 1 < t->count ? &t->items[code - 1] : NULL;
	return dwarf_abbrev_search(t, code);
}

/* Skips the rest of an entry whose code has been read. */
static inline void dwarf_abbrev_skip(const struct dwarf_abbrevs *t, const struct dwarf_abbrev *a,
	const struct dwarf_format *format, struct cursor *c)
{
	const struct dwarf_skip *skip = t->skips + a->skip_first;

	for (uint32_t i = 0; i < a->skip_count; i++, skip++) {
		cursor_skip(c, skip->bytes);
		if (skip->form)
			dwarf_form_skip(c, format, skip->form);
	}
}
