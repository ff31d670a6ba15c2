/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/a64.h"

static void a64_lead(
	struct code_instruction *i, enum code_kind kind, uint64_t address, int32_t words)
{
	i->kind = kind;
	i->target = address + (uint64_t)((int64_t)words * A64_BYTES);
}

/* Branches to a register, with and without pointer authentication. */
static enum code_kind a64_register_branch(uint32_t word)
{
	switch (a64_bits(word, 21, 3)) {
	case 1: /* blr, blraa, blrab */
		return CODE_CALL;
	case 2: /* ret, retaa, retab */
		return CODE_RETURN;
	default: /* br, braa, brab, eret, drps */
		return CODE_INDIRECT_JUMP;
	}
}

struct code_instruction a64_flow(uint32_t word, uint64_t address)
{
	struct code_instruction i = { .kind = CODE_PLAIN, .size = A64_BYTES };

	if ((word & 0xfc000000) == 0x14000000) /* b */
		a64_lead(&i, CODE_JUMP, address, a64_signed(word, 0, 26));
	else if ((word & 0xfc000000) == 0x94000000) /* bl */
		a64_lead(&i, CODE_CALL, address, a64_signed(word, 0, 26));
	else if ((word & 0xff000000) == 0x54000000) /* b.cond, bc.cond */
		a64_lead(&i, CODE_BRANCH, address, a64_signed(word, 5, 19));
	else if ((word & 0x7e000000) == 0x34000000) /* cbz, cbnz */
		a64_lead(&i, CODE_BRANCH, address, a64_signed(word, 5, 19));
	else if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		a64_lead(&i, CODE_BRANCH, address, a64_signed(word, 5, 14));
	else if ((word & 0xfe000000) == 0xd6000000)
		i.kind = a64_register_branch(word);
	else if ((word & 0xffe0001f) == 0xd4200000 || (word & 0xffe0001f) == 0xd4400000 ||
		 !(word >> 16)) /* brk, hlt, udf */
		i.kind = CODE_STOP;
	else if (word == 0xd503201f)
		i.kind = CODE_NOP;
	return i;
}

bool a64_is_defined(uint32_t word)
{
	uint32_t class = a64_bits(word, 25, 4); /* op0 */

	return class != 1 && class != 3 && (class != 0 || word >> 31 || !(word >> 16));
}
