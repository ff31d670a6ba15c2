/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What all programs that measure calls share: which calls count, the map of open calls, and the
 * histograms of those that returned. How a return finds its entry is up to each program.
 *
 * Unlike other probes, these programs can be preempted on many kernels, and another thread's may
 * run on the CPU meanwhile. Per-CPU values are therefore updated atomically. (Only max_ns is not:
 * it can miss a call of the same bucket, which is an eighth wide.)
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/latency.h"
#include "bpf/abi/sampler.h"
#include "bpf/filter.bpf.h"
#include "bpf/kernel_types.h"
#include "bpf/probes/descendants.bpf.h"
#include "bpf/runtimes/go_stack.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/task.bpf.h"

const volatile struct abi_latency_config latency SEC(".rodata.probe") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_LATENCY_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct abi_latency_function);
} latency_functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_LATENCY_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct abi_latency_entries);
} latency_entries SEC(".maps");

/* One element if the filters choose the processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_LATENCY_PROCESSES);
	__type(key, __u32);
	__type(value, struct abi_latency_process);
} latency_processes SEC(".maps");

/* Preallocated, as the next one: no allocation wherever a function is probed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_LATENCY_OPEN_CALLS);
	__type(key, struct abi_open_call_key);
	__type(value, struct abi_open_call);
} latency_open SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, ABI_LATENCY_CELLS);
	__type(key, struct abi_latency_cell_key);
	__type(value, struct abi_latency_cell);
} latency_cells SEC(".maps");

/* A thread at a probe. */
struct hit {
	bpf_user_pt_regs_t *regs;
	struct task_struct *task;
	struct counters *counters;
	struct abi_latency_function *function;
	__u64 began_ns;
	__u64 sp;
	struct go_frame frame;
	struct abi_open_call_key key;
	__u32 facts; /* enum latency_facts, with LATENCY_FACTS_FIRST */
};

/* ---- what is counted ------------------------------------------------------------------------ */

static __always_inline void latency_count(const struct hit *hit, enum abi_counter counter)
{
	__sync_fetch_and_add(&hit->counters->of[counter], 1);
}

/* A call of a wanted process begins. */
static __always_inline void latency_count_entry(const struct hit *hit)
{
	struct abi_latency_entries *entries =
		bpf_map_lookup_elem(&latency_entries, &hit->key.function);

	if (entries)
		__sync_fetch_and_add(&entries->calls, 1);
}

/* What a function's traps cost is known from them, whoever calls it. */
static __always_inline void latency_count_hit(const struct hit *hit)
{
	struct abi_latency_entries *entries;

	if (!latency.by_sets)
		return;
	entries = bpf_map_lookup_elem(&latency_entries, &hit->key.function);
	if (entries)
		__sync_fetch_and_add(&entries->hits, 1);
}

/* The program ends. */
static __always_inline void latency_count_run(const struct hit *hit)
{
	latency_count_hit(hit);
	latency_count(hit, ABI_COUNT_RUNS);
	__sync_fetch_and_add(
		&hit->counters->of[ABI_COUNT_RUN_NS], bpf_ktime_get_ns() - hit->began_ns);
}

/* ---- which calls ---------------------------------------------------------------------------- */

enum { OWN_GENERATIONS = 2 /* our children, and theirs */ };

/*
 * Whether the current process is a child of ours: one that executes the program again, or one that
 * does not, whose parent may have ended. A global function, for the same reason.
 */
__noinline int latency_is_own_child(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (BPF_CORE_READ(task, mm, env_end) == latency.own_env_end)
		return 1;
	for (int i = 0; i < OWN_GENERATIONS; i++)
		if (descendants_parent(&task) == config.self_tgid)
			return 1;
	return 0;
}

/* Whether the current thread has the name that is asked for. A global function, for its memory. */
__noinline int latency_has_comm(void)
{
	char comm[ABI_COMM_BYTES];

	task_comm(task_current(), comm);
	return comm_wanted(comm);
}

/*
 * What these say of the current process. The variables of functions that call each other have 512
 * bytes: a program that needs more of them than others defines LATENCY_FACTS_FIRST, and asks before
 * it calls what uses the answers.
 */
enum latency_facts {
	LATENCY_HAS_COMM = 1 << 0,
	LATENCY_IS_OWN_CHILD = 1 << 1,
	LATENCY_IS_DESCENDANT = 1 << 2,
};

static __always_inline __u32 latency_facts(void)
{
	__u32 facts = 0;

	if (config.filter_comm && latency_has_comm())
		facts |= LATENCY_HAS_COMM;
	if (latency.own_env_end && latency_is_own_child())
		facts |= LATENCY_IS_OWN_CHILD;
	if (latency.follow && descendants_have_current())
		facts |= LATENCY_IS_DESCENDANT;
	return facts;
}

#ifdef LATENCY_FACTS_FIRST
#define LATENCY_FACT(hit_, fact_, ask_) ((hit_)->facts & (fact_))
#else
#define LATENCY_FACT(hit_, fact_, ask_) (ask_())
#endif

/* Whether the current process, CALL's, passes the filters. */
static __always_inline bool latency_wants_process(
	const struct hit *hit, const struct abi_open_call *call)
{
	if (wanted_ids(hit->task, &call->tgid, &call->tid) &&
		(!config.filter_comm || LATENCY_FACT(hit, LATENCY_HAS_COMM, latency_has_comm)))
		return !latency.own_env_end ||
		       !LATENCY_FACT(hit, LATENCY_IS_OWN_CHILD, latency_is_own_child);
	return latency.follow && call->tgid &&
	       LATENCY_FACT(hit, LATENCY_IS_DESCENDANT, descendants_have_current);
}

/* Whether CALL's process is in the function's set. */
static __always_inline bool latency_is_in_set(const struct hit *hit, struct abi_open_call *call)
{
	const struct abi_latency_process *process;

	if (!latency.by_sets)
		return true;
	process = bpf_map_lookup_elem(&latency_processes, &call->tgid);
	if (!process || !(process->sets >> (hit->function->set & (ABI_LATENCY_SETS - 1)) & 1))
		return false;
	call->process = process->number;
	return true;
}

/* Only the filters that are set cost anything. */
static __always_inline bool latency_wants(
	const struct hit *hit, const struct go_frame *frame, struct abi_open_call *ret_call)
{
	identify_pids(hit->task, &ret_call->tgid, &ret_call->tid);
	if (!latency_wants_process(hit, ret_call) ||
		(config.fiber_id && frame->goid != config.fiber_id))
		return false;
	return latency_is_in_set(hit, ret_call);
}

static __always_inline __u64 latency_by(const struct hit *hit, const struct abi_open_call *call)
{
	switch (hit->function->by) {
	case ABI_LATENCY_BY_FIBER:
		return call->fiber_id;
	case ABI_LATENCY_BY_PROCESS:
		return call->tgid;
	case ABI_LATENCY_BY_CGROUP:
		return task_cgroup_id(hit->task);
	default:
		return 0;
	}
}

static __always_inline bool latency_is_chosen(const struct hit *hit)
{
	__u32 shift = hit->function->thin_shift & 31;

	return !shift || !(bpf_get_prandom_u32() & ((1U << shift) - 1));
}

/* ---- histograms ----------------------------------------------------------------------------- */

/* The cell with KEY. Returns NULL if there is no room for it. */
static __always_inline struct abi_latency_cell *latency_cell_of(
	const struct abi_latency_cell_key *key)
{
	struct abi_latency_cell *cell = bpf_map_lookup_elem(&latency_cells, key), empty = {};

	if (cell)
		return cell;
	bpf_map_update_elem(&latency_cells, key, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&latency_cells, key);
}

/* Returns whether there was room. */
static __always_inline bool latency_add(
	const struct hit *hit, const struct abi_open_call *call, __u64 duration_ns)
{
	struct abi_latency_cell_key key = {
		.function = hit->key.function,
		.bucket = abi_latency_bucket(duration_ns),
		.by = call->by,
		.process = call->process,
	};
	struct abi_latency_cell *cell = latency_cell_of(&key);

	if (!cell) {
		latency_count(hit, ABI_COUNT_CALLS_CELLS_FULL);
		return false;
	}
	latency_count(hit, ABI_COUNT_CALLS);
	__sync_fetch_and_add(&cell->count, 1ULL << (call->thin_shift & 31));
	__sync_fetch_and_add(&cell->sum_ns, duration_ns << (call->thin_shift & 31));
	if (duration_ns > cell->max_ns)
		cell->max_ns = duration_ns;
	return true;
}
