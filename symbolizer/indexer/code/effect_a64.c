/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of instructions that are not known here, all general registers that they may write are taken to
 * be written. Encodings: Arm Architecture Reference Manual, C4.1.
 */
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/code/a64.h"
#include "symbolizer/indexer/code/effect_state.h"

enum { X_BYTES = 8, PAGE_BYTES = 4096 };

/* ---- fields --------------------------------------------------------------------------------- */

static uint8_t field_rd(uint32_t word) /* or Rt */
{
	return (uint8_t)a64_bits(word, 0, 5);
}

static uint8_t field_rn(uint32_t word)
{
	return (uint8_t)a64_bits(word, 5, 5);
}

static uint8_t field_rt2(uint32_t word)
{
	return (uint8_t)a64_bits(word, 10, 5);
}

static uint8_t field_rm(uint32_t word) /* or Rs */
{
	return (uint8_t)a64_bits(word, 16, 5);
}

/* Where 31 is xzr. */
static uint8_t no_sp(uint8_t number)
{
	return number == A64_R31 ? CODE_NO_REGISTER : number;
}

static void effect_write(struct code_effect *e, uint8_t number)
{
	if (number < CODE_REGISTERS)
		e->writes |= 1U << number;
}

/* ---- loads and stores ----------------------------------------------------------------------- */

/* A load of BYTES to FIRST and SECOND, or a store from there; IS_WHOLE: a word each. */
static void effect_of_access(struct code_effect *e, uint32_t word, bool is_load, bool is_whole,
	int32_t bytes, uint8_t first, uint8_t second)
{
	e->kind = is_load ? CODE_EFFECT_LOAD : CODE_EFFECT_STORE;
	e->base = field_rn(word);
	e->size = (uint8_t)bytes;
	if (is_whole) {
		e->to = e->from = first;
		e->second = second;
	} else if (is_load) {
		effect_write(e, first);
		effect_write(e, second);
	}
}

static void effect_set_place(struct code_effect *e, uint32_t mode, int32_t off)
{
	e->value = mode == 1 ? 0 : off; /* 1: the base register moves afterwards, 3: before */
	e->step = mode & 1 ? off : 0;
}

static void effect_of_pair(struct code_effect *e, uint32_t word)
{
	const bool is_vector = a64_bits(word, 26, 1), is_load = a64_bits(word, 22, 1);
	const uint32_t opc = a64_bits(word, 30, 2);
	const uint8_t first = is_vector ? CODE_NO_REGISTER : no_sp(field_rd(word));
	const uint8_t second = is_vector ? CODE_NO_REGISTER : no_sp(field_rt2(word));
	int32_t size = opc == 2 ? X_BYTES : X_BYTES / 2, scale;

	if (is_vector)
		size = (X_BYTES / 2) << opc;
	scale = opc == 1 && !is_vector && !is_load ? 2 * X_BYTES : size; /* stgp */
	effect_of_access(e, word, is_load, opc == 2 && !is_vector, 2 * size, first, second);
	effect_set_place(e, a64_bits(word, 23, 2), a64_signed(word, 15, 7) * scale);
}

static void effect_of_one(struct code_effect *e, uint32_t word)
{
	const bool is_vector = a64_bits(word, 26, 1), is_scaled = a64_bits(word, 24, 1);
	const uint32_t opc = a64_bits(word, 22, 2);
	const bool is_load = is_vector ? opc & 1 : opc != 0;
	uint32_t size = a64_bits(word, 30, 2);
	const bool is_prefetch = !is_vector && size == 3 && opc == 2;
	const uint8_t number = is_vector || is_prefetch ? CODE_NO_REGISTER : no_sp(field_rd(word));

	if (!is_scaled && a64_bits(word, 21, 1)) {
		/* Atomics, by a register's offset, and loads with pointer authentication. */
		if (!is_vector)
			effect_write(e, number);
		if (!is_vector && a64_bits(word, 10, 2) == 3)
			effect_write(e, field_rn(word));
		return;
	}
	if (is_vector && opc & 2)
		size = 4;
	effect_of_access(
		e, word, is_load, size == 3 && !is_vector, 1 << size, number, CODE_NO_REGISTER);
	if (is_scaled)
		e->value = (int32_t)(a64_bits(word, 10, 12) << size);
	else
		effect_set_place(e, a64_bits(word, 10, 2), a64_signed(word, 12, 9));
}

/* Atomics, vectors, tags, copies of memory and what is yet to come. */
static void effect_of_rare_access(struct code_effect *e, uint32_t word)
{
	const uint32_t group = a64_bits(word, 24, 6);

	if (group == 0x0c || group == 0x0d) { /* vectors */
		if (a64_bits(word, 23, 1))
			effect_write(e, field_rn(word));
		return;
	}
	if (group == 0x1c) /* vectors, from a literal's place */
		return;
	effect_write(e, no_sp(field_rd(word)));
	if (group == 0x18) /* from a literal's place */
		return;
	if (group == 0x19 && !a64_bits(word, 10, 2) && !a64_bits(word, 21, 1)) /* ldapur, stlur */
		return;
	if (group == 0x19)
		effect_write(e, field_rn(word));
	effect_write(e, no_sp(field_rm(word)));
	effect_write(e, no_sp(field_rt2(word)));
	if (group == 0x08) /* casp has pairs */
		effect_write(e, no_sp(field_rm(word) | 1));
}

static void effect_of_load_or_store(struct code_effect *e, uint32_t word)
{
	switch (a64_bits(word, 27, 3)) {
	case 5:
		effect_of_pair(e, word);
		break;
	case 7:
		effect_of_one(e, word);
		break;
	default:
		effect_of_rare_access(e, word);
	}
}

/* ---- data ----------------------------------------------------------------------------------- */

static void effect_of_copy(struct code_effect *e, uint8_t to, uint8_t from, int32_t value)
{
	e->kind = CODE_EFFECT_COPY;
	e->to = to;
	e->from = from;
	e->value = value;
}

/* adr, and adrp, which has the address of a page. */
static void effect_of_address(struct code_effect *e, uint32_t word, uint64_t address)
{
	const bool is_page = word >> 31;
	int64_t value = (int64_t)a64_signed(word, 5, 19) * 4 + a64_bits(word, 29, 2);

	if (is_page)
		value = value * PAGE_BYTES - (int64_t)(address % PAGE_BYTES);
	effect_write(e, no_sp(field_rd(word)));
	if (field_rd(word) == A64_R31 || value != (int32_t)value)
		return;
	e->kind = CODE_EFFECT_POINT;
	e->to = field_rd(word);
	e->value = (int32_t)value;
}

/* Of movz, movn and movk, only the first one's number is known: a frame's size. */
static void effect_of_number(struct code_effect *e, uint32_t word)
{
	effect_write(e, no_sp(field_rd(word)));
	if (a64_bits(word, 29, 2) != 2 || a64_bits(word, 21, 2) || field_rd(word) == A64_R31)
		return;
	e->kind = CODE_EFFECT_NUMBER;
	e->to = field_rd(word);
	e->value = (int32_t)a64_bits(word, 5, 16);
}

static void effect_of_immediate(struct code_effect *e, uint32_t word, uint64_t address)
{
	const uint32_t kind = a64_bits(word, 23, 3);
	const bool sets_flags = a64_bits(word, 29, 1);
	const int32_t value = (int32_t)(a64_bits(word, 10, 12) << 12 * a64_bits(word, 22, 1));

	if (kind < 2)
		effect_of_address(e, word, address);
	else if (kind == 5)
		effect_of_number(e, word);
	else if (kind == 2 && !sets_flags && a64_bits(word, 31, 1)) /* add, sub */
		effect_of_copy(
			e, field_rd(word), field_rn(word), a64_bits(word, 30, 1) ? -value : value);
	else if ((kind == 2 && !sets_flags) || kind == 3 ||
		 (kind == 4 && a64_bits(word, 29, 2) != 3)) /* and: ands has no sp */
		effect_write(e, field_rd(word));
	else
		effect_write(e, no_sp(field_rd(word)));
}

static void effect_of_sum(struct code_effect *e, uint32_t word)
{
	if (field_rm(word) == A64_R31)
		return;
	e->kind = a64_bits(word, 30, 1) ? CODE_EFFECT_SUBTRACT : CODE_EFFECT_ADD;
	e->to = field_rd(word);
	e->from = field_rn(word);
	e->second = field_rm(word);
}

static void effect_of_registers(struct code_effect *e, uint32_t word)
{
	if ((word & 0xffe0ffe0) == 0xaa0003e0) { /* mov */
		effect_of_copy(e, no_sp(field_rd(word)), no_sp(field_rm(word)), 0);
	} else if ((word & 0x3f200000) == 0x0b200000) {
		/* add, sub: of a register that is extended */
		effect_write(e, field_rd(word));
		if ((word & 0xbfe0fc00) == 0x8b206000) /* uxtx: as it is */
			effect_of_sum(e, word);
	} else if ((word & 0x1fe00000) != 0x1a400000) { /* all but ccmp, ccmn */
		effect_write(e, no_sp(field_rd(word)));
	}
	if (e->kind == CODE_EFFECT_COPY && e->from == CODE_NO_REGISTER)
		effect_write(e, e->to);
	if (e->kind == CODE_EFFECT_COPY &&
		(e->from == CODE_NO_REGISTER || e->to == CODE_NO_REGISTER))
		e->kind = CODE_EFFECT_NONE;
}

/* The vector instructions that write general registers. */
static void effect_of_vectors(struct code_effect *e, uint32_t word)
{
	const uint32_t opcode = a64_bits(word, 16, 3);

	if (((word & 0x5f20fc00) == 0x1e200000 && opcode != 2 && opcode != 3 && opcode != 7) ||
		((word & 0x5f200000) == 0x1e000000 && opcode < 2) ||
		(word & 0xbfe0ec00) == 0x0e002c00) /* fcvt*, fmov; fcvtz*; smov, umov */
		effect_write(e, no_sp(field_rd(word)));
}

static void effect_of_others(struct code_effect *e, uint32_t word)
{
	if ((word & 0xff20f800) == 0x04205000) /* addvl, addpl: of SVE */
		effect_write(e, field_rd(word));
	else if (a64_bits(word, 25, 4) == 2 || (word & 0xffe00000) == 0xd5200000) /* SVE; mrs */
		effect_write(e, no_sp(field_rd(word)));
}

static void effect_of_class(struct code_effect *e, uint32_t word, uint64_t address)
{
	const uint32_t class = a64_bits(word, 25, 4); /* op0 */

	if ((class & 5) == 4)
		effect_of_load_or_store(e, word);
	else if ((class & 14) == 8)
		effect_of_immediate(e, word, address);
	else if ((class & 7) == 5)
		effect_of_registers(e, word);
	else if ((class & 7) == 7)
		effect_of_vectors(e, word);
	else
		effect_of_others(e, word);
}

/* ---- one instruction ------------------------------------------------------------------------ */

static int a64_create(struct code_effects **ret_effects)
{
	static struct code_effects effects = { &effect_machine_aarch64 };

	*ret_effects = &effects;
	return 0;
}

static void a64_destroy(struct code_effects *effects)
{
	(void)effects;
}

static bool a64_effect(const struct code_effects *effects, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_flow, struct code_effect *ret_effect)
{
	struct code_effect e = { .to = CODE_NO_REGISTER,
		.from = CODE_NO_REGISTER,
		.base = CODE_NO_REGISTER,
		.second = CODE_NO_REGISTER };
	uint32_t word;

	(void)effects;
	if (left < A64_BYTES)
		return false;
	memcpy(&word, bytes, sizeof(word));
	if (!a64_is_defined(word))
		return false;
	*ret_flow = a64_flow(word, address);
	/* The return address is in x30, unless it is said otherwise. */
	if (ret_flow->kind == CODE_RETURN && field_rn(word) != CODE_X30 &&
		field_rn(word) != A64_R31)
		ret_flow->kind = CODE_INDIRECT_JUMP;
	effect_of_class(&e, word, address);
	/* The effect says what that one contains. */
	if (e.kind != CODE_EFFECT_NONE && e.kind != CODE_EFFECT_STORE && e.to < CODE_REGISTERS)
		e.writes &= ~(1U << e.to);
	*ret_effect = e;
	return true;
}

const struct effect_machine effect_machine_aarch64 = {
	.create = a64_create,
	.destroy = a64_destroy,
	.decode = a64_effect,
};
