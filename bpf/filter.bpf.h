/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Identifies the current thread in the agent's pid namespace and applies the filters, before any
 * stack is walked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"
#include "bpf/config.bpf.h"
#include "bpf/kernel_types.h"
#include "bpf/shared.bpf.h"
#include "bpf/task.bpf.h"

enum {
	PID_NAMESPACE_LEVELS = 32, /* MAX_PID_NS_LEVEL */
	TASK_IS_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD */
	/* PF_IO_WORKER, and PF_USER_WORKER (6.4), a bit with another meaning before 5.18. */
	TASK_MAY_BE_WORKER = 0x00004010,
};

/* TASK's pid in the pid namespace with this inode, 0 if it is not visible there. */
static __always_inline __u32 pid_in_namespace(struct task_struct *task, __u32 inode)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	void *numbers = __builtin_preserve_access_index(&pid->numbers[0]);

	/* Innermost first: an agent in a container mostly samples its own namespace. */
	for (__u32 i = 0; i < PID_NAMESPACE_LEVELS; i++) {
		struct upid *number = numbers + level * bpf_core_type_size(struct upid);

		if (BPF_CORE_READ(number, ns, ns.inum) == inode)
			return BPF_CORE_READ(number, nr);
		if (level-- == 0)
			return 0;
	}
	return 0;
}

/* Not bpf_get_ns_current_pid_tgid(): it fails for tasks in namespaces below the agent's. */
static __always_inline void identify_pids(struct task_struct *task, __u32 *ret_tgid, __u32 *ret_tid)
{
	if (config.pidns_level) {
		struct task_struct *leader = TASK_READ(task, group_leader);

		*ret_tgid = pid_in_namespace(leader, config.pidns_inode);
		*ret_tid = pid_in_namespace(task, config.pidns_inode);
	} else if (task_is_typed()) {
		*ret_tgid = task->tgid;
		*ret_tid = task->pid;
	} else {
		__u64 pid_tgid = bpf_get_current_pid_tgid();

		*ret_tgid = pid_tgid >> 32;
		*ret_tid = (__u32)pid_tgid;
	}
}

static __always_inline void identify(struct task_struct *task, struct abi_sample *sample)
{
	identify_pids(task, &sample->tgid, &sample->tid);
}

static __always_inline __u64 ancestor_cgroup_id(struct task_struct *task, int level)
{
	struct cgroup *cgroup = NULL;
	__u64 id = 0;

	/* Kernels with this field do not let a sampling program call the helper. */
	if (!bpf_core_field_exists(cgroup->ancestor_ids))
		return bpf_get_current_ancestor_cgroup_id(level);
	cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	if (BPF_CORE_READ(cgroup, level) < level)
		return 0;
	bpf_probe_read_kernel(&id, sizeof(id),
		(__u64 *)__builtin_preserve_access_index(&cgroup->ancestor_ids[0]) + level);
	return id;
}

static __always_inline bool comm_wanted(const char *comm)
{
	for (int i = 0; i < ABI_COMM_BYTES; i++) {
		if (comm[i] != config.comm[i])
			return false;
		if (!comm[i])
			return true;
	}
	return true;
}

/* A tgid of 0 is the idle task, or one that is not visible in the agent's pid namespace. */
static __always_inline bool wanted_ids(
	struct task_struct *task, const __u32 *tgid, const __u32 *tid)
{
	if (!*tgid || (config.self_tgid && *tgid == config.self_tgid))
		return false;
	if (config.filter_tgids && !bpf_map_lookup_elem(&tgids, tgid))
		return false;
	if (config.filter_tids && !bpf_map_lookup_elem(&tids, tid))
		return false;
	if (config.cgroup_level &&
		ancestor_cgroup_id(task, config.cgroup_level - 1) != config.cgroup_id)
		return false;
	return true;
}

static __always_inline bool cgroup_is_left_out(struct task_struct *task)
{
	__u64 id;

	if (!config.choose_cgroups || !shared.left_out_cgroups)
		return false;
	id = task_cgroup_id(task);
	return bpf_map_lookup_elem(&left_out_cgroups, &id) != NULL;
}

static __always_inline bool wanted(struct task_struct *task, const struct abi_sample *sample)
{
	return wanted_ids(task, &sample->tgid, &sample->tid) &&
	       (!config.filter_comm || comm_wanted(sample->comm));
}
