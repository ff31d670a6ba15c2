// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * As latency.bpf.c, and a sample of the user stack for each call that was measured: it begins with
 * the function and has the call's duration.
 *
 * The stack is walked at the return, where the duration is known and the callers are those of the
 * entry: calls that are not measured, or never return, cost no walk, and the walk is not part of
 * the time that the call takes. These programs can be preempted, hence the slots of scratch memory.
 */
#include "bpf/scratch_slots.bpf.h"

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/capture_sample.bpf.h"
#define LATENCY_FACTS_FIRST
#include "bpf/probes/latency_calls.bpf.h"

char latency_stacks_license[] SEC("license") = "Dual BSD/GPL";

/* Not inlined: the stack of BPF is small, and the walk needs what this has used. */
static __noinline bool latency_measure(
	void *ctx, __u32 facts, struct latency_measured *ret_measured)
{
	return latency_hit(ctx, facts, ret_measured);
}

/* The filters have accepted the call at its entry. */
static __always_inline void latency_identify(const struct capture *t, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;
	struct task_struct *task = t->task;

	identify(task, sample);
	task_comm(task, sample->comm);
	sample->exec_id = TASK_READ(task, self_exec_id);
	runtime_read(t, s);
}

static __always_inline void latency_sample(
	void *ctx, bool tables, const struct latency_measured *measured, struct scratch *s)
{
	struct capture t = {
		.ctx = ctx,
		.interrupted = ctx,
		.task = task_current(),
		.counters = counters_of_slot(),
		.stack_flags = ABI_STACK_CALL,
	};
	__u64 began_ns = bpf_ktime_get_ns();

	if (!t.counters)
		return;
	latency_identify(&t, s);
	/* Known from the first call on; what runtime_read() needs comes after the first sample. */
	if (measured->fiber_id)
		s->walk.sample.fiber_id = measured->fiber_id;
	/* Read as the function's file wants it, not as the walk does. */
	s->walk.sample.flags = measured->fiber_id ? ABI_SAMPLE_FIBER_OF_CALL : 0;
	take_facts(&t, ABI_CALL, &s->walk.sample);
	s->walk.call.duration = measured->duration_ns << ABI_CALL_SHIFT_BITS |
				(measured->thin_shift & ABI_CALL_SHIFT);
	capture_begin(&t, s);
	capture_user_stack(&t, tables, s);
	output_sample(&t, tables, s);
	t.counters->of[ABI_COUNT_CALLS_STACKS]++;
	t.counters->of[ABI_COUNT_STACKS_NS] += bpf_ktime_get_ns() - began_ns;
}

static __always_inline void latency_count_busy(void)
{
	struct counters *counters = counters_of_cpu();

	if (counters)
		__sync_fetch_and_add(&counters->of[ABI_COUNT_CALLS_STACK_BUSY], 1);
}

static __always_inline int latency_with_stack(void *ctx, bool tables)
{
	struct latency_measured measured = {};
	struct scratch *s;

	if (!latency_measure(ctx, latency_facts(), &measured))
		return 0;
	if (!scratch_take()) {
		latency_count_busy();
		return 0;
	}
	s = scratch_of_cpu();
	if (s)
		latency_sample(ctx, tables, &measured, s);
	scratch_release();
	return 0;
}

/* Only one of the two is loaded, as in the CPU probe; for one site, or a link to many. */
SEC("uprobe")
int latency_stacks_by_tables(void *ctx)
{
	return latency_with_stack(ctx, true);
}

SEC("uprobe")
int latency_stacks(void *ctx)
{
	return latency_with_stack(ctx, false);
}
