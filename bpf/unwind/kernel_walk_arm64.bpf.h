/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Always left to the kernel: it walks by frame pointer, without tables, so nothing is gained. */
#include "bpf/abi/kernel_walk.h"
#include "bpf/scratch.bpf.h"

static __always_inline bool kernel_walk(
	const bpf_user_pt_regs_t *interrupted, const struct unwind_walk *walk)
{
	return false;
}
