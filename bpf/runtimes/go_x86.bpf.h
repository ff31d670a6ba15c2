/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* What unwinding Go differs in on x86_64. Included by bpf/runtimes/go_unwind.bpf.h. */
#include "bpf/abi/runtime_go.h"
#include "bpf/unwind/arch.bpf.h"
#include "bpf/unwind/state.bpf.h"

enum {
	/* cfa_off of a function without variables that has a frame. */
	UNWIND_GO_FRAMED_CFA = 16,
	UNWIND_GO_FRAME_BELOW_SP = 0, /* from its frame pointer to sp */
	/* Where the heap, and so its stacks, begin: upper half of addresses. */
	UNWIND_GO_ARENA = 0xc0,
};

/* What asmcgocall wrote down PLACE bytes above the stack pointer: how deep it was, and its g. */
UNWIND_INLINE long go_cgocall(struct unwind_state *s, __u32 place, __u64 *ret_depth, __u64 *ret_g)
{
	return unwind_word(s, s->sp + place, ret_depth) || unwind_word(s, s->sp + place + 8, ret_g);
}

/* A function that called for more stack had pushed its return address. */
UNWIND_INLINE __u64 go_sched_lr(const struct unwind_fiber *g)
{
	(void)g;
	return 0;
}
