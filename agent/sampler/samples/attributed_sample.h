/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A sample whose process is known and whose walk is over: what intake hands to the profiles. */
#include "agent/sampler/process/processes.h"
#include "agent/sampler/unwind/unwind.h"
#include "bpf/abi/sample.h"

/* All is borrowed for the call that it is given to. */
struct attributed_sample {
	struct process *process;
	const struct abi_sample *record; /* head of an abi_tick or an abi_switch_out */
	/*
	 * The user stack that was walked in user space, and the mappings it is resolved with; NULL:
	 * the raw stack that RECORD names, with the mappings of PROCESS.
	 */
	const struct unwind_stack *walked;
	const struct mappings *mappings;
};
