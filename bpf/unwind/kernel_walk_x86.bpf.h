/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Walks the kernel's stack by the kernel's own unwind tables (ORC) and caches the rows it used.
 *
 * Gain: at a tick of 100 Hz the kernel's own walk takes 20 us for five frames, because none of its
 * megabytes of tables are in the caches or the TLB; repeated at once it takes 1.5 us. Most kernel
 * stacks consist of the same few calls, so 16 KiB of cached rows per CPU are enough. On a busy
 * machine BPF takes 10.5 us a sample instead of 12.6 (medians of six runs in turn, 199 Hz). Switch
 * for tests: --test-without=kernel-walk.
 *
 * It covers the plain case: code of the kernel itself, and rules based on the stack or frame
 * pointer. Everything else (modules, tracers' trampolines, BPF programs, stacks without an end) is
 * left to the kernel. The tables are no stable interface, so the first walks, and one in many later
 * on, are compared with the kernel's; after a single difference all stacks are left to the kernel.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/kernel_walk.h"
#include "bpf/kernel_types.h"
#include "bpf/scratch.bpf.h"

enum {
	KERNEL_ROW_STEPS = 22, /* of a binary search over ABI_KERNEL_ROWS_MAX */
	KERNEL_ROW_SETS = 256,
	KERNEL_ROW_WAYS = 4,
	KERNEL_ROW_BLOCK_SHIFT = 6, /* bytes of code, as a power of two */
	KERNEL_BLOCK_BYTES = 512, /* unit in which the stack is read; never crosses a page */
	KERNEL_STACK_MAX_BYTES = 1 << 16,
};

/* The bits of struct orc_entry (arch/x86/include/asm/orc_types.h) since 6.4. */
enum {
	ORC_INDEX_SHIFT = 8, /* bytes of code that an element of orc_lookup[] stands for */
	ORC_REG_MASK = 15,
	ORC_BP_SHIFT = 4,
	ORC_TYPE_SHIFT = 8,
	ORC_TYPE_MASK = 7,
	ORC_SIGNAL = 1 << 11,
};

enum orc_type { ORC_UNDEFINED, ORC_END, ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL };

enum orc_register {
	ORC_REG_UNDEFINED = 0,
	ORC_REG_PREV_SP = 1,
	ORC_REG_BP = 4,
	ORC_REG_SP = 5,
	ORC_REG_BP_INDIRECT = 8,
	ORC_REG_SP_INDIRECT = 9,
};

/* The result of a step. */
enum kernel_step { KERNEL_GOES_ON, KERNEL_ENDS, KERNEL_GIVES_UP };

struct orc_rule {
	short sp_offset, bp_offset;
	unsigned short how; /* ORC_... */
	unsigned short reserved;
};

/* A rule and where it applies, as offsets in the kernel's code. */
struct kernel_row {
	__u32 first, last;
	struct orc_rule rule;
};

struct kernel_row_set {
	struct kernel_row of[KERNEL_ROW_WAYS];
};

/* In memory: the verifier would follow each possible value of a register. */
struct kernel_search {
	__u32 low, high;
};

struct kernel_rows {
	struct kernel_row_set sets[KERNEL_ROW_SETS];
	struct kernel_search search;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kernel_rows);
} kernel_rows SEC(".maps");

static __always_inline bool kernel_walk_supported(void)
{
	const struct orc_entry *orc = NULL;

	/* Before 6.4 the bits have another meaning. */
	return bpf_core_field_exists(orc->signal) && !bpf_core_field_exists(orc->end);
}

static __always_inline struct kernel_rows *kernel_rows_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&kernel_rows, &zero);
}

static __always_inline struct kernel_row_set *kernel_row_set(struct kernel_rows *rows, __u32 offset)
{
	__u64 hash = (__u64)(offset >> KERNEL_ROW_BLOCK_SHIFT) * STACK_HASH_MUL_3;

	return &rows->sets[(hash >> 40) & (KERNEL_ROW_SETS - 1)];
}

/* The offset in the kernel's code from which on row NUMBER applies. Returns 0 or an error. */
static __always_inline long kernel_row_address(__u32 number, __s64 *ret_offset)
{
	__u64 at = shared.kernel_tables.addresses + 4ULL * number;
	int distance = 0;
	long err = bpf_probe_read_kernel(&distance, sizeof(distance), (const void *)at);

	*ret_offset = (__s64)(at + (__s64)distance - shared.kernel_tables.text);
	return err;
}

/*
 * Narrows SEARCH by the kernel's own index (orc_lookup[]), if that is there and correct for OFFSET:
 * the first row begins at or below OFFSET, the last one above.
 */
static __always_inline void kernel_rows_cached(__u32 offset, volatile struct kernel_search *search)
{
	__u64 at = shared.kernel_tables.index + 4ULL * (offset >> ORC_INDEX_SHIFT);
	__u32 rows[2] = {}, count = shared.kernel_tables.count;
	__s64 low = 0, high = 0;

	if (bpf_probe_read_kernel(rows, sizeof(rows), (const void *)at))
		return;
	if (rows[0] >= count || rows[1] >= count - 1)
		return;
	if (kernel_row_address(rows[0], &low) || kernel_row_address(rows[1] + 1, &high))
		return;
	if (low > offset || high <= offset)
		return;
	search->low = rows[0];
	search->high = rows[1] + 1;
}

/* The number of rows that begin at or below OFFSET; 0 if they cannot be read. */
static __always_inline __u32 kernel_rows_up_to(__u32 offset, volatile struct kernel_search *search)
{
	search->low = 0;
	search->high = shared.kernel_tables.count;
	kernel_rows_cached(offset, search);
	for (int i = 0; i < KERNEL_ROW_STEPS; i++) {
		__u32 low = search->low, high = search->high, middle = (low + high) >> 1;
		__s64 begin = 0;

		if (low >= high)
			break;
		if (kernel_row_address(middle, &begin))
			return 0;
		if (begin <= offset)
			search->low = middle + 1;
		else
			search->high = middle;
	}
	return search->low;
}

/* Caches the row for OFFSET in the kernel's code, as the first of its set. Returns 1 on failure. */
__noinline int kernel_learn(__u32 offset)
{
	struct kernel_rows *rows = kernel_rows_here();
	struct kernel_row_set *set;
	__s64 first = 0, next = 0;
	struct orc_rule rule = {};
	__u32 number;

	/* The verifier checks this function even where it is never called. */
	if (!rows || !kernel_walk_supported())
		return 1;
	set = kernel_row_set(rows, offset);
	number = kernel_rows_up_to(offset, &rows->search);
	if (!number || number >= shared.kernel_tables.count)
		return 1;
	if (kernel_row_address(number - 1, &first) || kernel_row_address(number, &next))
		return 1;
	if (first < 0 || first > offset || next <= offset || next - 1 > 0xffffffffLL)
		return 1;
	if (bpf_probe_read_kernel(&rule, ABI_KERNEL_RULE_BYTES,
		    (const void *)(shared.kernel_tables.rules +
				   ABI_KERNEL_RULE_BYTES * (__u64)(number - 1))))
		return 1;
	for (int way = KERNEL_ROW_WAYS - 1; way > 0; way--)
		set->of[way] = set->of[way - 1];
	set->of[0].first = (__u32)first;
	set->of[0].last = (__u32)(next - 1);
	set->of[0].rule = rule;
	return 0;
}

/* Reads the word at ADDRESS of the stack. */
static __always_inline long kernel_word(struct unwind_state *s, __u64 address, __u64 *ret_word)
{
	__u64 at = address - s->block_address;

	if (address & 7)
		return -1;
	if (at >= KERNEL_BLOCK_BYTES || !s->block_address) {
		__u64 begin = address & ~(KERNEL_BLOCK_BYTES - 1ULL);

		s->block_address = 0;
		if (bpf_probe_read_kernel(s->block, KERNEL_BLOCK_BYTES, (const void *)begin))
			return -1;
		s->block_address = begin;
		at = address - begin;
	}
	*ret_word = s->block[(at >> 3) & (UNWIND_BLOCK_WORDS - 1)];
	return 0;
}

/* The previous frame's stack pointer, or the address of saved registers. */
static __always_inline long kernel_sp(
	struct unwind_state *s, const struct orc_rule *rule, __u64 *ret_sp)
{
	__s64 offset = rule->sp_offset;
	long err = 0;

	switch (rule->how & ORC_REG_MASK) {
	case ORC_REG_SP:
		*ret_sp = s->sp + offset;
		return 0;
	case ORC_REG_BP:
		*ret_sp = s->fp + offset;
		return 0;
	case ORC_REG_BP_INDIRECT:
		return kernel_word(s, s->fp + offset, ret_sp);
	case ORC_REG_SP_INDIRECT:
		err = kernel_word(s, s->sp, ret_sp);
		*ret_sp += offset;
		return err;
	default:
		return -1;
	}
}

static __always_inline long kernel_bp(struct unwind_state *s, const struct orc_rule *rule, __u64 sp)
{
	__s64 offset = rule->bp_offset;

	switch (rule->how >> ORC_BP_SHIFT & ORC_REG_MASK) {
	case ORC_REG_UNDEFINED:
		return 0;
	case ORC_REG_PREV_SP:
		return kernel_word(s, sp + offset, &s->fp);
	case ORC_REG_BP:
		return kernel_word(s, s->fp + offset, &s->fp);
	default:
		return -1;
	}
}

static __always_inline bool kernel_is_trampoline(__u64 pc)
{
	for (int i = 0; i < ABI_KERNEL_TRAMPOLINES; i++)
		if (pc == shared.kernel_tables.trampolines[i])
			return true;
	return false;
}

/* Words of struct pt_regs, and of what the processor pushes at its end. */
enum { PT_BP = 4, PT_PUSHED = 16, PUSHED_IP = 0, PUSHED_CS = 1, PUSHED_SP = 3 };

/* Moves to the interrupted code, whose state the processor pushed at WHERE. */
static __always_inline enum kernel_step kernel_interrupted(struct unwind_state *s, __u64 where)
{
	__u64 pc = 0, cs = 0, sp = 0;

	if (kernel_word(s, where + 8 * PUSHED_CS, &cs))
		return KERNEL_GIVES_UP;
	if ((cs & 3) == 3)
		return KERNEL_ENDS;
	if (kernel_word(s, where + 8 * PUSHED_IP, &pc) ||
		kernel_word(s, where + 8 * PUSHED_SP, &sp))
		return KERNEL_GIVES_UP;
	/* Its function has just returned. */
	if (kernel_is_trampoline(pc))
		return KERNEL_GIVES_UP;
	s->pc = pc;
	s->sp = sp;
	return KERNEL_GOES_ON;
}

static __always_inline enum kernel_step kernel_step_by(
	struct unwind_state *s, const struct orc_rule *rule)
{
	__u32 type = rule->how >> ORC_TYPE_SHIFT & ORC_TYPE_MASK;
	enum kernel_step step = KERNEL_GOES_ON;
	__u64 sp = 0, pc = 0, from = s->sp;

	if (type == ORC_END)
		return KERNEL_ENDS;
	if (type == ORC_UNDEFINED || kernel_sp(s, rule, &sp))
		return KERNEL_GIVES_UP;
	if (type == ORC_CALL) {
		if (kernel_word(s, sp - 8, &pc) || kernel_is_trampoline(pc))
			return KERNEL_GIVES_UP;
		s->pc = pc;
		s->sp = sp;
	} else if (type == ORC_REGS || type == ORC_REGS_PARTIAL) {
		step = kernel_interrupted(s, type == ORC_REGS ? sp + 8 * PT_PUSHED : sp);
		if (step != KERNEL_GOES_ON)
			return step;
		if (type == ORC_REGS && kernel_word(s, sp + 8 * PT_BP, &s->fp))
			return KERNEL_GIVES_UP;
	} else {
		return KERNEL_GIVES_UP;
	}
	if (kernel_bp(s, rule, sp))
		return KERNEL_GIVES_UP;
	s->is_return = !(rule->how & ORC_SIGNAL);
	/* Within one stack, a walk only goes upwards. */
	if (s->sp <= from && from - s->sp < KERNEL_STACK_MAX_BYTES)
		return KERNEL_GIVES_UP;
	return step;
}

/*
 * Makes one step and records its result as the I-th frame, as the kernel's walk would. Returns an
 * enum kernel_step.
 */
__noinline int kernel_frame(__u32 i)
{
	struct unwind_walk *walk = unwind_walk_of();
	struct kernel_rows *rows = kernel_rows_here();
	struct kernel_row_set *set;
	enum kernel_step step;
	__u64 offset;
	__u32 way;

	if (!walk || !rows || i >= ABI_MAX_FRAMES || !kernel_walk_supported())
		return KERNEL_GIVES_UP;
	offset = walk->state.pc - walk->state.is_return - shared.kernel_tables.text;
	if (offset >= shared.kernel_tables.text_end - shared.kernel_tables.text ||
		offset > 0xffffffffULL)
		return KERNEL_GIVES_UP;
	set = kernel_row_set(rows, (__u32)offset);
	for (way = 0; way < KERNEL_ROW_WAYS; way++)
		if (offset >= set->of[way].first && offset <= set->of[way].last)
			break;
	if (way == KERNEL_ROW_WAYS) {
		if (kernel_learn((__u32)offset))
			return KERNEL_GIVES_UP;
		way = 0;
	}
	step = kernel_step_by(&walk->state, &set->of[way & (KERNEL_ROW_WAYS - 1)].rule);
	if (step != KERNEL_GOES_ON)
		return step;
	walk->record.frames[i] = walk->state.pc;
	walk->record.frame_count = i + 1;
	if (!walk->state.is_return) {
		if (walk->interrupted >= KERNEL_INTERRUPTED_MAX)
			return KERNEL_GIVES_UP;
		walk->interrupted_at[walk->interrupted++ & (KERNEL_INTERRUPTED_MAX - 1)] = i;
	}
	return step;
}

/* Walks all frames. Returns an enum kernel_step. A global function: it is verified once. */
__noinline int kernel_frames(void)
{
	int step = KERNEL_GOES_ON;

	for (__u32 i = 1; i < ABI_MAX_FRAMES; i++) {
		if (i >= config.max_frames)
			break;
		step = kernel_frame(i);
		if (step != KERNEL_GOES_ON)
			break;
	}
	return step;
}

/* Records the frames of what was INTERRUPTED. Returns false if the kernel has to walk. */
static __always_inline bool kernel_walk(
	const bpf_user_pt_regs_t *interrupted, struct unwind_walk *walk)
{
	if (!kernel_walk_supported() || !shared.kernel_tables.count || !interrupted)
		return false;
	walk->state.pc = interrupted->rip;
	walk->state.sp = interrupted->rsp;
	walk->state.fp = interrupted->rbp;
	walk->state.is_return = 0;
	walk->state.block_address = 0;
	walk->interrupted = 0;
	walk->record.frames[0] = walk->state.pc;
	walk->record.frame_count = 1;
	return kernel_frames() != KERNEL_GIVES_UP;
}
