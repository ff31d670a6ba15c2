/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of a frame before an instruction of code without tables, and what the instruction
 * makes of it. Offsets are bytes from the CFA unless said.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/code/effect.h"

enum { BARE_WORD = 8 };

/* Which registers of a machine have a role in frames. */
struct bare_machine {
	uint8_t sp, fp; /* fp: rbp or x29 */
	uint8_t link; /* where a call leaves the return address, or CODE_NO_REGISTER: on the stack
		       */
	int32_t entry; /* the stack pointer at a function's first instruction */
	uint32_t kept; /* what belongs to the caller: a bit for each register */
	uint8_t count; /* of registers */
	uint8_t align; /* of all functions, as compilers mostly have it */
	uint8_t instruction_bytes; /* of all; 0: they differ */
	uint8_t step; /* decoding goes on at a multiple of it behind bytes that are no code */
};

struct bare_state {
	const struct bare_machine *machine;
	int32_t sp; /* if it is realigned: from what it was after that */
	bool is_realigned; /* aligned, or moved by a distance that is not known */
	bool has_callers_fp; /* the frame pointer's register has it */
	bool has_ra; /* the link register has the return address */
	bool has_slot; /* a word near the realigned stack pointer has an address of the frame */
	/* A bit for each register that has an address of the frame, or a number: which one. */
	uint32_t known, numbers;
	int32_t registers[CODE_REGISTERS];
	/* Where the caller's frame pointer and the return address are; 0 = not on the stack. */
	int32_t fp_saved, ra_saved;
	int32_t slot; /* from the realigned stack pointer */
	int32_t slot_value;
	/*
	 * The last call on the way here that may not return, as an instruction's number + 1: what
	 * is behind it may be another function. 0: a way without one leads here, too.
	 */
	uint32_t doubt;
};

/* The bit of register NUMBER, 0 for CODE_NO_REGISTER. */
static inline uint32_t bare_bit(uint8_t number)
{
	return number < CODE_REGISTERS ? 1U << number : 0;
}

/* That of MACHINE (EM_*), or NULL. */
const struct bare_machine *bare_machine(uint16_t machine);
/* At a function's first instruction. */
struct bare_state bare_state_at_entry(const struct bare_machine *machine);
/* EFFECT is that of an instruction of KIND. */
void bare_state_run(struct bare_state *s, enum code_kind kind, const struct code_effect *effect);
/*
 * Whether two ways that lead to the same place agree on it: on the stack pointer, or on what the
 * frame pointer's register has, if they have room of different sizes below it.
 */
bool bare_state_agrees(const struct bare_state *one, const struct bare_state *other);
/* Reduces TO to what it shares with FROM, which agrees with it; returns whether it changed. */
bool bare_state_meet(struct bare_state *to, const struct bare_state *from);
/*
 * Whether EFFECT is that of a function's beginning, which S contradicts: the link register is
 * saved, but a call has overwritten it.
 */
bool bare_state_begins(const struct bare_state *s, const struct code_effect *effect);
/* A callee has changed the frame pointer. */
void bare_state_lose_fp(struct bare_state *s);
/* Whether the return address is where a return takes it from. */
bool bare_state_may_return(const struct bare_state *s);
/* Whether the stack is ready for a call: it is aligned, and the return address is on it. */
bool bare_state_may_call(const struct bare_state *s);
/*
 * Whether the frame pointer is the caller's, too: as it is at an entry, and as a caller expects it.
 */
bool bare_state_is_as_called(const struct bare_state *s);
/* The rule for the caller, from registers that walks have; ABI_CFA_NONE if nothing leads there. */
struct abi_unwind_rule bare_state_rule(const struct bare_state *s);
