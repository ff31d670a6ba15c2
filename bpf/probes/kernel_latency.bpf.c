// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long kernel functions take. The programs are as many as there are ways to attach to a kernel
 * function; user space loads those that the kernel has, and uses one. The histograms, the functions
 * and the counters are those of latency.bpf.c (user space reuses its maps).
 *
 * Which return belongs to which entry:
 *
 * - A session of kprobe.multi (Linux 6.10) has memory of its own for each call.
 * - At an entry and at the return by kprobe.multi (5.18) or by kprobes, the stack pointer is the
 *   same (x86_64: but for the return address). Kernel stacks are never shared, so that no other
 * open call on the whole machine has it, whether it is a task's or an interrupt's.
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

char kernel_latency_license[] SEC("license") = "Dual BSD/GPL";

/* What a session keeps for a call: its start and, in the lowest bits, its thin_shift. */
enum { SESSION_SHIFT_BITS = 5 };

/* ---- calls ---------------------------------------------------------------------------------- */

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

static __always_inline void kernel_entry(const struct hit *hit)
{
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
		return;
	call.start_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&latency_open, &hit->key, &call, BPF_ANY))
		latency_count(hit, ABI_COUNT_CALLS_OPEN_FULL);
}

static __always_inline void kernel_return(const struct hit *hit)
{
	struct abi_open_call call, *open = bpf_map_lookup_elem(&latency_open, &hit->key);

	if (!open) {
		if (!(hit->function->flags & ABI_LATENCY_THINNED) && kernel_wants(hit, &call))
			latency_count(hit, ABI_COUNT_RETURNS_UNMATCHED);
		return;
	}
	call = *open;
	bpf_map_delete_elem(&latency_open, &hit->key);
	latency_add(hit, &call, hit->began_ns - call.start_ns);
}

static __always_inline void kernel_hit_at(struct hit *hit, __u64 cookie, __u64 place)
{
	if (!kernel_hit_begins(hit, cookie))
		return;
	hit->key.depth = place;
	if (cookie & ABI_LATENCY_RETURN)
		kernel_return(hit);
	else
		kernel_entry(hit);
	kernel_count_run(hit);
}

/* ---- kprobes -------------------------------------------------------------------------------- */

static __always_inline void kernel_hit_kprobe(bpf_user_pt_regs_t *regs, __u64 cookie)
{
	struct hit hit = { .regs = regs };

	kernel_hit_at(&hit, cookie, kernel_place_of(regs, cookie));
}

/* Each attached program is a copy of this one, with its own cookie. */
SEC("kprobe")
int kernel_at_event(void *ctx)
{
	kernel_hit_kprobe(ctx, kernel_own_cookie());
	return 0;
}

/* For many functions, at their entries (loaded once) and at their returns (loaded again). */
SEC("kprobe")
int kernel_at_entries(void *ctx)
{
	kernel_hit_kprobe(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("kprobe")
int kernel_at_returns(void *ctx)
{
	kernel_hit_kprobe(ctx, bpf_get_attach_cookie(ctx));
	return 0;
}

/* ---- sessions ------------------------------------------------------------------------------- */

static __always_inline bool session_entry(const struct hit *hit, __u64 *kept)
{
	struct abi_open_call call = {};

	if (!kernel_call_begins(hit, &call))
		return false;
	*kept = bpf_ktime_get_ns() << SESSION_SHIFT_BITS | call.thin_shift;
	return true;
}

static __always_inline void session_return(const struct hit *hit, __u64 kept)
{
	struct abi_open_call call = { .thin_shift = kept & ((1 << SESSION_SHIFT_BITS) - 1) };

	kernel_wants(hit, &call);
	call.by = latency_by(hit, &call);
	latency_add(hit, &call, hit->began_ns - (kept >> SESSION_SHIFT_BITS));
}

/* At an entry: returns 1 if the return is of no interest. */
SEC("kprobe")
int kernel_in_session(void *ctx)
{
	struct hit hit = { .regs = ctx };
	__u64 *kept;
	int skip = 0;

	kept = kernel_session_memory(ctx);
	if (!kept || !kernel_hit_begins(&hit, bpf_get_attach_cookie(ctx)))
		return 1;
	if (kernel_session_is_return(ctx))
		session_return(&hit, *kept);
	else
		skip = !session_entry(&hit, kept);
	kernel_count_run(&hit);
	return skip;
}

/* ---- trampolines ---------------------------------------------------------------------------- */

static __always_inline void kernel_hit_trampoline(void *ctx, __u64 cookie)
{
	struct hit hit = {};
	__u64 before;

	if (!kernel_guard_take(&before)) {
		if (!(cookie & ABI_LATENCY_RETURN) && kernel_hit_begins(&hit, cookie))
			latency_count(&hit, ABI_COUNT_CALLS_MISSED);
		return;
	}
	kernel_hit_at(&hit, cookie, kernel_address_of(ctx));
	kernel_guard_release(before);
}

/* Each attached program is a copy of one of these, for its function and with its own cookie. */
SEC("fentry/bpf_fentry_test1")
int kernel_entered(void *ctx)
{
	kernel_hit_trampoline(ctx, kernel_own_cookie());
	return 0;
}

SEC("fexit/bpf_fentry_test1")
int kernel_returned(void *ctx)
{
	kernel_hit_trampoline(ctx, kernel_own_cookie());
	return 0;
}
