/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/code/decoder_state.h"
#include "symbolizer/indexer/code/decoder_zydis.h"
#include "symbolizer/indexer/code/effect_state.h"

enum { WHOLE_BITS = 64, BITS_OF_BYTE = 8 };

typedef ZyanStatus effect_decode(const ZydisDecoder *decoder, const void *buffer, ZyanUSize length,
	ZydisDecodedInstruction *instruction, ZydisDecodedOperand *operands);
typedef ZydisRegister effect_enclosing(ZydisMachineMode mode, ZydisRegister part);

struct zydis_effects {
	struct code_effects effects;
	ZydisDecoder state;
	effect_decode *decode;
	effect_enclosing *enclosing;
};

static int zydis_create(struct code_effects **ret_effects)
{
	struct zydis_effects *zydis;
	int err = -EOPNOTSUPP;

	if (!code_machine_x86_64.fits())
		return err;
	zydis = calloc(1, sizeof(*zydis));
	if (!zydis)
		return -ENOMEM;
	zydis->effects.machine = &effect_machine_x86_64;
	zydis->decode = code_symbol("ZydisDecoderDecodeFull");
	zydis->enclosing = code_symbol("ZydisRegisterGetLargestEnclosing");
	if (zydis->decode && zydis->enclosing)
		err = zydis_init(&zydis->state, false);
	if (err)
		free(zydis);
	else
		*ret_effects = &zydis->effects;
	return err;
}

static void zydis_destroy(struct code_effects *effects)
{
	free(effects);
}

/* The number of a general register of 64 bits, or CODE_NO_REGISTER. */
static uint8_t effect_whole(ZydisRegister name)
{
	if (name < ZYDIS_REGISTER_RAX || name > ZYDIS_REGISTER_R15)
		return CODE_NO_REGISTER;
	return (uint8_t)(name - ZYDIS_REGISTER_RAX);
}

static uint8_t effect_register(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER ? effect_whole(o->reg.value)
						      : CODE_NO_REGISTER;
}

/* Whether O is a word at a register and a distance; sets them. */
static bool effect_is_place(const ZydisDecodedOperand *o, uint8_t *ret_base, int32_t *ret_distance)
{
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.index != ZYDIS_REGISTER_NONE ||
		o->mem.segment == ZYDIS_REGISTER_FS || o->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	*ret_base = effect_whole(o->mem.base);
	*ret_distance = (int32_t)o->mem.disp.value;
	return *ret_base != CODE_NO_REGISTER;
}

static bool effect_is_number(const ZydisDecodedOperand *o, int32_t *ret_value)
{
	if (o->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || o->imm.value.s < -INT32_MAX ||
		o->imm.value.s > INT32_MAX)
		return false;
	*ret_value = (int32_t)o->imm.value.s;
	return true;
}

/* All registers that an operand writes, or may write, also in part. */
static uint32_t effect_writes(const struct zydis_effects *zydis, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *operands)
{
	uint32_t writes = 0;

	for (size_t k = 0; k < i->operand_count; k++) {
		uint8_t number;

		if (operands[k].type != ZYDIS_OPERAND_TYPE_REGISTER ||
			!(operands[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		number = effect_whole(
			zydis->enclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[k].reg.value));
		if (number != CODE_NO_REGISTER)
			writes |= 1U << number;
	}
	return writes;
}

static void effect_set(
	struct code_effect *e, enum code_effect_kind kind, uint8_t to, uint8_t from, int32_t value)
{
	e->kind = (uint8_t)kind;
	e->to = to;
	e->from = from;
	e->value = value;
}

/* NUMBER is stored to, or loaded from, DISTANCE bytes above BASE. */
static void effect_set_access(struct code_effect *e, enum code_effect_kind kind, uint8_t number,
	uint8_t base, int32_t distance, uint16_t bits)
{
	effect_set(e, kind, number, number, distance);
	e->base = base;
	e->size = (uint8_t)(bits / BITS_OF_BYTE);
}

static void effect_of_move(struct code_effect *e, const ZydisDecodedOperand *operands)
{
	uint8_t to = effect_register(&operands[0]), from = effect_register(&operands[1]), base;
	int32_t distance;

	if (to != CODE_NO_REGISTER && from != CODE_NO_REGISTER)
		effect_set(e, CODE_EFFECT_COPY, to, from, 0);
	else if (to != CODE_NO_REGISTER && effect_is_place(&operands[1], &base, &distance))
		effect_set_access(e, CODE_EFFECT_LOAD, to, base, distance, operands[1].size);
	/* Of a part of a register, too: it overwrites what was there. */
	else if (effect_is_place(&operands[0], &base, &distance))
		effect_set_access(e, CODE_EFFECT_STORE, from, base, distance, operands[0].size);
}

static void effect_of_sum(
	struct code_effect *e, const ZydisDecodedOperand *operands, bool is_difference)
{
	uint8_t to = effect_register(&operands[0]);
	int32_t value;

	if (to != CODE_NO_REGISTER && effect_is_number(&operands[1], &value))
		effect_set(e, CODE_EFFECT_COPY, to, to, is_difference ? -value : value);
}

static void effect_of_address(struct code_effect *e, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *operands)
{
	uint8_t to = effect_register(&operands[0]), base;
	const ZydisDecodedOperand *place = &operands[1];

	if (to == CODE_NO_REGISTER || place->mem.index != ZYDIS_REGISTER_NONE)
		return;
	if (place->mem.base == ZYDIS_REGISTER_RIP)
		effect_set(e, CODE_EFFECT_POINT, to, CODE_NO_REGISTER,
			(int32_t)place->mem.disp.value + i->length);
	base = effect_whole(place->mem.base);
	if (base != CODE_NO_REGISTER)
		effect_set(e, CODE_EFFECT_COPY, to, base, (int32_t)place->mem.disp.value);
}

static void effect_of_stack(struct code_effect *e, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *operands)
{
	int32_t bytes = i->operand_width / BITS_OF_BYTE;
	bool is_whole = i->operand_width == WHOLE_BITS;

	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		effect_set(e, CODE_EFFECT_PUSH, CODE_NO_REGISTER,
			is_whole ? effect_register(&operands[0]) : CODE_NO_REGISTER, bytes);
		break;
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		effect_set(e, CODE_EFFECT_PUSH, CODE_NO_REGISTER, CODE_NO_REGISTER, bytes);
		break;
	case ZYDIS_MNEMONIC_POP:
		effect_set(e, CODE_EFFECT_POP,
			is_whole ? effect_register(&operands[0]) : CODE_NO_REGISTER,
			CODE_NO_REGISTER, bytes);
		break;
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		effect_set(e, CODE_EFFECT_POP, CODE_NO_REGISTER, CODE_NO_REGISTER, bytes);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		if (is_whole)
			effect_set(e, CODE_EFFECT_LEAVE, CODE_RBP, CODE_NO_REGISTER, bytes);
		break;
	default:
		break;
	}
}

static void effect_of(struct code_effect *e, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *operands)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		effect_of_move(e, operands);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		effect_of_sum(e, operands, i->mnemonic == ZYDIS_MNEMONIC_SUB);
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (i->address_width == WHOLE_BITS)
			effect_of_address(e, i, operands);
		break;
	default:
		effect_of_stack(e, i, operands);
	}
}

static bool zydis_effect(const struct code_effects *effects, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_flow, struct code_effect *ret_effect)
{
	const struct zydis_effects *zydis = (const void *)effects;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	const uint32_t sp = 1U << CODE_RSP;
	ZydisDecodedInstruction i;
	struct code_effect e = { .second = CODE_NO_REGISTER, .base = CODE_NO_REGISTER };

	/* Zeros are data: no compiler means add %al,(%rax). */
	if (left >= 2 && !bytes[0] && !bytes[1])
		return false;
	if (ZYAN_FAILED(zydis->decode(&zydis->state, bytes, left, &i, operands)))
		return false;
	effect_set(&e, CODE_EFFECT_NONE, CODE_NO_REGISTER, CODE_NO_REGISTER, 0);
	e.writes = effect_writes(zydis, &i, operands);
	effect_of(&e, &i, operands);
	/* The effect says what these contain. A call leaves the stack pointer as it was. */
	if (e.kind == CODE_EFFECT_PUSH || e.kind == CODE_EFFECT_POP ||
		e.kind == CODE_EFFECT_LEAVE || i.mnemonic == ZYDIS_MNEMONIC_CALL)
		e.writes &= ~sp;
	if (e.kind != CODE_EFFECT_NONE && e.to != CODE_NO_REGISTER && e.kind != CODE_EFFECT_STORE)
		e.writes &= ~(1U << e.to);
	*ret_flow = zydis_flow(&i, address);
	*ret_effect = e;
	return true;
}

const struct effect_machine effect_machine_x86_64 = {
	.create = zydis_create,
	.destroy = zydis_destroy,
	.decode = zydis_effect,
};
