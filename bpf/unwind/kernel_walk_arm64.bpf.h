/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The kernel walks by frame pointer, which reads no tables: there is nothing to gain. */
#include "bpf/abi/kernel_walk.h"
#include "bpf/scratch.bpf.h"

static __always_inline bool kernel_walk(
	const bpf_user_pt_regs_t *interrupted, const struct unwind_walk *walk, __u32 whose)
{
	return false;
}
