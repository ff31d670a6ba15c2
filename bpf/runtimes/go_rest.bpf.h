/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What an unfinished sample of a Go program ships in addition: the goroutine, and a piece of the
 * other stack (the goroutine's or its thread's) on which the walk will continue.
 */
#include "bpf/runtimes/go_g.bpf.h"
#include "bpf/runtimes/go_unwind.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/unwind/pieces.bpf.h"

enum {
	GO_UNKNOWN_CHUNKS = 8, /* to read of a stack whose end is not known */
	GO_SAME_STACK_BYTES = 65536, /* assumed stack size above sp, if nothing is known */
	GO_ARENA_HALVES = 8, /* 32 GiB */
};

/* Recognizes the stacks of Go before 1.26 by their address. */
static __always_inline bool go_in_arena(__u64 address)
{
	return (address >> 32) - UNWIND_GO_ARENA < GO_ARENA_HALVES;
}

/*
 * For processes of which nothing is known yet, not even whether they are Go: reads the bounds of
 * the stack from where nearly all Go programs have the g of the thread, and sets `home`.
 */
static __always_inline void go_guess_stack(const struct capture *t, struct unwind_state *s)
{
	struct unwind_fiber *g = &s->fiber;
	const struct abi_runtime_go usual = { .g_tls_offset = GO_USUAL_TLS_OFFSET };
	const struct runtime_place place = {
		.thread_pointer = task_thread_pointer(t->task),
		.state_register = task_state_register(t->interrupted, t->task),
	};
	__u64 address;

	_Static_assert(ABI_GO_STACK_LOW == 0 && ABI_GO_STACK_HIGH == 1, "read together");
	if (!go_read_g(&usual, place, &address) || read_user(g->head, 2 * sizeof(__u64), address))
		g->head[ABI_GO_STACK_LOW] = g->head[ABI_GO_STACK_HIGH] = 0;
	g->home = go_is_on(g, s->sp);
}

/*
 * The address from which on the other stack is needed, 0 = there is none. At home that is the
 * thread's stack, below a callback from C; else it is the goroutine's. Frame pointers lead to it
 * from code that switches stacks itself; sched.sp leads to the goroutine's (a stale one is only
 * lower than needed).
 */
static __always_inline __u64 go_other_stack(const struct unwind_state *s)
{
	const struct unwind_fiber *g = &s->fiber;
	__u64 waits = g->head[ABI_GO_SCHED_SP];
	__u64 low = g->home ? g->head[ABI_GO_STACK_LOW] : s->sp;
	__u64 high = g->home ? g->head[ABI_GO_STACK_HIGH] : s->sp + GO_SAME_STACK_BYTES;
	__u64 other = unwind_fp_leaves(s->fp, low, high);

	if (g->home)
		return other;
	if (!g->known)
		return go_is_on(g, other) || go_in_arena(other) != go_in_arena(s->sp) ? other : 0;
	if (!go_is_on(g, other) || (waits < other && go_is_on(g, waits)))
		other = waits;
	return go_is_on(g, other) ? other : 0;
}

/* Bytes of it to read from ADDRESS on: to a goroutine stack's end; a thread's end is not known. */
static __always_inline __u32 go_other_room(const struct unwind_fiber *g, __u64 address)
{
	if (!address)
		return 0;
	if (!g->known || g->home)
		return GO_UNKNOWN_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES;
	return unwind_chunks_of(g->head[ABI_GO_STACK_HIGH] - address, ABI_UNFINISHED_OTHER_CHUNKS);
}

/*
 * Bytes of the stack itself to read, from where REST has it: memory behind a goroutine's is
 * readable. Bounds that are a guess may end too early: for a thread that C code created, Go itself
 * estimates them.
 */
static __always_inline __u32 go_own_room(
	struct task_struct *task, const struct unwind_fiber *g, const struct abi_unwind_rest *rest)
{
	const __u32 least = GO_UNKNOWN_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES;
	__u64 address = rest->stack_address, other = rest->other_address;

	if (g->home) {
		__u32 room = unwind_chunks_of(
			g->head[ABI_GO_STACK_HIGH] - address, UNFINISHED_ALL_CHUNKS);

		return g->known || room > least ? room : least;
	}
	if (!g->known && (go_in_arena(address) || (other && go_is_on(g, other))))
		return least;
	return unwind_thread_room(task, address);
}

/*
 * Sets what user space needs to know of the goroutine, and where the other stack's piece is.
 * Returns how many bytes of both pieces together are useful.
 */
static __always_inline __u32 go_rest(
	const struct capture *t, struct unwind_walk *walk, struct abi_unwind_rest *rest)
{
	const struct unwind_fiber *g = &walk->state.fiber;
	__u64 other;

	go_read_goroutine(&walk->state);
	if (!g->known)
		go_guess_stack(t, &walk->state);
	rest->fiber.address = g->known ? walk->state.runs.address : 0;
	rest->fiber.thread = walk->state.runs.thread;
	__builtin_memcpy(rest->fiber_head, g->head, sizeof(rest->fiber_head));
	other = go_other_stack(&walk->state) & ~(ABI_UNFINISHED_CHUNK_BYTES - 1ULL);
	rest->other_address = other;
	rest->other_room = go_other_room(g, other);
	rest->other_bytes = rest->other_room;
	return rest->other_room + go_own_room(t->task, g, rest);
}
