/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Stacks: identified by a hash, shipped once a window. A direct-mapped table of tags records what
 * was shipped, without locks or allocation in interrupt context. Stacks that share a slot evict
 * each other and CPUs may race for a slot; both only ships frames again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"
#include "bpf/config.bpf.h"
#include "bpf/hash.bpf.h"
#include "bpf/shared.bpf.h"
#include "bpf/unwind/regs.bpf.h"

enum { ERROR_NO_SPACE = -28 /* -ENOSPC: the ring is full */ };

/* struct abi_stack with room for the deepest stack. */
struct stack_record {
	__u32 kind;
	__u32 flags;
	__u64 id;
	__u32 window;
	__u32 frame_count;
	__u64 frames[ABI_MAX_FRAMES];
};

_Static_assert(offsetof(struct stack_record, frames) == sizeof(struct abi_stack) &&
		       offsetof(struct stack_record, id) == offsetof(struct abi_stack, id) &&
		       offsetof(struct stack_record, window) == offsetof(struct abi_stack, window),
	"as the ABI has it");

struct counters {
	__u64 of[ABI_COUNTERS];
};

/*
 * Most programs have one slot of scratch memory on each CPU, the one element of the scratch maps;
 * bpf/scratch_slots.bpf.h gives programs several.
 */
#ifndef SCRATCH_SLOTS
#define SCRATCH_SLOTS 1

static __always_inline __u32 scratch_slot(void)
{
	return 0;
}
#endif

/*
 * One element for each slot of scratch memory. A map of its own, since user space reads it once a
 * second, with the values of all CPUs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct counters);
} cpu_counters SEC(".maps");

/* The counters of the slot that the current thread owns. */
static __always_inline struct counters *counters_of_slot(void)
{
	__u32 key = scratch_slot();

	return bpf_map_lookup_elem(&cpu_counters, &key);
}

/*
 * The counters of the first slot, whichever thread owns that: where there are several slots, change
 * them atomically.
 */
static __always_inline struct counters *counters_of_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpu_counters, &zero);
}

/* The context of one run of a program. */
struct capture {
	void *ctx; /* the program's, for the kernel's helpers */
	bpf_user_pt_regs_t *interrupted; /* registers; NULL = not interrupted: it leaves the CPU */
	struct task_struct *task; /* the current one */
	struct counters *counters;
	__u32 stack_flags; /* of its user stack: ABI_STACK_CALL, or 0 */
};

__u64 stack_hash(void); /* of the scratch memory's record */

int sample_ring_write(__u32 skip, __u32 bytes);

/*
 * Writes BYTES from FROM, which is SKIP bytes after the scratch memory's sample, into the ring.
 * Returns 0, ERROR_NO_SPACE or another error.
 */
static __always_inline long output_bytes(
	const struct capture *t, void *from, __u32 skip, __u64 bytes)
{
	if (config.sample_ring_bytes) {
		long error = sample_ring_write(skip, bytes);

		if (error <= 0)
			return error;
	}
	return bpf_perf_event_output(t->ctx, &output, BPF_F_CURRENT_CPU, from, bytes);
}

/* Outputs RECORD and the BEFORE bytes in front of it: the sample, or nothing. */
static __always_inline long stack_output(
	const struct capture *t, struct stack_record *record, __u64 before)
{
	__u64 bytes = *(volatile __u32 *)&record->frame_count;

	if (bytes > ABI_MAX_FRAMES)
		bytes = ABI_MAX_FRAMES;
	bytes = before + offsetof(struct stack_record, frames) + bytes * sizeof(record->frames[0]);
	return output_bytes(t, (void *)record - before, ABI_SAMPLE_BYTES - before, bytes);
}

/*
 * Ships RECORD, with the BEFORE bytes in front of it, unless it was shipped in this window. One
 * output for both, since a call costs more than its content. The tag is set only after the output,
 * so that no other CPU's sample relies on frames still to come. Returns whether it went out now.
 */
static __always_inline bool stack_ship(
	const struct capture *t, struct stack_record *record, __u64 before)
{
	__u64 tag = stack_tag(record->id, record->window);
	__u32 slot = record->id & (ABI_SEEN_SLOTS - 1);
	__u64 *shipped = bpf_map_lookup_elem(&seen, &slot);
	long error;

	if (!shipped || *(volatile __u64 *)shipped == tag)
		return false;
	error = stack_output(t, record, before);
	if (!error)
		*(volatile __u64 *)shipped = tag;
	else if (error == ERROR_NO_SPACE)
		t->counters->of[ABI_COUNT_STACK_FULL]++;
	else
		t->counters->of[ABI_COUNT_OUTPUT_ERROR]++;
	return !error;
}

/* At a return instruction: the kernel's walk knows the frame pointer's function as the first
 * caller. */
static __always_inline void stack_insert_caller(const struct capture *t, __u64 *frames)
{
	frames[0] = frames[1];
	frames[1] = regs_return_address(t->interrupted);
}

/* The kernel walks the user or (ABI_STACK_KERNEL) kernel stack. Returns false if there is none. */
static __always_inline bool stack_read(
	const struct capture *t, struct stack_record *record, __u32 kind)
{
	__u64 walk = kind == ABI_STACK_KERNEL ? 0 : BPF_F_USER_STACK;
	__u32 first = t->stack_flags & ABI_STACK_CALL ? 1 : 0;
	/* No larger than needed: the helper clears unused room. */
	__u32 room = config.max_frames * sizeof(record->frames[0]);
	long bytes;

	if (room > sizeof(record->frames) - first * sizeof(record->frames[0]))
		room = sizeof(record->frames) - first * sizeof(record->frames[0]);
	bytes = bpf_get_stack(t->ctx, record->frames + first, room, walk);

	if (bytes <= 0)
		return false;
	if (first)
		stack_insert_caller(t, record->frames);
	record->frame_count = first + (__u64)bytes / sizeof(record->frames[0]);
	record->flags = kind ? kind : t->stack_flags;
	if (record->frame_count >= config.max_frames)
		record->flags |= ABI_STACK_DEPTH;
	return true;
}

/* The kernel walks and this ships the user or (ABI_STACK_KERNEL) kernel stack. Id, or 0 = none. */
static __always_inline __u64 stack_take(
	const struct capture *t, struct stack_record *record, __u32 kind)
{
	if (!stack_read(t, record, kind))
		return 0;
	record->id = stack_hash();
	stack_ship(t, record, 0);
	return record->id;
}
