/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* Unwinding on x86_64. Included by bpf/unwind/step.bpf.h. */
#include "bpf/abi/unwind.h"
#include "bpf/unwind/state.bpf.h"

enum {
	UNWIND_MIN_FRAME_BYTES = 8, /* the return address */
	/*
	 * The kernel's struct rt_sigframe: after the handler's return sp points to its ucontext.
	 * uc_mcontext follows flags, link and stack (40 bytes): r8 to r15, rdi, rsi, rbp, rbx, rdx,
	 * rax, rcx, rsp, rip, flags, cs (16 bits).
	 */
	UNWIND_SIGNAL_FP = 40 + 10 * 8,
	UNWIND_SIGNAL_RCX = 40 + 14 * 8,
	UNWIND_SIGNAL_SP = 40 + 15 * 8,
	UNWIND_SIGNAL_PC = 40 + 16 * 8,
	UNWIND_SIGNAL_CS = 40 + 18 * 8,
	UNWIND_CODE_SEGMENT = 0x33, /* __USER_CS */
	UNWIND_CODE_SEGMENT_XEN = 0xe033, /* FLAT_USER_CS64, of Xen's PV guests */
	UNWIND_FRAME_KEEPS_FP =
		0, /* not all assembly saves it; Go corrects it when a stack grows */
	UNWIND_DWARF_RBX = 3,
	UNWIND_DWARF_R12 = 12,
	UNWIND_DWARF_SCRATCH = 0xf37, /* rax, rdx, rcx, rsi, rdi, r8 to r11: bits of numbers */
	UNWIND_MAX_OWN_BYTES = 1 << 20, /* of a frame that such a register finds at a call */
};

enum { UNWIND_FINDS_RETURNS = 1 }; /* a call stores its return address on the stack */

/* Byte NUMBER of the eight in CODE, the first of which is the lowest. */
UNWIND_INLINE __u32 unwind_code_byte(__u64 code, __u32 number)
{
	return code >> 8 * number & 255;
}

/* Whether the 8 bytes CODE end with a direct call: e8 and a distance. */
UNWIND_INLINE bool unwind_is_direct_call(__u64 code)
{
	return unwind_code_byte(code, 3) == 0xe8;
}

/* The target of that call, which returns to ADDRESS. */
UNWIND_INLINE __u64 unwind_call_target(__u64 code, __u64 address)
{
	return address + (__s64)(__s32)(code >> 32);
}

/*
 * Whether CODE, from byte FIRST on, is one indirect call: ff /2. Its length follows from ModRM, SIB
 * and displacement (Intel SDM, volume 2, 2.1.3).
 */
UNWIND_INLINE bool unwind_is_call_at(__u64 code, __u32 first)
{
	__u32 modrm = unwind_code_byte(code, first + 1), mode = modrm >> 6, base = modrm & 7;
	__u32 bytes = 2;

	if (unwind_code_byte(code, first) != 0xff || (modrm >> 3 & 7) != 2)
		return false;
	if (mode != 3 && base == 4) {
		base = first + 2 < 8 ? unwind_code_byte(code, first + 2) & 7 : 0;
		bytes = 3;
	}
	if (mode == 1)
		bytes += 1;
	if (mode == 2 || (mode == 0 && base == 5))
		bytes += 4;
	return first + bytes == 8;
}

/* Whether the 8 bytes CODE end with an indirect call. */
UNWIND_INLINE bool unwind_is_indirect_call(__u64 code)
{
	return unwind_is_call_at(code, 6) || unwind_is_call_at(code, 5) ||
	       unwind_is_call_at(code, 4) || unwind_is_call_at(code, 2) ||
	       unwind_is_call_at(code, 1);
}

/* Whether the 8 bytes CODE end with a call. */
UNWIND_FUNCTION int unwind_is_call(__u64 code)
{
	return unwind_is_direct_call(code) || unwind_is_indirect_call(code);
}

enum {
	UNWIND_CODE_ENDBR64 = 0xfa1e0ff3, /* f3 0f 1e fa */
	UNWIND_CODE_PUSH_FP = 0x55,
	UNWIND_CODE_SET_FP = 0xe58948, /* mov rbp, rsp: 48 89 e5 */
	UNWIND_CODE_SET_FP_TOO = 0xec8b48, /* 48 8b ec */
	UNWIND_CODE_RET = 0xc3,
	UNWIND_CODE_RET_POP = 0xc2,
	UNWIND_CODE_SYSCALL = 0x050f, /* 0f 05 */
	UNWIND_SYSCALL_BYTES = 2,
};

/* HotSpot's first instruction touches the stack below the frame: mov [rsp - 0x14000], eax. */
#define UNWIND_CODE_STACK_BANG 0xfffec000248489ULL

/*
 * At a function's first instructions, and at its return, the frame pointer is the caller's. Returns
 * how many words are on the stack above the return address there, or -1 if the pc is elsewhere.
 * CODE: the 8 bytes that begin one before the pc.
 */
UNWIND_INLINE int unwind_words_at_edge(__u64 code)
{
	__u64 here = code >> 8;

	switch (here & 255) {
	case UNWIND_CODE_PUSH_FP:
	case UNWIND_CODE_RET:
	case UNWIND_CODE_RET_POP:
		return 0;
	}
	if (here == UNWIND_CODE_STACK_BANG || (__u32)here == UNWIND_CODE_ENDBR64)
		return 0;
	here &= 0xffffff;
	if ((code & 255) == UNWIND_CODE_PUSH_FP &&
		(here == UNWIND_CODE_SET_FP || here == UNWIND_CODE_SET_FP_TOO))
		return 1;
	return -1;
}

/*
 * Moves to the caller from a place where the frame pointer is the caller's own, if the instructions
 * show such a place and a call stands before the return address. Otherwise returns false, and S is
 * as it was.
 */
UNWIND_INLINE bool unwind_by_edge(struct unwind_state *s)
{
	__u64 code = 0, call = 0, pc = 0, fp = s->fp;
	int words;

	if (unwind_fetch(s, &code, sizeof(code), s->pc - 1))
		return false;
	words = unwind_words_at_edge(code);
	if (words < 0 || unwind_word(s, s->sp + 8 * (__u64)words, &pc) ||
		unwind_fetch(s, &call, sizeof(call), pc - 8))
		return false;
	if (!unwind_is_call(call))
		return false;
	if (words && unwind_word(s, s->sp, &fp))
		return false;
	return unwind_to(s, pc, s->sp + 8 * (__u64)words + 8, fp) == ABI_UNWIND_GOES_ON;
}

/* The bytes that a frame of RULE has at least: a return address unless a register holds it. */
UNWIND_INLINE __u64 unwind_least_frame(const struct abi_unwind_rule *rule)
{
	return rule->ra == ABI_REG_SAME ? 0 : UNWIND_MIN_FRAME_BYTES;
}

UNWIND_INLINE __u64 unwind_plain_code(__u64 pc)
{
	return pc;
}

/* The CFA in code that keeps a frame pointer. */
UNWIND_INLINE __u64 unwind_framed_cfa(__u64 fp, __u64 caller_fp)
{
	(void)caller_fp;
	return fp + 16;
}

/* Of a walk by frame pointer: a function that has not pushed it yet cannot be told from others. */
UNWIND_INLINE bool unwind_may_skip_caller(const struct unwind_state *s, __u64 pc)
{
	(void)s;
	(void)pc;
	return false;
}

/* The caller's stack pointer after a walk by FP. */
UNWIND_INLINE __u64 unwind_sp_above(__u64 fp)
{
	return fp + 16;
}

UNWIND_INLINE bool unwind_sp_is_bound(const struct unwind_state *s)
{
	(void)s;
	return false;
}

UNWIND_INLINE __u64 unwind_cfa_of_sp(
	const struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	return s->sp + (__s64)rule->cfa_off;
}

UNWIND_INLINE int unwind_return_address(
	struct unwind_state *s, const struct abi_unwind_rule *rule, __u64 cfa, __u64 *ret_pc)
{
	if (rule->ra == ABI_REG_UNDEFINED)
		return ABI_UNWIND_ROOT;
	if (rule->ra == ABI_REG_SAME) {
		*ret_pc = s->lr;
		return s->lr ? ABI_UNWIND_GOES_ON : ABI_UNWIND_BAD_REGISTER;
	}
	return unwind_word(s, cfa - 8, ret_pc) ? ABI_UNWIND_UNREADABLE : ABI_UNWIND_GOES_ON;
}

/* Moves to interrupted code that a runtime made call something: only the pc was pushed. */
UNWIND_INLINE int unwind_pushed_call(struct unwind_state *s)
{
	(void)s;
	return ABI_UNWIND_GOES_ON;
}

/* The enum abi_kept of the register that RULE describes. */
UNWIND_INLINE __u32 unwind_kept_number(const struct abi_unwind_rule *rule)
{
	return rule->extra & ABI_UNWIND_KEPT_RBX ? ABI_KEPT_RBX : ABI_KEPT_R12;
}

/* The caller's value of that register; 0 = not known. */
UNWIND_INLINE __u64 unwind_kept(
	struct unwind_state *s, const struct abi_unwind_rule *rule, __u64 cfa)
{
	__u64 words = (rule->extra >> ABI_UNWIND_KEPT_SHIFT) & ABI_UNWIND_KEPT_WORDS;
	__u64 value = 0;

	if (!words || rule->cfa > ABI_CFA_DEREF_FP)
		return 0;
	if (words == ABI_UNWIND_UNCHANGED)
		return s->kept[unwind_kept_number(rule)];
	return unwind_word(s, cfa - 8 * words, &value) ? 0 : value;
}

/*
 * The value of the register with this DWARF number, 0 if it is not tracked or known. A frame that
 * is found, at a call, by a register that calls need not keep was written by hand, and so was its
 * callee, which leaves that register alone: OpenSSL's AES-GCM keeps its frame in rax.
 */
UNWIND_INLINE __u64 unwind_register(const struct unwind_state *s, __u32 number)
{
	if (s->has_own == 1)
		return number < ABI_OWN_REGISTERS ? s->own[number & (ABI_OWN_REGISTERS - 1)] : 0;
	if (s->has_own == 2 && number < ABI_OWN_REGISTERS && UNWIND_DWARF_SCRATCH >> number & 1)
		return s->own[number & (ABI_OWN_REGISTERS - 1)] - s->sp < UNWIND_MAX_OWN_BYTES
			       ? s->own[number & (ABI_OWN_REGISTERS - 1)]
			       : 0;
	if (number == UNWIND_DWARF_RBX)
		return s->kept[ABI_KEPT_RBX];
	return number == UNWIND_DWARF_R12 ? s->kept[ABI_KEPT_R12] : 0;
}

/* Whether the code segment CS is one of 64-bit code (Linux's user_64bit_mode()). */
UNWIND_INLINE bool unwind_is_code_64(__u16 cs)
{
	return cs == UNWIND_CODE_SEGMENT || cs == UNWIND_CODE_SEGMENT_XEN;
}

/* Whether a system call stands before PC. */
UNWIND_INLINE bool unwind_is_behind_syscall(const struct unwind_state *s, __u64 pc)
{
	__u16 code = 0;

	return !unwind_fetch(s, &code, sizeof(code), pc - UNWIND_SYSCALL_BYTES) &&
	       code == UNWIND_CODE_SYSCALL;
}

/*
 * Moves to the code that the signal interrupted: pc is no return address. If that is a system call,
 * to its instruction, since the next one may be another function's. syscall leaves the address of
 * the next instruction in rcx; in a function that was called by rcx it is there, too. While
 * rt_sigreturn restores the registers, sp may be the interrupted code's already, and no signal
 * frame is there.
 */
UNWIND_INLINE int unwind_signal(struct unwind_state *s)
{
	__u64 frame = s->sp, fp = 0, sp = 0, pc = 0, rcx = 0, cs = 0;
	int end;

	if (unwind_word(s, frame + UNWIND_SIGNAL_FP, &fp) ||
		unwind_word(s, frame + UNWIND_SIGNAL_RCX, &rcx) ||
		unwind_word(s, frame + UNWIND_SIGNAL_SP, &sp) ||
		unwind_word(s, frame + UNWIND_SIGNAL_PC, &pc) ||
		unwind_word(s, frame + UNWIND_SIGNAL_CS, &cs))
		return ABI_UNWIND_UNREADABLE;
	if (!unwind_is_code_64((__u16)cs))
		return ABI_UNWIND_BAD_REGISTER;
	if (rcx == pc && unwind_is_behind_syscall(s, pc))
		pc -= UNWIND_SYSCALL_BYTES;
	end = unwind_to(s, pc, sp, fp);
	s->is_return = 0;
	return end;
}

/* Moves S from a return instruction to the caller, by no table. Returns an enum abi_unwind_end. */
UNWIND_INLINE int unwind_leave(struct unwind_state *s)
{
	__u64 r12 = s->kept[ABI_KEPT_R12], rbx = s->kept[ABI_KEPT_RBX], pc = 0;
	__u64 own = unwind_callers_own(s);
	int end;

	if (unwind_word(s, s->sp, &pc))
		return ABI_UNWIND_UNREADABLE;
	end = unwind_to(s, pc, s->sp + 8, s->fp);
	s->kept[ABI_KEPT_R12] = r12;
	s->kept[ABI_KEPT_RBX] = rbx;
	s->has_own = own;
	return end;
}
