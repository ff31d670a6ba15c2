/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Unwind tables as BPF reads them. The module index holds one self-contained abi_unwind_page for
 * each 64 KiB of a module's executable ELF addresses (page number: elf_addr >> 16). User space
 * copies its bytes into the map unchanged.
 *
 * Gain of packed rules (4 bytes instead of the 12 of a wide one): memory. The 3843 pages of the
 * programs and libraries that ran on a build machine have 1.42 bytes a row instead of 1.88, so a
 * third more code fits the pool of 4 MiB. BPF's time is the same: 10.6 and 10.7 us a sample
 * (medians of six runs in turn). Switch for tests: --test-without=packed-rules.
 *
 * Gain of packed rows: a table of addresses and rule numbers, with wide rules, took 3.1 to 3.8
 * bytes a row, and a search read six cache lines instead of four. The price is a third more time to
 * read .eh_frame (libLLVM: 9.4 instead of 7.3 ms/MB). There is no switch: BPF would need a second
 * search for tables that exist in tests only.
 *
 *   struct abi_unwind_page header
 *   u16 buckets[n + 1], u16 0       offsets in `changes` where each bucket begins and the last one
 *                                   ends; n = 64 KiB >> bucket_shift
 *   u32 rules[rule_count]           packed as in ABI_RULE_..._SHIFT
 *   struct abi_unwind_rule wide[wide_count]
 *   u8  changes[], padded to a multiple of 4
 *
 * A bucket describes 1 << bucket_shift bytes of code: one byte with the number of the rule that is
 * valid at its first address, then the changes of the rule, in nibbles, the low one of a byte
 * first. A search reads a bucket from its beginning. Most prologues and epilogues are alike, so a
 * change takes one byte on average where a table of addresses and rules takes three, and with cold
 * caches a walk reads one cache line where a binary search of such a table reads three.
 *
 * The first nibble of a change is an index into `codes`, the page's most frequent changes, or
 * ABI_CHANGE_OTHER; then the next nibble holds an abi_change, with or without ABI_CHANGE_FAR:
 *
 *   code      | change, in bits 0 to 2 | nibbles of distance << 4 | least distance << 8 |
 *   other     that of the nibble's abi_change, 3 nibbles (FAR) or 2, least distance 1
 *
 * Next come, for ABI_CHANGE_TO only, two nibbles with the number of the rule; then the distance's
 * nibbles, lowest first. Distance plus least distance is counted from the previous change, or from
 * the bucket's beginning. A bucket's unused last nibble is ABI_CHANGE_OTHER. Rules are sorted so
 * that those which differ only in the CFA's offset are adjacent and ascending: a push is then a
 * step to the next rule.
 *
 * Gaps between functions have kind ABI_CFA_NONE. Little-endian. The sandbox wrote all of it, so BPF
 * masks each index.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_UNWIND_PAGE_SHIFT = 16,
	ABI_UNWIND_PAGE_ROWS = 16384, /* at most; a page with more is omitted */
	ABI_UNWIND_PAGE_RULES = 255,
	ABI_UNWIND_BUCKET_SHIFT_MIN = 6,
	ABI_UNWIND_BUCKET_SHIFT_MAX = 12,
	ABI_UNWIND_CHANGES = 96, /* per bucket, at most */
	ABI_UNWIND_CODES = 16, /* the last one is unused: its number is ABI_CHANGE_OTHER */
};

/* The rule that a change leads to. */
enum abi_change {
	ABI_CHANGE_TO = 0, /* its number follows */
	/* BACK and TOP are the bucket's first rule until such a change comes. */
	ABI_CHANGE_BACK = 1, /* the rule before the last ABI_CHANGE_TO */
	ABI_CHANGE_TOP = 2, /* where the last even-numbered change led */
	ABI_CHANGE_ENTRY = 3, /* the header's `entry` */
	/* Relative to the current rule's number. */
	ABI_CHANGE_UP = 4,
	ABI_CHANGE_DOWN = 5,
	ABI_CHANGE_UP_2 = 6,
	ABI_CHANGE_DOWN_2 = 7,
	ABI_CHANGE_KINDS,
	ABI_CHANGE_FAR = 8,
	ABI_CHANGE_OTHER = 15,
};

/* The fields of a code. */
enum {
	ABI_CODE_NIBBLES_SHIFT = 4,
	ABI_CODE_NIBBLES = 3,
	ABI_CODE_LEAST_SHIFT = 8,
	ABI_CODE_NEAR_NIBBLES = 2, /* of a change without a code */
	ABI_CODE_FAR_NIBBLES = 3,
};

/* How to compute the canonical frame address. */
enum abi_cfa {
	ABI_CFA_NONE = 0, /* no table here: walk by frame pointer */
	ABI_CFA_SP = 1, /* sp + cfa_off */
	ABI_CFA_FP = 2, /* frame pointer (rbp, x29) + cfa_off */
	ABI_CFA_PLT = 3, /* x86_64 PLT: sp + 8 + ((pc & 15) >= cfa_off ? 8 : 0) */
	ABI_CFA_DEREF_SP = 4, /* *(sp + cfa_off) + ra_off */
	ABI_CFA_DEREF_FP = 5, /* *(fp + cfa_off) + ra_off */
	/*
	 * Register number `extra` + cfa_off (rare: rax, r10, rbx…); with ABI_CFA_REG_INDEX *(sp +
	 * 8 * register + cfa_off) + ra_off.
	 */
	ABI_CFA_REG = 6,
	ABI_CFA_SIGNAL = 7, /* a signal frame: all registers are in the ucontext on the stack */
	ABI_CFA_END = 8, /* return address undefined: the outermost frame */
	ABI_CFA_UNSUPPORTED = 9, /* an unsupported expression: stop, and count */
	ABI_CFA_RUNTIME = 10, /* from here on: a runtime switches stacks (runtime_*.h) */
	ABI_CFA_KINDS = 17,
};

/* In abi_unwind_rule.extra of ABI_CFA_SP, _FP, _DEREF_SP and _DEREF_FP. */
enum {
	ABI_UNWIND_INTERRUPTED = 1, /* the caller was interrupted, it did not call */
	ABI_UNWIND_FRAMED = 2, /* the function has set up its own frame pointer at all its calls */
	/*
	 * x86_64: where the caller's rbx (or r12, without KEPT_RBX) is saved, in words below the
	 * CFA; ABI_UNWIND_UNCHANGED; 0 = not known. Only in files whose walks need it, since it
	 * costs rows.
	 */
	ABI_UNWIND_KEPT_SHIFT = 2,
	ABI_UNWIND_KEPT_WORDS = 31,
	ABI_UNWIND_UNCHANGED = 1, /* still in the register; word 1 is the return address */
	ABI_UNWIND_KEPT_RBX = 128,
};

enum { ABI_CFA_REG_INDEX = 128 }; /* in abi_unwind_rule.extra of ABI_CFA_REG */

enum abi_unwind_page_flags {
	/* All rules are ABI_UNWIND_FRAMED: a caller's frame needs no search of the page. */
	ABI_UNWIND_PAGE_FRAMED = 1,
};

/* Where the caller's value of a register is. */
enum abi_register_rule {
	/* Not saved: unchanged (fp), or in the link register (ra; x86_64: in rdi, by vfork()). */
	ABI_REG_SAME = 0,
	ABI_REG_AT_CFA = 1, /* *(cfa + off) */
	ABI_REG_UNDEFINED = 2,
	ABI_REG_UNSUPPORTED = 3,
	/* fp only, after the stack was realigned: *(fp + fp_off) in the frame, else unchanged. */
	ABI_REG_AT_FP = 4,
	/*
	 * fp only: *(cfa + fp_off) if fp points there, else unchanged. Of a caller also if fp is 0
	 * or, on arm64, wherever fp points.
	 */
	ABI_REG_FRAME = 5,
	ABI_REG_KINDS,
};

struct abi_unwind_rule {
	abi_u8 cfa; /* enum abi_cfa */
	abi_u8 fp; /* enum abi_register_rule */
	abi_u8 ra; /* enum abi_register_rule; x86_64: at cfa - 8, or ABI_REG_SAME */
	abi_u8 extra; /* DWARF register (ABI_CFA_REG), a runtime's own, else ABI_UNWIND_* */
	int cfa_off;
	short fp_off, ra_off; /* from the CFA */
};

/*
 * A rule packed into 32 bits. If it does not fit, CFA is ABI_RULE_WIDE and the bits from
 * ABI_RULE_FP_SHIFT on are its index in `wide`.
 */
enum {
	ABI_RULE_CFA = 15,
	ABI_RULE_WIDE = 15,
	ABI_RULE_FP_SHIFT = 4,
	ABI_RULE_FP = 7,
	ABI_RULE_RA_SHIFT = 7,
	ABI_RULE_RA = 3,
	ABI_RULE_EXTRA_SHIFT = 9,
	ABI_RULE_EXTRA = 3,
	/* enum abi_rule_ra_place: ra_off is 0, one word below the CFA, or one above fp_off. */
	ABI_RULE_RA_PLACE_SHIFT = 11,
	ABI_RULE_RA_PLACE = 3,
	ABI_RULE_FP_WORDS_SHIFT = 13, /* below the CFA */
	ABI_RULE_FP_WORDS = 255,
	ABI_RULE_CFA_WORDS_SHIFT = 21,
	ABI_RULE_CFA_WORDS = 2047,
	ABI_RULE_WORD_BYTES = 8,
};

enum abi_rule_ra_place {
	ABI_RULE_RA_NOWHERE = 0,
	ABI_RULE_RA_BELOW_CFA = 1,
	ABI_RULE_RA_ABOVE_FP = 2,
};

struct abi_unwind_page {
	abi_u32 size; /* bytes, header included */
	unsigned short row_count; /* addresses where the rule changes */
	abi_u8 rule_count, wide_count;
	abi_u8 bucket_shift;
	abi_u8 entry; /* number of the rule that ABI_CHANGE_ENTRY leads to */
	unsigned short flags; /* enum abi_unwind_page_flags */
	unsigned short codes[ABI_UNWIND_CODES];
};

_Static_assert(sizeof(struct abi_unwind_rule) == 12, "the page's layout");
_Static_assert(sizeof(struct abi_unwind_page) == 44, "the page's layout");
