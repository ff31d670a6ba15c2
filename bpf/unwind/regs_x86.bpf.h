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

/* The code segment's privilege level is 3 in user mode. */
static __always_inline bool regs_user_mode(const bpf_user_pt_regs_t *regs)
{
	return (regs->cs & 3) == 3;
}

/* Of an interrupted thread. */
static __always_inline __u64 regs_pc(const bpf_user_pt_regs_t *regs)
{
	return regs->rip;
}

static __always_inline __u64 regs_stack_pointer(const bpf_user_pt_regs_t *regs)
{
	return regs->rsp;
}

static __always_inline __u64 regs_frame_pointer(const bpf_user_pt_regs_t *regs)
{
	return regs->rbp;
}

/* A call's return address is at the stack pointer of its entry until it has returned. */
enum { REGS_RETURN_ADDRESS_ON_STACK = 1 };

/* Of a thread at a function's entry or return: where it returns to; 0 = that cannot be read. */
static __always_inline __u64 regs_return_address(const bpf_user_pt_regs_t *regs)
{
	__u64 pc = 0;

	read_user(&pc, sizeof(pc), regs->rsp);
	return pc;
}

enum {
	SYS_RT_SIGRETURN = 15,
	KERNEL_STACK_BYTES = 16384, /* on kernels without bpf_task_pt_regs() (before 5.15) */
};

/* TASK's saved user registers, at the top of its kernel stack. */
static __always_inline const struct pt_regs *task_user_regs(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return (const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - sizeof(struct pt_regs);
}

/*
 * Whether TASK never was in user mode: copy_thread() clears pc and sp of a thread that the kernel
 * creates in a process. The other registers are its creator's.
 */
static __always_inline bool regs_never_user(struct task_struct *task)
{
	const struct pt_regs *regs = task_user_regs(task);
	__u64 pc, sp;

	return !bpf_probe_read_kernel(&pc, sizeof(pc), &regs->rip) &&
	       !bpf_probe_read_kernel(&sp, sizeof(sp), &regs->rsp) && !pc && !sp;
}

/*
 * Where the thread is whose kernel entry saved REGS. In a system call it is at that instruction and
 * not at the saved address, that of the next one: the call may be the last instruction of its
 * function, as it is in the C libraries' return from a signal handler. syscall leaves the saved
 * address in rcx, too. That is no longer so once the kernel has set another one (start of a
 * handler, execve), and orig_rax is -1 after another kind of entry. While rt_sigreturn restores the
 * registers, some are still its own: the code tells.
 */
static __always_inline __u64 regs_saved_pc(
	const struct unwind_state *state, const struct pt_regs *regs)
{
	__u64 pc = regs->rip, number = regs->orig_rax;

	if ((__s64)number < 0)
		return pc;
	if (regs->rcx == pc || (number == SYS_RT_SIGRETURN && unwind_is_behind_syscall(state, pc)))
		pc -= UNWIND_SYSCALL_BYTES;
	return pc;
}

/* Sets STATE to REGS, but for the pc. */
static __always_inline void regs_copy(struct unwind_state *state, const bpf_user_pt_regs_t *regs)
{
	state->sp = regs->rsp;
	state->fp = regs->rbp;
	state->lr = regs->rdi;
	state->kept[ABI_KEPT_R12] = regs->r12;
	state->kept[ABI_KEPT_RBX] = regs->rbx;
	state->own[0] = regs->rax;
	state->own[1] = regs->rdx;
	state->own[2] = regs->rcx;
	state->own[3] = regs->rbx;
	state->own[4] = regs->rsi;
	state->own[5] = regs->rdi;
	state->own[6] = regs->rbp;
	state->own[7] = regs->rsp;
	state->own[8] = regs->r8;
	state->own[9] = regs->r9;
	state->own[10] = regs->r10;
	state->own[11] = regs->r11;
	state->own[12] = regs->r12;
	state->own[13] = regs->r13;
	state->own[14] = regs->r14;
	state->own[15] = regs->r15;
	state->has_own = 1;
}

/*
 * Sets STATE to the user registers: INTERRUPTED, if that is user mode (NULL = nothing was), else as
 * saved at kernel entry. Returns false if TASK has no 64-bit user mode to return to.
 */
static __always_inline bool regs_of_user(
	const bpf_user_pt_regs_t *interrupted, struct task_struct *task, struct unwind_state *state)
{
	/* The stack of BPF is small, and the block is not in use yet. */
	struct pt_regs *regs = (struct pt_regs *)state->block;

	if (interrupted && regs_user_mode(interrupted)) {
		state->pc = interrupted->rip;
		regs_copy(state, interrupted);
		return unwind_is_code_64((__u16)interrupted->cs);
	}
	if (bpf_probe_read_kernel(regs, sizeof(*regs), task_user_regs(task)))
		return false;
	state->pc = regs_saved_pc(state, regs);
	regs_copy(state, regs);
	return unwind_is_code_64((__u16)regs->cs);
}

/* The register that always holds a runtime's state: none, since C code uses all of them. */
static __always_inline __u64 task_state_register(
	const bpf_user_pt_regs_t *interrupted, struct task_struct *task)
{
	(void)interrupted;
	(void)task;
	return 0;
}

/* The saved fs base is current: threads set it by a system call, which saves it too. */
static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
	return TASK_READ(task, thread.fsbase);
}
