/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The open calls of each task (bpf/abi/trace.h), by level. As a stack grows, each call is deeper in
 * it than its caller. So whatever is as deep as a call that begins, or deeper, has ended without a
 * return: an exception, longjmp, a recovered panic, or a jump to another function.
 *
 * Calls that ended this way may also be less deep: those below a function that was not traced.
 * Where the return address stays on the stack, it shows: the caller's own next calls overwrite it.
 */
#include "bpf/probes/trace_scratch.bpf.h"

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/trace.h"
#include "bpf/probes/latency_calls.bpf.h"
#include "bpf/probes/trace_levels.bpf.h"

enum {
	TRACE_CALLERS_CHECKED = 8, /* at once */
	TRACE_FRAMES_CHECKED = 32, /* and open calls, together */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_TRACE_TASKS);
	__type(key, struct abi_trace_task_key);
	__type(value, struct abi_trace_task);
} trace_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_TRACE_LEVELS);
	__type(key, struct abi_trace_level_key);
	__type(value, struct trace_level);
} trace_levels SEC(".maps");

/* ---- tasks ---------------------------------------------------------------------------------- */

/* A thread handles signals on another stack than its own, if it has one for that. */
static __always_inline __u64 trace_signal_stack(struct task_struct *task, __u64 sp)
{
	__u64 low = TASK_READ(task, sas_ss_sp), size = TASK_READ(task, sas_ss_size);

	return sp - low <= size ? low + size : 0;
}

static __always_inline void trace_identify_task(
	const struct hit *hit, struct abi_trace_task_key *ret_key)
{
	__u64 self = bpf_get_current_pid_tgid();

	*ret_key = (struct abi_trace_task_key){ .tgid = self >> 32 };
	if (hit->frame.g) {
		ret_key->owner = hit->frame.g;
		return;
	}
	ret_key->tid = (__u32)self;
	ret_key->owner = trace_signal_stack(hit->task, hit->sp);
}

static __always_inline __u64 trace_incarnation(const struct hit *hit)
{
	struct task_struct *task = hit->task;

	if (hit->frame.g)
		return hit->frame.goid;
	return TASK_READ(task, start_time) + TASK_READ(task, self_exec_id);
}

/* How deep in its stack a call is: more than the one that called it. */
static __always_inline __u64 trace_depth(const struct hit *hit)
{
	return hit->frame.g ? hit->key.depth : ~hit->sp;
}

/* ---- levels --------------------------------------------------------------------------------- */

static __always_inline struct trace_level *trace_level_at(
	const struct abi_trace_task_key *task, __u32 level)
{
	struct abi_trace_level_key key = { .task = *task, .level = level };

	return bpf_map_lookup_elem(&trace_levels, &key);
}

/* Where the return address of the call at LEVEL is. */
static __always_inline __u64 trace_address(const struct hit *hit, const struct trace_level *level)
{
	return hit->frame.g ? hit->frame.stack.high - level->depth : ~level->depth;
}

/* Whether the return address of the call at LEVEL was overwritten since it began. */
static __always_inline bool trace_is_over(const struct hit *hit, const struct trace_level *level)
{
	__u64 now;

	return level->caller && !read_user(&now, sizeof(now), trace_address(hit, level)) &&
	       now != level->caller;
}

/*
 * Go's functions that call others keep a frame pointer: what has none among the callers' has ended.
 * But what has one need not be there: a recovered panic leaves the frame pointer as it was. Lowers
 * task->low.
 */
static __always_inline void trace_skip_by_frames(const struct hit *hit,
	const struct abi_trace_task_key *key, volatile struct abi_trace_task *task)
{
	__u64 frame = regs_frame_pointer(hit->regs), last = hit->sp;

	for (int i = 0; i < TRACE_FRAMES_CHECKED && task->low; i++) {
		const struct trace_level *level = trace_level_at(key, task->low - 1);
		__u64 its_frame = level ? trace_address(hit, level) - sizeof(__u64) : 0;

		if (!level || frame == its_frame)
			return;
		if (frame <= last || frame >= hit->frame.stack.high)
			return;
		if (frame > its_frame) {
			task->low--;
			continue;
		}
		last = frame;
		if (read_user(&frame, sizeof(frame), frame))
			return;
	}
}

/*
 * What trace_search() has found, or less if the calls just above it have ended as well. Of several
 * only the outermost one's return address may have been overwritten.
 */
static __always_inline __u32 trace_skip_ended(const struct hit *hit,
	const struct abi_trace_task_key *key, volatile struct abi_trace_task *task)
{
	if (!REGS_RETURN_ADDRESS_ON_STACK)
		return task->low;
	if (hit->frame.g)
		trace_skip_by_frames(hit, key, task);
	task->high = task->low;
	for (__u32 i = 1; i <= TRACE_CALLERS_CHECKED && i <= task->low; i++) {
		const struct trace_level *level = trace_level_at(key, task->low - i);

		if (level && trace_is_over(hit, level))
			task->high = task->low - i;
	}
	return task->high;
}
