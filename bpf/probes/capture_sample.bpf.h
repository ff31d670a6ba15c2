/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Builds a sample of the current thread: who it is, which fiber it runs, its user stack. Writes it
 * into the CPU's ring.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"
#include "bpf/kernel_types.h"
#include "bpf/filter.bpf.h"
#include "bpf/unwind/regs.bpf.h"
#include "bpf/runtimes/facts.bpf.h"
#include "bpf/runtimes/sample.bpf.h"
#include "bpf/sample_ring.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/unfinished.bpf.h"
#include "bpf/unwind/walk.bpf.h"

static __always_inline bool is_left_out(__u32 tgid)
{
	return shared.left_out[tgid % ABI_LEFT_OUT] == tgid;
}

/* Sets the fields of both kinds, except for identity, flags that only the caller knows, stacks. */
static __always_inline void take_facts(
	const struct capture *t, enum abi_kind kind, struct abi_sample *sample)
{
	/* Not as t->task: that would be taken for a field of the kernel's, too. */
	struct task_struct *task = t->task;

	sample->kind = kind;
	if (TASK_READ(task, flags) & TASK_IS_KERNEL_THREAD)
		sample->flags |= ABI_SAMPLE_KTHREAD;
	if (sample->flags & ABI_SAMPLE_KERNEL && task_is_executing(task))
		sample->flags |= ABI_SAMPLE_EXECUTING;
	sample->cgroup_id = task_cgroup_id(task);
	sample->cpu = bpf_get_smp_processor_id();
	sample->window = shared.window;
	sample->unwind_generation = 0;
	sample->unwind_missed = 0;
}

/*
 * Threads that the kernel creates in a process (io_uring, vhost) share its memory but have no user
 * stack. Kernels before 6.18 walk one from a pc of 0.
 */
static __always_inline bool has_user_stack(const struct capture *t, const struct abi_sample *sample)
{
	struct task_struct *task = t->task;

	if (sample->flags & (ABI_SAMPLE_KTHREAD | ABI_SAMPLE_EXECUTING))
		return false;
	return !(TASK_READ(task, flags) & TASK_MAY_BE_WORKER) || !regs_never_user(task);
}

/* Comes after the facts and before the stacks. */
static __always_inline void capture_begin(const struct capture *t, struct scratch *s)
{
	runtime_facts_take(t, s);
	s->walk.stack_waits = 0;
	s->walk.record.kind = ABI_STACK;
	s->walk.record.window = s->walk.sample.window;
	s->walk.sample.kernel_stack = 0;
	s->walk.sample.user_stack = 0;
}

/* Captures the user stack. Sets ABI_SAMPLE_UNFINISHED if user space is to finish it. */
static __always_inline void capture_user_stack(
	const struct capture *t, bool tables, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;

	sample->user_stack = tables ? unwind_take(t, s) : stack_take(t, &s->walk.record, 0);
	if (!sample->user_stack)
		t->counters->of[ABI_COUNT_USER_STACK_ERROR]++;
}

/* Whether a record got into the ring; counts those that did not. */
static __always_inline bool is_out(const struct capture *t, long error)
{
	if (!error)
		return true;
	t->counters->of[error == ERROR_NO_SPACE ? ABI_COUNT_OUTPUT_FULL : ABI_COUNT_OUTPUT_ERROR]++;
	return false;
}

static __always_inline bool output_sample(const struct capture *t, bool tables, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;
	long error = ERROR_NO_SPACE;

	if (tables && config.unwind_by_mapping && sample->user_stack && !is_left_out(sample->tgid))
		sightings_output(t, &s->walk);
	if (tables && s->walk.stack_waits && stack_ship(t, &s->walk.record, ABI_SAMPLE_BYTES))
		return true;
	if (tables && sample->flags & ABI_SAMPLE_UNFINISHED) {
		if (!is_left_out(sample->tgid)) {
			t->counters->of[ABI_COUNT_UNWIND_MISSES] += !s->walk.gap;
			error = unwind_ship(t, s);
		}
		sample->flags &= ~ABI_SAMPLE_UNFINISHED;
	}
	/* A sample that does not fit may fit without the pieces of stack. */
	if (error == ERROR_NO_SPACE)
		error = output_bytes(t, sample, 0, ABI_SAMPLE_BYTES);
	return is_out(t, error);
}
