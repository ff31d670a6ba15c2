/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The scratch memory of a CPU, in one piece and in the order of use: at a tick none of it is in the
 * caches, so each page and each cache line that is touched is a miss.
 */
#include "bpf/abi/sample.h"
#include "bpf/abi/unwind_maps.h"
#include "bpf/runtimes/thread.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind/cache.bpf.h"
#include "bpf/unwind/state.bpf.h"
#include "bpf/unwind/step.bpf.h"
#include "bpf/unwind/vma.bpf.h"

/* struct abi_sightings with room for the longest record. */
struct sightings_record {
	__u32 kind;
	__u32 tgid;
	__u32 window;
	__u32 count;
	struct abi_sighting of[ABI_SIGHTINGS];
};

_Static_assert(
	offsetof(struct sightings_record, of) == sizeof(struct abi_sightings), "as the ABI has it");

enum { KERNEL_INTERRUPTED_MAX = 8 /* exceptions and interrupts in a kernel stack; a power of 2 */ };

struct unwind_walk {
	__u32 rules_epoch; /* shared.unwind_rules_epoch when the walk began */
	__u32 readings; /* shared.ring_readings when the allowance was last renewed */
	__u32 allowance; /* bytes left for unfinished walks */
	__u32 missed; /* 1 + the first absent slot; 0 = none */
	__u32 may_stop; /* 1 = user space can finish the walk */
	__u32 known; /* the process is */
	__u32 stack_waits; /* the record is yet to be shipped, with the sample */
	__u32 frames; /* passed so far; the record has the first and the last of them */
	__u32 may_guess; /* 1 = user space may look for the caller of code without a table */
	__u32 gap; /* 1 = the walk stopped for that */
	struct unwind_cache_key key; /* of the cached ranges; not on the stack, which is small */
	__u32 interrupted; /* frames of the kernel stack that are interrupted code */
	__u32 interrupted_at[KERNEL_INTERRUPTED_MAX];
	unsigned short blocks[UNWIND_CACHE_AHEAD]; /* cached rules of the innermost frames */
	struct abi_unwind_range range; /* of the last pc; end 0 = none */
	struct unwind_bucket bucket; /* while a row is searched for */
	struct unwind_state state;
	union {
		struct abi_sample sample; /* of any kind */
		struct abi_tick tick;
		struct abi_switch_out switch_out;
		struct abi_call call;
	};
	struct stack_record record; /* first the kernel stack, then the user stack */
	struct abi_unwind_process process; /* or file */
	struct abi_mapping mapping; /* of the last pc, if its file is not known yet; else end 0 */
	__u64 node[VMA_NODE_WORDS];
	struct sightings_record sightings; /* to be reported before the sample */
	__u64 sighting_tags[ABI_SIGHTINGS];
	__u32 sighting_slots[ABI_SIGHTINGS];
};

/* Positions in the CPU's own ring (bpf/sample_ring.bpf.h). */
struct ring_place {
	__u64 head; /* where the next record begins */
	__u64 tail; /* as last read */
};

struct scratch {
	struct ring_place ring;
	struct runtime_thread runtime;
	struct unwind_walk walk;
	struct go_buckets go_buckets; /* while labels are read */
};

_Static_assert(offsetof(struct unwind_walk, record) ==
		       offsetof(struct unwind_walk, sample) + ABI_SAMPLE_BYTES,
	"the ABI has it so");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_of_cpu(void)
{
	__u32 key = scratch_slot();

	return bpf_map_lookup_elem(&scratches, &key);
}

static __always_inline struct unwind_walk *unwind_walk_of(void)
{
	struct scratch *s = scratch_of_cpu();

	return s ? &s->walk : NULL;
}

enum { STACK_HASHED_AT_ONCE = 16 /* frames; enough for most stacks */ };

/*
 * HASH updated with up to STACK_HASHED_AT_ONCE frames, from FIRST on, of the scratch memory's
 * record. A global function: the verifier follows it once for both stacks and all lengths.
 */
__noinline __u64 stack_hash_frames(__u32 first, __u64 hash)
{
	const struct unwind_walk *walk = unwind_walk_of();

	if (!walk)
		return hash;
	for (__u32 i = 0; i < STACK_HASHED_AT_ONCE; i++) {
		__u32 at = first + i;

		if (at >= *(const volatile __u32 *)&walk->record.frame_count)
			break;
		hash = stack_hash_frame(hash, walk->record.frames[at & (ABI_MAX_FRAMES - 1)]);
	}
	return hash;
}

/* The count is reloaded each time: the verifier would follow the end once per possible length. */
__noinline __u64 stack_hash(void)
{
	const struct unwind_walk *walk = unwind_walk_of();
	__u64 hash = STACK_HASH_MUL_3;

	if (!walk)
		return 1;
	for (__u32 i = 0;
		i < ABI_MAX_FRAMES && i < *(const volatile __u32 *)&walk->record.frame_count;
		i += STACK_HASHED_AT_ONCE)
		hash = stack_hash_frames(i, hash);
	return stack_hash_end(
		hash, *(const volatile __u32 *)&walk->record.frame_count, walk->record.flags);
}
