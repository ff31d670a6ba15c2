/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What BPF and user space share about Go programs. Go's fibers are goroutines: a goroutine's object
 * is struct g (m.curg), a thread's is struct m.
 */
#include "bpf/abi/unwind.h"

/* How Go keeps a goroutine's pprof labels: g.labels points to one of these. */
enum abi_go_labels {
	ABI_GO_LABELS_NONE = 0, /* not known, or not wanted */
	ABI_GO_LABELS_MAP, /* a map[string]string (up to 1.23) */
	ABI_GO_LABELS_SLICE, /* a slice of pairs of strings (from 1.24 on) */
};

/*
 * How to read a goroutine's id: g->m->curg->goid, with g from thread-local storage. And what it is:
 * all of that is in a run of words of struct g, which one read gets.
 */
struct abi_runtime_go {
	/* Signed, from the fs base (x86_64) or tpidr_el0 (arm64); or ABI_GO_G_IN_REGISTER. */
	abi_u64 g_tls_offset;
	/*
	 * Address of a word of the process that has the offset instead, set by the dynamic linker;
	 * 0 = none.
	 */
	abi_u64 g_tls_word;
	abi_u32 g_m; /* offsetof(g, m) */
	abi_u32 m_curg;
	abi_u32 g_goid;
	abi_u32 g_birth; /* offset of the words of enum abi_go_birth; 0 = not known, or not wanted
			  */
	abi_u32 labels_kind; /* enum abi_go_labels */
	abi_u32 has_parent; /* 1 = ABI_GO_PARENT is what it says (from 1.21 on) */
	/* For the reasons of waits, of goroutines that have the words of enum abi_go_head. */
	abi_u32 m_lockedg;
	abi_u32 minor; /* Go 1.N, whose numbers the reasons are; 0 = not known, or not wanted */
};

/* Words of struct g around goid, at these distances in all known versions. */
enum abi_go_head {
	ABI_GO_STATUS = 0, /* atomicstatus, the low 32 bits */
	ABI_GO_ID = 1,
	ABI_GO_WAIT_REASON = 4, /* the low 8 bits */
	ABI_GO_HEAD_WORDS = 5,
};

/* Words of struct g, which has them at these distances in all known versions. */
enum abi_go_birth {
	ABI_GO_PARENT = 0, /* parentGoid */
	ABI_GO_CREATED_AT = 1, /* gopc: behind the call to newproc */
	ABI_GO_START = 3, /* startpc */
	ABI_GO_LABELS = 9,
	ABI_GO_BIRTH_WORDS = 10,
};

/*
 * Instead of a thread-local offset: g is in a register of the interrupted code (arm64, x28). Real
 * offsets are never odd.
 */
enum { ABI_GO_G_IN_REGISTER = 1 };

/* Offsets of g are closer to the thread pointer than this, and are multiples of 8. */
enum { ABI_GO_TLS_LIMIT = 1 << 20 };

/*
 * The head of struct g has one layout in all known versions: stack.lo, stack.hi, …, m (at 48),
 * sched.sp, sched.pc, …
 */
enum {
	ABI_GO_STACK_LOW = 0, /* words of abi_unwind_rest.fiber_head */
	ABI_GO_STACK_HIGH = 1,
	ABI_GO_M = 6,
	ABI_GO_SCHED_SP = 7, /* valid while the thread runs on another stack for the goroutine */
	ABI_GO_SCHED_PC = 8,
	ABI_GO_SCHED_LR = 11, /* arm64, Go 1.25; older ones have 0 here and lr in the next word */
};

/*
 * Functions in which the Go runtime switches stacks (bpf/runtimes/go_unwind.bpf.h). While still on
 * the goroutine's own stack, most unwind as ABI_CFA_SP. "On another" means any other stack: the
 * thread's or the signal stack.
 */
enum abi_go_cfa {
	ABI_CFA_GO_FRAME = ABI_CFA_RUNTIME, /* fp + cfa_off, which may be on another stack */
	ABI_CFA_GO_SYSTEMSTACK = 11, /* on another: as ABI_CFA_SP from the goroutine's sp */
	ABI_CFA_GO_MORESTACK = 12, /* on another: to the goroutine's pc and sp */
	ABI_CFA_GO_MCALL = 13, /* on another, and as a caller: the outermost frame */
	ABI_CFA_GO_GOGO = 14, /* already on the goroutine's stack: the outermost frame */
	/* As a caller: saved its place on the goroutine's stack at sp + `extra` (arm64: at sp). */
	ABI_CFA_GO_CGOCALL = 15,
	ABI_CFA_GO_RACECALL = 16, /* as a caller: saved its stack pointer in r12 */
};

_Static_assert(ABI_CFA_GO_RACECALL + 1 == ABI_CFA_KINDS, "a runtime's rules are the last ones");
_Static_assert(ABI_GO_SCHED_LR + 1 < ABI_FIBER_HEAD_WORDS, "all of them are shipped");
_Static_assert(sizeof(struct abi_runtime_go) == 48, "map value's layout");
