/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/code/decoder_state.h"
#include "symbolizer/indexer/code/decoder_zydis.h"
#include "symbolizer/indexer/code/effect.h"

enum { WHOLE_BITS = 64, BITS_OF_BYTE = 8 };

typedef ZyanStatus effect_decode(const ZydisDecoder *decoder, const void *buffer, ZyanUSize length,
	ZydisDecodedInstruction *instruction, ZydisDecodedOperand *operands);
typedef ZydisRegister effect_enclosing(ZydisMachineMode mode, ZydisRegister part);

struct code_effects {
	ZydisDecoder state;
	effect_decode *decode;
	effect_enclosing *enclosing;
};

int code_effects_create(uint16_t machine, struct code_effects **ret_effects)
{
	struct code_effects *effects;
	int err = -EOPNOTSUPP;

	if (machine != EM_X86_64 || !code_machine_x86_64.fits())
		return err;
	effects = calloc(1, sizeof(*effects));
	if (!effects)
		return -ENOMEM;
	effects->decode = code_symbol("ZydisDecoderDecodeFull");
	effects->enclosing = code_symbol("ZydisRegisterGetLargestEnclosing");
	if (effects->decode && effects->enclosing)
		err = zydis_init(&effects->state, false);
	if (err)
		free(effects);
	else
		*ret_effects = effects;
	return err;
}

void code_effects_destroy(struct code_effects *effects)
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
static uint16_t effect_writes(const struct code_effects *effects, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *operands)
{
	uint16_t writes = 0;

	for (size_t k = 0; k < i->operand_count; k++) {
		uint8_t number;

		if (operands[k].type != ZYDIS_OPERAND_TYPE_REGISTER ||
			!(operands[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		number = effect_whole(
			effects->enclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[k].reg.value));
		if (number != CODE_NO_REGISTER)
			writes |= (uint16_t)(1U << number);
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

static void effect_of_move(struct code_effect *e, const ZydisDecodedOperand *operands)
{
	uint8_t to = effect_register(&operands[0]), from = effect_register(&operands[1]), base;
	int32_t distance;

	if (to != CODE_NO_REGISTER && from != CODE_NO_REGISTER)
		effect_set(e, CODE_EFFECT_COPY, to, from, 0);
	else if (to != CODE_NO_REGISTER && effect_is_place(&operands[1], &base, &distance))
		effect_set(e, CODE_EFFECT_LOAD, to, base, distance);
	/* Of a part of a register, too: it overwrites what was there. */
	else if (effect_is_place(&operands[0], &base, &distance))
		effect_set(e, CODE_EFFECT_STORE, base, from, distance);
}

static void effect_of_sum(
	struct code_effect *e, const ZydisDecodedOperand *operands, bool is_difference)
{
	uint8_t to = effect_register(&operands[0]);
	int32_t value;

	if (to != CODE_NO_REGISTER && effect_is_number(&operands[1], &value))
		effect_set(e, CODE_EFFECT_COPY, to, to, is_difference ? -value : value);
}

static void effect_of_address(struct code_effect *e, const ZydisDecodedOperand *operands)
{
	uint8_t to = effect_register(&operands[0]), base;
	const ZydisDecodedOperand *place = &operands[1];

	if (to == CODE_NO_REGISTER || place->mem.index != ZYDIS_REGISTER_NONE)
		return;
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
			effect_of_address(e, operands);
		break;
	default:
		effect_of_stack(e, i, operands);
	}
}

bool code_effect(const struct code_effects *effects, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_flow, struct code_effect *ret_effect)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	const uint16_t sp = 1U << CODE_RSP;
	ZydisDecodedInstruction i;
	struct code_effect e;

	if (ZYAN_FAILED(effects->decode(&effects->state, bytes, left, &i, operands)))
		return false;
	effect_set(&e, CODE_EFFECT_NONE, CODE_NO_REGISTER, CODE_NO_REGISTER, 0);
	e.writes = effect_writes(effects, &i, operands);
	effect_of(&e, &i, operands);
	/* The effect says what these contain. A call leaves the stack pointer as it was. */
	if (e.kind == CODE_EFFECT_PUSH || e.kind == CODE_EFFECT_POP ||
		e.kind == CODE_EFFECT_LEAVE || i.mnemonic == ZYDIS_MNEMONIC_CALL)
		e.writes &= (uint16_t)~sp;
	if (e.kind != CODE_EFFECT_NONE && e.to != CODE_NO_REGISTER && e.kind != CODE_EFFECT_STORE)
		e.writes &= (uint16_t) ~(1U << e.to);
	*ret_flow = zydis_flow(&i, address);
	*ret_effect = e;
	return true;
}
