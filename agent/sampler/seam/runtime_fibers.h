/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What users call fibers, the units of work that a runtime schedules onto threads itself. A
 * runtime's row has its words (agent/sampler/runtimes/runtime.h).
 */
#include <stdbool.h>

#include "bpf/abi/fiber_facts.h"

struct runtime_fibers {
	const char *one, *many; /* e.g. "goroutine", "goroutines" */
	const char *id; /* heads a column of their numbers; at most 10 columns */
	/* What a thread does, by enum abi_fiber_state; NULL = that is not said. */
	const char *states[ABI_FIBER_STATES];
	const char *collects; /* instead of these: the fiber is the garbage collector's */
	const char *idle; /* instead of that of ABI_FIBER_NONE: the thread is about to sleep */
	/*
	 * Why a fiber waits, by what the kernel side says (bpf/abi/fiber_facts.h), not 0. It
	 * returns NULL if that is not known; itself NULL = that is not said.
	 */
	const char *(*wait)(uint32_t wait);
};

/* The words for the fibers of all runtimes: a runtime's own if no other has fibers. */
const struct runtime_fibers *runtime_fibers(void);
/* Whether some runtime calls one of its fibers NAME. */
bool runtime_fibers_are_called(const char *name);
