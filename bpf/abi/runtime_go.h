/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What BPF and user space share about Go programs. A fiber is a goroutine: its object is struct g
 * (m.curg), the thread's is struct m.
 */
#include "bpf/abi/unwind.h"

/* How to read a goroutine's id: *(goid) of curg of m of the g that thread-local storage holds. */
struct abi_runtime_go {
	/* Signed: from the fs base (x86_64), or from tpidr_el0; or ABI_GO_G_IN_REGISTER. */
	abi_u64 g_tls_offset;
	abi_u32 g_m; /* offsetof(g, m) */
	abi_u32 m_curg;
	abi_u32 g_goid;
	abi_u32 reserved;
};

/*
 * In place of the offset of g in thread-local storage: it is in a register of the interrupted code
 * (arm64, x28). No offset is odd.
 */
enum { ABI_GO_G_IN_REGISTER = 1 };

/*
 * The head of struct g is the same in all versions that are known: stack.lo, stack.hi, …, m (at
 * 48), sched.sp, sched.pc, …
 */
enum {
	ABI_GO_STACK_LOW = 0, /* words of abi_unwind_rest.fiber_head */
	ABI_GO_STACK_HIGH = 1,
	ABI_GO_M = 6,
	ABI_GO_SCHED_SP = 7, /* valid while the thread runs on another stack for it */
	ABI_GO_SCHED_PC = 8,
	ABI_GO_SCHED_LR = 11, /* arm64, since 1.25; before, this one is 0 and the next has it */
};

/*
 * Where the Go runtime switches stacks (bpf/runtimes/go_unwind.bpf.h). On the goroutine's own stack
 * most are as ABI_CFA_SP; `on the other` is any other stack: the thread's, or a signal's.
 */
enum abi_go_cfa {
	ABI_CFA_GO_FRAME = ABI_CFA_RUNTIME, /* fp + cfa_off, which may be on another stack */
	ABI_CFA_GO_SYSTEMSTACK = 11, /* on the other: as ABI_CFA_SP from the goroutine's sp */
	ABI_CFA_GO_MORESTACK = 12, /* on the other: to the goroutine's pc and sp */
	ABI_CFA_GO_MCALL = 13, /* on the other, and for all it calls: the outermost frame */
	ABI_CFA_GO_GOGO = 14, /* on the goroutine's stack already: the outermost frame */
	/* What it calls: `extra` bytes above sp (arm64: at sp) it says where it goes on. */
	ABI_CFA_GO_CGOCALL = 15,
	ABI_CFA_GO_RACECALL = 16, /* what it calls: r12 says where it goes on */
};

_Static_assert(ABI_CFA_GO_RACECALL + 1 == ABI_CFA_KINDS, "a runtime's rules are the last ones");
_Static_assert(ABI_GO_SCHED_LR + 1 < ABI_FIBER_HEAD_WORDS, "all of them are shipped");
_Static_assert(sizeof(struct abi_runtime_go) == 24, "map value's layout");
