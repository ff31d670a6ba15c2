/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * On which stack a thread of a Go program runs at a function's entry or return. There g itself is
 * asked and not m.curg: the scheduler and signal handlers run on stacks of their own, and a call on
 * those is none of the goroutine's.
 */
#include <stdbool.h>
#include <stddef.h>

#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/go_g.bpf.h"
#include "bpf/runtimes/thread.bpf.h"

/* The head of struct g, which is the same in all known versions (bpf/abi/runtime_go.h). */
struct go_stack {
	__u64 low, high; /* g.stack: sp is above low and at most high */
	__u64 guard; /* g.stackguard0; larger than any sp if the goroutine is to be preempted */
	__u64 others[5];
	__u64 sched_pc; /* g.sched.pc: where the goroutine was resumed last */
};

_Static_assert(offsetof(struct go_stack, sched_pc) == 8 * ABI_GO_SCHED_PC, "as the ABI has it");

/* The goroutine whose stack a thread runs on. */
struct go_frame {
	__u64 g; /* address of its object; 0 = not on a goroutine's stack */
	__u64 goid;
	struct go_stack stack;
};

/*
 * Sets RET_FRAME->g to 0 on the stack of a thread: in code that C calls, in the scheduler (whose g
 * has no goid), and in signal handlers. Returns false if memory could not be read.
 */
static __always_inline bool go_read_frame(const struct abi_runtime_go *how,
	struct runtime_place place, __u64 sp, struct go_frame *ret_frame)
{
	__u64 g = 0;

	*ret_frame = (struct go_frame){};
	if (!go_read_g(how, place, &g))
		return false;
	if (!g)
		return true;
	if (read_user(&ret_frame->goid, sizeof(ret_frame->goid), g + how->g_goid) ||
		read_user(&ret_frame->stack, sizeof(ret_frame->stack), g))
		return false;
	if (ret_frame->goid && sp > ret_frame->stack.low && sp <= ret_frame->stack.high)
		ret_frame->g = g;
	return true;
}

/* Whether a prologue with the check STACK_CHECK (bpf/abi/latency.h) at SP will call morestack. */
static __always_inline bool go_will_restart(
	const struct go_frame *frame, __u64 sp, __u32 stack_check)
{
	return sp < stack_check || sp - stack_check <= frame->stack.guard;
}
