/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/arguments/values.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/arguments/texts.h"

enum {
	TEXT_BYTES = 64, /* of an argument */
	MEMBER_TEXT_BYTES = 32,
	TYPE_NAME_BYTES = 64,
	TYPE_NAMES_LIMIT = 256, /* of the name of one type */
	MAX_MEMBERS = 12,
	MAX_MEMBERS_SEEN = 1024,
	MAX_BASES = 8, /* classes derived from each other */
	MAX_ELEMENTS = 8, /* of an array */
	ENUMERATORS_LIMIT = 512, /* bytes of the names of one type */
	WORD = sizeof(uint64_t),
};

/* A part of a value: at OFF of PLACE. */
struct part {
	const struct place *place;
	uint32_t off;
	uint8_t depth;
	bool is_pointed_to; /* pointers in it are not followed */
};

static uint8_t values_fetch(
	struct values *v, const struct part *part, uint32_t off, uint32_t size, uint8_t *ret_skip)
{
	struct abi_fetch fetch;

	if (!place_fetch(part->place, part->off + off, size, &fetch, ret_skip))
		return ARGUMENT_NO_FETCH;
	return argument_builder_fetch(&v->builder, &fetch);
}

static uint8_t values_fetch_word(struct values *v, const struct part *part, uint32_t off)
{
	uint8_t skip, number = values_fetch(v, part, off, WORD, &skip);

	return skip ? ARGUMENT_NO_FETCH : number;
}

static uint32_t values_text_bytes(const struct part *part)
{
	return part->depth ? MEMBER_TEXT_BYTES : TEXT_BYTES;
}

/* ---- the shapes ----------------------------------------------------------------------------- */

/* As many as there is room for; the others are shown as numbers. */
static void values_add_enumerators(struct values *v, struct type *type, struct argument *argument)
{
	const uint64_t mask = UINT64_MAX >> (64 - 8 * type->size);
	struct buffer names;
	Dwarf_Die child;

	argument->is_signed = type_enum_is_signed(type);
	if (dwarf_child(&type->die, &child))
		return;
	buffer_init(&names, 2 * ENUMERATORS_LIMIT);
	for (int i = 0; i < MAX_MEMBERS_SEEN && names.size < ENUMERATORS_LIMIT; i++) {
		const char *name = dwarf_diename(&child);
		Dwarf_Attribute attribute;
		Dwarf_Word value;

		if (name && strlen(name) < ENUMERATORS_LIMIT && !strpbrk(name, "=,") &&
			dwarf_attr(&child, DW_AT_const_value, &attribute) &&
			!dwarf_formudata(&attribute, &value))
			buffer_printf(&names, "%" PRIx64 "=%s,", value & mask, name);
		if (dwarf_siblingof(&child, &child))
			break;
	}
	if (!names.error)
		argument->enumerators =
			argument_builder_name(&v->builder, (const char *)names.bytes, names.size);
	buffer_deinit(&names);
}

static void values_add_number(
	struct values *v, const struct part *part, struct type *type, struct argument *argument)
{
	static const uint8_t kinds[] = {
		[TYPE_SIGNED] = ARGUMENT_SIGNED,
		[TYPE_UNSIGNED] = ARGUMENT_UNSIGNED,
		[TYPE_FLOAT] = ARGUMENT_FLOAT,
		[TYPE_BOOL] = ARGUMENT_BOOL,
		[TYPE_ENUM] = ARGUMENT_ENUM,
		[TYPE_CHARACTER] = ARGUMENT_CHARACTER,
	};

	if (type->size > WORD || !type->size ||
		(type->shape == TYPE_FLOAT && type->size != 4 && type->size != 8))
		return;
	argument->kind = kinds[type->shape];
	argument->size = (uint16_t)type->size;
	argument->first = values_fetch(v, part, 0, type->size, &argument->skip);
	if (type->shape == TYPE_ENUM)
		values_add_enumerators(v, type, argument);
}

static void values_add_c_string(
	struct values *v, const struct part *part, struct argument *argument)
{
	struct abi_fetch fetch;
	struct place text;

	argument->kind = ARGUMENT_C_STRING;
	argument->second = values_fetch_word(v, part, 0);
	if (!place_dereference(part->place, part->off, values_text_bytes(part), &text) ||
		!place_lead_to(&text, &fetch))
		return;
	fetch.kind = ABI_FETCH_C_STRING;
	fetch.size = MIN(values_text_bytes(part), argument_builder_room(&v->builder));
	argument->first = argument_builder_fetch(&v->builder, &fetch);
}

static void values_add_string(struct values *v, const struct part *part,
	const struct text_layout *layout, struct argument *argument)
{
	struct abi_fetch fetch;
	struct place text;

	argument->kind = ARGUMENT_STRING;
	argument->second = values_fetch_word(v, part, layout->length_off);
	if (argument->second == ARGUMENT_NO_FETCH ||
		!place_dereference(part->place, part->off + layout->pointer_off,
			values_text_bytes(part), &text) ||
		!place_lead_to(&text, &fetch))
		return;
	fetch.kind = ABI_FETCH_ARRAY;
	fetch.element_bytes = 1;
	fetch.length_of = argument->second;
	fetch.length_at = v->builder.fetches[argument->second].at;
	fetch.size = MIN(values_text_bytes(part), argument_builder_room(&v->builder));
	argument->first = argument_builder_fetch(&v->builder, &fetch);
}

/* One of the two forms; which one is known once the value is there. */
static void values_add_libcxx_string(struct values *v, const struct part *part,
	const struct text_layout *layout, struct argument *argument)
{
	struct argument text = *argument;
	uint8_t skip, value = values_fetch(v, part, 0, LIBCXX_STRING_BYTES, &skip);

	values_add_string(v, part, layout, &text);
	argument->kind = ARGUMENT_LIBCXX_STRING;
	argument->second = text.first;
	if (text.first != ARGUMENT_NO_FETCH)
		argument->first = value;
}

/* Returns whether TYPE is one that is not shown as the struct that it is. */
static bool values_add_text(
	struct values *v, const struct part *part, struct type *type, struct argument *argument)
{
	struct text_layout layout;

	if (v->is_go || !text_layout_of(type, &layout))
		return false;
	if (layout.is_libcxx) {
		values_add_libcxx_string(v, part, &layout, argument);
	} else if (layout.is_text) {
		values_add_string(v, part, &layout, argument);
	} else {
		argument->kind = ARGUMENT_SLICE;
		argument->first = values_fetch_word(v, part, layout.length_off);
	}
	return true;
}

/* Both kinds of maps (until Go 1.23, since 1.24) begin with the number of elements. */
static void values_add_map(struct values *v, const struct part *part, struct argument *argument)
{
	const struct part count = { .depth = part->depth };
	struct place map;
	struct part counted = count;

	argument->kind = ARGUMENT_MAP;
	argument->first = values_fetch_word(v, part, 0);
	if (!place_dereference(part->place, part->off, WORD, &map))
		return;
	counted.place = &map;
	argument->second = values_fetch_word(v, &counted, 0);
}

/* The first word is a type, or an itab, whose second word is one. */
static void values_add_interface(
	struct values *v, const struct part *part, struct type *type, struct argument *argument)
{
	struct place named, table;
	struct abi_fetch fetch;
	bool leads;

	argument->kind = ARGUMENT_INTERFACE;
	argument->first = values_fetch_word(v, part, 0);
	if (type->shape == TYPE_GO_ANY)
		leads = place_dereference(part->place, part->off, WORD, &named);
	else
		leads = place_dereference(part->place, part->off, 2 * WORD, &table) &&
			place_dereference(&table, WORD, WORD, &named);
	if (!leads || !v->types_end || !place_lead_to(&named, &fetch))
		return;
	fetch.kind = ABI_FETCH_GO_TYPE_NAME;
	fetch.types_off = v->types - v->entry;
	fetch.types_bytes = v->types_end - v->types;
	fetch.size = MIN(TYPE_NAME_BYTES, argument_builder_room(&v->builder));
	argument->second = argument_builder_fetch(&v->builder, &fetch);
}

static void values_add_text_array(
	struct values *v, const struct part *part, struct type *type, struct argument *argument)
{
	uint32_t size = MIN(type->size, values_text_bytes(part));

	argument->kind = ARGUMENT_BYTES;
	argument->size = (uint16_t)size;
	argument->first = values_fetch(v, part, 0, size, &argument->skip);
}

/* The first numbers of an array, by one fetch. Elements of other types would take one each. */
static void values_add_array(
	struct values *v, const struct part *part, struct type *type, struct argument *argument)
{
	struct type element;
	uint32_t count = type_array_count(type, &element), shown = MIN(count, MAX_ELEMENTS);
	uint8_t skip, fetch;

	if (!count || count > UINT16_MAX || element.size > WORD ||
		part->depth >= ARGUMENT_MAX_DEPTH ||
		(element.shape != TYPE_SIGNED && element.shape != TYPE_UNSIGNED &&
			element.shape != TYPE_FLOAT && element.shape != TYPE_BOOL))
		return;
	fetch = values_fetch(v, part, 0, shown * element.size, &skip);
	if (fetch == ARGUMENT_NO_FETCH || skip)
		return;
	argument->kind = ARGUMENT_ARRAY;
	argument->size = (uint16_t)count;
	for (uint32_t i = 0; i < shown; i++) {
		struct argument *item = argument_builder_add(&v->builder, part->depth + 1);

		if (!item)
			return;
		item->kind = element.shape == TYPE_SIGNED     ? ARGUMENT_SIGNED
			     : element.shape == TYPE_UNSIGNED ? ARGUMENT_UNSIGNED
			     : element.shape == TYPE_FLOAT    ? ARGUMENT_FLOAT
							      : ARGUMENT_BOOL;
		item->size = (uint16_t)element.size;
		item->first = fetch;
		item->skip = (uint8_t)(i * element.size);
	}
}

/* ---- members -------------------------------------------------------------------------------- */

static struct argument *values_begin(
	struct values *v, const char *name, Dwarf_Die *typed, uint8_t depth)
{
	struct argument *argument = argument_builder_add(&v->builder, depth);
	struct buffer type;

	if (!argument)
		return NULL;
	argument->name = argument_builder_name(&v->builder, name, strlen(name));
	buffer_init(&type, TYPE_NAMES_LIMIT);
	type_name(typed, &type);
	if (type.size)
		argument->type =
			argument_builder_name(&v->builder, (const char *)type.bytes, type.size);
	buffer_deinit(&type);
	return argument;
}

static void values_add_part(struct values *v, const char *name, Dwarf_Die *typed, struct type *type,
	const struct part *part);

/* PART is the struct that it is in. */
static void values_add_bits(struct values *v, Dwarf_Die *member, struct type *type,
	const struct part *part, struct argument *argument)
{
	uint32_t off, size;
	uint8_t bit_off, bit_size;
	struct type bytes = *type;

	if (!type_member_bits(member, &off, &size, &bit_off, &bit_size))
		return;
	bytes.size = size;
	switch (type->shape) {
	case TYPE_SIGNED:
	case TYPE_UNSIGNED:
	case TYPE_BOOL:
		argument->bit_off = bit_off;
		argument->bit_size = bit_size;
		part = &(struct part){ .place = part->place, .off = part->off + off };
		values_add_number(v, part, &bytes, argument);
		break;
	default:
		break;
	}
}

static void values_add_member(struct values *v, Dwarf_Die *member, const struct part *whole)
{
	const char *name = dwarf_diename(member);
	struct type type = { .shape = TYPE_OTHER };
	struct part part = *whole;
	uint32_t off;

	part.depth++;
	if (dwarf_hasattr(member, DW_AT_bit_size)) {
		struct argument *argument = values_begin(v, name ? name : "", member, part.depth);

		if (argument && type_of(member, &type))
			values_add_bits(v, member, &type, whole, argument);
		return;
	}
	if (type_of(member, &type) && type_member_offset(member, &off))
		part.off += off;
	else
		type = (struct type){ .shape = TYPE_OTHER };
	values_add_part(v, name ? name : "", member, type.size ? &type : NULL, &part);
}

/* Enums of Rust with data have members of which nobody knows which are there. */
static bool values_has_members(struct type *type)
{
	Dwarf_Die child;

	if (type->shape != TYPE_STRUCT || dwarf_child(&type->die, &child))
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_variant_part)
			return false;
	} while (!dwarf_siblingof(&child, &child));
	return true;
}

static void values_add_members(
	struct values *v, struct type *type, const struct part *whole, int nesting, int *added);

/* The members of a class from which another one is derived, among that one's own. */
static void values_add_base(
	struct values *v, Dwarf_Die *inheritance, const struct part *whole, int nesting, int *added)
{
	struct part part = *whole;
	struct type type;
	uint32_t off;

	/* Where a virtual one is depends on the object. */
	if (dwarf_hasattr(inheritance, DW_AT_virtuality) || !type_of(inheritance, &type) ||
		!type_member_offset(inheritance, &off) || !values_has_members(&type))
		return;
	part.off += off;
	values_add_members(v, &type, &part, nesting + 1, added);
}

/* Static members are external, and nobody has written the pointer to the virtual functions. */
static bool values_is_member(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	return dwarf_tag(die) == DW_TAG_member && !dwarf_hasattr(die, DW_AT_external) &&
	       (!name || strncmp(name, "_vptr", strlen("_vptr")) != 0);
}

static void values_add_members(
	struct values *v, struct type *type, const struct part *whole, int nesting, int *added)
{
	Dwarf_Die member;

	if (whole->depth >= ARGUMENT_MAX_DEPTH || nesting == MAX_BASES ||
		dwarf_child(&type->die, &member))
		return;
	for (int seen = 0; seen < MAX_MEMBERS_SEEN && *added < MAX_MEMBERS; seen++) {
		if (dwarf_tag(&member) == DW_TAG_inheritance) {
			values_add_base(v, &member, whole, nesting, added);
		} else if (values_is_member(&member)) {
			values_add_member(v, &member, whole);
			++*added;
		}
		if (dwarf_siblingof(&member, &member))
			break;
	}
}

/* Returns whether ARGUMENT is a pointer to a struct, whose members are at *RET_TARGET. */
static bool values_add_pointer(struct values *v, const struct part *part, struct type *type,
	struct argument *argument, struct type *ret_pointed, struct place *ret_target)
{
	bool is_known = !part->is_pointed_to && type_pointed_to(type, ret_pointed);
	struct text_layout layout;

	if (type_pointed_to(type, ret_pointed) && !v->is_go && type_is_character(ret_pointed)) {
		values_add_c_string(v, part, argument);
		return false;
	}
	argument->kind = ARGUMENT_POINTER;
	argument->first = values_fetch_word(v, part, 0);
	if (!is_known || !values_has_members(ret_pointed) ||
		!place_dereference(part->place, part->off, ret_pointed->size, ret_target))
		return false;
	if (!v->is_go && text_layout_of(ret_pointed, &layout)) {
		const struct part text = { .place = ret_target, .depth = part->depth };

		values_add_text(v, &text, ret_pointed, argument);
		return false;
	}
	argument->kind = ARGUMENT_STRUCT_POINTER;
	return true;
}

/* ---- one value ------------------------------------------------------------------------------ */

static void values_add_simple(
	struct values *v, const struct part *part, struct type *type, struct argument *argument)
{
	static const struct text_layout go_string = { .length_off = WORD };

	switch (type->shape) {
	case TYPE_SIGNED:
	case TYPE_UNSIGNED:
	case TYPE_FLOAT:
	case TYPE_BOOL:
	case TYPE_ENUM:
	case TYPE_CHARACTER:
		values_add_number(v, part, type, argument);
		break;
	case TYPE_GO_STRING:
		values_add_string(v, part, &go_string, argument);
		break;
	case TYPE_GO_SLICE:
		argument->kind = ARGUMENT_SLICE;
		argument->first = values_fetch_word(v, part, WORD);
		argument->second = values_fetch_word(v, part, 2 * WORD);
		break;
	case TYPE_GO_MAP:
		values_add_map(v, part, argument);
		break;
	case TYPE_GO_ERROR_LIKE:
	case TYPE_GO_ANY:
		values_add_interface(v, part, type, argument);
		break;
	default:
		if (type_is_text(type))
			values_add_text_array(v, part, type, argument);
		else
			values_add_array(v, part, type, argument);
	}
}

static void values_add_part(struct values *v, const char *name, Dwarf_Die *typed, struct type *type,
	const struct part *part)
{
	struct argument *argument = values_begin(v, name, typed, part->depth);
	struct place target;
	struct type pointed;
	int added = 0;
	struct part behind = { .place = &target, .depth = part->depth, .is_pointed_to = true };

	if (!argument || !type || !part->place->count)
		return;
	if (type->shape == TYPE_POINTER) {
		if (values_add_pointer(v, part, type, argument, &pointed, &target))
			values_add_members(v, &pointed, &behind, 0, &added);
		return;
	}
	if (type->shape != TYPE_STRUCT) {
		values_add_simple(v, part, type, argument);
		return;
	}
	if (values_add_text(v, part, type, argument))
		return;
	if (part->depth >= ARGUMENT_MAX_DEPTH || (type->size && !values_has_members(type)))
		return;
	argument->kind = ARGUMENT_STRUCT;
	values_add_members(v, type, part, 0, &added);
}

void values_add(struct values *v, const char *name, Dwarf_Die *typed, struct type *type,
	const struct place *place)
{
	const struct part whole = { .place = place };

	values_add_part(v, name, typed, type, &whole);
}
