/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses all instructions of compiled code that can change one of the three registers (encodings:
 * Arm A64): calls, arithmetic on the stack pointer, loads and stores of the other two (all
 * prologues have such pairs), and addressing with write-back of the stack pointer.
 */
#include "symbolizer/indexer/cfi/leaf_arm64.h"

#include <stdint.h>

enum { FP = 29, LR = 30, SP = 31, MAX_BYTES = 4096 };

static bool is_call(uint32_t word)
{
	return (word & 0xfc000000) == 0x94000000 /* bl */ ||
	       (word & 0xfffffc1f) == 0xd63f0000 /* blr */;
}

/* The first register of most encodings; loads and arithmetic write it. */
static uint32_t target(uint32_t word)
{
	return word & 31;
}

static uint32_t base(uint32_t word)
{
	return (word >> 5) & 31;
}

/* add and sub (immediate); those that set flags have no stack pointer as their target. */
static bool moves_sp(uint32_t word)
{
	return (word & 0x3f800000) == 0x11000000 && target(word) == SP;
}

static bool is_link(uint32_t number)
{
	return number == FP || number == LR;
}

static bool touches_pair(uint32_t word)
{
	if ((word & 0x3a000000) != 0x28000000)
		return false;
	if (is_link(target(word)) || is_link((word >> 10) & 31))
		return true;
	return word & 0x00800000 && base(word) == SP; /* written back */
}

/* A load or store of frame pointer or link register, or with write-back of the stack pointer. */
static bool touches_single(uint32_t word)
{
	if ((word & 0x3a000000) != 0x38000000)
		return false;
	if (is_link(target(word)))
		return true;
	return (word & 0x01200400) == 0x00000400 && base(word) == SP;
}

/* Other instructions whose target is frame pointer or link register: arithmetic, moves. */
static bool sets_link(uint32_t word)
{
	bool arithmetic = (word & 0x1c000000) == 0x10000000 || (word & 0x0e000000) == 0x0a000000;

	return arithmetic && is_link(target(word));
}

bool leaf_arm64(struct cursor code)
{
	if (!cursor_left(&code) || cursor_left(&code) > MAX_BYTES)
		return false;
	while (cursor_left(&code)) {
		uint32_t word = cursor_u32(&code);

		if (code.bad || is_call(word) || moves_sp(word) || touches_pair(word) ||
			touches_single(word) || sets_link(word))
			return false;
	}
	return true;
}
