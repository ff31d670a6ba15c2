/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * One step from a frame to its caller, by tables (bpf/abi/unwind.h) or by frame pointer. Pure
 * functions over the memory of the process and the bytes of a page: they run in the kernel;
 * compiled natively they finish walks in user space, and are tested and fuzzed.
 *
 * A table says where the canonical frame address is (CFA: the caller's stack pointer before the
 * call), and where the caller's frame pointer and the return address are relative to it. Only sp,
 * fp and the link register are tracked, and rbx or r12 if a file needs them (x86_64 has no link
 * register; rdi, in which vfork() holds its return address, is tracked in its place): all but a few
 * functions in a hundred thousand need no more. Of the innermost frame all registers of x86_64 are
 * known: assembly and realigned stacks have the CFA in rax, rsi, r10 and others, some of it also
 * at its calls. Code without a table (JIT, assembly) is unwound by frame pointer; that register may
 * hold anything there, so it must look like a frame pointer.
 *
 * Each access to a page is masked into its region, so bad content cannot lead outside. Nor is the
 * content trusted to move up the stack: each step checks that. The exception is a runtime that
 * switches stacks: its frames continue on another stack, in either direction.
 */
#include <stdbool.h>
#include <linux/types.h>

#include "bpf/abi/unwind_maps.h"
#include "bpf/unwind/state.bpf.h"
#include "bpf/unwind/arch.bpf.h"
#include "bpf/runtimes/unwind.bpf.h"

enum {
	UNWIND_NIBBLE_BITS = 4,
	UNWIND_NUMBER_BITS = 8, /* of a rule */
	UNWIND_CHANGES_AT_ONCE = 16, /* divides ABI_UNWIND_CHANGES; more than most buckets have */
	UNWIND_MAX_FRAME_BYTES = 1 << 20, /* between two frame pointers */
};

/* What is known of the code that a pc lies in. */
enum unwind_place {
	UNWIND_PLACE_UNKNOWN, /* no mapping, or one without a file */
	UNWIND_PLACE_GAP, /* without a table, in a file that has some: assembly */
	UNWIND_PLACE_NO_TABLES, /* of a file without any, or of which nothing is known */
	UNWIND_PLACE_KEEPS_FP, /* without a table, but the module keeps frame pointers */
	UNWIND_PLACE_TABLE, /* has a rule */
};

/* ---- the table ------------------------------------------------------------------------------ */

UNWIND_INLINE __u32 unwind_u8(const abi_u8 *region, __u32 at)
{
	return region[at & (ABI_UNWIND_REGION_BYTES - 1)];
}

UNWIND_INLINE __u32 unwind_u16(const abi_u8 *region, __u32 at)
{
	return *(const unsigned short *)(region + (at & (ABI_UNWIND_REGION_BYTES - 2)));
}

UNWIND_INLINE __u32 unwind_u32(const abi_u8 *region, __u32 at)
{
	return *(const __u32 *)(region + (at & (ABI_UNWIND_REGION_BYTES - 4)));
}

/* Fields of a page's header, and the offsets of its parts in the region. */
struct unwind_parts {
	__u32 shift, entry, buckets, rules, wide, changes;
};

UNWIND_INLINE struct unwind_parts unwind_parts_of(const abi_u8 *region, __u32 page)
{
	__u32 counts =
		unwind_u32(region, page + __builtin_offsetof(struct abi_unwind_page, row_count));
	__u32 head =
		unwind_u32(region, page + __builtin_offsetof(struct abi_unwind_page, bucket_shift));
	struct unwind_parts parts = {
		.shift = head & 15,
		.entry = head >> 8 & 255,
		.buckets = page + sizeof(struct abi_unwind_page),
	};

	parts.rules = parts.buckets + 4 + 2 * (0x10000U >> parts.shift);
	parts.wide = parts.rules + 4 * (counts >> 16 & 255);
	parts.changes = parts.wide + sizeof(struct abi_unwind_rule) * (counts >> 24);
	return parts;
}

/* 1 if A < B, else 0. Without a branch: the verifier would follow both sides. */
UNWIND_INLINE __u64 unwind_below(__u64 a, __u64 b)
{
	return (a - b) >> 63;
}

/*
 * If CHOSEN is all ones, TO with the bits of MASK taken from FROM; if it is 0, TO. Linux 6.18's
 * verifier goes on with each of these two values separately as soon as a constant is combined with
 * CHOSEN, so MASK, a constant, is combined with the other operand first.
 */
UNWIND_INLINE __u64 unwind_chosen(__u64 to, __u64 from, __u64 mask, __u64 chosen)
{
	return to ^ (((to ^ from) & mask) & chosen);
}

/* At least 33 bits from bit AT of the region on. */
UNWIND_INLINE __u64 unwind_bits(const abi_u8 *region, __u32 at)
{
	__u32 word = at >> 5 << 2;
	__u64 low = unwind_u32(region, word), high = unwind_u32(region, word + 4);

	return (low | high << 32) >> (at & 31);
}

/* The state after reading some of a bucket's changes. */
struct unwind_bucket {
	__u64 rule; /* its number */
	/* The rules of ABI_CHANGE_BACK, _TOP and _ENTRY, in bytes 1 to 3. */
	__u64 marks;
	__u64 distance; /* from the last change to the address */
	__u64 next; /* from the last change to the one after the address; 0 = none */
	__u32 at, end; /* bits of the region */
	__u32 last; /* byte of the page in the bucket */
};

enum { UNWIND_BACK_SHIFT = 8, UNWIND_TOP_SHIFT = 16, UNWIND_ENTRY_SHIFT = 24 };

/* The rule that a change of KIND leads to; NUMBER is the rule that it names. */
UNWIND_INLINE __u64 unwind_changed(const struct unwind_bucket *b, __u64 kind, __u64 number)
{
	/* One byte for each kind: the base, and what to add. */
	__u64 from = number | b->marks | (b->rule * 0x01010101) << 32;
	__u64 by = 0xfe02ff0100000000ULL;

	return ((from >> 8 * kind) + (by >> 8 * kind)) & 255;
}

/* Applies the bucket's next change. Returns false if it is after the address, or there is none. */
UNWIND_INLINE bool unwind_next_change(struct unwind_bucket *b, const abi_u8 *region, __u32 codes)
{
	__u64 bits = unwind_bits(region, b->at);
	__u64 other = ((bits & 15) + 1) >> 4;
	__u64 next = bits >> UNWIND_NIBBLE_BITS;
	__u64 code = unwind_u16(region, codes + 2 * (bits & 15));
	__u64 kind, nibbles, names, number, distance, used, rule;

	/* The code of a change without one. */
	code &= other - 1;
	code |= (0 - other) &
		((next & (ABI_CHANGE_KINDS - 1)) |
			(ABI_CODE_NEAR_NIBBLES + (next >> 3 & 1)) << ABI_CODE_NIBBLES_SHIFT |
			1 << ABI_CODE_LEAST_SHIFT);
	next >>= other * UNWIND_NIBBLE_BITS;
	kind = code & (ABI_CHANGE_KINDS - 1);
	nibbles = code >> ABI_CODE_NIBBLES_SHIFT & ABI_CODE_NIBBLES;
	names = unwind_below(kind, ABI_CHANGE_TO + 1);
	number = (next & 255) & (0 - names);
	next >>= UNWIND_NUMBER_BITS * names;
	distance = (code >> ABI_CODE_LEAST_SHIFT) +
		   (next & ((1ULL << nibbles * UNWIND_NIBBLE_BITS) - 1));
	used = (1 + other + nibbles) * UNWIND_NIBBLE_BITS + UNWIND_NUMBER_BITS * names;
	b->at += (__u32)used;
	if (b->at > b->end)
		return false;
	if (distance > b->distance) {
		b->next = distance;
		return false;
	}
	b->distance -= distance;
	rule = unwind_changed(b, kind, number);
	b->marks = unwind_chosen(
		b->marks, b->rule << UNWIND_BACK_SHIFT, 255ULL << UNWIND_BACK_SHIFT, 0 - names);
	b->marks = unwind_chosen(
		b->marks, rule << UNWIND_TOP_SHIFT, 255ULL << UNWIND_TOP_SHIFT, (kind & 1) - 1);
	b->rule = rule;
	return true;
}

/* A row: a rule's number and the first and last byte in the page it is known to be valid for. */
enum { UNWIND_ROW_FIRST_SHIFT = 8, UNWIND_ROW_LAST_SHIFT = 24 };

UNWIND_INLINE __u32 unwind_row_number(__u64 row)
{
	return row & 255;
}

UNWIND_INLINE __u32 unwind_row_first(__u64 row)
{
	return row >> UNWIND_ROW_FIRST_SHIFT & 0xffff;
}

UNWIND_INLINE __u32 unwind_row_last(__u64 row)
{
	return row >> UNWIND_ROW_LAST_SHIFT & 0xffff;
}

/* The row of OFFSET, which B was read up to. */
UNWIND_INLINE __u64 unwind_row_of(const struct unwind_bucket *b, __u32 offset)
{
	__u64 first = offset - b->distance;
	__u32 last = b->last;

	if (b->next && first + b->next <= last)
		last = (__u32)(first + b->next - 1);
	return b->rule | (first & 0xffff) << UNWIND_ROW_FIRST_SHIFT |
	       (__u64)last << UNWIND_ROW_LAST_SHIFT;
}

/* Sets B to the beginning of the bucket of OFFSET in the page at byte PAGE of REGION. */
UNWIND_INLINE void unwind_begin_bucket(
	struct unwind_bucket *b, const abi_u8 *region, __u32 page, __u32 offset)
{
	struct unwind_parts parts = unwind_parts_of(region, page);
	__u32 bucket = parts.buckets + 2 * (offset >> parts.shift);
	__u32 begin = parts.changes + unwind_u16(region, bucket);

	b->rule = unwind_u8(region, begin);
	b->marks = b->rule << UNWIND_BACK_SHIFT | b->rule << UNWIND_TOP_SHIFT |
		   (__u64)parts.entry << UNWIND_ENTRY_SHIFT;
	b->last = offset | ((1U << parts.shift) - 1);
	b->distance = offset & ((1U << parts.shift) - 1);
	b->next = 0;
	b->at = (begin + 1) * 8;
	b->end = (parts.changes + unwind_u16(region, bucket + 2)) * 8;
}

/* Applies the next UNWIND_CHANGES_AT_ONCE changes. Returns false if these were all. */
UNWIND_INLINE bool unwind_some_changes(struct unwind_bucket *b, const abi_u8 *region, __u32 page)
{
	__u32 codes = page + __builtin_offsetof(struct abi_unwind_page, codes);

	/* 64 bits: older verifiers lose track of a smaller counter that is spilled to the stack. */
	for (__u64 i = 0; i < UNWIND_CHANGES_AT_ONCE; i++)
		if (!unwind_next_change(b, region, codes))
			return false;
	return true;
}

/* The row of OFFSET (in its 64 KiB) in the page at byte PAGE of REGION. */
UNWIND_INLINE __u64 unwind_row_at(const abi_u8 *region, __u32 page, __u32 offset)
{
	struct unwind_bucket b;

	unwind_begin_bucket(&b, region, page, offset);
	for (__u32 i = 0; i < ABI_UNWIND_CHANGES; i += UNWIND_CHANGES_AT_ONCE)
		if (!unwind_some_changes(&b, region, page))
			break;
	return unwind_row_of(&b, offset);
}

UNWIND_INLINE bool unwind_page_is_framed(const abi_u8 *region, __u32 page)
{
	return unwind_u16(region, page + __builtin_offsetof(struct abi_unwind_page, flags)) &
	       ABI_UNWIND_PAGE_FRAMED;
}

UNWIND_INLINE void unwind_wide_rule(
	const abi_u8 *region, __u32 at, struct abi_unwind_rule *ret_rule)
{
	__u32 kinds = unwind_u32(region, at);
	__u32 offsets = unwind_u32(region, at + 8);

	ret_rule->cfa = (abi_u8)kinds;
	ret_rule->fp = (abi_u8)(kinds >> 8);
	ret_rule->ra = (abi_u8)(kinds >> 16);
	ret_rule->extra = (abi_u8)(kinds >> 24);
	ret_rule->cfa_off = (int)unwind_u32(region, at + 4);
	ret_rule->fp_off = (short)offsets;
	ret_rule->ra_off = (short)(offsets >> 16);
}

/* Rule NUMBER of the page at byte PAGE of REGION. */
UNWIND_INLINE void unwind_rule_of(
	const abi_u8 *region, __u32 page, __u32 number, struct abi_unwind_rule *ret_rule)
{
	struct unwind_parts parts = unwind_parts_of(region, page);
	__u32 rule = unwind_u32(region, parts.rules + 4 * number);
	int place = rule >> ABI_RULE_RA_PLACE_SHIFT & ABI_RULE_RA_PLACE;
	int fp_words = rule >> ABI_RULE_FP_WORDS_SHIFT & ABI_RULE_FP_WORDS;

	if ((rule & ABI_RULE_CFA) == ABI_RULE_WIDE) {
		number = rule >> ABI_RULE_FP_SHIFT & 255;
		unwind_wide_rule(region,
			parts.wide + number * (__u32)sizeof(struct abi_unwind_rule), ret_rule);
		return;
	}
	ret_rule->cfa = rule & ABI_RULE_CFA;
	ret_rule->fp = rule >> ABI_RULE_FP_SHIFT & ABI_RULE_FP;
	ret_rule->ra = rule >> ABI_RULE_RA_SHIFT & ABI_RULE_RA;
	ret_rule->extra = rule >> ABI_RULE_EXTRA_SHIFT & ABI_RULE_EXTRA;
	ret_rule->cfa_off = (int)(rule >> ABI_RULE_CFA_WORDS_SHIFT) * ABI_RULE_WORD_BYTES;
	ret_rule->fp_off = (short)(-fp_words * ABI_RULE_WORD_BYTES);
	/* 0, -1 word, or one word above the frame pointer's. */
	ret_rule->ra_off =
		(short)(((place >> 1) * (1 - fp_words) - (place & 1)) * ABI_RULE_WORD_BYTES);
}

/* ---- the step ------------------------------------------------------------------------------- */

UNWIND_INLINE bool unwind_is_frame_pointer(const struct unwind_state *s)
{
	return !(s->fp & 7) && s->fp >= s->sp && s->fp - s->sp <= UNWIND_MAX_FRAME_BYTES;
}

/*
 * How a walk ends where the frame below CFA has the return address 0; FP is the caller's. Many
 * coroutine libraries give that address to a coroutine's first function, and such a stack is whole.
 * But a wrong table reads a 0 anywhere. It is wrong if the CFA is no multiple of 16, as the ABIs
 * want it at a call (System V ABI for AMD64 3.2.2, AAPCS64 6.4.5), or if there is a caller, whose
 * frame pointer is above the CFA: libraries set it to 0 or to the stack's end, or leave in it what
 * an earlier coroutine had.
 */
UNWIND_INLINE int unwind_end_at_zero(__u64 cfa, __u64 fp)
{
	bool has_caller = fp > cfa && fp - cfa <= UNWIND_MAX_FRAME_BYTES;

	return cfa & 15 || has_caller ? ABI_UNWIND_BAD_REGISTER : ABI_UNWIND_ROOT;
}

UNWIND_INLINE int unwind_by_frame_pointer(struct unwind_state *s, enum unwind_place place)
{
	__u64 fp = s->fp, caller_fp = 0, pc = 0;

	if (!fp)
		return ABI_UNWIND_ROOT;
	if (unwind_word(s, fp, &caller_fp) || unwind_word(s, fp + 8, &pc))
		return ABI_UNWIND_UNREADABLE;
	if (caller_fp == fp)
		return ABI_UNWIND_BAD_REGISTER;
	pc = unwind_plain_code(pc);
	if (!pc) {
		/* In interrupted code the register may point to any zeroes. */
		if (caller_fp || (!s->is_return && place != UNWIND_PLACE_KEEPS_FP))
			return ABI_UNWIND_BAD_REGISTER;
		return unwind_end_at_zero(fp + 16, caller_fp);
	}
	if (place == UNWIND_PLACE_GAP && unwind_may_skip_caller(s, pc))
		return ABI_UNWIND_GAP;
	return unwind_to(s, pc,
		place == UNWIND_PLACE_KEEPS_FP ? unwind_framed_cfa(fp, caller_fp)
					       : unwind_sp_above(fp),
		caller_fp);
}

UNWIND_INLINE int unwind_deref(struct unwind_state *s, const struct abi_unwind_rule *rule,
	__u64 register_value, __u64 *ret_cfa)
{
	__u64 word = 0;

	if (unwind_word(s, register_value + (__s64)rule->cfa_off, &word))
		return ABI_UNWIND_UNREADABLE;
	*ret_cfa = word + (__s64)rule->ra_off;
	return ABI_UNWIND_GOES_ON;
}

UNWIND_INLINE int unwind_cfa(
	struct unwind_state *s, const struct abi_unwind_rule *rule, __u64 *ret_cfa)
{
	__s64 offset = rule->cfa_off;

	switch (rule->cfa) {
	case ABI_CFA_SP:
		*ret_cfa = unwind_cfa_of_sp(s, rule);
		return ABI_UNWIND_GOES_ON;
	case ABI_CFA_FP:
		*ret_cfa = s->fp + offset;
		return ABI_UNWIND_GOES_ON;
	case ABI_CFA_PLT:
		*ret_cfa = s->sp + 8 + ((s->pc & 15) >= (__u64)offset ? 8 : 0);
		return ABI_UNWIND_GOES_ON;
	case ABI_CFA_DEREF_SP:
		return unwind_deref(s, rule, s->sp, ret_cfa);
	case ABI_CFA_DEREF_FP:
		return unwind_deref(s, rule, s->fp, ret_cfa);
	case ABI_CFA_REG:
		*ret_cfa = unwind_register(s, rule->extra & (ABI_CFA_REG_INDEX - 1));
		if (!*ret_cfa)
			return ABI_UNWIND_BAD_REGISTER;
		if (rule->extra & ABI_CFA_REG_INDEX)
			return unwind_deref(s, rule, s->sp + 8 * *ret_cfa, ret_cfa);
		*ret_cfa += offset;
		return ABI_UNWIND_GOES_ON;
	default: /* an expression */
		return ABI_UNWIND_BAD_REGISTER;
	}
}

/* Whether the caller's fp is in the frame although fp does not point there: calls follow the
 * prologue. */
UNWIND_INLINE bool unwind_saved_fp(const struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	return (!s->fp || UNWIND_FRAME_KEEPS_FP) && s->is_return &&
	       rule->cfa_off > UNWIND_MIN_FRAME_BYTES;
}

UNWIND_INLINE bool unwind_is_in_frame(const struct unwind_state *s, __u64 address, __u64 cfa)
{
	return address >= s->sp && address < cfa;
}

/* Sets *RET_FP to the caller's frame pointer, 0 if not known: a step that needs it ends the walk.
 */
UNWIND_INLINE long unwind_caller_fp(
	struct unwind_state *s, const struct abi_unwind_rule *rule, __u64 cfa, __u64 *ret_fp)
{
	switch (rule->fp) {
	case ABI_REG_SAME:
		*ret_fp = s->fp;
		return 0;
	case ABI_REG_AT_CFA:
		return unwind_word(s, cfa + (__s64)rule->fp_off, ret_fp);
	case ABI_REG_AT_FP:
		/* GCC's tables say so behind the epilogue's `pop rbp`, too: fp is the caller's. */
		*ret_fp = s->fp;
		if (!unwind_is_in_frame(s, s->fp + (__s64)rule->fp_off, cfa))
			return 0;
		return unwind_word(s, s->fp + (__s64)rule->fp_off, ret_fp);
	case ABI_REG_FRAME:
		if (s->fp == cfa + (__s64)rule->fp_off || unwind_saved_fp(s, rule))
			return unwind_word(s, cfa + (__s64)rule->fp_off, ret_fp);
		*ret_fp = s->fp;
		return 0;
	default:
		*ret_fp = 0;
		return 0;
	}
}

/* One step by RULE, which is not ABI_CFA_NONE. Returns an enum abi_unwind_end. */
UNWIND_INLINE int unwind_by_rule(struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	__u64 cfa = 0, fp = 0, pc = 0, kept, own = unwind_callers_own(s);
	bool interrupted = rule->cfa == ABI_CFA_SP && rule->extra & ABI_UNWIND_INTERRUPTED;
	bool done = false;
	int end;

	if (rule->cfa == ABI_CFA_END)
		return ABI_UNWIND_ROOT;
	if (unwind_sp_is_bound(s) && rule->cfa != ABI_CFA_SP && rule->cfa != ABI_CFA_FP)
		return ABI_UNWIND_BAD_REGISTER;
	if (rule->cfa == ABI_CFA_SIGNAL)
		return unwind_signal(s);
	end = rule->cfa >= ABI_CFA_RUNTIME ? runtime_unwind(s, rule, &done)
					   : unwind_cfa(s, rule, &cfa);
	if (end || done)
		return end;
	if (rule->cfa >= ABI_CFA_RUNTIME)
		cfa = s->sp + (__s64)rule->cfa_off;
	if ((cfa & 7) || cfa < s->sp + unwind_least_frame(rule))
		return ABI_UNWIND_BAD_REGISTER;
	if (unwind_caller_fp(s, rule, cfa, &fp))
		return ABI_UNWIND_UNREADABLE;
	end = unwind_return_address(s, rule, cfa, &pc);
	if (end)
		return end;
	pc = unwind_plain_code(pc);
	if (!pc)
		return unwind_end_at_zero(cfa, fp);
	kept = unwind_kept(s, rule, cfa);
	end = unwind_to(s, pc, cfa, fp);
	s->kept[unwind_kept_number(rule)] = kept;
	s->has_own = interrupted ? 0 : own;
	s->is_return = !interrupted;
	return interrupted && !end ? unwind_pushed_call(s) : end;
}

/* One step from PLACE. RULE is used for UNWIND_PLACE_TABLE only. Returns an enum abi_unwind_end. */
UNWIND_INLINE int unwind_step_from(
	struct unwind_state *s, enum unwind_place place, const struct abi_unwind_rule *rule)
{
	if (place == UNWIND_PLACE_TABLE)
		return unwind_by_rule(s, rule);
	if (place == UNWIND_PLACE_KEEPS_FP || unwind_is_frame_pointer(s))
		return unwind_by_frame_pointer(s, place);
	return place == UNWIND_PLACE_UNKNOWN ? ABI_UNWIND_UNKNOWN_MAPPING : ABI_UNWIND_GAP;
}
