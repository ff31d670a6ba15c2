/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What a sample takes along whose walk user space is to finish (struct abi_unwind_rest): registers,
 * the end of the stack, and in Go programs a piece of the stack on which it goes on.
 */
#include "bpf/regs.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind_where.bpf.h"

enum {
	UNFINISHED_GO_CHUNKS = 8, /* of a stack of Go's, or of its thread's, without a known end */
	UNFINISHED_NEAR_BYTES = 65536, /* are the same stack, where nothing else tells */
	UNFINISHED_ARENA_HALVES = 8, /* 32 GiB */
	UNFINISHED_MAX_LINKS = 32, /* from frame to frame, to where another stack begins */
};

/* struct abi_unfinished with its room. */
struct unfinished_record {
	union {
		struct abi_tick tick;
		struct abi_switch_out switch_out;
	};
	struct abi_unwind_rest rest;
	abi_u8 stack[ABI_UNFINISHED_STACK_BYTES];
};

_Static_assert(offsetof(struct unfinished_record, stack) == sizeof(struct abi_unfinished),
	"as the ABI has it");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct unfinished_record);
} unfinished_records SEC(".maps");

/*
 * Reads into the record of scratch WHOSE what its `rest` tells: the other stack's piece, into the
 * room that is set apart for it, then the stack's own, to its end or LIMIT bytes in all. Chunks
 * never cross a page's border. The other piece counts as far as it could be read at once. Returns
 * the bytes, room included. The verifier looks at it once, as at unwind_frame.
 */
__noinline int unwind_read_stacks(__u32 whose, __u32 limit)
{
	__u32 i;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &whose);

	if (!to)
		return 0;
	for (i = 0; i < ABI_UNFINISHED_CHUNKS; i++) {
		/* Loaded anew, or the verifier would follow what each turn says of it. */
		__u32 room = *(volatile __u32 *)&to->rest.other_room;
		__u32 at = i * ABI_UNFINISHED_CHUNK_BYTES;
		__u64 address = at < room ? to->rest.other_address + at
					  : to->rest.stack_address + (at - room);

		if (at + ABI_UNFINISHED_CHUNK_BYTES > limit)
			break;
		if (!read_user(to->stack + at, ABI_UNFINISHED_CHUNK_BYTES, address))
			continue;
		if (at >= room)
			break;
		to->rest.other_bytes = at < to->rest.other_bytes ? at : to->rest.other_bytes;
	}
	return i * ABI_UNFINISHED_CHUNK_BYTES;
}

/*
 * Where the frame pointers lead that begin on stack [LOW, HIGH]: the first that is not on it, 0
 * when there is none.
 */
__noinline __u64 unwind_fp_leaves(__u64 fp, __u64 low, __u64 high)
{
	__u64 next = fp;

	for (int i = 0; i < UNFINISHED_MAX_LINKS; i++) {
		if (next < low || next > high)
			return next & 7 ? 0 : next;
		if (read_user(&next, sizeof(next), next))
			return 0;
	}
	return 0;
}

/* Where nothing is known of a process yet: its stacks betray Go by where they lie. */
static __always_inline bool unwind_in_go_arena(__u64 address)
{
	return (address >> 32) - UNWIND_GO_ARENA < UNFINISHED_ARENA_HALVES;
}

/*
 * From where on the other stack is needed, 0 = there is none. At home that is the thread's, below a
 * callback from C; else it is the goroutine's. Frame pointers lead there, for code that changes
 * stacks by itself, and to the goroutine's so does sched.sp (an old one is only lower than needed).
 */
static __always_inline __u64 unwind_other_stack(const struct unwind_state *s)
{
	const struct unwind_goroutine *g = &s->goroutine;
	__u64 waits = g->head[ABI_GO_SCHED_SP];
	__u64 low = g->home ? g->head[ABI_GO_STACK_LOW] : s->sp;
	__u64 high = g->home ? g->head[ABI_GO_STACK_HIGH] : s->sp + UNFINISHED_NEAR_BYTES;
	__u64 other = unwind_fp_leaves(s->fp, low, high);

	if (!g->known)
		return unwind_in_go_arena(other) != unwind_in_go_arena(s->sp) ? other : 0;
	if (g->home)
		return other;
	if (!unwind_is_on(g, other) || (waits < other && unwind_is_on(g, waits)))
		other = waits;
	return unwind_is_on(g, other) ? other : 0;
}

static __always_inline __u32 unwind_chunks_of(__u64 bytes, __u32 max)
{
	if (bytes > max * ABI_UNFINISHED_CHUNK_BYTES)
		return max * ABI_UNFINISHED_CHUNK_BYTES;
	return (bytes + ABI_UNFINISHED_CHUNK_BYTES - 1) & ~(ABI_UNFINISHED_CHUNK_BYTES - 1);
}

/* Room for it from ADDRESS on: to the end of the goroutine's; where the thread's ends is not known.
 */
static __always_inline __u32 unwind_other_room(const struct unwind_goroutine *g, __u64 address)
{
	if (!address)
		return 0;
	if (!g->known || g->home)
		return UNFINISHED_GO_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES;
	return unwind_chunks_of(g->head[ABI_GO_STACK_HIGH] - address, ABI_UNFINISHED_OTHER_CHUNKS);
}

/*
 * A program's first thread began where its arguments are: behind them is nothing but text. C
 * libraries put what is local to any other thread behind its stack (which may be less than what is
 * read anyway, and so is what lies behind the stack of a coroutine).
 */
static __always_inline __u32 unwind_thread_room(struct task_struct *task, __u64 address)
{
	__u64 began = BPF_CORE_READ(task, mm, start_stack) + 8;
	__u64 local = task_thread_pointer(task);
	__u64 end = address + ABI_UNFINISHED_STACK_BYTES;

	if (began > address && began < end)
		end = began;
	if (local > address && local < end)
		end = local;
	return unwind_chunks_of(end - address, ABI_UNFINISHED_CHUNKS);
}

/* How much of the stack itself, from ADDRESS on: what is behind a goroutine's can be read, too. */
static __always_inline __u32 unwind_own_room(
	struct task_struct *task, const struct unwind_goroutine *g, __u64 address)
{
	if (g->home)
		return unwind_chunks_of(
			g->head[ABI_GO_STACK_HIGH] - address, ABI_UNFINISHED_CHUNKS);
	if (!g->known && unwind_in_go_arena(address))
		return UNFINISHED_GO_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES;
	return unwind_thread_room(task, address);
}

/*
 * What user space needs to know of the goroutine, and where the piece of the other stack is.
 * Returns the bytes of both pieces together that are of use.
 */
static __always_inline __u32 unwind_rest_of_go(
	struct task_struct *task, struct unwind_walk *walk, struct abi_unwind_rest *rest)
{
	const struct unwind_goroutine *g = &walk->state.goroutine;
	__u64 other;

	unwind_goroutine(&walk->state);
	rest->go.curg = g->known ? walk->state.go.curg : 0;
	rest->go.m = walk->state.go.m;
	__builtin_memcpy(rest->go_head, g->head, sizeof(rest->go_head));
	other = unwind_other_stack(&walk->state) & ~(ABI_UNFINISHED_CHUNK_BYTES - 1ULL);
	rest->other_address = other;
	rest->other_room = unwind_other_room(g, other);
	rest->other_bytes = rest->other_room;
	return rest->other_room + unwind_own_room(task, g, rest->stack_address);
}

/* Ships the sample with the registers of the frame that the walk stopped at. As output's helper. */
static __always_inline long unwind_ship(const struct taking *t, struct scratch *s)
{
	__u32 whose = t->whose;
	struct unwind_walk *walk = &s->walk;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &whose);
	__u64 bytes;

	if (!to)
		return -1;
	/* As long as the other kind. */
	to->tick = s->walk.tick;
	to->rest.pc = walk->state.pc;
	to->rest.sp = walk->state.sp;
	to->rest.fp = walk->state.fp;
	to->rest.lr = walk->state.lr;
	to->rest.kept[ABI_KEPT_R12] = walk->state.kept[ABI_KEPT_R12];
	to->rest.kept[ABI_KEPT_RBX] = walk->state.kept[ABI_KEPT_RBX];
	to->rest.is_return = walk->state.is_return;
	to->rest.mapping = walk->mapping;
	to->rest.stack_address = walk->state.sp & ~(ABI_UNFINISHED_CHUNK_BYTES - 1ULL);
	/* The last one before the rings are read has all it needs: half a stack is of little use.
	 */
	bytes = unwind_read_stacks(whose, unwind_rest_of_go(t->task, walk, &to->rest));
	if (bytes > ABI_UNFINISHED_STACK_BYTES)
		bytes = ABI_UNFINISHED_STACK_BYTES;
	to->rest.stack_bytes = bytes;
	walk->allowance -= bytes < walk->allowance ? bytes : walk->allowance;
	bytes += offsetof(struct unfinished_record, stack);
	return bpf_perf_event_output(t->ctx, &output, BPF_F_CURRENT_CPU, to, bytes);
}
