/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_die.h"

#include <dwarf.h>
#include <errno.h>

/* Returns a line, column or file number; 0 if it does not fit. */
static uint32_t small_number(const struct dwarf_value *value)
{
	if (value->kind != DWARF_CONSTANT || value->number > UINT32_MAX)
		return 0;
	return (uint32_t)value->number;
}

/* Whether struct dwarf_die has the attribute. */
static bool is_wanted(uint16_t name)
{
	switch (name) {
	case DW_AT_name:
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
	case DW_AT_abstract_origin:
	case DW_AT_specification:
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_ranges:
	case DW_AT_decl_line:
	case DW_AT_call_file:
	case DW_AT_call_line:
	case DW_AT_call_column:
		return true;
	}
	return false;
}

static void keep(struct dwarf_die *die, uint16_t name, const struct dwarf_value *value)
{
	switch (name) {
	case DW_AT_name:
		die->name = *value;
		break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		die->linkage = *value;
		break;
	case DW_AT_abstract_origin:
		die->origin = *value;
		break;
	case DW_AT_specification:
		if (die->origin.kind == DWARF_NONE)
			die->origin = *value;
		break;
	case DW_AT_low_pc:
		die->low = *value;
		break;
	case DW_AT_high_pc:
		die->high = *value;
		break;
	case DW_AT_ranges:
		die->ranges = *value;
		break;
	case DW_AT_decl_line:
		die->decl_line = small_number(value);
		break;
	case DW_AT_call_file:
		die->call_file = small_number(value);
		break;
	case DW_AT_call_line:
		die->call_line = small_number(value);
		break;
	case DW_AT_call_column:
		die->call_column = small_number(value);
		break;
	}
}

void dwarf_die_read(struct cursor *c, const struct dwarf_unit *u, const struct dwarf_abbrevs *t,
	const struct dwarf_abbrev *a, struct dwarf_die *ret_die)
{
	const struct dwarf_attribute *attribute = t->attributes + a->attribute_first;
	struct dwarf_value value;

	*ret_die = (struct dwarf_die){ .tag = a->tag };
	for (uint32_t i = 0; i < a->attribute_count; i++, attribute++) {
		if (!is_wanted(attribute->name)) {
			dwarf_form_skip(c, &u->format, attribute->form);
			continue;
		}
		dwarf_form_read(c, &u->format, attribute->form, attribute->implicit, &value);
		keep(ret_die, attribute->name, &value);
	}
}

int dwarf_die_at(
	struct dwarf *d, uint64_t offset, struct dwarf_die *ret_die, struct dwarf_unit **ret_unit)
{
	struct dwarf_unit *u = dwarf_unit_at(d, offset);
	const struct dwarf_abbrevs *table;
	const struct dwarf_abbrev *a;
	struct dwarf_die die;
	struct cursor c;
	int err;

	if (!u || offset < u->root)
		return -EBADMSG;
	err = dwarf_unit_open(d, u);
	if (!err)
		err = dwarf_abbrevs_get(
			&d->abbrevs, &d->sections.abbrev, u->abbrev_off, &u->format, &table);
	if (err)
		return err;
	c = dwarf_unit_cursor(d, u, offset);
	a = dwarf_abbrev_find(table, dwarf_uleb(&c));
	if (!a || !work_spend(d->work, a->attribute_count))
		return -EBADMSG;
	dwarf_die_read(&c, u, table, a, &die);
	if (c.bad)
		return -EBADMSG;
	*ret_die = die;
	*ret_unit = u;
	return 0;
}
