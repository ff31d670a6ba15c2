/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel_types.h"

/* PSTATE.M is 0 for EL0, with bit 4 set for its 32-bit state. */
static __always_inline bool regs_user_mode(const bpf_user_pt_regs_t *regs)
{
	return (regs->pstate & 0xf) == 0;
}

/*
 * tpidr_el0 as it was saved at the last switch. Threads may write the register themselves; C
 * libraries and Go do so once, before they run anything of interest.
 */
static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.uw.tp_value);
}
