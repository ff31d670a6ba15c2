/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Walks the kernel stack, in BPF where that is supported, else by the kernel's helper. */
#if defined(__TARGET_ARCH_x86)
#include "bpf/unwind/kernel_walk_x86.bpf.h"
#else
#include "bpf/unwind/kernel_walk_arm64.bpf.h"
#endif

#include "bpf/stack.bpf.h"

/* Whether to compare this walk with the kernel's. */
static __always_inline bool kernel_walk_compared(__u64 walks)
{
	return walks < ABI_KERNEL_COMPARED || walks % ABI_KERNEL_COMPARED == 0;
}

/*
 * Adds the 1 that struct abi_stack has in addresses of interrupted code. The kernel's walk does
 * not, so this follows the comparison with it.
 */
static __always_inline void kernel_mark_interrupted(struct unwind_walk *walk)
{
	for (__u32 i = 0; i < KERNEL_INTERRUPTED_MAX && i < walk->interrupted; i++)
		walk->record.frames[walk->interrupted_at[i] & (ABI_MAX_FRAMES - 1)]++;
}

/* Walks and ships the kernel stack. Returns its id, or 0 if there is none. */
static __always_inline __u64 kernel_stack_capture(const struct capture *t, struct scratch *s)
{
	struct stack_record *record = &s->walk.record;
	__u64 *counters = t->counters->of;

	if (!kernel_walk(t->interrupted, &s->walk))
		return stack_take(t, record, ABI_STACK_KERNEL);
	record->flags = ABI_STACK_KERNEL;
	if (*(volatile __u32 *)&record->frame_count >= config.max_frames)
		record->flags |= ABI_STACK_DEPTH;
	if (kernel_walk_compared(counters[ABI_COUNT_KERNEL_WALKS]++)) {
		__u64 own = stack_hash();

		if (!stack_read(t, record, ABI_STACK_KERNEL))
			return 0;
		if (stack_hash() != own) {
			counters[ABI_COUNT_KERNEL_WALKS_WRONG]++;
			shared.kernel_tables.count = 0;
			s->walk.interrupted = 0;
		}
	}
	kernel_mark_interrupted(&s->walk);
	record->id = stack_hash();
	stack_ship(t, record, 0);
	return record->id;
}
