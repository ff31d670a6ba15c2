/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Unwind tables as BPF reads them. The module index holds, for each 64 KiB of a module's executable
 * ELF addresses (a page: elf_addr >> 16), one abi_unwind_page that stands alone: rows sorted by
 * address, each naming one of the page's own rules. User space copies a page's bytes into the map
 * unchanged.
 *
 *   struct abi_unwind_page header
 *   u16 row_addresses[row_count]   offset in the page (elf_addr & 0xffff) where the row begins
 *   u8  row_rules[row_count]       number of its rule; padded to a multiple of 4
 *   struct abi_unwind_rule rules[rule_count]
 *
 * A row reaches to the next one. Addresses before the first row have rule 0, which is what is
 * valid at the page's start (ABI_CFA_NONE where nothing is). Gaps between functions are rows of
 * kind ABI_CFA_NONE. Little-endian; everything was written by the sandbox: BPF masks each index.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_UNWIND_PAGE_SHIFT = 16,
	ABI_UNWIND_PAGE_ROWS = 16384, /* at most; a page with more is left out */
	ABI_UNWIND_PAGE_RULES = 255,
	ABI_UNWIND_STEPS = 17,
};

/* How the canonical frame address comes about. */
enum abi_cfa {
	ABI_CFA_NONE = 0, /* no table here: walk by frame pointer */
	ABI_CFA_SP = 1, /* sp + cfa_off */
	ABI_CFA_FP = 2, /* frame pointer (rbp, x29) + cfa_off */
	ABI_CFA_PLT = 3, /* x86_64 PLT: sp + 8 + ((pc & 15) >= cfa_off ? 8 : 0) */
	ABI_CFA_DEREF_SP = 4, /* *(sp + cfa_off) + ra_off */
	ABI_CFA_DEREF_FP = 5, /* *(fp + cfa_off) + ra_off */
	ABI_CFA_REG = 6, /* callee-saved register number `extra` + cfa_off (rare: r10, rbx, r12…) */
	ABI_CFA_SIGNAL = 7, /* a signal frame: all registers are in the ucontext on the stack */
	ABI_CFA_END = 8, /* return address undefined: the outermost frame */
	ABI_CFA_UNSUPPORTED = 9, /* an expression nobody understands: stop, and count */
	/*
	 * Where the Go runtime switches stacks (bpf/unwind_go.bpf.h). On the goroutine's own stack
	 * most are as ABI_CFA_SP; `on the other` is any other stack: the thread's, or a signal's.
	 */
	ABI_CFA_GO_FRAME = 10, /* fp + cfa_off, which may be on another stack */
	ABI_CFA_GO_SYSTEMSTACK = 11, /* on the other: as ABI_CFA_SP from the goroutine's sp */
	ABI_CFA_GO_MORESTACK = 12, /* on the other: to the goroutine's pc and sp */
	ABI_CFA_GO_MCALL = 13, /* on the other, and for all it calls: the outermost frame */
	ABI_CFA_GO_GOGO = 14, /* on the goroutine's stack already: the outermost frame */
	/* What it calls: `extra` bytes above sp (arm64: at sp) it says where it goes on. */
	ABI_CFA_GO_CGOCALL = 15,
	ABI_CFA_GO_RACECALL = 16, /* what it calls: r12 says where it goes on */
	ABI_CFA_KINDS,
};

/* In abi_unwind_rule.extra of ABI_CFA_SP, _FP, _DEREF_SP and _DEREF_FP. */
enum {
	ABI_UNWIND_INTERRUPTED = 1, /* the caller was interrupted, it did not call */
	ABI_UNWIND_FRAMED = 2, /* of code whose frame pointer is its own at all of its calls */
	/*
	 * x86_64: where the caller's rbx (else r12) is, in words below the CFA;
	 * ABI_UNWIND_UNCHANGED; 0: not known. Said only in files that a walk needs it for: most
	 * have no use for the rows.
	 */
	ABI_UNWIND_KEPT_SHIFT = 2,
	ABI_UNWIND_KEPT_WORDS = 31,
	ABI_UNWIND_UNCHANGED = 1, /* that word is the return address */
	ABI_UNWIND_KEPT_RBX = 128,
};

enum abi_unwind_page_flags {
	/* All of its rules are ABI_UNWIND_FRAMED: a call's frame is found without the search. */
	ABI_UNWIND_PAGE_FRAMED = 1,
};

/* Where a register of the caller is. */
enum abi_register_rule {
	ABI_REG_SAME = 0, /* not saved yet: unchanged (fp), or in the link register (ra, arm64) */
	ABI_REG_AT_CFA = 1, /* *(cfa + off) */
	ABI_REG_UNDEFINED = 2,
	ABI_REG_UNSUPPORTED = 3,
	ABI_REG_AT_FP = 4, /* fp only: *(fp + fp_off), where the stack was realigned */
	ABI_REG_FRAME = 5, /* fp only: *(cfa + fp_off) if fp points there, else unchanged (Go) */
	ABI_REG_KINDS,
};

struct abi_unwind_rule {
	abi_u8 cfa; /* enum abi_cfa */
	abi_u8 fp; /* enum abi_register_rule */
	abi_u8 ra; /* enum abi_register_rule; x86_64: always at cfa - 8 */
	abi_u8 extra; /* ABI_CFA_REG: DWARF register; ABI_CFA_GO_CGOCALL; else ABI_UNWIND_* */
	int cfa_off;
	short fp_off, ra_off; /* from the CFA */
};

struct abi_unwind_page {
	unsigned short row_count;
	unsigned short rule_count;
	abi_u32 size; /* of all, header included */
	/* Number of rows before each 4 KiB step: the search starts in steps[i]..steps[i+1]. */
	unsigned short steps[ABI_UNWIND_STEPS];
	unsigned short flags; /* enum abi_unwind_page_flags */
};

_Static_assert(sizeof(struct abi_unwind_rule) == 12, "the page's layout");
_Static_assert(sizeof(struct abi_unwind_page) == 44, "the page's layout");
