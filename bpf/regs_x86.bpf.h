/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel_types.h"

/* The code segment's privilege level is 3 in user mode. */
static __always_inline bool regs_user_mode(const bpf_user_pt_regs_t *regs)
{
	return (regs->cs & 3) == 3;
}

/* The saved fs base is the current one: threads set it by a system call, which saves it too. */
static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.fsbase);
}
