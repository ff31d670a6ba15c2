/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * One step from a frame to its caller, over tables (bpf/abi/unwind.h) or by frame pointer. Pure
 * functions over the memory of the process and the bytes of a page: they run in the kernel, and
 * compiled natively they finish walks in user space and are tested and fuzzed.
 *
 * A table says where the canonical frame address is (CFA: the caller's stack pointer, as it was
 * before the call), and where the caller's frame pointer and the return address lie from there.
 * Only sp, fp and the link register are followed, and where a file needs it rbx or r12: all but a
 * few functions in a hundred thousand need no more. What a table leaves out (JIT, assembly) goes by
 * frame pointer; there the register may hold anything, so it has to look like one. Go's tables come
 * from its pclntab.
 *
 * The bytes of a page are masked into their region at each access; nothing in them leads outside.
 * What they say is trusted only so far that a stack must be climbed upwards. Go's goroutines are
 * the exception: their frames go on on another stack, in either direction.
 */
#include <stdbool.h>
#include <linux/types.h>

#include "bpf/abi/unwind_maps.h"
#include "bpf/unwind_state.bpf.h"
#include "bpf/unwind_arch.bpf.h"
#include "bpf/unwind_go.bpf.h"

enum {
	UNWIND_STEP_SHIFT = 12, /* of abi_unwind_page.steps */
	UNWIND_HALVINGS = 13, /* of the 4096 rows that a step can have */
	UNWIND_MOSTLY_HALVINGS = 7, /* few have more than 127 */
	UNWIND_MAX_FRAME_BYTES = 1 << 20, /* between two frame pointers */
};

/* What is known of the code that a pc lies in. */
enum unwind_place {
	UNWIND_PLACE_UNKNOWN, /* no mapping, or one without a file */
	UNWIND_PLACE_GAP, /* a file's, and no table has it */
	UNWIND_PLACE_GO, /* Go's, and no table has it: keeps a frame pointer, if any */
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

/* What is left of a search among sorted rows: COUNT of them, from FIRST on. */
struct unwind_search {
	__u64 first, count;
};

/*
 * Halves the search TIMES times. Without branches: a verifier follows each side of a branch, and
 * the processor guesses wrong at every second one.
 */
UNWIND_INLINE void unwind_halve(
	struct unwind_search *search, const abi_u8 *region, __u32 rows, __u64 offset, int times)
{
	for (int i = 0; i < times; i++) {
		__u64 half = search->count >> 1;
		__u64 row = unwind_u16(region, rows + 2 * (__u32)(search->first + half));
		/* All ones where the row begins at or before OFFSET, and there is one. */
		__u64 before = (__u64)((__s64)(row - offset - 1) >> 63) &
			       (__u64)((__s64)(0 - search->count) >> 63);

		search->first += (half + 1) & before;
		search->count = (half & ~before) + ((search->count - half - 1) & before);
	}
}

/* How many rows begin at or before OFFSET (in its 64 KiB) in the page at byte PAGE of REGION. */
UNWIND_INLINE __u32 unwind_rows_until(const abi_u8 *region, __u32 page, __u32 offset)
{
	__u32 steps = page + __builtin_offsetof(struct abi_unwind_page, steps);
	__u32 step = steps + 2 * (offset >> UNWIND_STEP_SHIFT);
	__u32 rows = page + sizeof(struct abi_unwind_page);
	__u32 begin = unwind_u16(region, step), end = unwind_u16(region, step + 2);
	struct unwind_search search = { begin, end > begin ? end - begin : 0 };

	unwind_halve(&search, region, rows, offset, UNWIND_MOSTLY_HALVINGS);
	if (search.count)
		unwind_halve(
			&search, region, rows, offset, UNWIND_HALVINGS - UNWIND_MOSTLY_HALVINGS);
	return (__u32)search.first;
}

UNWIND_INLINE bool unwind_page_is_framed(const abi_u8 *region, __u32 page)
{
	return unwind_u16(region, page + __builtin_offsetof(struct abi_unwind_page, flags)) &
	       ABI_UNWIND_PAGE_FRAMED;
}

/* The rule of the last of ROWS rows, of the page at byte PAGE of REGION. */
UNWIND_INLINE void unwind_rule_of(
	const abi_u8 *region, __u32 page, __u32 rows, struct abi_unwind_rule *ret_rule)
{
	__u32 row_count = unwind_u16(region, page);
	__u32 numbers = page + sizeof(struct abi_unwind_page) + 2 * row_count;
	__u32 rules = (numbers + row_count + 3) & ~3U;
	__u32 number = rows ? unwind_u8(region, numbers + rows - 1) : 0;
	__u32 at = rules + number * sizeof(struct abi_unwind_rule);
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

/* Of which bytes of the page the rule of ROWS rows is. */
UNWIND_INLINE __u32 unwind_row_first(const abi_u8 *region, __u32 page, __u32 rows)
{
	__u32 addresses = page + sizeof(struct abi_unwind_page);

	return rows ? unwind_u16(region, addresses + 2 * (rows - 1)) : 0;
}

UNWIND_INLINE __u32 unwind_row_last(const abi_u8 *region, __u32 page, __u32 rows)
{
	__u32 addresses = page + sizeof(struct abi_unwind_page);

	if (rows >= unwind_u16(region, page))
		return (1 << ABI_UNWIND_PAGE_SHIFT) - 1;
	return unwind_u16(region, addresses + 2 * rows) - 1;
}

/* ---- the step ------------------------------------------------------------------------------- */

UNWIND_INLINE bool unwind_is_frame_pointer(const struct unwind_state *s)
{
	return !(s->fp & 7) && s->fp >= s->sp && s->fp - s->sp <= UNWIND_MAX_FRAME_BYTES;
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
	return unwind_to(s, unwind_plain_code(pc),
		place == UNWIND_PLACE_GO ? unwind_go_cfa(fp, caller_fp) : fp + 16, caller_fp);
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
		*ret_cfa = s->sp + offset;
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
		*ret_cfa = unwind_register(s, rule->extra);
		if (!*ret_cfa)
			return ABI_UNWIND_BAD_REGISTER;
		*ret_cfa += offset;
		return ABI_UNWIND_GOES_ON;
	default: /* an expression */
		return ABI_UNWIND_BAD_REGISTER;
	}
}

/* It is not known, but the frame has it: calls are behind the prologue. */
UNWIND_INLINE bool unwind_lost_fp(const struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	return !s->fp && s->is_return && rule->cfa_off > UNWIND_MIN_FRAME_BYTES;
}

/* A caller's frame pointer that is not to be had is 0: what needs it later stops there. */
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
		return unwind_word(s, s->fp + (__s64)rule->fp_off, ret_fp);
	case ABI_REG_FRAME:
		if (s->fp == cfa + (__s64)rule->fp_off || unwind_lost_fp(s, rule))
			return unwind_word(s, cfa + (__s64)rule->fp_off, ret_fp);
		*ret_fp = s->fp;
		return 0;
	default:
		*ret_fp = 0;
		return 0;
	}
}

/* One step by RULE, which is not ABI_CFA_NONE. */
UNWIND_INLINE int unwind_by_rule(struct unwind_state *s, const struct abi_unwind_rule *rule)
{
	__u64 cfa = 0, fp = 0, pc = 0, kept;
	bool interrupted = rule->cfa == ABI_CFA_SP && rule->extra & ABI_UNWIND_INTERRUPTED;
	bool done = false;
	int end;

	if (rule->cfa == ABI_CFA_END)
		return ABI_UNWIND_ROOT;
	if (rule->cfa == ABI_CFA_SIGNAL)
		return unwind_signal(s);
	end = rule->cfa >= ABI_CFA_GO_FRAME ? unwind_go(s, rule, &done) : unwind_cfa(s, rule, &cfa);
	if (end || done)
		return end;
	if (rule->cfa >= ABI_CFA_GO_FRAME)
		cfa = s->sp + (__s64)rule->cfa_off;
	if ((cfa & 7) || cfa < s->sp + UNWIND_MIN_FRAME_BYTES)
		return ABI_UNWIND_BAD_REGISTER;
	if (unwind_caller_fp(s, rule, cfa, &fp))
		return ABI_UNWIND_UNREADABLE;
	end = unwind_return_address(s, rule, cfa, &pc);
	if (end)
		return end;
	kept = unwind_kept(s, rule, cfa);
	end = unwind_to(s, unwind_plain_code(pc), cfa, fp);
	s->kept[unwind_kept_number(rule)] = kept;
	s->is_return = !interrupted;
	return interrupted && !end ? unwind_pushed_call(s) : end;
}

/* One step from PLACE; RULE is read for UNWIND_PLACE_TABLE only. An enum abi_unwind_end. */
UNWIND_INLINE int unwind_step_from(
	struct unwind_state *s, enum unwind_place place, const struct abi_unwind_rule *rule)
{
	if (place == UNWIND_PLACE_TABLE)
		return unwind_by_rule(s, rule);
	if (place == UNWIND_PLACE_GO || unwind_is_frame_pointer(s))
		return unwind_by_frame_pointer(s, place);
	return place == UNWIND_PLACE_GAP ? ABI_UNWIND_GAP : ABI_UNWIND_UNKNOWN_MAPPING;
}
