/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum {
	MAX_UNITS = 1 << 19,
	LENGTH_64BIT = 0xffffffff, /* marks the 64-bit format; from 0xfffffff0: reserved */
	LENGTH_RESERVED = 0xfffffff0,
	HEADER_BYTES = 12 + 2 + 1 + 1 + 8 + 8, /* of a unit, at most */
	PEEK_BYTES = 8 << 10, /* from here on a read costs less than its share of a page fault */
};

/* Reads the part of a header after the version. False: the unit is unsupported or malformed. */
static bool dwarf_file_read_header(struct cursor *c, struct dwarf_unit *u, uint8_t *ret_type)
{
	uint8_t type = DW_UT_compile;
	uint8_t address_size;

	if (u->format.version < 2 || u->format.version > 5)
		return false;
	if (u->format.version == 5) {
		type = cursor_u8(c);
		address_size = cursor_u8(c);
		u->abbrev_off = cursor_unsigned(c, u->format.offset_size);
		u->has_dwo_id = type == DW_UT_skeleton || type == DW_UT_split_compile;
		if (u->has_dwo_id)
			u->dwo_id = cursor_u64(c);
	} else {
		u->abbrev_off = cursor_unsigned(c, u->format.offset_size);
		address_size = cursor_u8(c);
	}
	*ret_type = type;
	return !c->bad && address_size == 8;
}

static bool is_walked(uint8_t type)
{
	return type == DW_UT_compile || type == DW_UT_partial || type == DW_UT_skeleton ||
	       type == DW_UT_split_compile;
}

static int dwarf_file_add_unit(struct dwarf *d, const struct dwarf_unit *u)
{
	int err = array_reserve(d->units, d->unit_capacity, d->unit_count + 1, MAX_UNITS);

	if (!err)
		d->units[d->unit_count++] = *u;
	return err;
}

/*
 * A cursor over the bytes at C, enough for the header of a unit. After a big unit they are copied
 * to BYTES, of HEADER_BYTES.
 */
static struct cursor dwarf_file_peek(
	const struct dwarf *d, const struct cursor *c, uint64_t skipped, uint8_t *bytes)
{
	const struct elf_image *image = d->sections.image;

	if (!image || skipped < PEEK_BYTES)
		return cursor_over(c->at, cursor_left(c));
	return cursor_over(bytes, elf_image_peek(image, c, cursor_offset(c), bytes, HEADER_BYTES));
}

/* Reads the header of the unit at the cursor and skips the unit. -EBADMSG: cannot go on. */
static int dwarf_file_scan_unit(struct dwarf *d, struct cursor *c, uint64_t skipped)
{
	const uint64_t base = cursor_offset(c);
	struct dwarf_unit u = { .format = { .base = base, .offset_size = 4 } };
	uint8_t bytes[HEADER_BYTES];
	struct cursor header = dwarf_file_peek(d, c, skipped, bytes);
	uint64_t length = cursor_u32(&header);
	uint8_t type = 0;
	uint16_t version;
	bool good;

	if (length == LENGTH_64BIT) {
		u.format.offset_size = 8;
		length = cursor_u64(&header);
	} else if (length >= LENGTH_RESERVED) {
		return -EBADMSG;
	}
	if (header.bad || !cursor_skip(c, cursor_offset(&header)) || !cursor_skip(c, length))
		return -EBADMSG;
	if (!length && u.format.offset_size == 4)
		return 0; /* padding */
	if (cursor_left(&header) > length)
		header.end = header.at + length;
	u.end = cursor_offset(c);
	version = cursor_u16(&header);
	u.format.version = version <= 5 ? (uint8_t)version : 0;
	good = dwarf_file_read_header(&header, &u, &type);
	u.root = base + cursor_offset(&header);
	if (!good) {
		d->broken_units++;
		return 0;
	}
	return is_walked(type) ? dwarf_file_add_unit(d, &u) : 0;
}

int dwarf_init(struct dwarf *d, const struct dwarf_sections *sections, struct work *work)
{
	struct cursor c = sections->info;
	uint64_t forgotten = 0, skipped = 0;

	*d = (struct dwarf){ .sections = *sections, .work = work };
	dwarf_abbrev_cache_init(&d->abbrevs);
	d->abbrevs.work = work;
	while (cursor_left(&c)) {
		uint64_t base = cursor_offset(&c);
		int err = dwarf_file_scan_unit(d, &c, skipped);

		if (err == -ENOMEM)
			return err;
		if (err) {
			d->broken_units++;
			break;
		}
		skipped = cursor_offset(&c) - base;
		dwarf_forget(d, &sections->info, cursor_offset(&c), &forgotten);
	}
	return 0;
}

uint64_t dwarf_sections_bytes(const struct dwarf_sections *s)
{
	return cursor_left(&s->info) + cursor_left(&s->abbrev) + cursor_left(&s->str) +
	       cursor_left(&s->line_str) + cursor_left(&s->str_offsets) + cursor_left(&s->line) +
	       cursor_left(&s->ranges) + cursor_left(&s->rnglists) + cursor_left(&s->addr);
}

void dwarf_deinit(struct dwarf *d)
{
	dwarf_abbrev_cache_deinit(&d->abbrevs);
	free(d->units);
}

/* Unresolved attributes of the root: bases may come after the attributes that need them. */
struct root {
	struct dwarf_value name, comp_dir, low_pc, dwo_name;
};

/* Attributes that a split unit takes from its skeleton or the package's index. */
static bool is_skeletons(uint16_t name)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_stmt_list:
	case DW_AT_str_offsets_base:
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
	case DW_AT_rnglists_base:
		return true;
	}
	return false;
}

static void keep_root(
	struct dwarf_unit *u, struct root *root, uint16_t name, const struct dwarf_value *value)
{
	if (u->is_split && is_skeletons(name))
		return;
	switch (name) {
	case DW_AT_name:
		root->name = *value;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		root->dwo_name = *value;
		break;
	case DW_AT_GNU_dwo_id:
		u->dwo_id = value->number;
		u->has_dwo_id = true;
		break;
	case DW_AT_GNU_ranges_base:
		u->split_ranges_base = value->number;
		break;
	case DW_AT_comp_dir:
		root->comp_dir = *value;
		break;
	case DW_AT_low_pc:
		root->low_pc = *value;
		break;
	case DW_AT_stmt_list:
		u->line_off = value->number;
		u->has_lines = true;
		break;
	case DW_AT_language:
		u->language = (uint16_t)value->number;
		break;
	case DW_AT_str_offsets_base:
		u->str_offsets_base = value->number;
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		u->addr_base = value->number;
		break;
	case DW_AT_rnglists_base:
		u->rnglists_base = value->number;
		break;
	}
}

static void finish_root(const struct dwarf *d, struct dwarf_unit *u, const struct root *root)
{
	const char *name = dwarf_text(d, u, &root->name);
	const char *comp_dir = dwarf_text(d, u, &root->comp_dir);
	const char *dwo_name = dwarf_text(d, u, &root->dwo_name);

	u->name = name ? name : "";
	u->comp_dir = comp_dir ? comp_dir : "";
	u->dwo_name = dwo_name ? dwo_name : "";
	/* Finding the end of a string is work, too; the next spending fails if this is too much. */
	(void)work_spend(d->work, strlen(u->name) + strlen(u->comp_dir) + strlen(u->dwo_name));
	if (!u->is_split && !dwarf_address(d, u, &root->low_pc, &u->low_pc))
		u->low_pc = 0;
	u->opened = true;
}

int dwarf_unit_open(struct dwarf *d, struct dwarf_unit *u)
{
	struct cursor c = dwarf_unit_cursor(d, u, u->root);
	const struct dwarf_abbrevs *table;
	const struct dwarf_abbrev *a;
	const struct dwarf_attribute *attribute;
	struct root root = { 0 };
	int err;

	if (u->opened)
		return 0;
	err = dwarf_abbrevs_get(
		&d->abbrevs, &d->sections.abbrev, u->abbrev_off, &u->format, &table);
	if (err)
		return err;
	a = dwarf_abbrev_find(table, dwarf_uleb(&c));
	if (!a || !work_spend(d->work, a->attribute_count))
		return -EBADMSG;
	attribute = table->attributes + a->attribute_first;
	for (uint32_t i = 0; i < a->attribute_count; i++, attribute++) {
		struct dwarf_value value;

		dwarf_form_read(&c, &u->format, attribute->form, attribute->implicit, &value);
		keep_root(u, &root, attribute->name, &value);
	}
	if (c.bad)
		return -EBADMSG;
	finish_root(d, u, &root);
	return 0;
}

struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t offset)
{
	size_t low = 0, high = d->unit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->units[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == d->unit_count || d->units[low].format.base > offset)
		return NULL;
	return &d->units[low];
}

struct cursor dwarf_unit_cursor(const struct dwarf *d, const struct dwarf_unit *u, uint64_t offset)
{
	struct cursor c = cursor_slice(&d->sections.info, 0, u->end);

	cursor_seek(&c, offset);
	return c;
}

bool dwarf_unit_is_flat(const struct dwarf_unit *u)
{
	switch (u->language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Go:
	case DW_LANG_Mips_Assembler:
		return true;
	}
	return false;
}

static const char *text_at(const struct cursor *section, uint64_t offset)
{
	struct cursor c = *section;

	cursor_seek(&c, offset);
	return cursor_string(&c);
}

static const char *indexed_text(const struct dwarf *d, const struct dwarf_unit *u, uint64_t index)
{
	struct cursor c = d->sections.str_offsets;
	uint64_t offset;

	if (index > cursor_left(&c))
		return NULL;
	cursor_seek(&c, u->str_offsets_base);
	cursor_skip(&c, index * u->format.offset_size);
	offset = cursor_unsigned(&c, u->format.offset_size);
	return c.bad ? NULL : text_at(&d->sections.str, offset);
}

const char *dwarf_text(
	const struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *value)
{
	switch (value->kind) {
	case DWARF_TEXT:
		return value->text;
	case DWARF_STR:
		return text_at(&d->sections.str, value->number);
	case DWARF_ALTERNATE_STR:
		return d->sections.alternate ? text_at(&d->sections.alternate->str, value->number)
					     : NULL;
	case DWARF_LINE_STR:
		return text_at(&d->sections.line_str, value->number);
	case DWARF_STR_INDEX:
		return indexed_text(d, u, value->number);
	default:
		return NULL;
	}
}

bool dwarf_indexed_address(
	const struct dwarf *d, const struct dwarf_unit *u, uint64_t index, uint64_t *ret_address)
{
	struct cursor c = d->sections.addr;
	uint64_t address;

	if (index > cursor_left(&c))
		return false;
	cursor_seek(&c, u->addr_base);
	cursor_skip(&c, index * 8);
	address = cursor_u64(&c);
	if (c.bad)
		return false;
	*ret_address = address;
	return true;
}

bool dwarf_address(const struct dwarf *d, const struct dwarf_unit *u,
	const struct dwarf_value *value, uint64_t *ret_address)
{
	if (value->kind == DWARF_ADDRESS_INDEX)
		return dwarf_indexed_address(d, u, value->number, ret_address);
	if (value->kind != DWARF_ADDRESS)
		return false;
	*ret_address = value->number;
	return true;
}

bool dwarf_is_code(const struct dwarf *d, uint64_t address)
{
	const struct dwarf_sections *s = &d->sections;

	for (size_t i = 0; i < s->code_count; i++)
		if (address >= s->code[i].low && address < s->code[i].high)
			return true;
	return false;
}

void dwarf_forget(
	const struct dwarf *d, const struct cursor *section, uint64_t read, uint64_t *forgotten)
{
	if (d->sections.image)
		elf_image_forget_read(d->sections.image, section, read, forgotten);
}
