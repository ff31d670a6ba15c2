/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A sample whose process is known and whose walk is finished: what intake passes to the profiles.
 */
#include "agent/sampler/process/processes.h"
#include "agent/sampler/unwind/unwind.h"
#include "bpf/abi/sample.h"

/* All pointers are borrowed for the duration of a call. */
struct attributed_sample {
	struct process *process;
	const struct abi_sample *record; /* head of an abi_tick, abi_switch_out or abi_call */
	/*
	 * The user stack, if it was walked in user space, and the mappings to resolve it with.
	 * NULL: the raw stack that RECORD refers to, with the mappings of PROCESS.
	 */
	const struct unwind_stack *walked;
	const struct mappings *mappings;
};
