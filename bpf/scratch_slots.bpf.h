/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Scratch memory for programs that can be preempted: several slots on each CPU. A program stays on
 * its CPU until it ends, but many kernels let another thread's run there meanwhile, which must not
 * find the same memory. A thread takes a slot and owns it until it releases it. Whoever looks up
 * scratch memory gets the slot that the current thread owns.
 *
 * Include it before all others that use scratch memory (bpf/stack.bpf.h).
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* A slot is occupied by a preempted thread for as long as that waits for the CPU. */
#define SCRATCH_SLOTS 4

/* Programs that may run on top of others in the same task have another number: 0 to 7. */
#ifndef SCRATCH_OWNER
#define SCRATCH_OWNER 0
#endif

struct scratch_owners {
	__u64 of[SCRATCH_SLOTS]; /* scratch_self(); 0 = none */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch_owners);
} scratch_owners SEC(".maps");

/*
 * The slots that are taken, by SCRATCH_SLOTS x CPU + slot: only one thread can add an element.
 * (Kernels before 5.12 have no compare-and-swap.) User space multiplies the entries by the number
 * of CPUs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, __u8);
} scratch_taken SEC(".maps");

/* The idle task of each CPU is a task like others. */
static __always_inline __u64 scratch_self(void)
{
	return bpf_get_current_task() | SCRATCH_OWNER;
}

static __always_inline struct scratch_owners *scratch_owners_of_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratch_owners, &zero);
}

/* The slot that the current thread owns, as a key of the scratch maps; SCRATCH_SLOTS = none. */
static __always_inline __u32 scratch_slot(void)
{
	const volatile struct scratch_owners *owners = scratch_owners_of_cpu();
	__u64 self = scratch_self();
	__u32 slot;

	for (slot = 0; owners && slot < SCRATCH_SLOTS; slot++)
		if (owners->of[slot] == self)
			return slot;
	return SCRATCH_SLOTS;
}

static __always_inline __u32 scratch_taken_key(__u32 slot)
{
	return bpf_get_smp_processor_id() * SCRATCH_SLOTS + slot;
}

/* Returns false if all slots are occupied. */
static __always_inline bool scratch_take(void)
{
	struct scratch_owners *owners = scratch_owners_of_cpu();
	__u64 self = scratch_self();
	__u8 taken = 1;

	for (__u32 slot = 0; owners && slot < SCRATCH_SLOTS; slot++) {
		__u32 key = scratch_taken_key(slot);

		if (bpf_map_update_elem(&scratch_taken, &key, &taken, BPF_NOEXIST))
			continue;
		owners->of[slot] = self;
		return true;
	}
	return false;
}

static __always_inline void scratch_release(void)
{
	volatile struct scratch_owners *owners = scratch_owners_of_cpu();
	__u32 slot = scratch_slot(), key = scratch_taken_key(slot);

	if (!owners || slot >= SCRATCH_SLOTS)
		return;
	owners->of[slot] = 0;
	bpf_map_delete_elem(&scratch_taken, &key);
}
