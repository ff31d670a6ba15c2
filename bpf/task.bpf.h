/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What is read of the current thread. Kernels that hand out its struct with its type (5.11) let a
 * program load from it, and from what it points to, as from memory of its own: that needs no call
 * for each field, and what is in no cache is fetched at the same time and not one after the other.
 * On older ones, and for memory that only its address is known of, there is a helper.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sample.h"
#include "bpf/kernel_types.h"

static __always_inline bool task_is_typed(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

static __always_inline struct task_struct *task_current(void)
{
	if (task_is_typed())
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/*
 * FIELD_ of what FROM_ points to: a variable, and task_current()'s result or read of it by this.
 */
#define TASK_READ(from_, field_) \
	(task_is_typed() ? (from_)->field_ : BPF_CORE_READ((from_), field_))

/*
 * Whether TASK is in execve(): from before its memory gives way to the new program's until its
 * registers are that program's, too.
 */
static __always_inline bool task_is_executing(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->in_execve))
		return false;
	if (task_is_typed())
		return BPF_CORE_READ_BITFIELD(task, in_execve);
	return BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

static __always_inline __u64 task_cgroup_id(struct task_struct *task)
{
	if (task_is_typed())
		return task->cgroups->dfl_cgrp->kn->id;
	return bpf_get_current_cgroup_id();
}

/* Whether the bytes of WORD have a 0 among them: the lowest bit that is set is the first one's. */
static __always_inline __u64 task_zero_byte(__u64 word)
{
	return (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;
}

/* The bits below the lowest of MARK, all if it is 0. */
static __always_inline __u64 task_bits_below(__u64 mark)
{
	return (mark & -mark) - 1;
}

/* The thread's name, with nothing but 0 behind its end: some kernels leave older names' rests. */
static __always_inline void task_comm(struct task_struct *task, char *ret_comm)
{
	__u64 *to = (__u64 *)ret_comm, first, second, end;

	if (!task_is_typed()) {
		bpf_get_current_comm(ret_comm, ABI_COMM_BYTES);
		return;
	}
	first = ((const __u64 *)__builtin_preserve_access_index(&task->comm[0]))[0];
	second = ((const __u64 *)__builtin_preserve_access_index(&task->comm[0]))[1];
	end = task_zero_byte(first);
	to[0] = first & task_bits_below(end);
	/* All of it behind an end, else the last byte, which ends it anyway. */
	second &= (__u64)(!end) * (~0ULL >> 8);
	to[1] = second & task_bits_below(task_zero_byte(second));
}
