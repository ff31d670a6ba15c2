/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_form.h"

#include <dwarf.h>

enum { MAX_INDIRECTIONS = 4 }; /* DW_FORM_indirect that gives DW_FORM_indirect */

/* The layout of a form's bytes. */
enum layout {
	LAYOUT_UNKNOWN,
	LAYOUT_FIXED, /* `size` bytes */
	LAYOUT_OFFSET, /* 4 or 8 bytes */
	LAYOUT_REF_ADDR,
	LAYOUT_ULEB,
	LAYOUT_SLEB,
	LAYOUT_STRING,
	LAYOUT_BLOCK, /* a length of `size` bytes (0: a LEB128), then the bytes */
	LAYOUT_IMPLICIT,
	LAYOUT_INDIRECT,
};

struct form {
	uint8_t layout;
	uint8_t size;
	uint8_t kind;
	bool local; /* an offset from the unit's header */
};

static const struct form forms[] = {
	[DW_FORM_addr] = { LAYOUT_FIXED, 8, DWARF_ADDRESS },
	[DW_FORM_block2] = { LAYOUT_BLOCK, 2, DWARF_BLOCK },
	[DW_FORM_block4] = { LAYOUT_BLOCK, 4, DWARF_BLOCK },
	[DW_FORM_data2] = { LAYOUT_FIXED, 2, DWARF_CONSTANT },
	[DW_FORM_data4] = { LAYOUT_FIXED, 4, DWARF_CONSTANT },
	[DW_FORM_data8] = { LAYOUT_FIXED, 8, DWARF_CONSTANT },
	[DW_FORM_string] = { LAYOUT_STRING, 0, DWARF_TEXT },
	[DW_FORM_block] = { LAYOUT_BLOCK, 0, DWARF_BLOCK },
	[DW_FORM_block1] = { LAYOUT_BLOCK, 1, DWARF_BLOCK },
	[DW_FORM_data1] = { LAYOUT_FIXED, 1, DWARF_CONSTANT },
	[DW_FORM_flag] = { LAYOUT_FIXED, 1, DWARF_CONSTANT },
	[DW_FORM_sdata] = { LAYOUT_SLEB, 0, DWARF_CONSTANT },
	[DW_FORM_strp] = { LAYOUT_OFFSET, 0, DWARF_STR },
	[DW_FORM_udata] = { LAYOUT_ULEB, 0, DWARF_CONSTANT },
	[DW_FORM_ref_addr] = { LAYOUT_REF_ADDR, 0, DWARF_REFERENCE },
	[DW_FORM_ref1] = { LAYOUT_FIXED, 1, DWARF_REFERENCE, true },
	[DW_FORM_ref2] = { LAYOUT_FIXED, 2, DWARF_REFERENCE, true },
	[DW_FORM_ref4] = { LAYOUT_FIXED, 4, DWARF_REFERENCE, true },
	[DW_FORM_ref8] = { LAYOUT_FIXED, 8, DWARF_REFERENCE, true },
	[DW_FORM_ref_udata] = { LAYOUT_ULEB, 0, DWARF_REFERENCE, true },
	[DW_FORM_indirect] = { LAYOUT_INDIRECT, 0, DWARF_NONE },
	[DW_FORM_sec_offset] = { LAYOUT_OFFSET, 0, DWARF_SECTION_OFFSET },
	[DW_FORM_exprloc] = { LAYOUT_BLOCK, 0, DWARF_BLOCK },
	[DW_FORM_flag_present] = { LAYOUT_IMPLICIT, 0, DWARF_CONSTANT },
	[DW_FORM_strx] = { LAYOUT_ULEB, 0, DWARF_STR_INDEX },
	[DW_FORM_addrx] = { LAYOUT_ULEB, 0, DWARF_ADDRESS_INDEX },
	[DW_FORM_ref_sup4] = { LAYOUT_FIXED, 4, DWARF_ALTERNATE_REFERENCE },
	[DW_FORM_strp_sup] = { LAYOUT_OFFSET, 0, DWARF_ALTERNATE_STR },
	[DW_FORM_data16] = { LAYOUT_FIXED, 16, DWARF_BLOCK },
	[DW_FORM_line_strp] = { LAYOUT_OFFSET, 0, DWARF_LINE_STR },
	[DW_FORM_ref_sig8] = { LAYOUT_FIXED, 8, DWARF_ELSEWHERE },
	[DW_FORM_implicit_const] = { LAYOUT_IMPLICIT, 0, DWARF_CONSTANT },
	[DW_FORM_loclistx] = { LAYOUT_ULEB, 0, DWARF_LIST_INDEX },
	[DW_FORM_rnglistx] = { LAYOUT_ULEB, 0, DWARF_LIST_INDEX },
	[DW_FORM_ref_sup8] = { LAYOUT_FIXED, 8, DWARF_ALTERNATE_REFERENCE },
	[DW_FORM_strx1] = { LAYOUT_FIXED, 1, DWARF_STR_INDEX },
	[DW_FORM_strx2] = { LAYOUT_FIXED, 2, DWARF_STR_INDEX },
	[DW_FORM_strx3] = { LAYOUT_FIXED, 3, DWARF_STR_INDEX },
	[DW_FORM_strx4] = { LAYOUT_FIXED, 4, DWARF_STR_INDEX },
	[DW_FORM_addrx1] = { LAYOUT_FIXED, 1, DWARF_ADDRESS_INDEX },
	[DW_FORM_addrx2] = { LAYOUT_FIXED, 2, DWARF_ADDRESS_INDEX },
	[DW_FORM_addrx3] = { LAYOUT_FIXED, 3, DWARF_ADDRESS_INDEX },
	[DW_FORM_addrx4] = { LAYOUT_FIXED, 4, DWARF_ADDRESS_INDEX },
};

enum { FORM_COUNT = sizeof(forms) / sizeof(forms[0]) };

/* GNU's forms for split and supplementary files are outside the table. */
static struct form form_of(unsigned int form)
{
	if (form < FORM_COUNT)
		return forms[form];
	switch (form) {
	case DW_FORM_GNU_addr_index:
		return forms[DW_FORM_addrx];
	case DW_FORM_GNU_str_index:
		return forms[DW_FORM_strx];
	case DW_FORM_GNU_ref_alt:
		return (struct form){ LAYOUT_OFFSET, 0, DWARF_ALTERNATE_REFERENCE };
	case DW_FORM_GNU_strp_alt:
		return forms[DW_FORM_strp_sup];
	}
	return (struct form){ LAYOUT_UNKNOWN };
}

/* In DWARF 2 references across units have the size of an address (see DWARF 3, 7.5.4). */
static unsigned int ref_addr_size(const struct dwarf_format *format)
{
	return format->version == 2 ? 8 : format->offset_size;
}

int dwarf_form_size(const struct dwarf_format *format, unsigned int form)
{
	struct form f = form_of(form);

	switch (f.layout) {
	case LAYOUT_FIXED:
		return f.size;
	case LAYOUT_OFFSET:
		return format->offset_size;
	case LAYOUT_REF_ADDR:
		return (int)ref_addr_size(format);
	case LAYOUT_IMPLICIT:
		return 0;
	}
	return -1;
}

static uint64_t block_size(struct cursor *c, struct form f)
{
	return f.size ? cursor_unsigned(c, f.size) : dwarf_uleb(c);
}

static uint64_t fixed_number(struct cursor *c, unsigned int size)
{
	switch (size) {
	case 1:
		return cursor_u8(c);
	case 2:
		return cursor_u16(c);
	case 4:
		return cursor_u32(c);
	case 8:
		return cursor_u64(c);
	}
	return cursor_unsigned(c, size);
}

/* Returns the form that DW_FORM_indirect stands for; 0, an unknown form, if it is malformed. */
static unsigned int indirect_form(struct cursor *c)
{
	for (int i = 0; i < MAX_INDIRECTIONS; i++) {
		uint64_t form = dwarf_uleb(c);

		if (form == DW_FORM_implicit_const || form > UINT16_MAX)
			return 0;
		if (form != DW_FORM_indirect)
			return (unsigned int)form;
	}
	return 0;
}

static void read_bytes(struct cursor *c, uint64_t size, struct dwarf_value *value)
{
	value->number = size;
	value->text = (const char *)c->at;
	cursor_skip(c, size);
}

void dwarf_form_read(struct cursor *c, const struct dwarf_format *format, unsigned int form,
	int64_t implicit, struct dwarf_value *ret_value)
{
	struct form f;

	if (form == DW_FORM_indirect)
		form = indirect_form(c);
	f = form_of(form);
	*ret_value = (struct dwarf_value){ .kind = f.kind };
	switch (f.layout) {
	case LAYOUT_FIXED:
		if (f.size == 16)
			read_bytes(c, 16, ret_value);
		else
			ret_value->number = fixed_number(c, f.size);
		break;
	case LAYOUT_OFFSET:
		ret_value->number = fixed_number(c, format->offset_size);
		break;
	case LAYOUT_REF_ADDR:
		ret_value->number = fixed_number(c, ref_addr_size(format));
		break;
	case LAYOUT_ULEB:
		ret_value->number = dwarf_uleb(c);
		break;
	case LAYOUT_SLEB:
		ret_value->number = (uint64_t)cursor_sleb128(c);
		break;
	case LAYOUT_STRING:
		ret_value->text = cursor_string(c);
		break;
	case LAYOUT_BLOCK:
		read_bytes(c, block_size(c, f), ret_value);
		break;
	case LAYOUT_IMPLICIT:
		ret_value->number = form == DW_FORM_flag_present ? 1 : (uint64_t)implicit;
		break;
	default:
		c->bad = true;
	}
	if (f.local)
		ret_value->number += format->base;
}

static void skip_leb(struct cursor *c)
{
	while (cursor_u8(c) & 0x80)
		;
}

void dwarf_form_skip(struct cursor *c, const struct dwarf_format *format, unsigned int form)
{
	struct form f;
	int size;

	if (form == DW_FORM_indirect)
		form = indirect_form(c);
	f = form_of(form);
	switch (f.layout) {
	case LAYOUT_ULEB:
	case LAYOUT_SLEB:
		skip_leb(c);
		return;
	case LAYOUT_STRING:
		cursor_string(c);
		return;
	case LAYOUT_BLOCK:
		cursor_skip(c, block_size(c, f));
		return;
	}
	size = dwarf_form_size(format, form);
	if (size < 0)
		c->bad = true;
	else
		cursor_skip(c, (uint64_t)size);
}
