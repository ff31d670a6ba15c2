/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Unwinding on arm64. Included by bpf/unwind/step.bpf.h. */
#include "bpf/abi/unwind.h"
#include "bpf/unwind/state.bpf.h"

enum {
	UNWIND_MIN_FRAME_BYTES = 0, /* a leaf need not touch the stack */
	/*
	 * The kernel's struct rt_sigframe: siginfo (128 bytes), then ucontext: flags, link, stack,
	 * a signal mask of 128 bytes and, aligned to 16, uc_mcontext: fault address, x0 to x30, sp,
	 * pc, flags and, aligned to 16, records, the first of which is of the vector registers
	 * (arch/arm64/kernel/signal.c, setup_sigframe_layout()).
	 */
	UNWIND_SIGNAL_X0 = 128 + 176 + 8,
	UNWIND_SIGNAL_FP = UNWIND_SIGNAL_X0 + 29 * 8,
	UNWIND_SIGNAL_LR = UNWIND_SIGNAL_X0 + 30 * 8,
	UNWIND_SIGNAL_SP = UNWIND_SIGNAL_X0 + 31 * 8,
	UNWIND_SIGNAL_PC = UNWIND_SIGNAL_X0 + 32 * 8,
	UNWIND_SIGNAL_RECORD = UNWIND_SIGNAL_X0 + 35 * 8,
	UNWIND_FPSIMD_MAGIC = 0x46508001,
	UNWIND_SYSCALL_BYTES = 4,
	/*
	 * ABI_REG_FRAME: once a Go function has made a call, the caller's fp is in its frame, even
	 * if fp does not point there. Until Go 1.20 (adjustframe() in runtime/stack.go), fp points
	 * into the goroutine's old stack after the stack has grown.
	 */
	UNWIND_FRAME_KEEPS_FP = 1,
	UNWIND_PUSHED_BYTES = 16, /* the link register and padding */
	UNWIND_SP_IS_BOUND = 1, /* in the stack pointer, which is a multiple of 16 otherwise */
};

enum { UNWIND_FINDS_RETURNS = 0 }; /* where a function stores its link register is its own choice */

UNWIND_INLINE bool unwind_is_direct_call(__u64 code)
{
	(void)code;
	return false;
}

UNWIND_INLINE __u64 unwind_call_target(__u64 code, __u64 address)
{
	(void)code;
	return address;
}

UNWIND_INLINE bool unwind_is_indirect_call(__u64 code)
{
	(void)code;
	return false;
}

UNWIND_INLINE int unwind_is_call(__u64 code)
{
	(void)code;
	return false;
}

UNWIND_INLINE __u64 unwind_least_frame(const struct abi_unwind_rule *rule)
{
	(void)rule;
	return UNWIND_MIN_FRAME_BYTES;
}

/* Strips the pointer authentication code, the bits above the 48 of an address. */
UNWIND_INLINE __u64 unwind_plain_code(__u64 pc)
{
	return pc & ((1ULL << 48) - 1);
}

/*
 * The CFA in code such as Go's, which keeps the frame record just below the stack pointer: it
 * follows from the caller's frame pointer. The function's own shows only where its frame begins.
 */
UNWIND_INLINE __u64 unwind_framed_cfa(__u64 fp, __u64 caller_fp)
{
	return caller_fp ? caller_fp + 8 : fp + 16;
}

/*
 * Of a walk by frame pointer from assembly: whether the frame record, which returns to PC, may be
 * the caller's own. Code that has made a record still has its return address in lr as well, unless
 * it has made a call; a leaf, and code before its record, has a different one there.
 */
UNWIND_INLINE bool unwind_may_skip_caller(const struct unwind_state *s, __u64 pc)
{
	return !s->is_return && s->lr != pc;
}

/* As on x86_64. Instructions are not read here: the walk goes by the frame record. */
UNWIND_INLINE bool unwind_by_edge(struct unwind_state *s)
{
	(void)s;
	return false;
}

/*
 * The caller's stack pointer after a walk by FP is not known, only that it is above the frame
 * record: it is marked as such a bound, and no address computed from it is aligned.
 */
UNWIND_INLINE __u64 unwind_sp_above(__u64 fp)
{
	return (fp + 16) | UNWIND_SP_IS_BOUND;
}

UNWIND_INLINE bool unwind_sp_is_bound(const struct unwind_state *s)
{
	return s->sp & UNWIND_SP_IS_BOUND;
}

/* The CFA from sp, or from where the frame record is, if the function has one. */
UNWIND_INLINE __u64 unwind_cfa_of_sp(
	const struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	if (unwind_sp_is_bound(s) && rule->fp == ABI_REG_AT_CFA && rule->ra == ABI_REG_AT_CFA &&
		rule->ra_off == rule->fp_off + 8)
		return s->fp - (__s64)rule->fp_off;
	return s->sp + (__s64)rule->cfa_off;
}

/* Moves to interrupted code that a runtime made call something: its lr is on its stack. */
UNWIND_INLINE int unwind_pushed_call(struct unwind_state *s)
{
	__u64 lr = 0;

	if (unwind_word(s, s->sp, &lr))
		return ABI_UNWIND_UNREADABLE;
	s->lr = unwind_plain_code(lr);
	s->sp += UNWIND_PUSHED_BYTES;
	return ABI_UNWIND_GOES_ON;
}

/* No file needs other registers. */
UNWIND_INLINE __u32 unwind_kept_number(const struct abi_unwind_rule *rule)
{
	(void)rule;
	return 0;
}

UNWIND_INLINE __u64 unwind_kept(
	struct unwind_state *s, const struct abi_unwind_rule *rule, __u64 cfa)
{
	(void)s;
	(void)rule;
	(void)cfa;
	return 0;
}

UNWIND_INLINE __u64 unwind_register(const struct unwind_state *s, __u32 number)
{
	(void)s;
	(void)number;
	return 0;
}

UNWIND_INLINE int unwind_return_address(
	struct unwind_state *s, const struct abi_unwind_rule *rule, __u64 cfa, __u64 *ret_pc)
{
	if (rule->ra == ABI_REG_UNDEFINED)
		return ABI_UNWIND_ROOT;
	if (rule->ra == ABI_REG_SAME) {
		/* Only an interrupted frame, or morestack's caller, has it in the register. */
		*ret_pc = s->lr;
		return s->is_return && !s->lr ? ABI_UNWIND_BAD_REGISTER : ABI_UNWIND_GOES_ON;
	}
	if (rule->ra != ABI_REG_AT_CFA)
		return ABI_UNWIND_BAD_REGISTER;
	return unwind_word(s, cfa + (__s64)rule->ra_off, ret_pc) ? ABI_UNWIND_UNREADABLE
								 : ABI_UNWIND_GOES_ON;
}

/* Whether a system call may stand before PC: the code may be unreadable. */
UNWIND_INLINE bool unwind_may_be_behind_syscall(const struct unwind_state *s, __u64 pc)
{
	__u32 code = 0;

	return unwind_fetch(s, &code, sizeof(code), pc - UNWIND_SYSCALL_BYTES) ||
	       code == 0xd4000001; /* svc #0 */
}

/*
 * Moves to the code that the signal interrupted: pc is no return address. While rt_sigreturn
 * restores the registers, sp may be the interrupted code's already, and no signal frame is there.
 */
UNWIND_INLINE int unwind_signal(struct unwind_state *s)
{
	__u64 frame = s->sp, fp = 0, lr = 0, sp = 0, pc = 0, record = 0;
	int end;

	if (unwind_word(s, frame + UNWIND_SIGNAL_FP, &fp) ||
		unwind_word(s, frame + UNWIND_SIGNAL_LR, &lr) ||
		unwind_word(s, frame + UNWIND_SIGNAL_SP, &sp) ||
		unwind_word(s, frame + UNWIND_SIGNAL_PC, &pc) ||
		unwind_word(s, frame + UNWIND_SIGNAL_RECORD, &record))
		return ABI_UNWIND_UNREADABLE;
	if ((__u32)record != UNWIND_FPSIMD_MAGIC)
		return ABI_UNWIND_BAD_REGISTER;
	end = unwind_to(s, pc, sp, fp);
	s->is_return = 0;
	s->lr = unwind_plain_code(lr);
	return end;
}

/* Moves S from a return instruction to the caller, by no table. Returns an enum abi_unwind_end. */
UNWIND_INLINE int unwind_leave(struct unwind_state *s)
{
	return unwind_to(s, s->lr, s->sp, s->fp);
}
