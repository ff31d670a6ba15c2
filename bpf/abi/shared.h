/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The variables that user space changes while BPF programs run: one map, shared by all objects
 * (bpf/shared.bpf.h).
 */
#include "bpf/abi/kernel_walk.h"
#include "bpf/abi/sampler.h"

struct abi_shared {
	abi_u32 window; /* from 1 on */
	/* Incremented by user space whenever it has read the rings. */
	abi_u32 ring_readings;
	/* The period since it was changed, as a program's context keeps the first one; 0 = it was
	 * not. */
	abi_u64 changed_period;
	struct abi_kernel_tables kernel_tables; /* BPF sets its `count` back to 0, for good */
	/* Incremented from time to time; slots remember the epoch they were used in last. */
	abi_u32 unwind_epoch;
	/* Incremented, from 1 on, to drop all cached rules. */
	abi_u32 unwind_rules_turn;
	/* Incremented whenever what is known of files has changed. */
	abi_u32 unwind_files_turn;
	/* 1: user space can take in no more, and no walk is left to it. */
	abi_u32 unwind_full;
	/*
	 * Bits: which tgids, modulo their number, may be in runtime_processes. A lookup there finds
	 * memory that is not in the caches, and most processes have no runtime.
	 */
	abi_u64 runtime_hints[ABI_RUNTIME_HINTS / 64];
	/*
	 * The tgids of processes whose samples user space drops, each at its number modulo the
	 * length: it learns nothing of their modules, so each of their walks would be left to it,
	 * with a piece of stack that takes the others' allowance. A process that has lost its place
	 * to another only gets the pieces back.
	 */
	abi_u32 left_out[ABI_LEFT_OUT];
};

_Static_assert(sizeof(struct abi_shared) == 16 + 72 + 16 + ABI_RUNTIME_HINTS / 8 + 4 * ABI_LEFT_OUT,
	"the map's layout");
