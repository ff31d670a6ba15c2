/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/arguments/go_call.h"

#include <dwarf.h>

#include "symbolizer/arguments/registers.h"

enum { MAX_NESTING = 8, MAX_MEMBERS = 64, WORD = sizeof(uint64_t) };

static bool go_call_assign(
	struct go_call *call, struct type *type, uint32_t off, int nesting, struct place *place);

static bool go_call_assign_register(
	struct go_call *call, struct type *type, uint32_t off, struct place *place)
{
	struct place_piece piece = { .off = off, .size = type->size, .in_register = REGISTER_NONE };

	if (type->shape == TYPE_FLOAT)
		return call->floats++ < REGISTER_GO_FLOATS && place_add(place, &piece);
	piece.in_register = register_of_go(call->integers++);
	return piece.in_register != REGISTER_NONE && place_add(place, &piece);
}

/* Strings, slices and interfaces: so many words. */
static bool go_call_assign_words(
	struct go_call *call, uint32_t words, uint32_t off, struct place *place)
{
	struct type word = { .shape = TYPE_UNSIGNED, .size = WORD };

	for (uint32_t i = 0; i < words; i++)
		if (!go_call_assign_register(call, &word, off + i * WORD, place))
			return false;
	return true;
}

static bool go_call_assign_members(
	struct go_call *call, struct type *type, uint32_t off, int nesting, struct place *place)
{
	Dwarf_Die member;

	if (nesting == MAX_NESTING)
		return false;
	if (dwarf_child(&type->die, &member))
		return type->size == 0;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		struct type inner;
		uint32_t at;

		if (dwarf_tag(&member) == DW_TAG_member &&
			(!type_of(&member, &inner) || !type_member_offset(&member, &at) ||
				!go_call_assign(call, &inner, off + at, nesting + 1, place)))
			return false;
		if (dwarf_siblingof(&member, &member))
			return true;
	}
	return false;
}

/* Arrays of one element are passed like it, longer ones on the stack. */
static bool go_call_assign_array(
	struct go_call *call, struct type *type, uint32_t off, int nesting, struct place *place)
{
	struct type element;

	if (!type->size)
		return true;
	return nesting < MAX_NESTING && dwarf_tag(&type->die) == DW_TAG_array_type &&
	       type_of(&type->die, &element) && element.size == type->size &&
	       go_call_assign(call, &element, off, nesting + 1, place);
}

static bool go_call_assign(
	struct go_call *call, struct type *type, uint32_t off, int nesting, struct place *place)
{
	switch (type->shape) {
	case TYPE_SIGNED:
	case TYPE_UNSIGNED:
	case TYPE_BOOL:
	case TYPE_ENUM:
	case TYPE_CHARACTER:
	case TYPE_FLOAT:
	case TYPE_POINTER:
	case TYPE_GO_MAP:
		return go_call_assign_register(call, type, off, place);
	case TYPE_GO_STRING:
	case TYPE_GO_ERROR_LIKE:
	case TYPE_GO_ANY:
		return go_call_assign_words(call, 2, off, place);
	case TYPE_GO_SLICE:
		return go_call_assign_words(call, 3, off, place);
	case TYPE_STRUCT:
		return go_call_assign_members(call, type, off, nesting, place);
	case TYPE_OTHER:
		break;
	}
	if (dwarf_tag(&type->die) == DW_TAG_base_type) { /* a complex number: two floats */
		struct type half = { .shape = TYPE_FLOAT, .size = type->size / 2 };

		return go_call_assign_register(call, &half, off, place) &&
		       go_call_assign_register(call, &half, off + half.size, place);
	}
	return go_call_assign_array(call, type, off, nesting, place);
}

static uint32_t go_call_alignment(struct type *type, int nesting)
{
	uint32_t largest = 1;
	struct type inner;
	Dwarf_Die member;

	if (dwarf_tag(&type->die) == DW_TAG_array_type && nesting < MAX_NESTING)
		return type_of(&type->die, &inner) ? go_call_alignment(&inner, nesting + 1) : WORD;
	if (type->shape != TYPE_STRUCT)
		return type->size == 1 || type->size == 2 || type->size == 4 ? type->size : WORD;
	if (nesting == MAX_NESTING || dwarf_child(&type->die, &member))
		return nesting == MAX_NESTING ? WORD : 1;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		uint32_t alignment = dwarf_tag(&member) == DW_TAG_member && type_of(&member, &inner)
					     ? go_call_alignment(&inner, nesting + 1)
					     : 1;

		largest = alignment > largest ? alignment : largest;
		if (dwarf_siblingof(&member, &member))
			break;
	}
	return largest;
}

void go_call_place(struct go_call *call, struct type *type, struct place *ret_place)
{
	const struct go_call before = *call;
	uint32_t alignment;

	*ret_place = (struct place){ .count = 0 };
	if (call->in_registers && go_call_assign(call, type, 0, 0, ret_place))
		return;
	*ret_place = (struct place){ .count = 0 };
	*call = before;
	alignment = go_call_alignment(type, 0);
	call->stack = (call->stack + alignment - 1) / alignment * alignment;
	place_add_stack(ret_place, 0, type->size, REGISTER_GO_STACK_FROM_SP + (int64_t)call->stack);
	call->stack += type->size;
}

void go_call_begin_results(struct go_call *call)
{
	call->integers = call->floats = 0;
	call->stack = (call->stack + WORD - 1) / WORD * WORD;
}
