/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The caller of code without a table (assembly whose author wrote no call frame information): a
 * search for its return address on the stack. Stacks are full of addresses that earlier calls left
 * behind, so an address is believed only if everything else agrees with it; otherwise there is no
 * caller. guess.c has the rules.
 */
#include <stdbool.h>

#include "agent/sampler/unwind/unwind.h"
#include "bpf/unwind/step.bpf.h"

struct guess {
	struct unwind *unwind;
	const struct mappings *mappings;
	const struct abi_returns *returns; /* of the stack from the frame's sp on */
	/* The mapping of a module without which there is no answer yet, or NULL. */
	const struct mapping *waits;
	uint32_t steps; /* of its walks, so far */
};

/* Moves STATE to its caller. Returns false, with STATE as it was, if none is proved. */
bool guess_caller(struct guess *g, struct unwind_state *state);
