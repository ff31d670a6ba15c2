/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* What an unfinished walk asks of the runtimes: which pieces of which stacks user space needs. */
#include "bpf/runtimes/go_rest.bpf.h"

/*
 * Sets what REST says of the fiber, and where the piece of the other stack is. Returns the bytes of
 * both pieces together that are of use. Go's rules serve all processes: before anything is known of
 * one its stacks betray Go by where they lie.
 */
static __always_inline __u32 runtime_rest(
	struct task_struct *task, struct unwind_walk *walk, struct abi_unwind_rest *rest)
{
	return go_rest(task, walk, rest);
}
