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

/* Walks and ships the kernel stack. Returns its id, or 0 if there is none. */
static __always_inline __u64 kernel_stack_capture(const struct capture *t, struct scratch *s)
{
	struct stack_record *record = &s->walk.record;
	__u64 *counters = t->counters->of;
	__u64 id;

	if (!kernel_walk(t->interrupted, &s->walk))
		return stack_take(t, record, ABI_STACK_KERNEL);
	record->flags = ABI_STACK_KERNEL;
	if (*(volatile __u32 *)&record->frame_count >= config.max_frames)
		record->flags |= ABI_STACK_DEPTH;
	id = stack_hash();
	record->id = id;
	if (kernel_walk_compared(counters[ABI_COUNT_KERNEL_WALKS]++)) {
		if (stack_take(t, record, ABI_STACK_KERNEL) == id)
			return id;
		counters[ABI_COUNT_KERNEL_WALKS_WRONG]++;
		shared.kernel_tables.count = 0;
		return record->id;
	}
	stack_ship(t, record, 0);
	return id;
}
