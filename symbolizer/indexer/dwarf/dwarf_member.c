/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the offset of a structure's member, for reading another program's memory. Searches only the
 * top level of units, where Go and C have their structures.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/dwarf/dwarf_read.h"
#include "symbolizer/indexer/dwarf/dwarf.h"

enum { MAX_DEPTH = 512 };

struct search {
	struct dwarf *d;
	const char *type, *member;
	struct dwarf_unit *u;
	const struct dwarf_abbrevs *table;
	struct cursor c;
	unsigned int depth;
	bool inside; /* inside the structure; its members are at depth 2 */
};

struct named {
	struct dwarf_value name, location;
};

static void read_named(struct search *s, const struct dwarf_abbrev *a, struct named *ret_named)
{
	const struct dwarf_attribute *attribute = s->table->attributes + a->attribute_first;

	*ret_named = (struct named){ 0 };
	for (uint32_t i = 0; i < a->attribute_count; i++, attribute++) {
		struct dwarf_value value;

		dwarf_form_read(&s->c, &s->u->format, attribute->form, attribute->implicit, &value);
		if (attribute->name == DW_AT_name)
			ret_named->name = value;
		else if (attribute->name == DW_AT_data_member_location)
			ret_named->location = value;
	}
}

static bool is_called(const struct search *s, const struct named *named, const char *name)
{
	const char *text = dwarf_text(s->d, s->u, &named->name);

	return text && !strcmp(text, name);
}

/* LOCATION is a number, or (DWARF 2) an expression that adds one to the structure's address. */
static int member_location(const struct dwarf_value *location, uint64_t *ret_offset)
{
	struct cursor c = cursor_over(location->text, location->number);
	uint64_t offset;

	if (location->kind == DWARF_CONSTANT) {
		*ret_offset = location->number;
		return 0;
	}
	if (location->kind != DWARF_BLOCK || cursor_u8(&c) != DW_OP_plus_uconst)
		return -EBADMSG;
	offset = cursor_uleb128(&c);
	if (c.bad || cursor_left(&c))
		return -EBADMSG;
	*ret_offset = offset;
	return 0;
}

/* Returns -EAGAIN if this entry is not the member. */
static int search_entry(struct search *s, const struct dwarf_abbrev *a, uint64_t *ret_offset)
{
	bool structure = s->depth == 1 && a->tag == DW_TAG_structure_type && a->children;
	bool member = s->inside && s->depth == 2 && a->tag == DW_TAG_member;
	struct named named;

	if (!structure && !member) {
		dwarf_abbrev_skip(s->table, a, &s->u->format, &s->c);
		return -EAGAIN;
	}
	if (!work_spend(s->d->work, a->attribute_count))
		return -EBADMSG;
	read_named(s, a, &named);
	if (s->c.bad)
		return -EBADMSG;
	if (structure)
		s->inside = is_called(s, &named, s->type);
	else if (is_called(s, &named, s->member))
		return member_location(&named.location, ret_offset);
	return -EAGAIN;
}

static int search_step(struct search *s, uint64_t *ret_offset)
{
	uint64_t code = dwarf_uleb(&s->c);
	const struct dwarf_abbrev *a;
	int err;

	if (!code) {
		if (!s->depth || --s->depth == 0)
			return -ENOENT;
		s->inside = s->inside && s->depth > 1;
		return -EAGAIN;
	}
	a = dwarf_abbrev_find(s->table, code);
	if (!a)
		return -EBADMSG;
	err = search_entry(s, a, ret_offset);
	if (err == -EAGAIN && a->children && ++s->depth == MAX_DEPTH)
		return -EBADMSG;
	return err;
}

static int search_unit(struct search *s, uint64_t *ret_offset)
{
	int err = dwarf_abbrevs_get(
		&s->d->abbrevs, &s->d->sections.abbrev, s->u->abbrev_off, &s->u->format, &s->table);

	if (err)
		return err;
	s->c = dwarf_unit_cursor(s->d, s->u, s->u->root);
	s->depth = 0;
	s->inside = false;
	do
		err = cursor_left(&s->c) ? search_step(s, ret_offset) : -ENOENT;
	while (err == -EAGAIN);
	return err;
}

/* A Go package's unit has the name of the package: `runtime` for `runtime.g`. */
static bool is_likely(const struct dwarf_unit *u, const char *type)
{
	size_t size = strcspn(type, ".");

	return !strncmp(u->name, type, size) && !u->name[size];
}

static int search_units(struct search *s, bool likely, uint64_t *ret_offset)
{
	for (size_t i = 0; i < s->d->unit_count; i++) {
		int err;

		s->u = &s->d->units[i];
		err = dwarf_unit_open(s->d, s->u);
		if (!err && is_likely(s->u, s->type) == likely)
			err = search_unit(s, ret_offset);
		else if (!err)
			continue;
		if (!err || err == -ENOMEM)
			return err;
	}
	return -ENOENT;
}

int dwarf_member_find(const struct dwarf_sections *sections, const char *type, const char *member,
	uint64_t *ret_offset)
{
	autocall(dwarf_deinit) struct dwarf d = { 0 };
	struct search s = { .d = &d, .type = type, .member = member };
	struct work work = work_for(dwarf_sections_bytes(sections));
	int err = dwarf_init(&d, sections, &work);

	if (!err)
		err = search_units(&s, true, ret_offset);
	if (err == -ENOENT)
		err = search_units(&s, false, ret_offset);
	return err;
}

int dwarf_member_offset(
	struct elf_image *image, const char *type, const char *member, uint64_t *ret_offset)
{
	struct dwarf_code code[DWARF_MAX_CODE];
	struct dwarf_sections sections;

	dwarf_sections_find(image, code, DWARF_MAX_CODE, &sections);
	return dwarf_member_find(&sections, type, member, ret_offset);
}
