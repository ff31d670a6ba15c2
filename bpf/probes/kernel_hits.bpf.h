/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What programs at kernel functions share, whether they measure calls or trace them: where they
 * are, and what keeps them from running on top of each other.
 *
 * These functions are called anywhere: in interrupts, in idle tasks, and by these programs. The
 * kernel lets no program at a kprobe run while another one runs on the same CPU, with preemption
 * disabled; so a call in an interrupt of such a program is missed as a whole, entry and return, and
 * counted by the kernel. For fentry and fexit it only prevents that the same program is entered
 * again: it could miss only one of the two, and programs at many functions could enter each other
 * until the stack is used up. So there is a guard that works in the same way as for kprobes, but
 * only against what comes on top of the same task: another one may run while these are preempted.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/latency.h"
#include "bpf/probes/latency_cells.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

enum {
#if defined(__TARGET_ARCH_x86)
	RETURN_ADDRESS_BYTES = 8, /* the return instruction has taken it from the stack */
#else
	RETURN_ADDRESS_BYTES = 0,
#endif
};

/*
 * The cookie of the function, in a program of its own: user space replaces the number. It must be
 * no valid one.
 */
static __always_inline __u64 kernel_own_cookie(void)
{
	__u64 cookie;

	asm("%0 = %1 ll" : "=r"(cookie) : "i"(ABI_LATENCY_OWN_COOKIE));
	return cookie;
}

static __always_inline bool kernel_hit_begins(struct hit *hit, __u64 cookie)
{
	hit->task = task_current();
	hit->began_ns = bpf_ktime_get_ns();
	hit->key.function = (__u32)cookie;
	hit->counters = counters_of_cpu();
	hit->function = bpf_map_lookup_elem(&latency_functions, &hit->key.function);
	return hit->counters && hit->function && !(hit->function->flags & ABI_LATENCY_ENDED);
}

/* The program ends. Unlike at user functions, no trap of a program led to it. */
static __always_inline void kernel_count_run(const struct hit *hit)
{
	latency_count(hit, ABI_COUNT_KERNEL_HITS);
	latency_count_run(hit);
}

/* POINTER as a number, which older verifiers demand in a key, and all in a difference. */
static __always_inline __u64 kernel_address_of(const void *pointer)
{
	__u64 address;

	asm("%0 = %1\n%0 = -%0\n%0 = -%0" : "=r"(address) : "r"(pointer));
	return address;
}

/* ---- kprobes -------------------------------------------------------------------------------- */

/* The stack pointer, which is the same at a call's entry and at its return. */
static __always_inline __u64 kernel_place_of(bpf_user_pt_regs_t *regs, __u64 cookie)
{
	__u64 sp = regs_stack_pointer(regs);

	return cookie & ABI_LATENCY_RETURN ? sp - RETURN_ADDRESS_BYTES : sp;
}

/* ---- sessions ------------------------------------------------------------------------------- */

/*
 * The two functions of the kernel are called by numbers that stand for them, and that user space
 * replaces: declared as external functions, they would make libbpf read all of the kernel's types,
 * and fail to load the other programs where their signature is another one.
 */
#define SESSION_CALL(function_, ctx_)                                         \
	({                                                                    \
		__u64 result_;                                                \
		asm volatile("r1 = %1\ncall %2\n%0 = r0"                      \
			     : "=r"(result_)                                  \
			     : "r"(ctx_), "i"(function_)                      \
			     : "r0", "r1", "r2", "r3", "r4", "r5", "memory"); \
		result_;                                                      \
	})

/* What the session keeps for the call from its entry to its return; NULL = nothing. */
static __always_inline __u64 *kernel_session_memory(void *ctx)
{
	return (__u64 *)SESSION_CALL(ABI_LATENCY_CALL_SESSION_COOKIE, ctx);
}

static __always_inline bool kernel_session_is_return(void *ctx)
{
	return SESSION_CALL(ABI_LATENCY_CALL_SESSION_IS_RETURN, ctx) & 0xff;
}

/* ---- trampolines ---------------------------------------------------------------------------- */

/* The task that one of the programs at fentry and fexit runs on; 0 = none does. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} kernel_guard SEC(".maps");

/* Returns false if a program runs on this task already, below an interrupt or what it calls. */
static __always_inline bool kernel_guard_take(__u64 *ret_before)
{
	__u64 task = bpf_get_current_task();
	volatile __u64 *guard;
	__u32 zero = 0;

	guard = bpf_map_lookup_elem(&kernel_guard, &zero);
	if (!guard)
		return false;
	*ret_before = *guard;
	if (*ret_before == task)
		return false;
	*guard = task;
	return true;
}

static __always_inline void kernel_guard_release(__u64 before)
{
	__u32 zero = 0;
	volatile __u64 *guard = bpf_map_lookup_elem(&kernel_guard, &zero);

	if (guard)
		*guard = before;
}
