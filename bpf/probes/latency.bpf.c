// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long functions take: runs at the entry and at each return instruction of the probed ones.
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
 * also be a new call, if the first one ended by a panic. What tells them apart is g.sched:
 * morestack leaves its caller's pc there, where it stays until the goroutine is suspended in
 * another way, and recovering from a panic does that. As it stays, it proves nothing if the
 * goroutine has restarted another call since this one began. Which pc it is, user space says. If it
 * does not know, the first restart shows it that is foreseen: at the entry, by the same comparison
 * that the prologue is about to make. (Alone, that would not do. The request to preempt may come or
 * be withdrawn in between.)
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
#include "bpf/kernel_types.h"
#include "bpf/filter.bpf.h"
#include "bpf/runtimes/go_stack.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

char latency_license[] SEC("license") = "Dual BSD/GPL";

enum {
	RESTART_DISTANCE = 1 << 20 /* bytes in which the call of morestack must be to be learned */
};

const volatile struct abi_latency_config latency SEC(".rodata.probe") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_LATENCY_FUNCTIONS);
	__type(key, __u32);
	__type(value, struct abi_latency_function);
} latency_functions SEC(".maps");

/* By function, the calls that began in wanted processes. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_LATENCY_FUNCTIONS);
	__type(key, __u32);
	__type(value, __u64);
} latency_entries SEC(".maps");

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

/* The other probes' scratch memory begins with the counters; this one needs no more. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} scratches SEC(".maps");

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

static __always_inline void latency_count(const struct hit *hit, enum abi_counter counter)
{
	__sync_fetch_and_add(&hit->counters->of[counter], 1);
}

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

/* Only the filters that are set cost anything. */
static __always_inline bool latency_wants(
	const struct hit *hit, const struct go_frame *frame, struct abi_open_call *ret_call)
{
	struct task_struct *task = hit->task;
	struct abi_sample sample;

	identify(task, &sample);
	if (config.filter_comm)
		task_comm(task, sample.comm);
	if (!wanted(task, &sample) || (config.fiber_id && frame->goid != config.fiber_id))
		return false;
	ret_call->tgid = sample.tgid;
	ret_call->tid = sample.tid;
	return true;
}

static __always_inline __u64 latency_by(const struct hit *hit, const struct abi_open_call *call)
{
	switch (latency.by) {
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

/* ---- entry ---------------------------------------------------------------------------------- */

static __always_inline bool latency_is_chosen(const struct hit *hit)
{
	__u32 shift = hit->function->thin_shift & 31;

	return !shift || !(bpf_get_prandom_u32() & ((1U << shift) - 1));
}

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
	if (!hit->function->restart_off)
		return open->flags & ABI_OPEN_CALL_RESTARTS;
	if (latency_restart_distance(hit) != hit->function->restart_off)
		return false;
	last_ns = bpf_map_lookup_elem(&latency_restarts, &key);
	return !last_ns || *last_ns < open->start_ns || *last_ns == open->restarted_ns;
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
	__u64 *entries;

	if (!latency_identify_call(hit) || !latency_wants(hit, &hit->frame, &call))
		return;
	entries = bpf_map_lookup_elem(&latency_entries, &hit->key.function);
	if (entries)
		__sync_fetch_and_add(entries, 1);
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

/* ---- return --------------------------------------------------------------------------------- */

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

static __always_inline void latency_add(
	const struct hit *hit, const struct abi_open_call *call, __u64 duration_ns)
{
	struct abi_latency_cell_key key = {
		.function = hit->key.function,
		.bucket = abi_latency_bucket(duration_ns),
		.by = call->by,
	};
	struct abi_latency_cell *cell = latency_cell_of(&key);

	if (!cell) {
		latency_count(hit, ABI_COUNT_CALLS_CELLS_FULL);
		return;
	}
	latency_count(hit, ABI_COUNT_CALLS);
	__sync_fetch_and_add(&cell->count, 1ULL << (call->thin_shift & 31));
	__sync_fetch_and_add(&cell->sum_ns, duration_ns << (call->thin_shift & 31));
	if (duration_ns > cell->max_ns)
		cell->max_ns = duration_ns;
}

static __always_inline void latency_return(struct hit *hit)
{
	struct abi_open_call call, *open;

	if (!latency_identify_call(hit))
		return;
	open = bpf_map_lookup_elem(&latency_open, &hit->key);
	if (!open) {
		if (!(hit->function->flags & ABI_LATENCY_THINNED) &&
			latency_wants(hit, &hit->frame, &call))
			latency_count(hit, ABI_COUNT_RETURNS_UNMATCHED);
		return;
	}
	call = *open;
	bpf_map_delete_elem(&latency_open, &hit->key);
	if (!(call.flags & ABI_OPEN_CALL_UNMEASURED))
		latency_add(hit, &call, hit->began_ns - call.start_ns);
}

/* ---- programs ------------------------------------------------------------------------------- */

/* Linux 5.15; without, the probe is not attached. */
static __always_inline __u64 latency_cookie(void *ctx)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return 0;
	return bpf_get_attach_cookie(ctx);
}

static __always_inline int latency_hit(void *ctx)
{
	struct hit hit = {
		.regs = ctx,
		.task = task_current(),
		.began_ns = bpf_ktime_get_ns(),
	};
	__u64 cookie = latency_cookie(ctx);
	__u32 zero = 0;

	hit.counters = bpf_map_lookup_elem(&scratches, &zero);
	hit.key.function = (__u32)cookie;
	hit.function = bpf_map_lookup_elem(&latency_functions, &hit.key.function);
	if (!hit.counters || !hit.function)
		return 0;
	if (cookie & ABI_LATENCY_RETURN)
		latency_return(&hit);
	else
		latency_entry(&hit);
	latency_count(&hit, ABI_COUNT_RUNS);
	__sync_fetch_and_add(
		&hit.counters->of[ABI_COUNT_RUN_NS], bpf_ktime_get_ns() - hit.began_ns);
	return 0;
}

/* Only one of the two is loaded: for a link to many sites, if the kernel has that (6.6). */
SEC("uprobe")
int latency_at_sites(void *ctx)
{
	return latency_hit(ctx);
}

SEC("uprobe")
int latency_at_site(void *ctx)
{
	return latency_hit(ctx);
}
