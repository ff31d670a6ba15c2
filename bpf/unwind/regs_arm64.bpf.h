/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel_types.h"
#include "bpf/task.bpf.h"
#include "bpf/unwind/step.bpf.h"

/* PSTATE.M is 0 for EL0, with bit 4 set for its 32-bit state. */
static __always_inline bool regs_user_mode(const bpf_user_pt_regs_t *regs)
{
	return (regs->pstate & 0xf) == 0;
}

/* Of an interrupted thread. */
static __always_inline __u64 regs_pc(const bpf_user_pt_regs_t *regs)
{
	return regs->pc;
}

static __always_inline __u64 regs_stack_pointer(const bpf_user_pt_regs_t *regs)
{
	return regs->sp;
}

static __always_inline __u64 regs_frame_pointer(const bpf_user_pt_regs_t *regs)
{
	return regs->regs[29];
}

/* Where a function keeps its return address is up to the function. */
enum { REGS_RETURN_ADDRESS_ON_STACK = 0 };

/* Of a thread at a function's entry or return: where it returns to. */
static __always_inline __u64 regs_return_address(const bpf_user_pt_regs_t *regs)
{
	return unwind_plain_code(regs->regs[30]);
}

enum {
	KERNEL_STACK_BYTES = 16384, /* on kernels without bpf_task_pt_regs() (before 5.15) */
	STATE_REGISTER = 28,
	SYS_RT_SIGRETURN = 139,
	KERNEL_REGS_BYTES = 336, /* their struct pt_regs; begins with struct user_pt_regs */
};

/* TASK's saved user registers, at the top of its kernel stack. */
static __always_inline const void *task_user_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - KERNEL_REGS_BYTES;
}

static __always_inline void regs_set(struct unwind_state *state, __u64 pc, __u64 sp, __u64 fp)
{
	state->pc = pc;
	state->sp = sp;
	state->fp = fp;
}

/*
 * Whether TASK never was in user mode: copy_thread() clears the registers of a thread that the
 * kernel creates in a process, and sets a kernel-mode PSTATE.
 */
static __always_inline bool regs_never_user(struct task_struct *task)
{
	const struct user_pt_regs *regs = task_user_regs(task);
	__u64 pstate;

	return !bpf_probe_read_kernel(&pstate, sizeof(pstate), &regs->pstate) && pstate & 0xf;
}

/*
 * Where TASK is, whose kernel entry saved REGS. In a system call it is at that instruction and not
 * at the saved address, that of the next one: the call may be the last instruction of its function,
 * as it is in the vDSO's return from a signal handler. The kernel forgets the call's number before
 * it sets another address (start of a handler, execve). Only rt_sigreturn sets the address first:
 * there the instruction before it tells.
 */
static __always_inline __u64 regs_saved_pc(
	const struct unwind_state *state, struct task_struct *task, const struct user_pt_regs *regs)
{
	const struct pt_regs___arm64 *saved = task_user_regs(task);
	int number = -1;

	bpf_core_read(&number, sizeof(number), &saved->syscallno);
	if (number < 0 ||
		(number == SYS_RT_SIGRETURN && !unwind_may_be_behind_syscall(state, regs->pc)))
		return regs->pc;
	return regs->pc - UNWIND_SYSCALL_BYTES;
}

/*
 * Sets STATE to the user registers: INTERRUPTED, if that is user mode (NULL = nothing was), else as
 * saved at kernel entry. Returns false if TASK has no 64-bit user mode to return to.
 */
static __always_inline bool regs_of_user(
	const bpf_user_pt_regs_t *interrupted, struct task_struct *task, struct unwind_state *state)
{
	/* The stack of BPF is small, and the block is not in use yet. */
	struct user_pt_regs *regs = (struct user_pt_regs *)state->block;

	if (interrupted && regs_user_mode(interrupted)) {
		regs_set(state, interrupted->pc, interrupted->sp, interrupted->regs[29]);
		state->lr = unwind_plain_code(interrupted->regs[30]);
		return (interrupted->pstate & 0x10) == 0;
	}
	if (bpf_probe_read_kernel(regs, sizeof(*regs), task_user_regs(task)))
		return false;
	regs_set(state, regs_saved_pc(state, task, regs), regs->sp, regs->regs[29]);
	state->lr = unwind_plain_code(regs->regs[30]);
	return (regs->pstate & 0x1f) == 0;
}

/* The register that may hold a runtime's state: the user's x28, which is Go's g. */
static __always_inline __u64 task_state_register(
	const bpf_user_pt_regs_t *interrupted, struct task_struct *task)
{
	const struct user_pt_regs *regs = task_user_regs(task);
	__u64 state = 0;

	if (interrupted && regs_user_mode(interrupted))
		return interrupted->regs[STATE_REGISTER];
	if (bpf_probe_read_kernel(&state, sizeof(state), &regs->regs[STATE_REGISTER]))
		return 0;
	return state;
}

/*
 * tpidr_el0 as saved at the last context switch. Threads may write the register directly; C
 * libraries and runtimes do so once, before they run anything of interest.
 */
static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
	return TASK_READ(task, thread.uw.tp_value);
}
