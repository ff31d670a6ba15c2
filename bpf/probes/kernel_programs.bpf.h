/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The programs that measure calls of kernel functions: those of kernel_attached.bpf.h and that of
 * sessions.
 */
#include "bpf/probes/kernel_attached.bpf.h"
#include "bpf/probes/kernel_calls.bpf.h"

/* Returns whether, if this is an entry, the return is of interest. */
#ifdef KERNEL_CALL_HOOKS
static __always_inline bool kernel_run(struct kernel_site *site);
#else
static __always_inline bool kernel_run(struct kernel_site *site)
{
	struct kernel_hit at = { .site = site };

	return kernel_hit_at(&at);
}
#endif

/* ---- kprobes -------------------------------------------------------------------------------- */

static __always_inline void kernel_hit_kprobe(bpf_user_pt_regs_t *regs, __u64 cookie)
{
	struct kernel_site site = { .ctx = regs, .regs = regs, .cookie = cookie };

	site.place = kernel_place_of(regs, cookie);
	kernel_run(&site);
}

/* ---- sessions ------------------------------------------------------------------------------- */

#ifdef KERNEL_CALL_HOOKS
/* The open call has more than a session can keep: that keeps its place. */
static __always_inline bool kernel_hit_session(void *ctx, bool is_return, __u64 *kept)
{
	struct kernel_site site = { .ctx = ctx, .regs = ctx, .cookie = bpf_get_attach_cookie(ctx) };

	if (is_return)
		site.cookie |= ABI_LATENCY_RETURN;
	else
		*kept = kernel_place_of(site.regs, site.cookie);
	site.place = *kept;
	return kernel_run(&site);
}
#else
/* What a session keeps for a call: its start and, in the lowest bits, its thin_shift. */
enum { SESSION_SHIFT_BITS = 5 };

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

/* KEPT is the session's memory. Returns whether the return of the call that begins is of interest.
 */
static __always_inline bool kernel_hit_session(void *ctx, bool is_return, __u64 *kept)
{
	struct hit hit = { .regs = ctx };
	bool wants_return = true;

	if (!kernel_hit_begins(&hit, bpf_get_attach_cookie(ctx)))
		return false;
	if (is_return)
		session_return(&hit, *kept);
	else
		wants_return = session_entry(&hit, kept);
	kernel_count_run(&hit);
	return wants_return;
}
#endif

/* At an entry: returns 1 if the return is of no interest. */
SEC("kprobe")
int kernel_in_session(void *ctx)
{
	__u64 *kept = kernel_session_memory(ctx);

	return !kept || !kernel_hit_session(ctx, kernel_session_is_return(ctx), kept);
}

/* ---- trampolines ---------------------------------------------------------------------------- */

/*
 * Not inlined, and without a struct hit: BPF's stack is small, and verifiers before Linux 6.10
 * round each function's part of it up to 32 bytes.
 */
static __noinline int kernel_count_missed(__u64 cookie)
{
	__u32 number = (__u32)cookie;
	struct counters *counters = counters_of_cpu();
	const struct abi_latency_function *function =
		bpf_map_lookup_elem(&latency_functions, &number);

	if (!(cookie & ABI_LATENCY_RETURN) && counters && function &&
		!(function->flags & ABI_LATENCY_ENDED))
		__sync_fetch_and_add(&counters->of[ABI_COUNT_CALLS_MISSED], 1);
	return 0;
}

static __always_inline void kernel_hit_trampoline(void *ctx, __u64 cookie)
{
	struct kernel_site site = { .ctx = ctx, .cookie = cookie };
	__u64 before;

	if (!kernel_guard_take(&before)) {
		kernel_count_missed(cookie);
		return;
	}
	site.place = kernel_address_of(ctx);
	kernel_run(&site);
	kernel_guard_release(before);
}
