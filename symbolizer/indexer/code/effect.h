/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one instruction does to the registers that a walk needs: the stack pointer, those that hold
 * an address in the frame, and on aarch64 the link register. decoder.h decodes only the flow of
 * control. x86_64 is decoded by Zydis, with its operands. aarch64 needs no library: words of one
 * size, in few classes, of which only some matter here.
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
	CODE_X29 = 29,
	CODE_X30 = 30,
	CODE_SP = 31, /* of aarch64 */
	CODE_REGISTERS = 32,
	CODE_NO_REGISTER = 255,
};

enum code_effect_kind {
	CODE_EFFECT_NONE, /* but for `writes` */
	CODE_EFFECT_COPY, /* to = from + value */
	CODE_EFFECT_NUMBER, /* to = value */
	CODE_EFFECT_ADD, /* to = from + second */
	CODE_EFFECT_SUBTRACT, /* to = from - second */
	CODE_EFFECT_POINT, /* to = the instruction's address + value */
	CODE_EFFECT_PUSH, /* sp -= value, then *sp = from */
	CODE_EFFECT_POP, /* to = *sp, then sp += value */
	CODE_EFFECT_STORE, /* *(base + value) = from, then base += step */
	CODE_EFFECT_LOAD, /* to = *(base + value), then base += step */
	CODE_EFFECT_LEAVE, /* sp = rbp, then as pop %rbp */
};

struct code_effect {
	uint8_t kind; /* enum code_effect_kind */
	uint8_t to, from; /* CODE_NO_REGISTER: not a whole register */
	uint8_t base;
	uint8_t second; /* of a pair: the next word is stored from it, or loaded to it; a sum's */
	uint8_t size; /* bytes that are stored or loaded, by both of a pair */
	int32_t value, step;
	uint32_t writes; /* a bit for each register whose value is not known afterwards */
};

struct code_effects;

/* Opens no file. -EOPNOTSUPP as code_decoder_create(). */
int code_effects_create(uint16_t machine, struct code_effects **ret_effects);
void code_effects_destroy(struct code_effects *effects);
/* As code_decode(), and the effect. */
bool code_effect(const struct code_effects *effects, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_flow, struct code_effect *ret_effect);
