/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Where the Go runtime changes stacks. Go's own functions are unwound by the stack pointer, as any
 * code with tables; a handful of assembly functions of the runtime load another stack pointer on
 * the way, and what they call finds its caller there. The index names their rules by function
 * (symbolizer/indexer/go/go_unwind.c); here is what the rules mean.
 *
 * - systemstack, asmcgocall: run something on the thread's stack for the goroutine, whose own stack
 *   pointer waits in g.sched: the stack goes on there.
 * - racecall: the same for the race detector; it writes nothing down, its stack pointer is in r12.
 * - morestack: as these, and what goes on is the function that had too little stack.
 * - mcall: leaves the goroutine for good: the stack ends.
 * - gogo: enters a goroutine: what was before is not its caller.
 *
 * The frame pointer is kept by nearly all of them, and by C code. A function that has made its
 * frame before it changes stacks is therefore found again by its frame pointer (ABI_CFA_GO_FRAME):
 * cgocallback, which goes the other way, and since 1.21 asmcgocall; the ones that read the clock.
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

/* Reads what is known of it. Its m tells whether it has moved on to another thread. */
UNWIND_INLINE void go_read_goroutine(struct unwind_state *s)
{
	struct unwind_fiber *g = &s->fiber;

	g->known = s->runs.address && !unwind_fetch(s, g->head, sizeof(g->head), s->runs.address) &&
		   g->head[ABI_GO_M] == s->runs.thread;
	g->home = g->known && go_is_on(g, s->sp);
}

/*
 * From the other stack back to the goroutine's: to nowhere if the thread has left that. Where
 * nothing is known of it an interrupted frame is taken to be on its own stack still.
 */
UNWIND_INLINE int go_to_goroutine(struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	const struct unwind_fiber *g = &s->fiber;

	if (g->home || (!g->known && !s->is_return))
		return ABI_UNWIND_GOES_ON;
	if (s->runs.thread && !s->runs.address)
		return ABI_UNWIND_ROOT;
	/* One that has a frame keeps that in the frame pointer. */
	if (!g->known && s->fp && rule->cfa_off == UNWIND_GO_FRAMED_CFA) {
		s->sp = s->fp + UNWIND_GO_FRAME_BELOW_SP;
		return ABI_UNWIND_GOES_ON;
	}
	if (!g->known || !go_is_on(g, g->head[ABI_GO_SCHED_SP]))
		return ABI_UNWIND_BAD_REGISTER;
	s->sp = g->head[ABI_GO_SCHED_SP];
	return ABI_UNWIND_GOES_ON;
}

/* asmcgocall left g, and how far its own frame is below that one's stack, for when it returns. */
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
 * From C, which keeps r12: there racecall has its stack pointer, on the goroutine's stack or, a
 * word higher at most, on this one. Interrupted it may not have done anything yet.
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

/* To the function that called for more stack. */
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
 * Moves S to the stack where RULE's frame is; its CFA is cfa_off above sp there. *RET_DONE: the
 * caller was reached already. An enum abi_unwind_end.
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
