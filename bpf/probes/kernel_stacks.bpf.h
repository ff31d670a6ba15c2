/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The kernel stack at the entry of a function, and whether a process called it. */
#include "bpf/scratch_slots.bpf.h"

#include "bpf/scratch.bpf.h"

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/kernel_calls.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

enum {
	/* Bytes from a function's start to behind the call of its trampoline. */
	KERNEL_PATCHED_BYTES = 16,
	/* Frames of BPF itself, at most: the program's, the trampoline's. */
	KERNEL_SKIPPED_MAX = 8,
	/* In the processor's preempt_count: what is not a task's. */
	PREEMPT_SERVING_SOFTIRQ = 0x00000100,
	PREEMPT_HARDIRQ_MASK = 0x000f0000,
	PREEMPT_NMI_MASK = 0x00f00000,
};

/* ---- whose call ----------------------------------------------------------------------------- */

static __always_inline bool kernel_is_on_task_stack(const struct kernel_site *site)
{
	struct task_struct *task = task_current();
	__u64 bottom = kernel_address_of(TASK_READ(task, stack));
	__u64 top = kernel_address_of(task_user_regs(task));

	return site->place - bottom <= top - bottom;
}

/* The type of the per-CPU variable is a number that user space puts here. */
static __always_inline const void *kernel_preempt_variable(void)
{
	void *variable;

	asm("%0 = %1 ll" : "=r"(variable) : "i"(ABI_LATENCY_PREEMPT_COUNT));
	return bpf_this_cpu_ptr(variable);
}

/*
 * Whether the task itself calls the function, by a system call or an exception. x86_64 begins to
 * handle an interrupt of user code on the task's stack, so that the stack does not tell. (Not at an
 * entry: a breakpoint there counts as an NMI.)
 */
static __always_inline bool kernel_is_own_call(const struct kernel_site *site)
{
	__u32 count = 0;

	if (!latency.preempt_count_known)
		return kernel_is_on_task_stack(site);
	bpf_probe_read_kernel(&count, sizeof(count),
		(const void *)(kernel_address_of(kernel_preempt_variable()) +
			       latency.preempt_count_off));
	return !(count & (PREEMPT_SERVING_SOFTIRQ | PREEMPT_HARDIRQ_MASK | PREEMPT_NMI_MASK));
}

/* ---- stacks --------------------------------------------------------------------------------- */

/* How many frames of BPF are on top of a function's at its entry, as last seen. */
volatile __u32 kernel_stack_skipped SEC(".data.kernel_stacks") = 0;

static __always_inline long kernel_stack_read(
	const struct capture *t, struct stack_record *record, __u32 first, __u32 skipped)
{
	__u32 room = config.max_frames * sizeof(record->frames[0]);

	if (room > sizeof(record->frames) - first * sizeof(record->frames[0]))
		room = sizeof(record->frames) - first * sizeof(record->frames[0]);
	return bpf_get_stack(t->ctx, record->frames + first, room, skipped & BPF_F_SKIP_FIELD_MASK);
}

static __always_inline bool kernel_is_at_entry(__u64 pc, __u64 kaddr)
{
	return pc - kaddr <= KERNEL_PATCHED_BYTES;
}

/* In a trampoline the walk begins in BPF. Returns the stack's size, below 1 = none. */
static __always_inline long kernel_stack_below(
	const struct capture *t, struct stack_record *record, __u64 kaddr)
{
	long bytes = kernel_stack_read(t, record, 0, kernel_stack_skipped);

	if (bytes > 0 && kernel_is_at_entry(record->frames[0], kaddr))
		return bytes;
	bytes = kernel_stack_read(t, record, 0, 0);
	for (__u32 i = 0; i < KERNEL_SKIPPED_MAX; i++) {
		if (bytes <= (long)(i * sizeof(record->frames[0])))
			return 0;
		if (!kernel_is_at_entry(record->frames[i], kaddr))
			continue;
		kernel_stack_skipped = i;
		return kernel_stack_read(t, record, 0, i);
	}
	return 0;
}

/* At a kprobe the registers are the function's own. */
static __always_inline long kernel_stack_from(const struct capture *t, struct stack_record *record)
{
#if defined(__TARGET_ARCH_x86)
	return kernel_stack_read(t, record, 0, 0);
#else
	const bpf_user_pt_regs_t *regs = t->ctx;
	long bytes = kernel_stack_read(t, record, 1, 0);

	/* The walk takes the frame pointer's function for the first caller. */
	record->frames[0] = record->frames[1];
	record->frames[1] = regs->regs[30];
	return bytes > 0 ? bytes + (long)sizeof(record->frames[0]) : bytes;
#endif
}

/* Walks the stack of a task at a function's entry, and ships it. Returns its id, or 0 = none. */
static __always_inline __u64 kernel_stack_take(
	const struct capture *t, struct scratch *s, __u64 kaddr, bool in_trampoline)
{
	struct stack_record *record = &s->walk.record;
	long bytes =
		in_trampoline ? kernel_stack_below(t, record, kaddr) : kernel_stack_from(t, record);

	if (bytes <= 0)
		return 0;
	record->kind = ABI_STACK;
	record->window = shared.window;
	record->frame_count = (__u64)bytes / sizeof(record->frames[0]);
	record->flags = ABI_STACK_KERNEL;
	if (record->frame_count >= config.max_frames)
		record->flags |= ABI_STACK_DEPTH;
	record->id = stack_hash();
	stack_ship(t, record, 0);
	return record->id;
}
