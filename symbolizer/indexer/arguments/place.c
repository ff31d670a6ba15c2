/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/arguments/place.h"

#include <dwarf.h>
#include <string.h>

#include "symbolizer/arguments/registers.h"

bool place_add(struct place *place, const struct place_piece *piece)
{
	if (place->count == PLACE_PIECES)
		return false;
	place->pieces[place->count++] = *piece;
	return true;
}

void place_add_register(struct place *place, uint32_t off, uint32_t size, uint8_t number)
{
	const struct place_piece piece = { .off = off, .size = size, .in_register = number };

	place_add(place, &piece);
}

void place_add_stack(struct place *place, uint32_t off, uint32_t size, int64_t offset)
{
	const struct place_piece piece = {
		.off = off,
		.size = size,
		.in_register = REGISTER_NONE,
		.in_memory = true,
		.address = { .origin = ABI_FETCH_SP, .offset = offset },
	};

	place_add(place, &piece);
}

/* ---- fetches -------------------------------------------------------------------------------- */

static bool place_add_step(struct abi_fetch *fetch, int64_t offset, bool dereferences)
{
	if (fetch->step_count == ABI_FETCH_STEPS || offset < INT32_MIN || offset > INT32_MAX)
		return false;
	fetch->offsets[fetch->step_count] = (uint32_t)(int32_t)offset;
	if (dereferences)
		fetch->dereferences |= (uint8_t)(1U << fetch->step_count);
	fetch->step_count++;
	return true;
}

/* FETCH's steps up to ADDRESS plus OFFSET, at which there is a dereference or the value. */
static bool place_follow(struct abi_fetch *fetch, const struct place_address *address,
	int64_t offset, bool dereferences)
{
	*fetch = (struct abi_fetch){
		.kind = ABI_FETCH_PLAIN,
		.origin = address->origin,
		.step_count = address->step_count,
		.dereferences = address->dereferences,
	};
	for (size_t i = 0; i < address->step_count; i++)
		fetch->offsets[i] = (uint32_t)address->offsets[i];
	if (__builtin_add_overflow(address->offset, offset, &offset))
		return false;
	return place_add_step(fetch, offset, dereferences);
}

static const struct place_piece *place_piece_with(
	const struct place *place, uint32_t off, uint32_t size)
{
	for (size_t i = 0; i < place->count; i++) {
		const struct place_piece *piece = &place->pieces[i];

		if (off >= piece->off && size <= piece->size &&
			off - piece->off <= piece->size - size)
			return piece;
	}
	return NULL;
}

bool place_fetch(const struct place *place, uint32_t off, uint32_t size,
	struct abi_fetch *ret_fetch, uint8_t *ret_skip)
{
	const struct place_piece *piece = place_piece_with(place, off, size);

	*ret_skip = 0;
	if (!piece || !size || size > ABI_FETCH_VALUE_BYTES)
		return false;
	if (piece->in_memory) {
		bool leads = place_follow(ret_fetch, &piece->address, off - piece->off, false);

		ret_fetch->size = size;
		return leads;
	}
	if (piece->in_register == REGISTER_NONE || off - piece->off + size > sizeof(uint64_t))
		return false;
	*ret_fetch = (struct abi_fetch){ .origin = piece->in_register, .size = sizeof(uint64_t) };
	*ret_skip = (uint8_t)(off - piece->off);
	return true;
}

bool place_dereference(
	const struct place *place, uint32_t off, uint32_t size, struct place *ret_target)
{
	struct place_piece target = {
		.size = size, .in_register = REGISTER_NONE, .in_memory = true
	};
	struct abi_fetch fetch;
	uint8_t skip;

	if (!place_fetch(place, off, sizeof(uint64_t), &fetch, &skip) || skip)
		return false;
	/* A value in memory was going to be read there; now it is a further step. */
	if (fetch.step_count)
		fetch.dereferences |= (uint8_t)(1U << (fetch.step_count - 1));
	target.address.origin = fetch.origin;
	target.address.step_count = fetch.step_count;
	target.address.dereferences = fetch.dereferences;
	for (size_t i = 0; i < fetch.step_count; i++)
		target.address.offsets[i] = (int32_t)fetch.offsets[i];
	*ret_target = (struct place){ .count = 0 };
	return place_add(ret_target, &target);
}

bool place_lead_to(const struct place *place, struct abi_fetch *ret_fetch)
{
	if (place->count != 1 || !place->pieces[0].in_memory)
		return false;
	return place_follow(ret_fetch, &place->pieces[0].address, 0, false);
}

/* ---- location expressions (DWARF 5, 2.6) ---------------------------------------------------- */

/* What the operations so far have made. */
struct location {
	enum place_base base;
	bool is_there;
	struct place_piece piece;
};

static void location_set_register(struct location *l, uint64_t number)
{
	l->is_there = true;
	l->piece.in_memory = false;
	l->piece.in_register = register_by_dwarf(number);
}

static void location_set_memory(struct location *l, uint8_t origin, int64_t offset)
{
	l->is_there = true;
	l->piece.in_memory = origin != REGISTER_NONE;
	l->piece.in_register = REGISTER_NONE;
	l->piece.address = (struct place_address){ .origin = origin, .offset = offset };
}

/* Of foreign numbers; a step refuses what is too large. */
static int64_t location_sum(uint64_t one, uint64_t other)
{
	return (int64_t)(one + other);
}

static bool location_is_above_frame(const struct location *l, const Dwarf_Op *op)
{
	return l->base == PLACE_BASE_FRAME_POINTER &&
	       (int64_t)op->number >= REGISTER_CFA_FROM_FRAME_POINTER;
}

/* Returns false at an operation that is not understood. */
static bool location_operate(struct location *l, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		location_set_register(l, op->atom - DW_OP_reg0);
	else if (op->atom == DW_OP_regx)
		location_set_register(l, op->number);
	else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		location_set_memory(
			l, register_by_dwarf(op->atom - DW_OP_breg0), (int64_t)op->number);
	else if (op->atom == DW_OP_fbreg && l->base == PLACE_BASE_CFA)
		location_set_memory(
			l, ABI_FETCH_SP, location_sum(REGISTER_CFA_FROM_SP, op->number));
	else if (op->atom == DW_OP_fbreg && location_is_above_frame(l, op))
		location_set_memory(l, ABI_FETCH_SP,
			location_sum(op->number,
				REGISTER_CFA_FROM_SP - REGISTER_CFA_FROM_FRAME_POINTER));
	else if (op->atom == DW_OP_call_frame_cfa)
		location_set_memory(l, ABI_FETCH_SP, REGISTER_CFA_FROM_SP);
	else if (op->atom == DW_OP_plus_uconst && l->is_there && l->piece.in_memory)
		l->piece.address.offset =
			location_sum((uint64_t)l->piece.address.offset, op->number);
	else
		return false;
	return true;
}

static void location_end_piece(
	struct location *l, struct place *place, uint32_t *off, uint64_t size)
{
	if (size > UINT32_MAX / 2 - *off)
		return;
	l->piece.off = *off;
	l->piece.size = (uint32_t)size;
	if (l->is_there)
		place_add(place, &l->piece);
	*off += (uint32_t)size;
	l->is_there = false;
}

static bool location_read(
	const Dwarf_Op *ops, size_t count, uint32_t size, enum place_base base, struct place *place)
{
	struct location l = { .base = base };
	uint32_t off = 0;

	*place = (struct place){ .count = 0 };
	for (size_t i = 0; i < count; i++) {
		if (ops[i].atom == DW_OP_piece)
			location_end_piece(&l, place, &off, ops[i].number);
		else if (!location_operate(&l, &ops[i]))
			return false;
	}
	if (l.is_there && !off)
		location_end_piece(&l, place, &off, size);
	return place->count > 0;
}

static bool place_is_home(const struct place *place)
{
	for (size_t i = 0; i < place->count; i++) {
		const struct place_piece *piece = &place->pieces[i];

		if (piece->in_memory && piece->address.origin == ABI_FETCH_SP &&
			piece->address.offset < REGISTER_CFA_FROM_SP)
			return true;
	}
	return false;
}

static bool place_is_of_argument_registers(const struct place *place)
{
	for (size_t i = 0; i < place->count; i++) {
		size_t n = 0;

		if (place->pieces[i].in_memory)
			continue;
		while (register_of_c(n) != REGISTER_NONE &&
			register_of_c(n) != place->pieces[i].in_register)
			n++;
		if (register_of_c(n) == REGISTER_NONE)
			return false;
	}
	return true;
}

/* One expression for the whole function, which a compiler may write though the prologue moves it.
 */
static bool place_is_sure(const struct place *place)
{
	for (size_t i = 0; i < place->count; i++)
		if (place->pieces[i].in_memory && place->pieces[i].address.origin != ABI_FETCH_SP)
			return false;
	return place_is_of_argument_registers(place);
}

/* In the frame that is not there yet: a value, or the address of one. */
static enum place_home place_home_of(const Dwarf_Op *ops, size_t count, enum place_base base)
{
	bool is_in_frame = base != PLACE_BASE_CFA || (count && (int64_t)ops[0].number < 0);

	if (!count || ops[0].atom != DW_OP_fbreg || !is_in_frame)
		return PLACE_NO_HOME;
	return count == 2 && ops[1].atom == DW_OP_deref ? PLACE_HOME_OF_ADDRESS : PLACE_HOME;
}

bool place_at_entry(Dwarf_Die *parameter, Dwarf_Addr entry, uint32_t size, enum place_base base,
	struct place *ret_place, enum place_home *ret_home)
{
	Dwarf_Attribute attribute;
	bool is_list;
	size_t count;
	Dwarf_Op *ops;

	*ret_home = PLACE_NO_HOME;
	*ret_place = (struct place){ .count = 0 };
	if (!dwarf_attr_integrate(parameter, DW_AT_location, &attribute))
		return false;
	is_list = attribute.form != DW_FORM_exprloc && attribute.form != DW_FORM_block &&
		  attribute.form != DW_FORM_block1 && attribute.form != DW_FORM_block2 &&
		  attribute.form != DW_FORM_block4;
	if (dwarf_getlocation_addr(&attribute, entry, &ops, &count, 1) != 1)
		return false;
	if (!is_list)
		*ret_home = place_home_of(ops, count, base);
	if (!location_read(ops, count, size, base, ret_place)) {
		ret_place->count = 0;
		return false;
	}
	*ret_home = place_is_home(ret_place) ? PLACE_HOME : PLACE_NO_HOME;
	if (*ret_home || (!is_list && !place_is_sure(ret_place)))
		ret_place->count = 0;
	return ret_place->count > 0;
}
