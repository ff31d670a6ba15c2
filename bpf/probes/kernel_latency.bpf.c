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
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/latency.h"
#include "bpf/kernel_types.h"
#include "bpf/probes/latency_cells.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

char kernel_latency_license[] SEC("license") = "Dual BSD/GPL";

enum {
#if defined(__TARGET_ARCH_x86)
	RETURN_ADDRESS_BYTES = 8, /* the return instruction has taken it from the stack */
#else
	RETURN_ADDRESS_BYTES = 0,
#endif
	/* What a session keeps for a call: its start and, in the lowest bits, its thin_shift. */
	SESSION_SHIFT_BITS = 5,
};

/* The task that one of the programs at fentry and fexit runs on; 0 = none does. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} kernel_guard SEC(".maps");

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

static __always_inline bool kernel_hit_begins(struct hit *hit, __u64 cookie)
{
	__u32 zero = 0;

	hit->task = task_current();
	hit->began_ns = bpf_ktime_get_ns();
	hit->key.function = (__u32)cookie;
	hit->counters = bpf_map_lookup_elem(&scratches, &zero);
	hit->function = bpf_map_lookup_elem(&latency_functions, &hit->key.function);
	return hit->counters && hit->function && !(hit->function->flags & ABI_LATENCY_ENDED);
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

/* The program ends. Unlike at user functions, no trap of a program led to it. */
static __always_inline void kernel_count_run(const struct hit *hit)
{
	latency_count(hit, ABI_COUNT_KERNEL_HITS);
	latency_count_run(hit);
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
	__u64 sp = regs_stack_pointer(regs);

	kernel_hit_at(&hit, cookie, cookie & ABI_LATENCY_RETURN ? sp - RETURN_ADDRESS_BYTES : sp);
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

	kept = (__u64 *)SESSION_CALL(ABI_LATENCY_CALL_SESSION_COOKIE, ctx);
	if (!kept || !kernel_hit_begins(&hit, bpf_get_attach_cookie(ctx)))
		return 1;
	if (SESSION_CALL(ABI_LATENCY_CALL_SESSION_IS_RETURN, ctx) & 0xff)
		session_return(&hit, *kept);
	else
		skip = !session_entry(&hit, kept);
	kernel_count_run(&hit);
	return skip;
}

/* ---- trampolines ---------------------------------------------------------------------------- */

static __always_inline __u64 kernel_address_of(void *ctx)
{
	__u64 address;

	/* A number, and not a pointer, which older verifiers do not allow in a key. */
	asm("%0 = %1\n%0 = -%0" : "=r"(address) : "r"(ctx));
	return address;
}

static __always_inline void kernel_hit_trampoline(void *ctx, __u64 cookie)
{
	__u64 task = bpf_get_current_task(), before, *guard;
	struct hit hit = {};
	__u32 zero = 0;

	guard = bpf_map_lookup_elem(&kernel_guard, &zero);
	if (!guard)
		return;
	before = *(volatile __u64 *)guard;
	if (before == task) {
		if (!(cookie & ABI_LATENCY_RETURN) && kernel_hit_begins(&hit, cookie))
			latency_count(&hit, ABI_COUNT_CALLS_MISSED);
		return;
	}
	*(volatile __u64 *)guard = task;
	kernel_hit_at(&hit, cookie, kernel_address_of(ctx));
	*(volatile __u64 *)guard = before;
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
