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

struct bare_state {
	int32_t sp; /* if it is realigned: from what it was after that */
	bool is_realigned; /* aligned, or moved by a distance that is not known */
	bool has_callers_fp; /* rbp has it */
	bool has_slot; /* a word near the realigned stack pointer has an address of the frame */
	uint16_t known; /* a bit for each register that has an address of the frame... */
	int32_t registers[CODE_REGISTERS]; /* ... which is this one */
	int32_t fp_saved; /* where the caller's rbp is; 0 = not on the stack */
	int32_t slot; /* from the realigned stack pointer */
	int32_t slot_value;
};

/* At a function's first instruction. */
struct bare_state bare_state_at_entry(void);
/* EFFECT is that of an instruction of KIND. */
void bare_state_run(struct bare_state *s, enum code_kind kind, const struct code_effect *effect);
/*
 * Reduces TO to what it shares with FROM, which has the same stack pointer; returns whether it
 * changed.
 */
bool bare_state_meet(struct bare_state *to, const struct bare_state *from);
/* A callee has changed rbp. */
void bare_state_lose_fp(struct bare_state *s);
/* Whether the return address is on top of the stack. */
bool bare_state_may_return(const struct bare_state *s);
/* Whether rbp is the caller's, too: as it is at an entry, and as a caller expects it. */
bool bare_state_is_as_called(const struct bare_state *s);
/* The rule for the caller, from registers that walks have; ABI_CFA_NONE if nothing leads there. */
struct abi_unwind_rule bare_state_rule(const struct bare_state *s);
