/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Reads fields of the current thread. Kernels with typed task pointers (5.11) let a program load
 * from the task, and from what it points to, directly: no helper call per field, and cache misses
 * overlap. On older kernels, and for untyped addresses, there is a helper.
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

/* from_->field_. FROM_ is a variable: task_current()'s result, or a pointer read by this macro. */
#define TASK_READ(from_, field_) \
	(task_is_typed() ? (from_)->field_ : BPF_CORE_READ((from_), field_))

/*
 * Whether TASK is in execve(): from before its memory is replaced until its registers are the new
 * program's, too.
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

/* Nonzero if a byte of WORD is 0; the lowest bit set is in the first such byte. */
static __always_inline __u64 task_zero_byte(__u64 word)
{
	return (word - 0x0101010101010101ULL) & ~word & 0x8080808080808080ULL;
}

/* A mask of the bits below the lowest one of MARK, all bits if MARK is 0. */
static __always_inline __u64 task_bits_below(__u64 mark)
{
	return (mark & -mark) - 1;
}

/* The thread's name, zero-padded: some kernels leave remains of older names behind its end. */
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
	/* Clears all of it if the name has ended, else its last byte, the terminator. */
	second &= (__u64)(!end) * (~0ULL >> 8);
	to[1] = second & task_bits_below(task_zero_byte(second));
}
