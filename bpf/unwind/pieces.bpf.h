/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The pieces of stack in an unfinished sample (struct abi_unwind_rest): where they are, and reading
 * them.
 */
#include "bpf/unwind/regs.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind/lookup.bpf.h"

enum {
	UNFINISHED_MAX_LINKS = 32, /* frame pointers to follow to another stack */
};

/* struct abi_unfinished with room for the longest record. */
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
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct unfinished_record);
} unfinished_records SEC(".maps");

/*
 * Reads the pieces that `rest` describes into the CPU's unfinished record: that of the other
 * stack into the room reserved for it, then the stack itself, up to its end or LIMIT bytes in all.
 * Chunks never cross a page. other_bytes becomes the readable bytes up to the first gap. Returns
 * the bytes, room included. A global function, as unwind_frame(): the verifier checks it once.
 */
__noinline int unwind_read_stacks(__u32 limit)
{
	__u32 i, key = scratch_slot();
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);

	if (!to)
		return 0;
	for (i = 0; i < ABI_UNFINISHED_CHUNKS; i++) {
		/* Reloaded, or the verifier would follow its value through each iteration. */
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
 * Follows frame pointers from FP on stack [LOW, HIGH]. Returns the first one that is not on that
 * stack, 0 if there is none.
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
 * How much stack to read from ADDRESS on. The first thread's stack ends at its arguments: behind
 * them are only strings. For other threads C libraries place thread-local storage behind the stack
 * (which may be less than what is read anyway, as is what lies behind a coroutine's stack).
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
