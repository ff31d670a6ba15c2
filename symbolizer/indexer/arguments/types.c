/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/arguments/types.h"

#include <dwarf.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	MAX_REFERENCES = 32, /* typedefs of typedefs */
	MAX_VALUE_BYTES = 1 << 20,
	MAX_ENUMERATORS = 1024,
	DW_AT_GO_KIND = 0x2900, /* reflect.Kind */
	GO_KIND_CHAN = 18,
	GO_KIND_FUNC = 19,
	GO_KIND_INTERFACE = 20,
	GO_KIND_MAP = 21,
	GO_KIND_SLICE = 23,
	GO_KIND_STRING = 24,
};

static bool type_referred(Dwarf_Die *die, Dwarf_Die *ret_die)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, ret_die);
}

static uint64_t type_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formudata(&attribute, &number))
		return 0;
	return number;
}

static enum type_shape type_shape_of_base(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	if (name && !strcmp(name, "char") && type_number(die, DW_AT_encoding) != DW_ATE_boolean)
		return TYPE_CHARACTER;
	switch (type_number(die, DW_AT_encoding)) {
	case DW_ATE_boolean:
		return TYPE_BOOL;
	case DW_ATE_float:
		return TYPE_FLOAT;
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		return TYPE_SIGNED;
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
	case DW_ATE_address:
		return TYPE_UNSIGNED;
	}
	return TYPE_OTHER;
}

static enum type_shape type_shape_of_go(Dwarf_Die *die)
{
	switch (type_number(die, DW_AT_GO_KIND)) {
	case GO_KIND_STRING:
		return TYPE_GO_STRING;
	case GO_KIND_SLICE:
		return TYPE_GO_SLICE;
	case GO_KIND_MAP:
		return TYPE_GO_MAP;
	case GO_KIND_INTERFACE:
		return TYPE_GO_ERROR_LIKE;
	case GO_KIND_CHAN:
	case GO_KIND_FUNC:
		return TYPE_POINTER;
	}
	return TYPE_OTHER;
}

static enum type_shape type_shape_of(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		return type_shape_of_base(die);
	case DW_TAG_enumeration_type:
		return TYPE_ENUM;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_subroutine_type:
		return TYPE_POINTER;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return TYPE_STRUCT;
	}
	return TYPE_OTHER;
}

static bool type_is_named(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

static bool type_has_size(struct type *type)
{
	Dwarf_Word size;

	if (type->shape == TYPE_POINTER || type->shape == TYPE_GO_MAP) {
		type->size = sizeof(uint64_t);
		return true;
	}
	if (dwarf_aggregate_size(&type->die, &size) || size > MAX_VALUE_BYTES)
		return false;
	type->size = (uint32_t)size;
	return true;
}

/* What Go says of a name holds for the type behind it. */
static void type_settle(struct type *type, enum type_shape go)
{
	const char *name = dwarf_diename(&type->die);

	type->shape = type_shape_of(&type->die);
	if (go != TYPE_OTHER)
		type->shape = go;
	if (type->shape == TYPE_GO_ERROR_LIKE && name && !strcmp(name, "runtime.eface"))
		type->shape = TYPE_GO_ANY;
}

bool type_of(Dwarf_Die *die, struct type *ret_type)
{
	struct type type = { .shape = TYPE_OTHER };
	enum type_shape go = TYPE_OTHER;
	Dwarf_Die at = *die;

	for (int i = 0; i < MAX_REFERENCES; i++) {
		if (!type_referred(&at, &type.die))
			return false;
		if (go == TYPE_OTHER)
			go = type_shape_of_go(&type.die);
		if (type_is_named(dwarf_tag(&type.die))) {
			at = type.die;
			continue;
		}
		type_settle(&type, go);
		if (!type_has_size(&type))
			return false;
		*ret_type = type;
		return true;
	}
	return false;
}

bool type_pointed_to(struct type *pointer, struct type *ret_type)
{
	int tag = dwarf_tag(&pointer->die);

	return (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
		       tag == DW_TAG_rvalue_reference_type) &&
	       type_of(&pointer->die, ret_type);
}

bool type_is_character(struct type *type)
{
	return type->shape == TYPE_CHARACTER && type->size == 1;
}

bool type_is_text(struct type *type)
{
	struct type element;

	return dwarf_tag(&type->die) == DW_TAG_array_type && type_of(&type->die, &element) &&
	       type_is_character(&element);
}

uint32_t type_array_count(struct type *array, struct type *element)
{
	Dwarf_Die range;

	if (dwarf_tag(&array->die) != DW_TAG_array_type || dwarf_child(&array->die, &range) ||
		dwarf_tag(&range) != DW_TAG_subrange_type || !dwarf_siblingof(&range, &range) ||
		!type_of(&array->die, element) || !element->size || array->size % element->size)
		return 0;
	return array->size / element->size;
}

/* Without a type of its own (old compilers) by its enumerators. */
bool type_enum_is_signed(struct type *type)
{
	struct type underlying;
	Dwarf_Die child;

	if (type_of(&type->die, &underlying))
		return underlying.shape == TYPE_SIGNED;
	if (dwarf_child(&type->die, &child))
		return false;
	for (int i = 0; i < MAX_ENUMERATORS; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Sword value;

		if (dwarf_attr(&child, DW_AT_const_value, &attribute) &&
			attribute.form == DW_FORM_sdata && !dwarf_formsdata(&attribute, &value) &&
			value < 0)
			return true;
		if (dwarf_siblingof(&child, &child))
			break;
	}
	return false;
}

/* The first bit of a field of BITS bits; the form before DWARF 4 counts from the other end. */
static bool type_first_bit(Dwarf_Die *member, uint64_t bits, uint64_t *ret_bit)
{
	uint64_t bytes = type_number(member, DW_AT_byte_size);
	uint64_t off = type_number(member, DW_AT_data_member_location), from_end;
	struct type type;

	if (dwarf_hasattr(member, DW_AT_data_bit_offset)) {
		*ret_bit = type_number(member, DW_AT_data_bit_offset);
		return true;
	}
	if (!dwarf_hasattr(member, DW_AT_bit_offset) || off > MAX_VALUE_BYTES)
		return false;
	if (!bytes && type_of(member, &type))
		bytes = type.size;
	from_end = type_number(member, DW_AT_bit_offset);
	if (bytes > sizeof(uint64_t) || from_end > 64 || from_end + bits > 8 * bytes)
		return false;
	*ret_bit = 8 * (off + bytes) - from_end - bits;
	return true;
}

bool type_member_bits(Dwarf_Die *member, uint32_t *ret_off, uint32_t *ret_size,
	uint8_t *ret_bit_off, uint8_t *ret_bit_size)
{
	uint64_t bits = type_number(member, DW_AT_bit_size), first, size;

	if (!bits || bits > 64 || !type_first_bit(member, bits, &first))
		return false;
	size = (first % 8 + bits + 7) / 8;
	if (first / 8 > MAX_VALUE_BYTES || size > sizeof(uint64_t))
		return false;
	*ret_off = (uint32_t)(first / 8);
	*ret_size = (uint32_t)size;
	*ret_bit_off = (uint8_t)(first % 8);
	*ret_bit_size = (uint8_t)bits;
	return true;
}

bool type_member_offset(Dwarf_Die *member, uint32_t *ret_off)
{
	Dwarf_Attribute attribute;
	Dwarf_Word off = 0;

	if (dwarf_hasattr(member, DW_AT_bit_size) || dwarf_hasattr(member, DW_AT_data_bit_offset))
		return false;
	if (dwarf_attr(member, DW_AT_data_member_location, &attribute) &&
		dwarf_formudata(&attribute, &off))
		return false;
	if (off > MAX_VALUE_BYTES)
		return false;
	*ret_off = (uint32_t)off;
	return true;
}

/* ---- names ---------------------------------------------------------------------------------- */

void type_name(Dwarf_Die *die, struct buffer *out)
{
	static const struct {
		int tag;
		const char *before, *after;
	} wrappers[] = {
		{ DW_TAG_const_type, "const ", "" },
		{ DW_TAG_volatile_type, "volatile ", "" },
		{ DW_TAG_restrict_type, "", " restrict" },
		{ DW_TAG_pointer_type, "", " *" },
		{ DW_TAG_reference_type, "", " &" },
		{ DW_TAG_rvalue_reference_type, "", " &&" },
		{ DW_TAG_array_type, "", " []" },
	};
	const char *after[MAX_REFERENCES], *name = NULL;
	Dwarf_Die at = *die;
	size_t count = 0;

	while (count < MAX_REFERENCES && type_referred(&at, &at)) {
		int tag = dwarf_tag(&at);
		size_t i = 0;

		name = dwarf_diename(&at);
		if (name)
			break;
		while (i < ARRAY_SIZE(wrappers) && wrappers[i].tag != tag)
			i++;
		if (i == ARRAY_SIZE(wrappers)) {
			name = "?";
			break;
		}
		buffer_string(out, wrappers[i].before);
		after[count++] = wrappers[i].after;
	}
	buffer_string(out, name ? name : "void");
	while (count--)
		buffer_string(out, after[count]);
}
