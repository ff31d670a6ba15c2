/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Unwinding Go on arm64. Included by bpf/runtimes/go_unwind.bpf.h. */
#include "bpf/abi/runtime_go.h"
#include "bpf/unwind/arch.bpf.h"
#include "bpf/unwind/state.bpf.h"

enum {
	/* cfa_off of a function that has a frame without variables. */
	UNWIND_GO_FRAMED_CFA = 16,
	UNWIND_GO_FRAME_BELOW_SP = 8, /* from its frame pointer to sp */
	/*
	 * Upper 32 bits of the address where the heap, and so goroutine stacks, begin. Go 1.26
	 * and newer choose that at random.
	 */
	UNWIND_GO_ARENA = 0x40,
	GO_USUAL_TLS_OFFSET = ABI_GO_G_IN_REGISTER, /* of g, while Go code runs */
};

/* Reads what asmcgocall saved at the stack pointer: its g, and its depth on that stack. */
UNWIND_INLINE long go_cgocall(struct unwind_state *s, __u32 place, __u64 *ret_depth, __u64 *ret_g)
{
	(void)place;
	return unwind_word(s, s->sp, ret_g) || unwind_word(s, s->sp + 8, ret_depth);
}

/* The return address of a function that called morestack, before it stored its lr. */
UNWIND_INLINE __u64 go_sched_lr(const struct unwind_fiber *g)
{
	__u64 lr = g->head[ABI_GO_SCHED_LR];

	return unwind_plain_code(lr ? lr : g->head[ABI_GO_SCHED_LR + 1]);
}
