/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Interface for samples: which fiber the thread runs. For each process with a known runtime, user
 * space says how to read that (agent/sampler/runtimes); runtime_read_thread() has a case for each
 * kind.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"
#include "bpf/filter.bpf.h"
#include "bpf/unwind/regs.bpf.h"
#include "bpf/runtimes/go.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/shared.bpf.h"
#include "bpf/stack.bpf.h"

static __always_inline bool runtime_may_have(__u32 tgid)
{
	return shared.runtime_hints[tgid % ABI_RUNTIME_HINTS / 64] >> (tgid % 64) & 1;
}

/*
 * Whether the facts are of the program that was executed last. After an exec they are not, until
 * user space has removed the entry.
 */
static __always_inline bool runtime_is_of(const struct abi_runtime_process *how, __u32 exec_id)
{
	return !how->exec_known || how->exec_id == exec_id;
}

/* Returns false if a pointer could not be followed. */
static __always_inline bool runtime_read_thread(const struct abi_runtime_process *how,
	struct runtime_place place, struct runtime_thread *ret_thread)
{
	switch (how->kind) {
	case ABI_RUNTIME_GO:
		return go_read_thread(&how->go, place, ret_thread);
	default:
		return true;
	}
}

/* Sets the sample's fiber, and what the walk and its facts need of it. */
static __always_inline void runtime_read(const struct capture *t, struct scratch *s)
{
	const struct abi_runtime_process *how = NULL;
	struct runtime_place place;

	s->runtime = (struct runtime_thread){};
	s->walk.sample.fiber_id = 0;
	s->walk.sample.fiber_generation = 0;
	if (config.read_fibers && runtime_may_have(s->walk.sample.tgid))
		how = bpf_map_lookup_elem(&runtime_processes, &s->walk.sample.tgid);
	if (!how || !runtime_is_of(how, s->walk.sample.exec_id))
		return;
	s->walk.sample.fiber_generation = how->generation;
	place.thread_pointer = task_thread_pointer(t->task);
	place.state_register = task_state_register(t->interrupted, t->task);
	if (!runtime_read_thread(how, place, &s->runtime))
		t->counters->of[ABI_COUNT_FIBER_ERROR]++;
	s->walk.sample.fiber_id = s->runtime.fiber_id;
}

/* The fiber counts only if it was read with the facts of the same program as the tables. */
static __always_inline void runtime_begin_walk(struct unwind_walk *walk,
	const struct abi_sample *sample, const struct runtime_thread *thread)
{
	bool same =
		!sample->unwind_generation || sample->unwind_generation == sample->fiber_generation;

	walk->state.runs.address = same ? thread->fiber.address : 0;
	walk->state.runs.thread = thread->fiber.thread;
}
