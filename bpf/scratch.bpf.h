/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The scratch memory of a CPU, in one piece and in the order of use: at a tick nothing of it is in
 * the caches, and each page and each line that is touched is waited for.
 */
#include "bpf/abi/sample.h"
#include "bpf/abi/unwind_maps.h"
#include "bpf/runtimes/thread.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind/cache.bpf.h"
#include "bpf/unwind/state.bpf.h"
#include "bpf/unwind/vma.bpf.h"

/* struct abi_sightings with its room. */
struct sightings_record {
	__u32 kind;
	__u32 tgid;
	__u32 window;
	__u32 count;
	struct abi_sighting of[ABI_SIGHTINGS];
};

_Static_assert(
	offsetof(struct sightings_record, of) == sizeof(struct abi_sightings), "as the ABI has it");

struct unwind_walk {
	__u32 rules_turn; /* as it began */
	__u32 readings; /* of the rings, when the allowance was last renewed */
	__u32 allowance; /* bytes that are left of it */
	__u32 missed; /* 1 + the number of the first slot that was absent */
	__u32 may_stop; /* user space is to finish the walk */
	__u32 guessed; /* it may not, and a table was not loaded: by frame pointer from there on */
	__u32 known; /* the process is */
	__u32 stack_waits; /* for the sample, to be shipped with it */
	struct unwind_near_key key; /* of what is at hand; not on the stack, which is small */
	unsigned short blocks[UNWIND_NEAR_AHEAD]; /* of rules at hand, of the innermost frames */
	struct abi_unwind_range range; /* of the last pc; end 0 = none */
	struct unwind_state state;
	union {
		struct abi_sample sample; /* of either kind */
		struct abi_tick tick;
		struct abi_switch_out switch_out;
	};
	struct stack_record record; /* to be shipped with the sample; before, the kernel's */
	struct abi_unwind_process process; /* or file */
	struct abi_mapping mapping; /* of the last pc, where it is of a file not known yet */
	__u64 node[VMA_NODE_WORDS];
	struct sightings_record sightings; /* to be told before the sample */
	__u64 sighting_tags[ABI_SIGHTINGS];
	__u32 sighting_slots[ABI_SIGHTINGS];
};

/* Of the CPU's own ring: bpf/sample_ring.bpf.h. */
struct ring_place {
	__u64 head; /* where the next record begins */
	__u64 tail; /* as last seen */
};

struct scratch {
	struct counters counters; /* user space reads them here */
	struct ring_place ring;
	struct runtime_thread runtime;
	struct unwind_walk walk;
};

_Static_assert(offsetof(struct unwind_walk, record) ==
		       offsetof(struct unwind_walk, sample) + ABI_SAMPLE_BYTES,
	"the ABI has it so");
_Static_assert(offsetof(struct scratch, counters) == 0, "the ABI has it so");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct unwind_walk *unwind_walk_of(__u32 whose)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &whose);

	return s ? &s->walk : NULL;
}

/*
 * HASH with STACK_HASHED_AT_ONCE frames more of the record of scratch WHOSE, from FIRST on, as far
 * as it has them. The verifier follows it once, for both stacks and all lengths.
 */
__noinline __u64 stack_hash_frames(__u32 whose, __u32 first, __u64 hash)
{
	const struct unwind_walk *walk = unwind_walk_of(whose);

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
