/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The open calls of a task, which are deeper and deeper in its stack, and its tree. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/trace.h"

enum {
	TRACE_SEARCH_STEPS = 18, /* 2 + log2(ABI_TRACE_LEVELS) */
	TRACE_FORGOTTEN = 4, /* calls that have ended, at once */
};

/*
 * Forgets some of the calls that have ended, of which there may be thousands after a panic or an
 * exception, and the task if it has no calls. Each hit of the task goes on with it. TASKS and
 * LEVELS are its maps.
 */
static __always_inline void trace_forget_ended(void *tasks, void *levels,
	const struct abi_trace_task_key *task_key, volatile struct abi_trace_task *task)
{
	struct abi_trace_level_key key = { .task = *task_key };

	for (int i = 0; i < TRACE_FORGOTTEN && task->stored > task->levels; i++) {
		key.level = --task->stored;
		bpf_map_delete_elem(levels, &key);
	}
	if (!task->stored && !task->left_out)
		bpf_map_delete_elem(tasks, task_key);
}

/*
 * The level of the first open call that is at least as deep as DEPTH. LEVELS is the map of open
 * calls, whose values begin with their depth. The bounds are in the task's memory: of variables the
 * verifier would follow all values that they can have.
 */
static __always_inline __u32 trace_search(void *levels, const struct abi_trace_task_key *key,
	volatile struct abi_trace_task *task, __u64 depth)
{
	task->low = 0;
	task->high = task->levels;
	for (int i = 0; i < TRACE_SEARCH_STEPS && task->low < task->high; i++) {
		/* Mostly there is none, or it is the last one. */
		__u32 middle = i ? (task->low + task->high) / 2 : task->high - 1;
		struct abi_trace_level_key at = { .task = *key, .level = middle };
		const __u64 *its_depth = bpf_map_lookup_elem(levels, &at);

		if (its_depth && *its_depth < depth)
			task->low = middle + 1;
		else
			task->high = middle;
	}
	return task->low;
}
