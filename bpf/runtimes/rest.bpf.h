/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Interface for unfinished walks: the pieces of stacks that a runtime's frames need. */
#include "bpf/runtimes/go_rest.bpf.h"

/*
 * Sets the fiber in REST, and where the other stack's piece is. Returns how many bytes of both
 * pieces together are useful. Go's rules serve all processes: before anything is known of a
 * process, a look at where Go keeps the thread's g shows whether it is.
 */
static __always_inline __u32 runtime_rest(
	const struct capture *t, struct unwind_walk *walk, struct abi_unwind_rest *rest)
{
	return go_rest(t, walk, rest);
}
