/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The variables that user space changes while BPF programs run: one map that all objects share
 * (bpf/shared.bpf.h).
 */
#include "bpf/abi/kernel_walk.h"
#include "bpf/abi/sampler.h"

struct abi_shared {
	abi_u32 window; /* from 1 on */
	/* Incremented by user space after it has read the rings. */
	abi_u32 ring_readings;
	/* The current period, since a program's context keeps the first one; 0 = never changed. */
	abi_u64 changed_period;
	struct abi_kernel_tables kernel_tables; /* BPF clears `count` for good on a mismatch */
	/* Incremented from time to time; a slot records the epoch of its last use. */
	abi_u32 unwind_epoch;
	/* Incremented, from 1 on, to drop all cached rules. */
	abi_u32 unwind_rules_epoch;
	/* Incremented whenever the known files change. */
	abi_u32 unwind_files_epoch;
	/* 1 = user space has no room for unfinished walks: BPF finishes all of them. */
	abi_u32 unwind_full;
	/* How many are in `left_out_cgroups`: most of the time none, which saves the lookup. */
	abi_u32 left_out_cgroups;
	abi_u32 unused;
	/*
	 * Bit tgid % ABI_RUNTIME_HINTS is set if such a tgid may be in runtime_processes. Most
	 * processes have no runtime, and a lookup in that map is a cache miss.
	 */
	abi_u64 runtime_hints[ABI_RUNTIME_HINTS / 64];
	/*
	 * The tgids of processes whose samples user space drops, each at tgid % ABI_LEFT_OUT. User
	 * space never loads their tables, so all their walks would be unfinished, and their pieces
	 * of stack would use up the allowance of other processes. A process that another one evicts
	 * from its slot just ships pieces again.
	 */
	abi_u32 left_out[ABI_LEFT_OUT];
};

_Static_assert(sizeof(struct abi_shared) == 16 + 72 + 24 + ABI_RUNTIME_HINTS / 8 + 4 * ABI_LEFT_OUT,
	"the map's layout");
