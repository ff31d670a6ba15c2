// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * As kernel_latency.bpf.c, and a sample for each call that was measured: it has the call's
 * duration, the kernel stack, which begins with the function, and the user stack below it. The
 * other maps, the scratch memory among them, are those of latency_stacks.bpf.c.
 *
 * The kernel stack is walked at the entry. At the return, tracers have changed the return address,
 * and only newer kernels find the caller all the same. It waits in the map of open calls, as the
 * number under which its frames were shipped. The user stack, which is the same at both, is walked
 * at the return: calls that never return cost no such walk. None of the walks is part of the time
 * that the call takes.
 *
 * Who is interrupted does not call what the interrupt calls, so that has no user stack.
 */
/* As these programs may run on top of those of latency_stacks.bpf.c, in the same task. */
#define SCRATCH_OWNER 1
/* Of deeper stacks the outermost frames are cut: the programs below have used BPF's stack up. */
#define UNWIND_MAX_FRAMES_ONLY
#include "bpf/scratch_slots.bpf.h"

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/capture_sample.bpf.h"
#define LATENCY_FACTS_FIRST
#define KERNEL_CALL_HOOKS
#define KERNEL_SECTION_ENTERED "kernel_copy.entered"
#define KERNEL_SECTION_RETURNED "kernel_copy.returned"
#define KERNEL_SECTION_EVENT "kernel_copy.event"
#include "bpf/probes/kernel_programs.bpf.h"
#include "bpf/probes/kernel_stacks.bpf.h"

char kernel_latency_stacks_license[] SEC("license") = "Dual BSD/GPL";

/* ---- entry ---------------------------------------------------------------------------------- */

/* Not inlined, as the next one: BPF's stack is small. Returns the stack's id; 0 = none. */
static __noinline __u64 kernel_stack_of_call(void *ctx, __u64 kaddr, bool in_trampoline)
{
	struct capture t = { .ctx = ctx, .task = task_current() };
	struct scratch *s;
	__u64 id = 0;

	if (!scratch_take())
		return 0;
	s = scratch_of_cpu();
	t.counters = counters_of_slot();
	if (s && t.counters)
		id = kernel_stack_take(&t, s, kaddr, in_trampoline);
	scratch_release();
	return id;
}

static __always_inline void kernel_call_begun(
	const struct kernel_hit *at, struct abi_open_call *call)
{
	call->window = shared.window;
	call->kernel_stack =
		kernel_stack_of_call(at->site->ctx, at->hit.function->kaddr, !at->site->regs);
}

/* ---- return --------------------------------------------------------------------------------- */

struct kernel_measured {
	__u64 kernel_stack, duration; /* as in the record */
	__u32 window;
	bool measured; /* the call has returned, and is in the histograms */
	bool is_own; /* the process made the call itself */
};

static __always_inline void kernel_call_ended(
	const struct kernel_hit *at, const struct abi_open_call *call, __u64 duration_ns)
{
	at->measured->measured = true;
	at->measured->kernel_stack = call->kernel_stack;
	at->measured->window = call->window;
	at->measured->duration =
		duration_ns << ABI_CALL_SHIFT_BITS | (call->thin_shift & ABI_CALL_SHIFT);
}

static __always_inline void kernel_fill_sample(
	const struct capture *t, const struct kernel_measured *measured, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;
	struct task_struct *task = t->task;

	identify(task, sample);
	task_comm(task, sample->comm);
	sample->exec_id = TASK_READ(task, self_exec_id);
	runtime_read(t, s);
	sample->flags = ABI_SAMPLE_KERNEL;
	take_facts(t, ABI_CALL, sample);
	s->walk.call.duration = measured->duration;
	capture_begin(t, s);
	/* Frames are shipped for one window. */
	if (measured->window == sample->window)
		sample->kernel_stack = measured->kernel_stack;
	if (!sample->kernel_stack)
		t->counters->of[ABI_COUNT_CALLS_KERNEL_STACK_ERROR]++;
}

static __always_inline void kernel_sample(
	void *ctx, bool tables, const struct kernel_measured *measured, struct scratch *s)
{
	struct capture t = { .ctx = ctx, .task = task_current(), .counters = counters_of_slot() };

	if (!t.counters)
		return;
	kernel_fill_sample(&t, measured, s);
	if (measured->is_own && has_user_stack(&t, &s->walk.sample))
		capture_user_stack(&t, tables, s);
	output_sample(&t, tables, s);
	t.counters->of[ABI_COUNT_CALLS_STACKS]++;
}

static __noinline int kernel_take_sample(void *ctx, const struct kernel_measured *measured)
{
	struct counters *counters;
	struct scratch *s;

	if (!scratch_take()) {
		counters = counters_of_cpu();
		if (counters)
			__sync_fetch_and_add(&counters->of[ABI_COUNT_CALLS_STACK_BUSY], 1);
		return 0;
	}
	s = scratch_of_cpu();
	if (s && config.unwind_by_tables)
		kernel_sample(ctx, true, measured, s);
	else if (s)
		kernel_sample(ctx, false, measured, s);
	scratch_release();
	return 0;
}

/* Not inlined: what this needs of the stack is free again when a stack is walked. */
static __noinline bool kernel_measure(
	const struct kernel_site *site, struct kernel_measured *ret_measured)
{
	struct kernel_hit at = { .site = site, .measured = ret_measured };

	return kernel_hit_at(&at);
}

static __always_inline bool kernel_run(struct kernel_site *site)
{
	struct kernel_measured measured = {};
	bool wants_return;

	site->facts = latency_facts();
	wants_return = kernel_measure(site, &measured);
	if (measured.measured) {
		measured.is_own = kernel_is_own_call(site);
		kernel_take_sample(site->ctx, &measured);
	}
	return wants_return;
}
