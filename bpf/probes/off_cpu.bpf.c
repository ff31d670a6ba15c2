// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What threads wait for: runs at every context switch.
 *
 * The thread that leaves is still current, its memory is readable, and its user registers are at
 * the top of its kernel stack: so its stacks are captured now and written into the ring with the
 * time (struct abi_switch_out). The thread that comes is not current yet; only its tid is needed,
 * to look up when it left and to report the length of the wait in a short record (struct abi_wake).
 * Stacks therefore never wait in the kernel, and a wait may outlast its window's frames.
 *
 * A preempted thread waits for a CPU, which counts too. An exiting thread does not: it never comes
 * back.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/off_cpu.h"
#include "bpf/probes/capture.bpf.h"
#include "bpf/run_time.bpf.h"

char off_cpu_license[] SEC("license") = "Dual BSD/GPL";

enum { TASK_IS_EXITING = 0x4 /* PF_EXITING */ };

const volatile struct abi_off_cpu_config off_cpu SEC(".rodata.probe") = {};

struct wait {
	__u64 left_ns;
	__u32 tgid, tid; /* in the agent's pid namespace */
};

/* Keyed by the tid in the initial namespace. Preallocated: no allocation at a context switch. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_WAITS);
	__type(key, __u32);
	__type(value, struct wait);
} waits SEC(".maps");

/*
 * The arguments are (preempted, prev, next, prev_state); only Linux 5.18 has the state second. The
 * position of the leaving thread, which is known, shows which it is. The fourth argument is read as
 * memory: a program that names it cannot be attached on kernels with three.
 */
static __always_inline struct task_struct *coming_thread(
	const struct bpf_raw_tracepoint_args *ctx, const struct task_struct *leaving)
{
	struct task_struct *coming = NULL;

	if (ctx->args[1] == (__u64)leaving)
		return (struct task_struct *)ctx->args[2];
	if (ctx->args[2] == (__u64)leaving)
		bpf_probe_read_kernel(&coming, sizeof(coming), (const __u64 *)ctx + 3);
	return coming;
}

/* Ends the wait of THREAD, if it has one, as of END_NS. */
static __always_inline void wait_ends(const struct capture *t, __u32 thread, __u64 end_ns)
{
	const struct wait *wait = thread ? bpf_map_lookup_elem(&waits, &thread) : NULL;
	struct abi_wake wake = { .kind = ABI_WAKE };

	if (!wait)
		return;
	wake.window = shared.window;
	wake.tgid = wait->tgid;
	wake.tid = wait->tid;
	wake.left_ns = wait->left_ns;
	wake.wait_ns = end_ns - wait->left_ns;
	bpf_map_delete_elem(&waits, &thread);
	if ((__s64)wake.wait_ns < 0)
		t->counters->of[ABI_COUNT_WAITS_UNENDED]++;
	else
		is_out(t, bpf_perf_event_output(
				  t->ctx, &output, BPF_F_CURRENT_CPU, &wake, sizeof(wake)));
}

/*
 * A kernel may exclude some of its own threads from tracing, and so the switches from them. A
 * thread that leaves may therefore still have a wait: that ended when the thread began to run,
 * which its run time tells. (The kernel does not account that for real-time threads: their wait is
 * lost.)
 */
static __always_inline void wait_ended_unseen(
	const struct capture *t, __u32 thread, struct task_struct *leaving, __u64 now_ns)
{
	__u64 ran_ns = TASK_READ(leaving, se.sum_exec_runtime) -
		       TASK_READ(leaving, se.prev_sum_exec_runtime);

	wait_ends(t, thread, now_ns - ran_ns);
}

/* Comes before anything that costs time. */
static __always_inline bool is_chosen(struct task_struct *leaving)
{
	if (off_cpu.chance && bpf_get_prandom_u32() >= off_cpu.chance)
		return false;
	return !(TASK_READ(leaving, flags) & TASK_IS_EXITING);
}

static __always_inline void wait_begins(
	const struct capture *t, __u32 thread, bool tables, struct scratch *s)
{
	struct wait wait = { .left_ns = bpf_ktime_get_ns() };

	if (!is_chosen(t->task) || !capture_identity(t, s))
		return;
	t->counters->of[ABI_COUNT_WAITS]++;
	s->walk.sample.flags = ABI_SAMPLE_KERNEL;
	take_facts(t, ABI_SWITCH_OUT, &s->walk.sample);
	s->walk.switch_out.left_ns = wait.left_ns;
	wait.tgid = s->walk.sample.tgid;
	wait.tid = s->walk.sample.tid;
	capture_stacks(t, tables, s);
	if (!output_sample(t, tables, s))
		return;
	if (bpf_map_update_elem(&waits, &thread, &wait, BPF_ANY))
		t->counters->of[ABI_COUNT_WAITS_FULL]++;
}

static __always_inline int switch_with(struct bpf_raw_tracepoint_args *ctx, bool tables)
{
	struct scratch *s = scratch_of_cpu();
	struct capture t = {
		.ctx = ctx,
		.task = task_current(),
		.counters = counters_of_slot(),
	};
	__u32 leaving = (__u32)bpf_get_current_pid_tgid();
	const struct task_struct *coming;

	if (!s || !t.counters)
		return 0;
	COUNT_RUN(t.counters);
	coming = coming_thread(ctx, t.task);
	wait_ends(&t, BPF_CORE_READ(coming, pid), run.began_ns);
	/* The idle task has no number. */
	if (leaving) {
		wait_ended_unseen(&t, leaving, t.task, run.began_ns);
		wait_begins(&t, leaving, tables, s);
	}
	return 0;
}

/* Only one of the two is loaded, as in the CPU probe. */
SEC("raw_tp/sched_switch")
int take_switch_by_tables(struct bpf_raw_tracepoint_args *ctx)
{
	return switch_with(ctx, true);
}

SEC("raw_tp/sched_switch")
int take_switch(struct bpf_raw_tracepoint_args *ctx)
{
	return switch_with(ctx, false);
}
