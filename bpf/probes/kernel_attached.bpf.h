/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The programs at entries and returns of kernel functions; only that of sessions (kprobe.multi) is
 * not among them. They are as many as there are ways to attach to a kernel function; user space
 * loads those that the kernel has, and uses one. What they do is defined by who includes this.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/kernel_hits.bpf.h"

/* The programs that are attached as copies, one for each probe. */
#ifndef KERNEL_SECTION_ENTERED
#define KERNEL_SECTION_ENTERED "fentry/bpf_fentry_test1"
#define KERNEL_SECTION_RETURNED "fexit/bpf_fentry_test1"
#define KERNEL_SECTION_EVENT "kprobe"
#endif

/* Of who includes this. COOKIE says which function it is, and whether this is a return. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal" /* where this header is compiled alone */
static __always_inline void kernel_hit_kprobe(bpf_user_pt_regs_t *regs, __u64 cookie);
static __always_inline void kernel_hit_trampoline(void *ctx, __u64 cookie);
#pragma clang diagnostic pop

/* ---- kprobes -------------------------------------------------------------------------------- */

/* Each attached program is a copy of this one, with its own cookie. */
SEC(KERNEL_SECTION_EVENT)
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

/* ---- trampolines ---------------------------------------------------------------------------- */

/* Each attached program is a copy of one of these, for its function and with its own cookie. */
SEC(KERNEL_SECTION_ENTERED)
int kernel_entered(void *ctx)
{
	kernel_hit_trampoline(ctx, kernel_own_cookie());
	return 0;
}

SEC(KERNEL_SECTION_RETURNED)
int kernel_returned(void *ctx)
{
	kernel_hit_trampoline(ctx, kernel_own_cookie());
	return 0;
}
