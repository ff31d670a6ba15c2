/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Unwinding Go on x86_64. Included by bpf/runtimes/go_unwind.bpf.h. */
#include "bpf/abi/runtime_go.h"
#include "bpf/unwind/arch.bpf.h"
#include "bpf/unwind/state.bpf.h"

enum {
	/* cfa_off of a function that has a frame without variables. */
	UNWIND_GO_FRAMED_CFA = 16,
	UNWIND_GO_FRAME_BELOW_SP = 0, /* from its frame pointer to sp */
	/*
	 * Upper 32 bits of the address where the heap, and so goroutine stacks, begin. Go 1.26
	 * and newer choose that at random.
	 */
	UNWIND_GO_ARENA = 0xc0,
	GO_USUAL_TLS_OFFSET = -8, /* of g: in all programs without cgo, and most with it */
};

/* Reads what asmcgocall saved PLACE bytes above sp: its depth on its stack, and its g. */
UNWIND_INLINE long go_cgocall(struct unwind_state *s, __u32 place, __u64 *ret_depth, __u64 *ret_g)
{
	return unwind_word(s, s->sp + place, ret_depth) || unwind_word(s, s->sp + place + 8, ret_g);
}

/* None: a function that calls morestack has its return address on the stack. */
UNWIND_INLINE __u64 go_sched_lr(const struct unwind_fiber *g)
{
	(void)g;
	return 0;
}
