/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* A sample of a thread that was interrupted or leaves the CPU, with both its stacks. */
#include "bpf/probes/capture_sample.bpf.h"
#include "bpf/unwind/kernel_walk.bpf.h"

/* Sets the sample's identity and fiber. Returns false if a filter rejects the thread. */
static __always_inline bool capture_identity(const struct capture *t, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;
	/* Not as t->task: that would be taken for a field of the kernel's, too. */
	struct task_struct *task = t->task;

	identify(task, sample);
	task_comm(task, sample->comm);
	if (!wanted(task, sample))
		return false;
	if (cgroup_is_left_out(task)) {
		t->counters->of[ABI_COUNT_LEFT_OUT]++;
		return false;
	}
	sample->exec_id = TASK_READ(task, self_exec_id);
	runtime_read(t, s);
	return !config.fiber_id || sample->fiber_id == config.fiber_id;
}

/* Captures the stacks. Sets ABI_SAMPLE_UNFINISHED if user space is to finish the user stack. */
static __always_inline void capture_stacks(const struct capture *t, bool tables, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;

	capture_begin(t, s);
	if (config.stacks != ABI_STACKS_USER && sample->flags & ABI_SAMPLE_KERNEL)
		sample->kernel_stack = kernel_stack_capture(t, s);
	if (config.stacks != ABI_STACKS_KERNEL && has_user_stack(t, sample))
		capture_user_stack(t, tables, s);
}
