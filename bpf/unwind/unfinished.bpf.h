/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Ships unfinished samples: with the registers, the innermost part of the stack and, if a runtime
 * switches stacks, a piece of the other stack (struct abi_unwind_rest).
 */
#include "bpf/runtimes/rest.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/unwind/pieces.bpf.h"

/*
 * Ships the chunks of stack behind TO->stack that were not shipped yet. The loop's body has no
 * branch but its exit: the verifier would follow the rest of the loop once for each.
 */
static __always_inline void unwind_ship_chunks(
	const struct capture *t, struct unfinished_record *to)
{
	to->chunk.kind = ABI_CHUNK;
	for (__u32 i = 0; i < ABI_DEEP_CHUNKS; i++) {
		if (!unwind_next_chunk())
			break;
		unwind_chunk_sent(bpf_perf_event_output(
			t->ctx, &output, BPF_F_CURRENT_CPU, &to->chunk, sizeof(to->chunk)));
	}
}

/* Ships the words that may be return addresses, of BYTES of stack. */
static __always_inline void unwind_ship_returns(
	const struct capture *t, struct unfinished_record *to, __u32 tid, __u32 bytes)
{
	__u64 count;

	unwind_find_returns(bytes);
	count = *(volatile __u32 *)&to->returns.count;
	if (!count)
		return;
	if (count > ABI_RETURNS)
		count = ABI_RETURNS;
	to->returns.kind = ABI_RETURNS_RECORD;
	to->returns.tid = tid;
	to->returns.sp = to->rest.sp;
	bpf_perf_event_output(t->ctx, &output, BPF_F_CURRENT_CPU, &to->returns,
		offsetof(struct abi_returns, of) + count * sizeof(struct abi_return));
}

/* Ships the sample with the frame at which the walk stopped. Returns 0 or a negative error. */
static __always_inline long unwind_ship(const struct capture *t, struct scratch *s)
{
	__u32 key = scratch_slot();
	struct unwind_walk *walk = &s->walk;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	__u32 wanted, deep;
	__u64 bytes;

	if (!to)
		return -1;
	/* A sample of any kind has this size. */
	to->tick = s->walk.tick;
	to->rest.pc = walk->state.pc;
	to->rest.sp = walk->state.sp;
	to->rest.fp = walk->state.fp;
	to->rest.lr = walk->state.lr;
	to->rest.kept[ABI_KEPT_R12] = walk->state.kept[ABI_KEPT_R12];
	to->rest.kept[ABI_KEPT_RBX] = walk->state.kept[ABI_KEPT_RBX];
	__builtin_memcpy(to->rest.own, walk->state.own, sizeof(to->rest.own));
	to->rest.has_own = walk->state.has_own;
	to->rest.is_return = walk->state.is_return;
	to->rest.mapping = walk->mapping;
	to->rest.stack_address = walk->state.sp & ~(ABI_UNFINISHED_CHUNK_BYTES - 1ULL);
	/* May exceed the allowance once: half a stack would be of little use. */
	wanted = runtime_rest(t, walk, &to->rest);
	bytes = unwind_read_stacks(wanted);
	if (bytes > ABI_UNFINISHED_STACK_BYTES)
		bytes = ABI_UNFINISHED_STACK_BYTES;
	to->rest.stack_bytes = bytes;
	to->rest.deep_count = 0;
	if (UNWIND_FINDS_RETURNS && (walk->gap || !walk->state.is_return))
		unwind_ship_returns(t, to, walk->sample.tid, (__u32)bytes);
	walk->allowance -= bytes < walk->allowance ? bytes : walk->allowance;
	if (bytes == ABI_UNFINISHED_STACK_BYTES && wanted > ABI_UNFINISHED_STACK_BYTES) {
		to->wanted = (wanted - ABI_UNFINISHED_STACK_BYTES) / ABI_UNFINISHED_CHUNK_BYTES;
		to->read_end =
			to->rest.stack_address + *(volatile __u32 *)&to->end - to->rest.other_room;
		unwind_ship_chunks(t, to);
	}
	deep = *(volatile __u16 *)&to->rest.deep_count;
	if (deep > ABI_DEEP_CHUNKS)
		deep = ABI_DEEP_CHUNKS;
	bytes += offsetof(struct unfinished_record, stack) + deep * sizeof(to->deep[0]);
	return bpf_perf_event_output(t->ctx, &output, BPF_F_CURRENT_CPU, to, bytes);
}
