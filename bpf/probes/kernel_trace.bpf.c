// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls of kernel functions as they happen: an event for each entry and each return, as
 * trace.bpf.c writes them for user functions. The ways to attach are those of kernel_latency.bpf.c;
 * functions, settings, counters and the rate are those of trace.bpf.c (user space reuses its maps).
 * The open calls are in maps of their own: these programs may run on top of trace.bpf.c's, even
 * while that changes a map.
 *
 * A task is a thread with all that runs on top of it. As in ftrace's function_graph tracer, what an
 * interrupt calls is below the call that was interrupted. Interrupts have other stacks than
 * threads, anywhere in memory, so a call's depth is the number of its stack before the distance in
 * it: 0 is the thread's own, the others are numbered as they come on top of each other.
 *
 * Where a function ends by jumping to another one, both are at the same place in the stack. As the
 * first one's return address is the kernel's by then, in order to trace its return, it is known to
 * be open yet. As in function_graph, the other one is shown as called by it. (At fentry the traced
 * function is called by a trampoline, so that the other one is deeper in any case.)
 *
 * Of kprobes the kernel follows only so many calls to their return. Where it did not follow one,
 * its return address stays as it was, until another call overwrites it. Which may take long; but it
 * has ended, too, if the thread has left the kernel since.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/trace.h"
#include "bpf/kernel_types.h"
#include "bpf/probes/kernel_attached.bpf.h"
#include "bpf/probes/kernel_hits.bpf.h"
#include "bpf/probes/latency_cells.bpf.h"
#include "bpf/probes/trace_levels.bpf.h"
#include "bpf/probes/trace_rate.bpf.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/regs.bpf.h"

char kernel_trace_license[] SEC("license") = "Dual BSD/GPL";

volatile struct abi_kernel_trace kernel_trace SEC(".data.kernel_trace") = {};

enum {
	DEPTH_BITS = 56, /* above them is the number of the stack */
	DEPTH_UNIT = 8, /* below it is the number of the call among those at the same place */
	STACKS = 16,
	TAIL_CALLS = DEPTH_UNIT - 1,
	CALLERS_CHECKED = 8, /* at once */
	/* In a trampoline: from the context of a program to the traced function's return address.
	 */
	TRAMPOLINE_WORDS = 16,
	/* At a function's start: behind the call of its trampoline. */
	PATCHED_BYTES = 16,
#if defined(__TARGET_ARCH_x86)
	CALLER_WORDS = 1, /* from that return address to its caller's */
#else
	CALLER_WORDS = 2,
#endif
};

/* An open call. */
struct kernel_level {
	__u64 depth;
	__u16 function;
	__u16 mark; /* kernel_mark() */
	/* Low half of the return address, if that is at the call's place; 0 = it is not. */
	__u32 caller;
};

_Static_assert(ABI_LATENCY_FUNCTIONS <= 1 << 16, "a function's number fits");

/* Above the low half of each address of the kernel's code and of its modules' (x86_64). */
static const __u64 CODE_HIGH = 0xffffffff00000000;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_TRACE_TASKS);
	__type(key, struct abi_trace_task_key);
	__type(value, struct abi_trace_task);
} kernel_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_TRACE_LEVELS);
	__type(key, struct abi_trace_level_key);
	__type(value, struct kernel_level);
} kernel_levels SEC(".maps");

/* A thread at an entry or a return. */
struct kernel_call {
	struct hit *hit;
	struct abi_trace_task_key key;
	struct abi_trace_task *task;
	__u64 place; /* in the stack: the stack pointer, or the address of the context */
	__u64 depth;
	__u64 caller; /* of an entry: the return address, 0 = not known */
	bool caller_is_at_place;
};

/* ---- output --------------------------------------------------------------------------------- */

/* Writes an event of CALL's tree. Not inlined: it is most of each program. */
static __noinline void kernel_write(
	const struct kernel_call *call, __u32 what, __u32 level, __u64 time_ns)
{
	struct abi_trace_task *task = call->task;
	struct abi_trace_event event = {
		.kind = ABI_TRACE,
		.what = what,
		.time_ns = time_ns,
		.tree = task->tree,
		.task = call->key,
		.function = what == ABI_TRACE_END ? task->root : call->hit->key.function,
		.level = level,
		.sequence = task->sequence++,
		.flags = task->flags | ABI_TRACE_KERNEL,
	};
	long error;

	if (what == ABI_TRACE_ENTRY) {
		event.caller = call->caller;
		if (call->depth >> DEPTH_BITS)
			event.flags |= ABI_TRACE_INTERRUPT;
	}
	identify_pids(call->hit->task, &event.tgid, &event.tid);
	error = bpf_perf_event_output(
		call->hit->regs, &output, BPF_F_CURRENT_CPU, &event, sizeof(event));
	trace_count_event(call->hit->began_ns);
	if (error)
		latency_count(call->hit,
			error == ERROR_NO_SPACE ? ABI_COUNT_OUTPUT_FULL : ABI_COUNT_OUTPUT_ERROR);
}

/* The task's tree is over, and nobody has heard that its root did not return. */
static __always_inline void kernel_end_tree(const struct kernel_call *call, bool task_ended)
{
	if (!call->task->levels)
		return;
	if (task_ended)
		call->task->flags |= ABI_TRACE_TASK_ENDED;
	kernel_write(call, ABI_TRACE_END, 0, call->hit->began_ns);
	call->task->levels = 0;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

static __always_inline void kernel_name_task(const struct kernel_call *call)
{
	__u32 tgid, tid;

	identify_pids(call->hit->task, &tgid, &tid);
	call->task->tgid = tgid;
	call->task->tid = tid;
}

/* Not inlined, as others here: BPF's stack is small. */
static __noinline int kernel_add_task(const struct kernel_call *call)
{
	const struct abi_trace_task fresh = {};

	return (int)bpf_map_update_elem(&kernel_tasks, &call->key, &fresh, BPF_NOEXIST);
}

/* Finds the task; MAKE: there is one from now on. Returns false if there is none. */
static __always_inline bool kernel_find_task(struct kernel_call *call, bool make)
{
	struct task_struct *task = call->hit->task;
	__u64 self = bpf_get_current_pid_tgid(), began = TASK_READ(task, start_time);

	call->key = (struct abi_trace_task_key){
		.tgid = self >> 32, .tid = (__u32)self, .owner = ABI_TRACE_OWNER_KERNEL
	};
	call->task = bpf_map_lookup_elem(&kernel_tasks, &call->key);
	if (!call->task && make) {
		kernel_add_task(call);
		call->task = bpf_map_lookup_elem(&kernel_tasks, &call->key);
	}
	if (!call->task)
		return false;
	if (call->task->incarnation != began) {
		kernel_end_tree(call, true);
		call->task->incarnation = began;
		call->task->left_out = 0;
		call->task->levels = 0;
		call->task->flags = 0;
		kernel_name_task(call);
	}
	return true;
}

static __always_inline const struct kernel_level *kernel_level_at(
	const struct kernel_call *call, __u32 level)
{
	struct abi_trace_level_key key = { .task = call->key, .level = level };

	return bpf_map_lookup_elem(&kernel_levels, &key);
}

static __always_inline __u32 kernel_search(const struct kernel_call *call, __u64 depth)
{
	return trace_search(&kernel_levels, &call->key, call->task, depth);
}

/* ---- depths --------------------------------------------------------------------------------- */

static __always_inline bool kernel_is_on_task_stack(const struct kernel_call *call)
{
	struct task_struct *task = call->hit->task;
	__u64 bottom = kernel_address_of(TASK_READ(task, stack));
	__u64 top = kernel_address_of(task_user_regs(task));

	return call->place - bottom <= top - bottom;
}

/* The number of the stack, which is not the thread's own, at DISTANCE in it. */
static __always_inline __u64 kernel_stack_number(const struct kernel_call *call, __u64 distance)
{
	const struct kernel_level *top =
		call->task->levels ? kernel_level_at(call, call->task->levels - 1) : NULL;
	__u64 number = top ? top->depth >> DEPTH_BITS : 0;
	__u64 away;

	if (!number)
		return 1;
	away = (top->depth & ((1ULL << DEPTH_BITS) - 1)) - distance;
	if (away + KERNEL_STACK_BYTES >= 2 * KERNEL_STACK_BYTES)
		number++;
	return number < STACKS ? number : STACKS - 1;
}

/* Sets the depth, as that of the first call at its place. */
static __always_inline void kernel_find_depth(struct kernel_call *call)
{
	__u64 distance = ~call->place & ((1ULL << DEPTH_BITS) - DEPTH_UNIT);
	__u64 number = kernel_is_on_task_stack(call) ? 0 : kernel_stack_number(call, distance);

	call->depth = number << DEPTH_BITS | distance;
}

static __always_inline bool kernel_is_trampoline(__u64 kaddr)
{
	for (int i = 0; i < ABI_TRACE_TRAMPOLINES; i++)
		if (kaddr && kaddr == kernel_trace.trampolines[i])
			return true;
	return false;
}

/* Where the first call at DEPTH has been: the reverse of kernel_find_depth(). */
static __always_inline __u64 kernel_place_at(__u64 depth)
{
	return ~(depth | TAIL_CALLS) | ~((1ULL << DEPTH_BITS) - 1);
}

/*
 * Mostly another number each time that the thread enters the kernel: of the program's registers,
 * which are saved then. They also change in execve().
 */
static __noinline __u32 kernel_mark(const struct kernel_call *call)
{
	__u64 mark = 0;
#if defined(__TARGET_ARCH_x86)
	const struct pt_regs *regs = task_user_regs(call->hit->task);
	__u64 words[5] = {}; /* the system call's number, rip, cs, eflags, rsp */

	bpf_probe_read_kernel(words, sizeof(words), &regs->orig_rax);
	mark = (words[0] * 31 + words[1]) * 31 + words[4];
	mark ^= mark >> 32;
	mark ^= mark >> 16;
#endif
	return mark & 0xffff;
}

/*
 * Whether the call at LEVEL has ended, whose return address the kernel has not replaced in order to
 * show its return.
 */
static __always_inline bool kernel_is_over(
	const struct kernel_call *call, const struct kernel_level *level)
{
	__u64 now;

	if (!level->caller ||
		bpf_probe_read_kernel(
			&now, sizeof(now), (const void *)kernel_place_at(level->depth)) ||
		kernel_is_trampoline(now))
		return false;
	return now != (CODE_HIGH | level->caller) || level->mark != kernel_mark(call);
}

/*
 * LEVEL, or less if calls above it have ended without a return. Of several only the outermost one's
 * return address may have been overwritten.
 */
static __noinline __u32 kernel_skip_ended(const struct kernel_call *call, __u32 level)
{
	__u32 ended = level;

	for (__u32 i = 1; i <= CALLERS_CHECKED && i <= level; i++) {
		const struct kernel_level *above = kernel_level_at(call, level - i);

		if (above && kernel_is_over(call, above))
			ended = level - i;
	}
	return ended;
}

/*
 * The level at which the call begins. It is deeper in the stack than those before it, or as deep
 * as one that has jumped to it: then its depth is set.
 */
static __always_inline __u32 kernel_find_level(struct kernel_call *call)
{
	__u32 level = kernel_search(call, call->depth);
	const struct kernel_level *before;

	if (level >= call->task->levels || !kernel_is_trampoline(call->caller))
		return level;
	level = kernel_search(call, call->depth + DEPTH_UNIT);
	before = level ? kernel_level_at(call, level - 1) : NULL;
	if (!before || (before->depth ^ call->depth) >= DEPTH_UNIT)
		return level;
	if ((before->depth & TAIL_CALLS) == TAIL_CALLS)
		return level - 1;
	call->depth = before->depth + 1;
	return level;
}

/* ---- entry ---------------------------------------------------------------------------------- */

/* Not inlined: looking up a pid in its namespace is much of each program. */
static __noinline bool kernel_wants(const struct hit *hit)
{
	const struct go_frame none = {};
	struct abi_open_call call = {};

	return latency_wants(hit, &none, &call);
}

/* Whether this is in a tree that is left out. */
static __always_inline bool kernel_is_left_out(const struct kernel_call *call)
{
	struct abi_trace_task *task = call->task;

	if (!task->left_out)
		return false;
	if (call->depth > task->left_out_depth)
		return true;
	task->left_out = 0;
	return false;
}

enum kernel_begins {
	KERNEL_BEGINS_TREE,
	KERNEL_IS_NO_ROOT,
	KERNEL_LEAVES_TREE_OUT,
};

/* The call is in no tree: whether it begins one. */
static __always_inline enum kernel_begins kernel_begins_tree(const struct kernel_call *call)
{
	struct abi_trace_task *task = call->task;

	if (trace.drilldown && !(call->hit->function->flags & ABI_LATENCY_ROOT))
		return KERNEL_IS_NO_ROOT;
	if (!trace_has_room(call->hit->began_ns)) {
		task->left_out = call->hit->key.function + 1;
		task->left_out_depth = call->depth;
		latency_count(call->hit, ABI_COUNT_CALLS_UNMEASURED);
		return KERNEL_LEAVES_TREE_OUT;
	}
	task->tree = trace_new_tree(true);
	task->root = call->hit->key.function;
	task->sequence = 0;
	task->flags = 0;
	return KERNEL_BEGINS_TREE;
}

static __always_inline bool kernel_begin_call(struct kernel_call *call, __u32 level)
{
	struct abi_trace_level_key key = { .task = call->key, .level = level };
	struct kernel_level value = {
		.depth = call->depth,
		.function = (__u16)call->hit->key.function,
	};

	if (call->depth & TAIL_CALLS || kernel_is_trampoline(call->caller))
		call->caller = 0;
	if (call->caller_is_at_place) {
		value.caller = (__u32)call->caller;
		value.mark = (__u16)kernel_mark(call);
	}
	if (bpf_map_update_elem(&kernel_levels, &key, &value, BPF_ANY)) {
		latency_count(call->hit, ABI_COUNT_CALLS_OPEN_FULL);
		call->task->flags |= ABI_TRACE_INCOMPLETE;
		return false;
	}
	call->task->levels = level + 1;
	if (call->task->stored <= level)
		call->task->stored = level + 1;
	latency_count(call->hit, ABI_COUNT_CALLS);
	kernel_write(call, ABI_TRACE_ENTRY, level, bpf_ktime_get_ns());
	return true;
}

/* As kernel_entry(), for a call whose task is known. */
static __always_inline bool kernel_enter(struct kernel_call *call)
{
	enum kernel_begins begins;
	__u32 level;

	kernel_find_depth(call);
	if (kernel_is_left_out(call))
		return false;
	level = kernel_find_level(call);
	if (REGS_RETURN_ADDRESS_ON_STACK)
		level = kernel_skip_ended(call, level);
	if (!level) {
		kernel_end_tree(call, false);
		begins = kernel_begins_tree(call);
		if (begins != KERNEL_BEGINS_TREE)
			return begins == KERNEL_LEAVES_TREE_OUT;
	}
	if (level < call->task->levels)
		call->task->levels = level;
	if (trace.max_depth && level >= trace.max_depth)
		return false;
	return kernel_begin_call(call, level);
}

static __noinline int kernel_forget_ended(const struct kernel_call *call)
{
	trace_forget_ended(&kernel_tasks, &kernel_levels, &call->key, call->task);
	return 0;
}

/* Returns whether the call's return is of interest. */
static __noinline bool kernel_entry(struct kernel_call *call)
{
	bool wants_return;

	latency_count_entry(call->hit);
	if (!kernel_find_task(call, true)) {
		latency_count(call->hit, ABI_COUNT_CALLS_OPEN_FULL);
		return false;
	}
	wants_return = kernel_enter(call);
	kernel_forget_ended(call);
	return wants_return;
}

/* ---- return --------------------------------------------------------------------------------- */

/* The level of the call that returns, of those at its place the last one; ABI_TRACE_LEVELS = none.
 */
static __always_inline __u32 kernel_find_returning(const struct kernel_call *call)
{
	__u32 above = kernel_search(call, (call->depth | TAIL_CALLS) + 1);

	for (__u32 i = 1; i <= DEPTH_UNIT && i <= above; i++) {
		const struct kernel_level *level = kernel_level_at(call, above - i);

		if (!level || (level->depth ^ call->depth) >= DEPTH_UNIT)
			break;
		if (level->function == call->hit->key.function)
			return above - i;
	}
	return ABI_TRACE_LEVELS;
}

/* A return whose entry is in no tree. */
static __always_inline void kernel_unmatched(const struct kernel_call *call)
{
	const struct abi_trace_task *task = call->task;

	if (trace.drilldown || (task && trace.max_depth && task->levels >= trace.max_depth))
		return;
	if (kernel_wants(call->hit))
		latency_count(call->hit, ABI_COUNT_RETURNS_UNMATCHED);
}

/* As kernel_return(), for a call whose task is known. */
static __always_inline void kernel_leave(struct kernel_call *call)
{
	struct abi_trace_task *task = call->task;
	__u32 level;

	kernel_find_depth(call);
	if (task->left_out && call->depth == task->left_out_depth &&
		task->left_out == call->hit->key.function + 1) {
		task->left_out = 0;
		return;
	}
	if (kernel_is_left_out(call))
		return;
	level = kernel_find_returning(call);
	if (level >= ABI_TRACE_LEVELS) {
		kernel_unmatched(call);
		return;
	}
	task->levels = level;
	kernel_write(call, ABI_TRACE_RETURN, level, call->hit->began_ns);
}

static __noinline int kernel_return(struct kernel_call *call)
{
	if (!kernel_find_task(call, false)) {
		kernel_unmatched(call);
		return 0;
	}
	kernel_leave(call);
	kernel_forget_ended(call);
	return 0;
}

/* ---- kprobes -------------------------------------------------------------------------------- */

/* Finds the caller of a call that begins. */
static __always_inline void kernel_find_caller(struct kernel_call *call, bpf_user_pt_regs_t *regs)
{
#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(&call->caller, sizeof(call->caller), (const void *)call->place);
	call->caller_is_at_place = true;
#else
	call->caller = regs->regs[30];
#endif
}

static __always_inline void kernel_hit_kprobe(bpf_user_pt_regs_t *regs, __u64 cookie)
{
	struct hit hit = { .regs = regs };
	struct kernel_call call = { .hit = &hit };

	if (!kernel_trace.on || !kernel_hit_begins(&hit, cookie))
		return;
	call.place = kernel_place_of(regs, cookie);
	if (cookie & ABI_LATENCY_RETURN) {
		kernel_return(&call);
	} else if (kernel_wants(&hit)) {
		kernel_find_caller(&call, regs);
		kernel_entry(&call);
	}
	kernel_count_run(&hit);
}

/*
 * At an entry: returns 1 if the return is of no interest. The session keeps the place: at a return
 * the registers may not have it.
 */
SEC("kprobe")
int kernel_in_session(void *ctx)
{
	struct hit hit = { .regs = ctx };
	struct kernel_call call = { .hit = &hit };
	__u64 *kept = kernel_session_memory(ctx);
	int skip = 0;

	if (!kept || !kernel_trace.on || !kernel_hit_begins(&hit, bpf_get_attach_cookie(ctx)))
		return 1;
	if (kernel_session_is_return(ctx)) {
		call.place = *kept;
		kernel_return(&call);
	} else if (kernel_wants(&hit)) {
		call.place = *kept = kernel_place_of(ctx, 0);
		kernel_find_caller(&call, ctx);
		skip = !kernel_entry(&call);
	} else {
		skip = 1;
	}
	kernel_count_run(&hit);
	return skip;
}

/* ---- trampolines ---------------------------------------------------------------------------- */

/*
 * The caller of the function at KADDR. A trampoline's frame lies below two return addresses, one in
 * the function and its caller's. Where it is near the stack's beginning, there are fewer words.
 */
static __noinline __u64 kernel_caller_of_trampoline(__u64 context, __u64 kaddr)
{
	__u64 words[TRAMPOLINE_WORDS + CALLER_WORDS] = {};
	const void *from = (const void *)context;

	if (!kaddr || (bpf_probe_read_kernel(words, sizeof(words), from) &&
			      bpf_probe_read_kernel(words, sizeof(words) / 2, from)))
		return 0;
#pragma unroll
	for (int i = 0; i < TRAMPOLINE_WORDS; i++)
		if (words[i] - kaddr - 1 < PATCHED_BYTES)
			return words[i + CALLER_WORDS];
	return 0;
}

static __always_inline void kernel_hit_guarded(void *ctx, struct kernel_call *call, __u64 cookie)
{
	struct hit *hit = call->hit;

	if (!kernel_hit_begins(hit, cookie))
		return;
	call->place = kernel_address_of(ctx);
	if (cookie & ABI_LATENCY_RETURN) {
		kernel_return(call);
	} else if (kernel_wants(hit)) {
		call->caller = kernel_caller_of_trampoline(call->place, hit->function->kaddr);
		kernel_entry(call);
	}
	kernel_count_run(hit);
}

static __always_inline void kernel_hit_trampoline(void *ctx, __u64 cookie)
{
	struct hit hit = { .regs = ctx };
	struct kernel_call call = { .hit = &hit };
	__u64 before;

	if (!kernel_trace.on)
		return;
	if (!kernel_guard_take(&before)) {
		if (!(cookie & ABI_LATENCY_RETURN) && kernel_hit_begins(&hit, cookie))
			latency_count(&hit, ABI_COUNT_CALLS_MISSED);
		return;
	}
	kernel_hit_guarded(ctx, &call, cookie);
	kernel_guard_release(before);
}
