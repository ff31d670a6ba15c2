/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The pieces of stack that a sample takes along whose walk user space is to finish (struct
 * abi_unwind_rest): where they are and how they are read.
 */
#include "bpf/unwind/regs.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind/lookup.bpf.h"

enum {
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
	__uint(max_entries, 1);
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

static __always_inline __u32 unwind_chunks_of(__u64 bytes, __u32 max)
{
	if (bytes > max * ABI_UNFINISHED_CHUNK_BYTES)
		return max * ABI_UNFINISHED_CHUNK_BYTES;
	return (bytes + ABI_UNFINISHED_CHUNK_BYTES - 1) & ~(ABI_UNFINISHED_CHUNK_BYTES - 1);
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
