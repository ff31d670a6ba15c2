/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attribute values (DWARF 5, 7.5.5): the size of each form and the kind of value it holds. Values
 * are read from .debug_info unresolved; callers look up the string or address if they need it,
 * because most values are never used.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"

/* Determines the sizes of forms. The address size is always 8. */
struct dwarf_format {
	uint64_t base; /* offset of the unit's header in .debug_info, for local references */
	uint8_t version; /* 2 to 5 */
	uint8_t offset_size; /* 4 or 8 */
};

enum dwarf_kind {
	DWARF_NONE, /* the attribute is absent */
	DWARF_CONSTANT, /* number */
	DWARF_ADDRESS, /* number: an ELF address */
	DWARF_ADDRESS_INDEX, /* number: entry of .debug_addr */
	DWARF_REFERENCE, /* number: offset in .debug_info of another entry */
	DWARF_ALTERNATE_REFERENCE, /* number: offset in the supplementary file's .debug_info */
	DWARF_ELSEWHERE, /* an entry in a type unit, which we do not read */
	DWARF_TEXT, /* text */
	DWARF_STR, /* number: offset in .debug_str */
	DWARF_ALTERNATE_STR, /* number: offset in the supplementary file's .debug_str */
	DWARF_LINE_STR, /* number: offset in .debug_line_str */
	DWARF_STR_INDEX, /* number: entry of .debug_str_offsets */
	DWARF_SECTION_OFFSET, /* number: offset in the section that the attribute implies */
	DWARF_LIST_INDEX, /* number: entry of the unit's list of range lists */
	DWARF_BLOCK, /* text: NUMBER bytes */
};

struct dwarf_value {
	enum dwarf_kind kind;
	uint64_t number;
	const char *text;
};

/* Returns the size in bytes of values of FORM; -1 if it differs from value to value. */
int dwarf_form_size(const struct dwarf_format *format, unsigned int form);
/* Reads a value; an unknown form sets the cursor's `bad`. IMPLICIT is the abbreviation's value. */
void dwarf_form_read(struct cursor *c, const struct dwarf_format *format, unsigned int form,
	int64_t implicit, struct dwarf_value *ret_value);
void dwarf_form_skip(struct cursor *c, const struct dwarf_format *format, unsigned int form);

/* Reads an unsigned LEB128, with a fast path for one byte, the most frequent size by far. */
static inline uint64_t dwarf_uleb(struct cursor *c)
{
	uint8_t byte = cursor_u8(c);

	if (byte < 0x80)
		return byte;
	c->at--;
	return cursor_uleb128(c);
}
