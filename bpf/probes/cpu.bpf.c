// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The CPU probe: runs at every tick of a CPU's sampling event and writes the running thread and its
 * stacks into the CPU's ring. Programs of sampling events never nest on a CPU (bpf_prog_active in
 * the kernel), so one scratch area per CPU is enough.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/capture.bpf.h"
#include "bpf/run_time.bpf.h"

char cpu_license[] SEC("license") = "Dual BSD/GPL";

static __always_inline int sample_with(struct bpf_perf_event_data *ctx, bool tables)
{
	struct scratch *s = scratch_of_cpu();
	struct capture t = {
		.ctx = ctx,
		.interrupted = &ctx->regs,
		.task = task_current(),
		.counters = counters_of_slot(),
	};

	if (!s || !t.counters)
		return 0;
	COUNT_RUN(t.counters);
	if (!capture_identity(&t, s)) {
		t.counters->of[ABI_COUNT_FILTERED]++;
		return 0;
	}
	t.counters->of[ABI_COUNT_SAMPLES]++;
	s->walk.sample.flags = regs_user_mode(&ctx->regs) ? 0 : ABI_SAMPLE_KERNEL;
	take_facts(&t, ABI_TICK, &s->walk.sample);
	s->walk.tick.period = shared.changed_period ?: ctx->sample_period;
	capture_stacks(&t, tables, s);
	output_sample(&t, tables, s);
	return 0;
}

/* Only one of the two is loaded: by tables, if the kernel accepts that program. */
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
