/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * How long calls of user functions take: what runs at the entry and at each return instruction of
 * the probed ones.
 *
 * An entry and a return belong together if they have the same stack pointer, which no other call
 * that is still open can have. So there is no stack of open calls to keep in order: recursion needs
 * nothing special, and calls that never return (exceptions, longjmp, a thread's end) do not disturb
 * others. The next call at the same place replaces them.
 *
 * Go's stacks move while functions run on them, and goroutines change threads, so there the
 * distance from the stack's end identifies a call, together with the goroutine's object. A prologue
 * that finds too little stack, or a request to preempt the goroutine, calls morestack, which starts
 * the function again from its entry: that is the same call. A second entry at the same place can
 * also be a new call, if the first one ended by a panic. Where the index knows where morestack
 * returns to, there is a probe, and what it has seen tells them apart. Elsewhere g.sched does:
 * morestack leaves its caller's pc there, where it stays until the goroutine is suspended in
 * another way, and recovering from a panic does that. As it stays, it proves nothing if the
 * goroutine has restarted another call since this one began; and it does not stay if a signal
 * preempts the goroutine between morestack and the entry. The first restart that is foreseen shows
 * the pc: at the entry, by the same comparison that the prologue is about to make. (Alone, that
 * would not do. The request to preempt may come or be withdrawn in between.)
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/latency.h"
#include "bpf/kernel_types.h"
#include "bpf/probes/latency_cells.bpf.h"
#include "bpf/probes/site_cookie.bpf.h"
#include "bpf/runtimes/go_stack.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

enum {
	RESTART_DISTANCE = 1 << 20 /* bytes in which the call of morestack must be to be learned */
};

/* When a goroutine last restarted a call. */
struct restarts_key {
	__u64 tgid, g;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ABI_LATENCY_RESTARTS);
	__type(key, struct restarts_key);
	__type(value, __u64);
} latency_restarts SEC(".maps");

/* ---- which call ----------------------------------------------------------------------------- */

/* Sets the key of the call whose entry or return this is. Returns false if that is not known. */
static __always_inline bool latency_identify_call(struct hit *hit)
{
	struct runtime_place place;

	hit->sp = regs_stack_pointer(hit->regs);
	hit->key.tgid = bpf_get_current_pid_tgid() >> 32;
	hit->key.owner = 0;
	hit->key.depth = hit->sp;
	hit->frame = (struct go_frame){};
	if (!(hit->function->flags & ABI_LATENCY_FIBER))
		return true;
	place.thread_pointer = task_thread_pointer(hit->task);
	place.state_register = task_state_register(hit->regs, hit->task);
	if (!go_read_frame(&hit->function->go, place, hit->sp, &hit->frame)) {
		latency_count(hit, ABI_COUNT_CALLS_FIBER_ERROR);
		return false;
	}
	if (hit->frame.g) {
		hit->key.owner = hit->frame.g;
		hit->key.depth = hit->frame.stack.high - hit->sp;
	}
	return true;
}

/* ---- entry ---------------------------------------------------------------------------------- */

static __always_inline bool latency_will_restart(const struct hit *hit)
{
	__u32 stack_check = hit->function->stack_check;

	return hit->frame.g && stack_check != ABI_LATENCY_NO_STACK_CHECK &&
	       go_will_restart(&hit->frame, hit->sp, stack_check);
}

/* After a restart of the function it is restart_off. */
static __always_inline __u64 latency_restart_distance(const struct hit *hit)
{
	return hit->frame.stack.sched_pc - regs_pc(hit->regs);
}

/* Whether this entry is OPEN's again. */
static __always_inline bool latency_is_restart(
	const struct hit *hit, const struct abi_open_call *open)
{
	struct restarts_key key = { .tgid = hit->key.tgid, .g = hit->frame.g };
	const __u64 *last_ns;

	if (!hit->frame.g || open->fiber_id != hit->frame.goid)
		return false;
	if (hit->function->flags & ABI_LATENCY_AGAIN_SITE)
		return open->flags & ABI_OPEN_CALL_AGAIN;
	if (!hit->function->restart_off)
		return open->flags & ABI_OPEN_CALL_RESTARTS;
	if (latency_restart_distance(hit) != hit->function->restart_off)
		return false;
	last_ns = bpf_map_lookup_elem(&latency_restarts, &key);
	return !last_ns || *last_ns < open->start_ns || *last_ns == open->restarted_ns;
}

/* OPEN, which is on the stack here, comes to its function's entry next. */
static __always_inline void latency_comes_again(const struct hit *hit, struct abi_open_call *open)
{
	if (hit->frame.g && open->fiber_id == hit->frame.goid)
		open->flags |= ABI_OPEN_CALL_AGAIN;
}

/* OPEN has come to its function's entry again. */
static __always_inline void latency_restarted(
	const struct hit *hit, struct abi_open_call *open, bool restarts)
{
	struct restarts_key key = { .tgid = hit->key.tgid, .g = hit->frame.g };
	__u64 distance = latency_restart_distance(hit);

	bpf_map_update_elem(&latency_restarts, &key, &hit->began_ns, BPF_ANY);
	if (!hit->function->restart_off && distance < RESTART_DISTANCE)
		hit->function->restart_off = (__u32)distance;
	if (!restarts && open->flags & ABI_OPEN_CALL_UNMEASURED) {
		bpf_map_delete_elem(&latency_open, &hit->key);
		return;
	}
	open->restarted_ns = hit->began_ns;
	open->flags &= ABI_OPEN_CALL_UNMEASURED;
	if (restarts)
		open->flags |= ABI_OPEN_CALL_RESTARTS;
}

/*
 * Whether a new call begins at this entry, and is to be stored. OPEN is the last one at the same
 * place that did not return, or NULL. Sets *RET_FLAGS.
 */
static __always_inline bool latency_begins(
	const struct hit *hit, struct abi_open_call *open, __u32 *ret_flags)
{
	bool restarts = latency_will_restart(hit);

	if (open && latency_is_restart(hit, open)) {
		latency_restarted(hit, open, restarts);
		return false;
	}
	if (open)
		latency_count(hit, ABI_COUNT_CALLS_ABANDONED);
	*ret_flags = restarts ? ABI_OPEN_CALL_RESTARTS : 0;
	if (latency_is_chosen(hit))
		return true;
	latency_count(hit, ABI_COUNT_CALLS_UNMEASURED);
	*ret_flags |= ABI_OPEN_CALL_UNMEASURED;
	/* Its return must not find the abandoned call. */
	if (open && !restarts)
		bpf_map_delete_elem(&latency_open, &hit->key);
	return restarts;
}

static __always_inline void latency_entry(struct hit *hit)
{
	struct abi_open_call call = {}, *open;

	if (!latency_identify_call(hit) || !latency_wants(hit, &hit->frame, &call))
		return;
	latency_count_entry(hit);
	open = bpf_map_lookup_elem(&latency_open, &hit->key);
	if (!latency_begins(hit, open, &call.flags))
		return;
	call.fiber_id = hit->frame.g ? hit->frame.goid : 0;
	call.by = latency_by(hit, &call);
	call.thin_shift = hit->function->thin_shift & 31;
	call.start_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&latency_open, &hit->key, &call, BPF_ANY))
		latency_count(hit, ABI_COUNT_CALLS_OPEN_FULL);
}

static __always_inline void latency_again(struct hit *hit)
{
	struct abi_open_call *open;

	if (!latency_identify_call(hit))
		return;
	open = bpf_map_lookup_elem(&latency_open, &hit->key);
	if (open)
		latency_comes_again(hit, open);
}

/* ---- return --------------------------------------------------------------------------------- */

/* A call that has returned. */
struct latency_measured {
	__u64 duration_ns;
	__u64 fiber_id; /* goid; 0 = not in a goroutine */
	__u32 thin_shift; /* it counts as 2^thin_shift calls */
};

/* Returns whether a call was measured. */
static __always_inline bool latency_return(struct hit *hit, struct latency_measured *ret_measured)
{
	struct abi_open_call call, *open;
	bool measured = false;

	if (!latency_identify_call(hit))
		return false;
	open = bpf_map_lookup_elem(&latency_open, &hit->key);
	if (!open) {
		if (!(hit->function->flags & ABI_LATENCY_THINNED) &&
			latency_wants(hit, &hit->frame, &call))
			latency_count(hit, ABI_COUNT_RETURNS_UNMATCHED);
		return false;
	}
	if (!(open->flags & ABI_OPEN_CALL_UNMEASURED)) {
		ret_measured->duration_ns = hit->began_ns - open->start_ns;
		ret_measured->fiber_id = open->fiber_id;
		ret_measured->thin_shift = open->thin_shift;
		measured = latency_add(hit, open, ret_measured->duration_ns);
	}
	bpf_map_delete_elem(&latency_open, &hit->key);
	return measured;
}

/* ---- hits ----------------------------------------------------------------------------------- */

/* FACTS: 0 without LATENCY_FACTS_FIRST. Returns whether a call was measured: this is its return. */
static __always_inline bool latency_hit(
	void *ctx, __u32 facts, struct latency_measured *ret_measured)
{
	struct hit hit = {
		.facts = facts,
		.regs = ctx,
		.task = task_current(),
		.began_ns = bpf_ktime_get_ns(),
	};
	__u64 cookie = site_cookie(ctx, hit.task, latency.cookie_in_path);
	bool measured = false;

	hit.counters = counters_of_cpu();
	hit.key.function = cookie & ABI_LATENCY_NUMBER;
	hit.function = bpf_map_lookup_elem(&latency_functions, &hit.key.function);
	if (!hit.counters || !hit.function)
		return false;
	if (hit.function->flags & ABI_LATENCY_ENDED)
		; /* only the hit counts */
	else if (cookie & ABI_LATENCY_RETURN)
		measured = latency_return(&hit, ret_measured);
	else if (cookie & ABI_LATENCY_AGAIN)
		latency_again(&hit);
	else
		latency_entry(&hit);
	latency_count_run(&hit);
	return measured;
}
