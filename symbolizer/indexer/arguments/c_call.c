/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers and addresses are the same everywhere. Structs go by the classes of the System V ABI
 * (AMD64 3.2.3): up to 16 bytes are in registers, by words, of integers or of floating-point
 * numbers; larger ones are on the stack, where DWARF has their place. C++ passes the address of an
 * object that has a copy constructor or a destructor of its own (Itanium C++ ABI, 3.1.1). A result
 * that is not in registers is where the caller wants it, which the function returns as if it were
 * its result.
 */
#include "symbolizer/indexer/arguments/c_call.h"

#include <dwarf.h>

#include "base/cleanup.h"
#include "symbolizer/arguments/registers.h"
#include "symbolizer/indexer/arguments/texts.h"

enum {
	MAX_NESTING = 12,
	MAX_MEMBERS = 2048, /* with methods */
	MAX_PARTS = 1024, /* of one value */
	WORD = sizeof(uint64_t),
	MAX_REGISTERS = 2, /* of one value */
};

/* ---- classes -------------------------------------------------------------------------------- */

enum c_class { C_NOTHING, C_INTEGER, C_FLOAT };

struct c_classes {
	enum c_class words[MAX_REGISTERS];
	bool is_packed, has_functions;
	int parts; /* so far */
};

static bool c_is_integer(const struct type *type)
{
	return (type->shape == TYPE_SIGNED || type->shape == TYPE_UNSIGNED ||
		       type->shape == TYPE_BOOL || type->shape == TYPE_ENUM ||
		       type->shape == TYPE_CHARACTER || type->shape == TYPE_POINTER) &&
	       type->size >= 1 && type->size <= WORD;
}

static bool c_is_float(const struct type *type)
{
	return type->shape == TYPE_FLOAT && (type->size == sizeof(float) || type->size == WORD);
}

/* An address and a length: &str, std::string_view. */
static bool c_is_pair(struct type *type)
{
	struct text_layout layout;

	return type->size == 2 * WORD && text_layout_of(type, &layout);
}

/* An integer anywhere in a word makes it one of integers. */
static void c_classes_note(struct c_classes *c, uint64_t off, enum c_class class)
{
	if (off / WORD < MAX_REGISTERS && c->words[off / WORD] != C_INTEGER)
		c->words[off / WORD] = class;
}

static bool c_classes_add(struct c_classes *c, struct type *type, uint64_t off, int nesting);

static bool c_classes_add_array(struct c_classes *c, struct type *array, uint64_t off, int nesting)
{
	struct type element;
	uint32_t count = type_array_count(array, &element);

	for (uint32_t i = 0; i < count && i < MAX_REGISTERS * WORD; i++)
		if (!c_classes_add(c, &element, off + (uint64_t)i * element.size, nesting))
			return false;
	return count > 0;
}

static bool c_classes_add_member(struct c_classes *c, Dwarf_Die *member, uint64_t off, int nesting)
{
	uint32_t at, size;
	uint8_t bit_off, bit_size;
	struct type type;

	if (dwarf_hasattr(member, DW_AT_external))
		return true;
	if (dwarf_hasattr(member, DW_AT_alignment) || dwarf_hasattr(member, DW_AT_virtuality) ||
		!type_of(member, &type))
		return false;
	if (type_member_bits(member, &at, &size, &bit_off, &bit_size)) {
		c_classes_note(c, off + at, C_INTEGER);
		c_classes_note(c, off + at + size - 1, C_INTEGER);
		return true;
	}
	return type_member_offset(member, &at) && c_classes_add(c, &type, off + at, nesting);
}

/* Of a struct or a union. */
static bool c_classes_add_members(struct c_classes *c, struct type *type, uint64_t off, int nesting)
{
	Dwarf_Die child;

	if (nesting == MAX_NESTING || dwarf_hasattr(&type->die, DW_AT_alignment))
		return false;
	if (dwarf_child(&type->die, &child))
		return true;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			c->has_functions = true;
		if (tag == DW_TAG_variant_part ||
			((tag == DW_TAG_member || tag == DW_TAG_inheritance) &&
				!c_classes_add_member(c, &child, off, nesting + 1)))
			return false;
		if (dwarf_siblingof(&child, &child))
			return true;
	}
	return false;
}

/* Adds the parts of TYPE, at OFF of the value. Returns false if one is not understood. */
static bool c_classes_add(struct c_classes *c, struct type *type, uint64_t off, int nesting)
{
	int tag = dwarf_tag(&type->die);

	if (c->parts++ == MAX_PARTS)
		return false;
	if (c_is_integer(type) || c_is_float(type)) {
		c->is_packed |= off % type->size != 0;
		c_classes_note(c, off, type->shape == TYPE_FLOAT ? C_FLOAT : C_INTEGER);
		return true;
	}
	if (type->shape == TYPE_STRUCT || tag == DW_TAG_union_type)
		return c_classes_add_members(c, type, off, nesting);
	/* Vectors have registers of their own. */
	return tag == DW_TAG_array_type && !dwarf_hasattr(&type->die, DW_AT_GNU_vector) &&
	       c_classes_add_array(c, type, off, nesting);
}

/* ---- one value ------------------------------------------------------------------------------ */

enum c_way { C_UNKNOWN, C_IN_REGISTERS, C_IN_MEMORY, C_BY_ADDRESS };

struct c_value {
	enum c_way way;
	enum c_class words[MAX_REGISTERS];
	uint32_t count; /* of registers */
};

static struct c_value c_value_in_registers(enum c_class one, enum c_class other)
{
	return (struct c_value){ C_IN_REGISTERS, { one, other }, other == C_NOTHING ? 1 : 2 };
}

/* A result of more than 16 bytes is in memory, however it is passed as an argument. */
static struct c_value c_value_of_struct(struct type *type, enum c_passing passing, bool is_result)
{
	const struct c_value unknown = { C_UNKNOWN };
	struct c_classes classes = { .is_packed = false };
	bool is_large = type->size > MAX_REGISTERS * WORD;

	if (!REGISTER_C_BY_CLASSES || !type->size || passing == C_PASSED_SOMEHOW)
		return unknown;
	if (passing == C_PASSED_BY_ADDRESS)
		return (struct c_value){ C_BY_ADDRESS };
	if (!c_classes_add(&classes, type, 0, 0))
		return unknown;
	if (is_large && is_result)
		return (struct c_value){ C_IN_MEMORY };
	if (passing == C_PASSED_BY_MEMBERS && classes.has_functions)
		return unknown;
	if (is_large)
		return (struct c_value){ C_IN_MEMORY };
	if (classes.is_packed || classes.words[0] == C_NOTHING ||
		(type->size > WORD && classes.words[1] == C_NOTHING))
		return unknown;
	return c_value_in_registers(classes.words[0], classes.words[1]);
}

static struct c_value c_value_of(struct type *type, enum c_passing passing, bool is_result)
{
	if (c_is_integer(type))
		return c_value_in_registers(C_INTEGER, C_NOTHING);
	if (c_is_float(type))
		return c_value_in_registers(C_FLOAT, C_NOTHING);
	if (c_is_pair(type))
		return c_value_in_registers(C_INTEGER, C_INTEGER);
	if (type->shape == TYPE_STRUCT || dwarf_tag(&type->die) == DW_TAG_union_type)
		return c_value_of_struct(type, passing, is_result);
	return (struct c_value){ C_UNKNOWN };
}

static void c_value_place_at(struct type *type, uint8_t number, struct place *place)
{
	const struct place_piece piece = {
		.size = type->size,
		.in_register = REGISTER_NONE,
		.in_memory = true,
		.address = { .origin = number },
	};

	place_add(place, &piece);
}

/* Word NUMBER of a value is in an integer register, or in one that nobody can read. */
static void c_value_place_word(
	struct type *type, size_t number, uint8_t in_register, struct place *place)
{
	const struct place_piece piece = {
		.off = (uint32_t)number * WORD,
		.size = MIN(type->size - (uint32_t)number * WORD, (uint32_t)WORD),
		.in_register = in_register,
	};

	place_add(place, &piece);
}

enum c_passing c_passing_of(struct type *type, enum c_passing otherwise)
{
	Dwarf_Attribute attribute;
	Dwarf_Word convention;

	if (!dwarf_attr(&type->die, DW_AT_calling_convention, &attribute) ||
		dwarf_formudata(&attribute, &convention))
		return otherwise;
	switch (convention) {
	case DW_CC_pass_by_value:
		return C_PASSED_AS_VALUE;
	case DW_CC_pass_by_reference:
		return C_PASSED_BY_ADDRESS;
	}
	return C_PASSED_SOMEHOW;
}

/* ---- a call --------------------------------------------------------------------------------- */

/* Rust's () is a type without bytes. */
void c_call_begin(struct c_call *call, struct type *result, enum c_passing passing)
{
	struct c_value value = { C_IN_REGISTERS };

	*call = (struct c_call){ .integers = 0 };
	if (result && result->size)
		value = c_value_of(result, passing, true);
	call->is_unknown = value.way == C_UNKNOWN;
	if (value.way != C_IN_REGISTERS)
		call->integers = 1;
}

/* All of it, or it is on the stack. */
static void c_call_place_in_registers(
	struct c_call *call, struct type *type, const struct c_value *value, struct place *place)
{
	uint32_t integers = call->integers, floats = call->floats;

	for (size_t i = 0; i < value->count; i++)
		if (value->words[i] == C_FLOAT)
			floats++;
		else
			integers++;
	if (floats > REGISTER_C_FLOATS ||
		(integers > call->integers && register_of_c(integers - 1) == REGISTER_NONE))
		return;
	for (size_t i = 0; i < value->count; i++)
		c_value_place_word(type, i,
			value->words[i] == C_FLOAT ? REGISTER_NONE
						   : register_of_c(call->integers++),
			place);
	call->floats = floats;
}

static void c_call_place_by_address(struct c_call *call, struct type *type, struct place *place)
{
	uint8_t number = register_of_c(call->integers);

	if (number == REGISTER_NONE)
		return;
	call->integers++;
	c_value_place_at(type, number, place);
}

void c_call_place(
	struct c_call *call, struct type *type, enum c_passing passing, struct place *ret_place)
{
	struct c_value value = { C_UNKNOWN };

	*ret_place = (struct place){ .count = 0 };
	if (type && !call->is_unknown)
		value = c_value_of(type, passing, false);
	switch (value.way) {
	case C_UNKNOWN:
		call->is_unknown = true;
		break;
	case C_IN_REGISTERS:
		c_call_place_in_registers(call, type, &value, ret_place);
		break;
	case C_IN_MEMORY:
		break;
	case C_BY_ADDRESS:
		c_call_place_by_address(call, type, ret_place);
		break;
	}
}

void c_call_result(struct type *type, enum c_passing passing, struct place *ret_place)
{
	struct c_value value = c_value_of(type, passing, true);
	size_t integers = 0;

	*ret_place = (struct place){ .count = 0 };
	if (value.way == C_IN_MEMORY || value.way == C_BY_ADDRESS)
		c_value_place_at(type, register_of_c_result(0), ret_place);
	if (value.way != C_IN_REGISTERS)
		return;
	for (size_t i = 0; i < value.count; i++)
		c_value_place_word(type, i,
			value.words[i] == C_FLOAT ? REGISTER_NONE
						  : register_of_c_result(integers++),
			ret_place);
}
