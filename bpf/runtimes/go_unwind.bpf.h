/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Unwinds where the Go runtime switches stacks. Go functions are unwound by the stack pointer, as
 * any code with tables. A handful of the runtime's assembly functions load another stack pointer
 * before they call, so the walk has to leave the callee's stack. The index sets their rules by
 * function (symbolizer/indexer/go/go_unwind.c); this file implements the rules.
 *
 * - systemstack, asmcgocall: run something on the thread's stack for the goroutine, whose stack
 *   pointer is saved in g.sched: the walk continues there.
 * - racecall: calls the race detector in this way; it saves nothing, its stack pointer is in r12.
 * - morestack: as systemstack; the walk continues in the function that had too little stack.
 * - mcall: leaves the goroutine for good: the stack ends.
 * - gogo: enters a goroutine: what ran before is not its caller.
 *
 * Nearly all of them preserve the frame pointer, and so does C code. A function that sets up its
 * frame before it switches stacks is therefore found by its frame pointer (ABI_CFA_GO_FRAME):
 * cgocallback, which goes the other way, asmcgocall since 1.21, and the functions that read the
 * clock.
 */
#include <stdbool.h>
#include <linux/types.h>

#include "bpf/abi/runtime_go.h"
#include "bpf/unwind/state.bpf.h"
#if defined(__TARGET_ARCH_arm64) || (!defined(__BPF__) && defined(__aarch64__))
#include "bpf/runtimes/go_arm64.bpf.h"
#else
#include "bpf/runtimes/go_x86.bpf.h"
#endif

enum { UNWIND_RACE_ALIGN = 8 }; /* bytes by which racecall lowers sp for C at most */

UNWIND_INLINE bool go_is_on(const struct unwind_fiber *g, __u64 sp)
{
	return sp >= g->head[ABI_GO_STACK_LOW] && sp <= g->head[ABI_GO_STACK_HIGH];
}

/* Reads the goroutine's object. Its m shows whether it has moved to another thread. */
UNWIND_INLINE void go_read_goroutine(struct unwind_state *s)
{
	struct unwind_fiber *g = &s->fiber;

	g->known = s->runs.address && !unwind_fetch(s, g->head, sizeof(g->head), s->runs.address) &&
		   g->head[ABI_GO_M] == s->runs.thread;
	g->home = g->known && go_is_on(g, s->sp);
}

/*
 * Moves from another stack to the goroutine's; the walk ends if the thread has left the goroutine.
 * If nothing is known of it, an interrupted frame is assumed to be on its own stack still.
 */
UNWIND_INLINE int go_to_goroutine(struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	const struct unwind_fiber *g = &s->fiber;

	if (g->home || (!g->known && !s->is_return))
		return ABI_UNWIND_GOES_ON;
	if (s->runs.thread && !s->runs.address)
		return ABI_UNWIND_ROOT;
	/* A function with a frame has it in the frame pointer. */
	if (!g->known && s->fp && rule->cfa_off == UNWIND_GO_FRAMED_CFA) {
		s->sp = s->fp + UNWIND_GO_FRAME_BELOW_SP;
		return ABI_UNWIND_GOES_ON;
	}
	if (!g->known || !go_is_on(g, g->head[ABI_GO_SCHED_SP]))
		return ABI_UNWIND_BAD_REGISTER;
	s->sp = g->head[ABI_GO_SCHED_SP];
	return ABI_UNWIND_GOES_ON;
}

/* asmcgocall saved, for its return, g and the distance of its frame from the top of g's stack. */
UNWIND_INLINE int go_from_c(struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	__u64 depth = 0, g = 0, high = s->fiber.head[ABI_GO_STACK_HIGH];

	if (go_cgocall(s, rule->extra, &depth, &g))
		return ABI_UNWIND_UNREADABLE;
	if (!g) { /* it was on the thread's stack already */
		s->sp = depth;
		return ABI_UNWIND_GOES_ON;
	}
	if (!(s->fiber.known && g == s->runs.address) &&
		unwind_fetch(s, &high, sizeof(high), g + 8 * ABI_GO_STACK_HIGH))
		return ABI_UNWIND_UNREADABLE;
	s->sp = high - depth;
	return ABI_UNWIND_GOES_ON;
}

/*
 * From C, which preserves r12: racecall has its stack pointer in there, on the goroutine's stack
 * or, at most a word higher, on this one. An interrupted racecall may not have done anything yet.
 */
UNWIND_INLINE int go_from_race(struct unwind_state *s)
{
	const struct unwind_fiber *g = &s->fiber;
	__u64 sp = s->kept[ABI_KEPT_R12];
	bool is_its =
		!(sp & 7) && (sp - s->sp <= UNWIND_RACE_ALIGN || (g->known && go_is_on(g, sp)));

	if (!s->is_return && (g->home || !is_its))
		return ABI_UNWIND_GOES_ON;
	if (!is_its)
		return ABI_UNWIND_BAD_REGISTER;
	s->sp = sp;
	return ABI_UNWIND_GOES_ON;
}

/* Moves to the function that called morestack. */
UNWIND_INLINE int go_from_morestack(
	struct unwind_state *s, const struct abi_unwind_rule *rule, bool *ret_done)
{
	int end = go_to_goroutine(s, rule);

	if (end || s->fiber.home || !s->fiber.known)
		return end;
	*ret_done = true;
	end = unwind_to(s, unwind_plain_code(s->fiber.head[ABI_GO_SCHED_PC]), s->sp, 0);
	s->lr = go_sched_lr(&s->fiber);
	return end;
}

/*
 * Moves S to the stack of RULE's frame, whose CFA is then sp + cfa_off. Sets *RET_DONE if S is
 * already the caller. Returns an enum abi_unwind_end.
 */
UNWIND_INLINE int go_unwind(
	struct unwind_state *s, const struct abi_unwind_rule *rule, bool *ret_done)
{
	const struct unwind_fiber *g = &s->fiber;

	if (rule->cfa == ABI_CFA_GO_FRAME) {
		s->sp = s->fp;
		return s->fp ? ABI_UNWIND_GOES_ON : ABI_UNWIND_BAD_REGISTER;
	}
	go_read_goroutine(s);
	switch (rule->cfa) {
	case ABI_CFA_GO_SYSTEMSTACK:
		return go_to_goroutine(s, rule);
	case ABI_CFA_GO_MORESTACK:
		return go_from_morestack(s, rule, ret_done);
	case ABI_CFA_GO_MCALL:
		if (s->is_return || (g->known && !g->home))
			return ABI_UNWIND_ROOT;
		return ABI_UNWIND_GOES_ON;
	case ABI_CFA_GO_GOGO:
		return g->home ? ABI_UNWIND_ROOT : ABI_UNWIND_GOES_ON;
	case ABI_CFA_GO_RACECALL:
		return go_from_race(s);
	case ABI_CFA_GO_CGOCALL:
		/* It calls one function before it changes stacks. */
		return s->is_return && !g->home ? go_from_c(s, rule) : go_to_goroutine(s, rule);
	default:
		return ABI_UNWIND_BAD_REGISTER;
	}
}
