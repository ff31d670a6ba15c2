// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sampler: runs at every tick of a CPU's sampling event and writes into the CPU's ring who was
 * running, and which stacks. Programs of sampling events never nest on a CPU (the kernel's
 * bpf_prog_active), so one scratch area a CPU serves.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"
#include "bpf/kernel_types.h"
#include "bpf/filter.bpf.h"
#include "bpf/go.bpf.h"
#include "bpf/regs.bpf.h"
#include "bpf/run_time.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind_rest.bpf.h"
#include "bpf/unwind_walk.bpf.h"

char sampler_license[] SEC("license") = "Dual BSD/GPL";

struct scratch {
	struct abi_sample sample;
	struct stack_record stack;
	struct go_thread thread;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counts SEC(".maps");

/* Preallocated: older kernels let a sampling program use no other hash map. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_GO_PROCESSES);
	__type(key, __u32);
	__type(value, struct abi_go_process);
} go_processes SEC(".maps");

/* Set by user space; from 1. */
volatile __u32 window;
/* The period since it was changed, as the context goes on telling the first one; 0 = it was not. */
volatile __u64 changed_period;

static __always_inline void read_goroutine(
	struct task_struct *task, struct scratch *s, struct counters *counters)
{
	const struct abi_go_process *how = NULL;

	s->thread = (struct go_thread){};
	s->sample.goid = 0;
	s->sample.go_generation = 0;
	if (config.read_goids)
		how = bpf_map_lookup_elem(&go_processes, &s->sample.tgid);
	if (!how)
		return;
	s->sample.go_generation = how->generation;
	if (!go_read_thread(how, task_thread_pointer(task), &s->thread))
		counters->of[ABI_COUNT_GOID_ERROR]++;
	s->sample.goid = s->thread.goid;
}

/* Makes the sample an ABI_UNFINISHED where user space is to finish the user stack. */
static __always_inline void take_stacks(struct bpf_perf_event_data *ctx, struct task_struct *task,
	bool tables, struct scratch *s, struct counters *counters)
{
	struct abi_sample *sample = &s->sample;

	s->stack.kind = ABI_STACK;
	s->stack.window = sample->window;
	sample->kernel_stack = 0;
	sample->user_stack = 0;
	if (config.stacks != ABI_STACKS_USER && sample->flags & ABI_SAMPLE_KERNEL)
		sample->kernel_stack = stack_take(ctx, &s->stack, ABI_STACK_KERNEL, counters);
	if (config.stacks != ABI_STACKS_KERNEL && !(sample->flags & ABI_SAMPLE_KTHREAD)) {
		sample->user_stack = tables ? unwind_take(ctx, task, sample, &s->thread, counters)
					    : stack_take(ctx, &s->stack, 0, counters);
		if (!sample->user_stack)
			counters->of[ABI_COUNT_USER_STACK_ERROR]++;
	}
}

static __always_inline void output_sample(struct bpf_perf_event_data *ctx, bool tables,
	struct abi_sample *sample, struct counters *counters)
{
	long error = ERROR_NO_SPACE;

	if (tables && sample->kind == ABI_UNFINISHED) {
		counters->of[ABI_COUNT_UNWIND_MISSES]++;
		error = unwind_ship(ctx, sample);
		sample->kind = ABI_SAMPLE;
	}
	/* What is too long for the ring's rest may fit without the piece of stack. */
	if (error == ERROR_NO_SPACE)
		error = bpf_perf_event_output(
			ctx, &output, BPF_F_CURRENT_CPU, sample, sizeof(*sample));
	if (error == ERROR_NO_SPACE)
		counters->of[ABI_COUNT_OUTPUT_FULL]++;
	else if (error)
		counters->of[ABI_COUNT_OUTPUT_ERROR]++;
}

static __always_inline int sample_with(struct bpf_perf_event_data *ctx, bool tables)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	struct counters *counters = bpf_map_lookup_elem(&counts, &zero);
	struct abi_sample *sample;

	if (!s || !counters)
		return 0;
	COUNT_RUN(counters);
	sample = &s->sample;
	identify(task, sample);
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	if (!wanted(task, sample)) {
		counters->of[ABI_COUNT_FILTERED]++;
		return 0;
	}
	read_goroutine(task, s, counters);
	if (config.goid && sample->goid != config.goid) {
		counters->of[ABI_COUNT_FILTERED]++;
		return 0;
	}
	counters->of[ABI_COUNT_SAMPLES]++;
	sample->kind = ABI_SAMPLE;
	sample->flags = regs_user_mode(&ctx->regs) ? 0 : ABI_SAMPLE_KERNEL;
	if (BPF_CORE_READ(task, flags) & TASK_IS_KERNEL_THREAD)
		sample->flags |= ABI_SAMPLE_KTHREAD;
	sample->cgroup_id = bpf_get_current_cgroup_id();
	sample->period = changed_period ?: ctx->sample_period;
	sample->cpu = bpf_get_smp_processor_id();
	sample->window = window;
	sample->unwind_generation = 0;
	sample->unwind_missed = 0;
	sample->exec_id = tables && !unwind_by_mapping ? BPF_CORE_READ(task, self_exec_id) : 0;
	take_stacks(ctx, task, tables, s, counters);
	output_sample(ctx, tables, sample, counters);
	return 0;
}

/* One of the two is loaded: user stacks by tables, where the kernel takes that program, or not. */
SEC("perf_event")
int take_sample_by_tables(struct bpf_perf_event_data *ctx)
{
	return sample_with(ctx, true);
}

SEC("perf_event")
int take_sample(struct bpf_perf_event_data *ctx)
{
	return sample_with(ctx, false);
}
