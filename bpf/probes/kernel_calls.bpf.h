/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * How long calls of kernel functions take: what runs at their entries and returns. The programs are
 * in kernel_programs.bpf.h.
 *
 * Which return belongs to which entry:
 *
 * - A session of kprobe.multi (Linux 6.10) has memory of its own for each call.
 * - At an entry and at the return by kprobe.multi (5.18) or by kprobes, the stack pointer is the
 *   same (x86_64: but for the return address). Kernel stacks are never shared, so that no other
 *   open call on the whole machine has it, whether it is a task's or an interrupt's.
 * - fentry and fexit run in one frame of a trampoline, so that they have the same address as their
 *   context, which no other open call has either.
 *
 * A call that never returns (do_exit) is replaced by the next one at its place.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/latency.h"
#include "bpf/kernel_types.h"
#include "bpf/probes/kernel_hits.bpf.h"
#include "bpf/probes/latency_cells.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

/* Where a program runs: at an entry or a return. */
struct kernel_site {
	void *ctx;
	bpf_user_pt_regs_t *regs; /* NULL = in a trampoline */
	__u64 cookie;
	__u64 place; /* of the call: no other open one has it */
	__u32 facts; /* enum latency_facts, with LATENCY_FACTS_FIRST */
};

struct kernel_measured;

struct kernel_hit {
	struct hit hit;
	const struct kernel_site *site;
	struct kernel_measured *measured; /* with KERNEL_CALL_HOOKS */
};

/*
 * CALL begins, or has ended and is in the histograms. An object to which that matters sets
 * KERNEL_CALL_HOOKS, and defines what follows of these.
 */
#ifdef KERNEL_CALL_HOOKS
static __always_inline void kernel_call_begun(
	const struct kernel_hit *at, struct abi_open_call *call);
static __always_inline void kernel_call_ended(
	const struct kernel_hit *at, const struct abi_open_call *call, __u64 duration_ns);
#else
static __always_inline void kernel_call_begun(
	const struct kernel_hit *at, struct abi_open_call *call)
{
}

static __always_inline void kernel_call_ended(
	const struct kernel_hit *at, const struct abi_open_call *call, __u64 duration_ns)
{
}
#endif

/*
 * Without a filter, also what no process calls: idle tasks, and what interrupts them. Not inlined:
 * looking up a pid in its namespace is most of each program.
 */
static __noinline bool kernel_wants(const struct hit *hit, struct abi_open_call *ret_call)
{
	const struct go_frame none = {};

	if (latency_wants(hit, &none, ret_call))
		return true;
	if (bpf_get_current_pid_tgid() || latency.by_sets || config.filter_tgids ||
		config.filter_tids || config.filter_comm || config.cgroup_level)
		return false;
	ret_call->tgid = ret_call->tid = 0;
	return true;
}

/* Whether the call that begins is measured; sets CALL. */
static __always_inline bool kernel_call_begins(const struct hit *hit, struct abi_open_call *call)
{
	if (!kernel_wants(hit, call))
		return false;
	latency_count_entry(hit);
	if (!latency_is_chosen(hit)) {
		latency_count(hit, ABI_COUNT_CALLS_UNMEASURED);
		return false;
	}
	call->by = latency_by(hit, call);
	call->thin_shift = hit->function->thin_shift & 31;
	return true;
}

/* Returns whether its return is of interest. */
static __always_inline bool kernel_entry(const struct kernel_hit *at)
{
	const struct hit *hit = &at->hit;
	struct abi_open_call call = {};
	bool open = bpf_map_lookup_elem(&latency_open, &hit->key), begins;

	begins = kernel_call_begins(hit, &call);
	/* It could also be one of the few functions that never return. */
	if (open)
		latency_count(hit, ABI_COUNT_CALLS_MISSED);
	/* The return of a call that is not measured must not find the one before. */
	if (open && !begins)
		bpf_map_delete_elem(&latency_open, &hit->key);
	if (!begins)
		return false;
	kernel_call_begun(at, &call);
	call.start_ns = bpf_ktime_get_ns();
	if (!bpf_map_update_elem(&latency_open, &hit->key, &call, BPF_ANY))
		return true;
	latency_count(hit, ABI_COUNT_CALLS_OPEN_FULL);
	return false;
}

static __always_inline void kernel_return(const struct kernel_hit *at)
{
	const struct hit *hit = &at->hit;
	__u64 duration_ns;
	struct abi_open_call call, *open = bpf_map_lookup_elem(&latency_open, &hit->key);

	if (!open) {
		if (!(hit->function->flags & ABI_LATENCY_THINNED) && kernel_wants(hit, &call))
			latency_count(hit, ABI_COUNT_RETURNS_UNMATCHED);
		return;
	}
	call = *open;
	bpf_map_delete_elem(&latency_open, &hit->key);
	duration_ns = hit->began_ns - call.start_ns;
	if (latency_add(hit, &call, duration_ns))
		kernel_call_ended(at, &call, duration_ns);
}

/* Returns whether, if this is an entry, the return is of interest. */
static __always_inline bool kernel_hit_at(struct kernel_hit *at)
{
	bool wants_return = false;

	at->hit.facts = at->site->facts;
	at->hit.regs = at->site->regs;
	if (!kernel_hit_begins(&at->hit, at->site->cookie))
		return false;
	at->hit.key.depth = at->site->place;
	if (at->site->cookie & ABI_LATENCY_RETURN)
		kernel_return(at);
	else
		wants_return = kernel_entry(at);
	kernel_count_run(&at->hit);
	return wants_return;
}
