/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one instruction of x86_64 does to the registers that a walk needs: the stack pointer, and
 * those that hold an address in the frame. Decoded by Zydis, with the operands (decoder.h decodes
 * only the flow of control).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/indexer/code/decoder.h"

/* Numbers of registers as in machine code. */
enum {
	CODE_RBX = 3,
	CODE_RSP = 4,
	CODE_RBP = 5,
	CODE_R12 = 12,
	CODE_REGISTERS = 16,
	CODE_NO_REGISTER = 255,
};

enum code_effect_kind {
	CODE_EFFECT_NONE, /* but for `writes` */
	CODE_EFFECT_COPY, /* to = from + value */
	CODE_EFFECT_PUSH, /* sp -= value, then *sp = from */
	CODE_EFFECT_POP, /* to = *sp, then sp += value */
	CODE_EFFECT_STORE, /* *(to + value) = from */
	CODE_EFFECT_LOAD, /* to = *(from + value) */
	CODE_EFFECT_LEAVE, /* sp = rbp, then as pop %rbp */
};

struct code_effect {
	uint8_t kind; /* enum code_effect_kind */
	uint8_t to, from; /* CODE_NO_REGISTER: not a whole register */
	uint16_t writes; /* a bit for each register whose value is not known afterwards */
	int32_t value;
};

struct code_effects;

/* Opens no file. -EOPNOTSUPP as code_decoder_create(), and for machines other than x86_64. */
int code_effects_create(uint16_t machine, struct code_effects **ret_effects);
void code_effects_destroy(struct code_effects *effects);
/* As code_decode(), and the effect. */
bool code_effect(const struct code_effects *effects, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_flow, struct code_effect *ret_effect);
