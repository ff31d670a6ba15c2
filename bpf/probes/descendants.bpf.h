/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Descendants of the processes that the filter wants, before user space has read of them. Each fork
 * enters them into a map (descendants.bpf.c). One that is not there, since more were begun than the
 * map holds, is found by its ancestors, unless one of these has ended.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/config.bpf.h"
#include "bpf/descendants_map.bpf.h"
#include "bpf/filter.bpf.h"
#include "bpf/kernel_types.h"
#include "bpf/shared.bpf.h"

enum { FOLLOWED_ANCESTORS = 8 /* that user space may not know yet */ };

/* Sets *TASK to its parent. Returns the parent's process, in the agent's pid namespace. */
static __always_inline __u32 descendants_parent(struct task_struct **task)
{
	struct task_struct *leader;

	*task = BPF_CORE_READ(*task, real_parent);
	leader = BPF_CORE_READ(*task, group_leader);
	return config.pidns_level ? pid_in_namespace(leader, config.pidns_inode)
				  : (__u32)BPF_CORE_READ(leader, tgid);
}

/* Another process may have had LEADER's number before. */
static __always_inline bool descendants_have(struct task_struct *leader)
{
	__u32 tgid = BPF_CORE_READ(leader, tgid);
	const __u64 *began_ns = bpf_map_lookup_elem(&descendants, &tgid);

	return began_ns && *began_ns == BPF_CORE_READ(leader, start_time);
}

/*
 * Whether the current process descends from one that the filter wants. A global function, so that
 * the verifier checks it once.
 */
__noinline int descendants_have_current(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (descendants_have(BPF_CORE_READ(task, group_leader)))
		return 1;
	for (int i = 0; i < FOLLOWED_ANCESTORS; i++) {
		__u32 tgid = descendants_parent(&task);

		if (!tgid)
			return 0;
		if (bpf_map_lookup_elem(&tgids, &tgid))
			return 1;
	}
	return 0;
}
