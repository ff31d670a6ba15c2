/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The walk of a user stack in the kernel: finds the module of a pc and the page of its tables, then
 * makes the step of step.bpf.h, up to ABI_WALK_FRAMES times. The step is a global function: the
 * verifier checks it once and not once per frame. Global functions take only numbers on older
 * kernels, so each looks up the scratch area itself.
 *
 * If a page is not loaded, or nothing is known of the process yet, the walk stops: the sample ships
 * registers and a piece of the stack, and user space finishes it (and loads what was missing). To
 * keep a storm of such samples from filling the rings, each CPU has an allowance of bytes; beyond
 * it, walks end there. They do not go on by frame pointer: a function that has not saved it yet, or
 * never does, would be given its caller's caller.
 */
#include "bpf/filter.bpf.h"
#include "bpf/unwind/regs.bpf.h"
#include "bpf/runtimes/sample.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind/lookup.bpf.h"

enum {
	UNFINISHED_MIN_CHUNKS = 4, /* covers most stacks */
	UNWIND_AT_ONCE = 64, /* frames beyond ABI_MAX_FRAMES that one function's loop passes */
#ifdef UNWIND_MAX_FRAMES_ONLY
	UNWIND_ALL_FRAMES = ABI_MAX_FRAMES, /* the program has no stack left for that function */
#else
	UNWIND_ALL_FRAMES = ABI_WALK_FRAMES,
#endif
};

/* ---- the table of a pc ---------------------------------------------------------------------- */

/* The place of a pc in the tables. */
struct unwind_at {
	__u64 page; /* of the module */
	__u32 slot;
	__u32 offset; /* bytes in the page */
};

/* The place of PC, which is in WALK->range. */
static __always_inline struct unwind_at unwind_at(const struct unwind_walk *walk, __u64 pc)
{
	__u64 address = pc - walk->range.start + walk->range.address;
	__u64 page = address >> ABI_UNWIND_PAGE_SHIFT;

	return (struct unwind_at){
		.page = page,
		.slot = walk->range.first_slot + (__u32)page,
		.offset = address & ((1 << ABI_UNWIND_PAGE_SHIFT) - 1),
	};
}

/* abi_unwind_slot.where of slot NUMBER. Marks it as used; notes the first one that is absent. */
static __always_inline __u32 unwind_where(struct unwind_walk *walk, __u32 number)
{
	struct abi_unwind_slot *slot = bpf_map_lookup_elem(&unwind_slots, &number);
	__u32 epoch = shared.unwind_epoch;

	if (!slot)
		return ABI_UNWIND_NO_TABLE;
	if (slot->used != epoch)
		slot->used = epoch;
	if (slot->where == ABI_UNWIND_ABSENT && !walk->missed)
		walk->missed = number + 1;
	return slot->where;
}

/*
 * Reads more changes of the bucket in the walk. Returns whether there may be others. A global
 * function: the verifier follows these changes, and not all that a bucket may have.
 */
__noinline int unwind_read_changes(__u32 where)
{
	__u32 number = where / ABI_UNWIND_REGION_BYTES;
	const struct unwind_region *region = bpf_map_lookup_elem(&unwind_pool, &number);
	struct unwind_walk *walk = unwind_walk_of();

	if (!region || !walk)
		return false;
	return unwind_some_changes(&walk->bucket, region->bytes, where);
}

/* Sets the walk's bucket to that of byte OFFSET in the page at WHERE. Also a global function. */
__noinline int unwind_find_bucket(__u32 where, __u32 offset)
{
	__u32 number = where / ABI_UNWIND_REGION_BYTES;
	const struct unwind_region *region = bpf_map_lookup_elem(&unwind_pool, &number);
	struct unwind_walk *walk = unwind_walk_of();

	if (!region || !walk)
		return false;
	unwind_begin_bucket(&walk->bucket, region->bytes, where, offset & 0xffff);
	return true;
}

/* A global function: the verifier checks the search once, separately from what follows. */
__noinline __u64 unwind_find_row(__u32 where, __u32 offset)
{
	struct unwind_walk *walk = unwind_walk_of();

	if (!walk || !unwind_find_bucket(where, offset))
		return 0;
	for (__u32 i = 0; i < ABI_UNWIND_CHANGES; i += UNWIND_CHANGES_AT_ONCE)
		if (!unwind_read_changes(where))
			break;
	return unwind_row_of(&walk->bucket, offset & 0xffff);
}

static __always_inline enum unwind_place unwind_without_table(const struct unwind_walk *walk)
{
	if (walk->range.kind == ABI_UNWIND_KEEPS_FP)
		return UNWIND_PLACE_KEEPS_FP;
	return walk->range.slot_count ? UNWIND_PLACE_GAP : UNWIND_PLACE_NO_TABLES;
}

/* Whether a frame is at a call, with what looks like its frame pointer. */
static __always_inline bool unwind_is_framed(const struct unwind_walk *walk)
{
	return walk->state.is_return && unwind_is_frame_pointer(&walk->state);
}

/* Looks up byte OFFSET of the page of RET_RULE->slot. Returns whether the page is absent. */
static __always_inline bool unwind_look_up(
	struct unwind_walk *walk, __u32 offset, struct unwind_cache_rule *ret_rule)
{
	__u32 where = unwind_where(walk, ret_rule->slot);
	__u32 number = where / ABI_UNWIND_REGION_BYTES;
	const struct unwind_region *region;
	__u64 row;

	ret_rule->place = unwind_without_table(walk);
	ret_rule->first = 0;
	ret_rule->last = (1 << ABI_UNWIND_PAGE_SHIFT) - 1;
	if (where == ABI_UNWIND_ABSENT || where == ABI_UNWIND_NO_TABLE)
		return where == ABI_UNWIND_ABSENT;
	region = bpf_map_lookup_elem(&unwind_pool, &number);
	if (!region)
		return false;
	/* The common case in code that keeps a frame pointer. */
	if (unwind_page_is_framed(region->bytes, where) && unwind_is_framed(walk)) {
		ret_rule->place = UNWIND_PLACE_FRAMED;
		return false;
	}
	row = unwind_find_row(where, offset);
	unwind_rule_of(region->bytes, where, unwind_row_number(row), &ret_rule->rule);
	ret_rule->first = unwind_row_first(row);
	ret_rule->last = unwind_row_last(row);
	if (ret_rule->rule.cfa != ABI_CFA_NONE)
		ret_rule->place = UNWIND_PLACE_TABLE;
	return false;
}

/*
 * Caches the rule of PC as the first one of its block. Returns 1 if the page is not loaded: the
 * walk then stops here if it may, else the rule is valid for this step only.
 */
__noinline int unwind_learn(__u64 pc)
{
	struct unwind_walk *walk = unwind_walk_of();
	struct unwind_cache_block *block;
	struct unwind_cache_rule *rule;
	struct unwind_at at;
	bool absent;

	if (!walk)
		return 0;
	at = unwind_at(walk, pc);
	block = unwind_cache_block(unwind_cache_number(at.slot, at.offset));
	if (!block)
		return 0;
	rule = unwind_cache_room(block, walk->rules_epoch, at.slot);
	absent = unwind_look_up(walk, at.offset, rule);
	if (absent)
		unwind_cache_forget(rule);
	return absent;
}

static __always_inline bool unwind_fits(const struct unwind_walk *walk,
	const struct unwind_cache_rule *rule, const struct unwind_at *at)
{
	return unwind_cache_has(rule, at->slot, at->offset) &&
	       (rule->place != UNWIND_PLACE_FRAMED || unwind_is_framed(walk));
}

/*
 * The number of PC's rule in BLOCK; AT is its place. Returns UNWIND_CACHE_WAYS if the page is not
 * loaded: the walk has to stop.
 */
static __always_inline __u32 unwind_way(struct unwind_walk *walk, __u64 pc,
	const struct unwind_at *at, const struct unwind_cache_block *block)
{
	for (__u32 way = 0; way < UNWIND_CACHE_WAYS && block->epoch == walk->rules_epoch; way++)
		if (unwind_fits(walk, &block->of[way], at))
			return way;
	return unwind_learn(pc) ? UNWIND_CACHE_WAYS : 0;
}

/* How a walk ends where a table may exist but is not loaded. */
static __always_inline int unwind_without(const struct unwind_walk *walk)
{
	return walk->may_stop ? ABI_UNWIND_MISSED : ABI_UNWIND_NOT_LOADED;
}

/* One step from the I-th frame. Returns an enum abi_unwind_end. */
static __always_inline int unwind_step(struct unwind_walk *walk, __u32 i)
{
	__u64 pc = walk->state.pc - walk->state.is_return;
	enum unwind_place place = UNWIND_PLACE_UNKNOWN;
	struct unwind_cache_block *block;
	struct unwind_at at;
	__u32 way = 0, number;

	if (pc < walk->range.start || pc >= walk->range.end)
		unwind_find(pc);
	if (unwind_is_unknown(walk))
		return unwind_without(walk);
	at = unwind_at(walk, pc);
	number = unwind_cache_number(at.slot, at.offset);
	if (i < UNWIND_CACHE_AHEAD)
		walk->blocks[i] = (unsigned short)number;
	block = unwind_cache_block(number);
	if (!block)
		return ABI_UNWIND_ROOT;
	if (walk->range.end && walk->range.kind != ABI_UNWIND_MEMORY) {
		place = unwind_without_table(walk);
		if (at.page < walk->range.slot_count) {
			way = unwind_way(walk, pc, &at, block);
			if (way >= UNWIND_CACHE_WAYS)
				return unwind_without(walk);
			place = block->of[way].place;
		}
	}
	if (place == UNWIND_PLACE_FRAMED)
		place = UNWIND_PLACE_KEEPS_FP;
	/* Not in unwind_step_from(): user space, which finishes walks by it, has no copy of the
	 * code. */
	if (place != UNWIND_PLACE_TABLE && !walk->state.is_return && unwind_by_edge(&walk->state))
		return ABI_UNWIND_GOES_ON;
	/* Each stack of V8 passes through code without tables, which keeps a frame pointer. */
	if (place == UNWIND_PLACE_GAP && walk->may_guess && !unwind_is_framed(walk)) {
		walk->gap = 1;
		return ABI_UNWIND_MISSED;
	}
	return unwind_step_from(&walk->state, place, &block->of[way].rule);
}

/* Where the I-th frame is recorded: in order, then in a ring of the outermost ones. */
static __always_inline __u32 unwind_word_of(__u32 i)
{
	return i < ABI_MAX_FRAMES ? i : ABI_INNER_FRAMES + (i & (ABI_OUTER_FRAMES - 1));
}

/* Records the current frame, the I-th, and steps to its caller. Returns an enum abi_unwind_end. */
__noinline int unwind_frame(__u32 i)
{
	struct unwind_walk *walk = unwind_walk_of();

	if (!walk)
		return ABI_UNWIND_ROOT;
	if (i >= ABI_WALK_FRAMES)
		return ABI_UNWIND_DEPTH;
	walk->record.frames[unwind_word_of(i) & (ABI_MAX_FRAMES - 1)] =
		i ? unwind_recorded(&walk->state) : walk->state.pc;
	walk->record.frame_count = i < ABI_MAX_FRAMES ? i + 1 : ABI_MAX_FRAMES;
	walk->frames = i + 1;
	return unwind_step(walk, i);
}

/* UNWIND_AT_ONCE frames, from the FIRST one on: the verifier checks this loop once, too. */
__noinline int unwind_frames(__u32 first)
{
	int end = ABI_UNWIND_GOES_ON;

	for (__u32 i = 0; i < UNWIND_AT_ONCE && end == ABI_UNWIND_GOES_ON; i++)
		end = unwind_frame(first + i);
	return end;
}

/* ---- the walk ------------------------------------------------------------------------------- */

static __always_inline bool unwind_may_stop(struct unwind_walk *walk)
{
	__u32 readings = shared.ring_readings;

	if (shared.unwind_full)
		return false;
	if (walk->readings != readings) {
		walk->readings = readings;
		walk->allowance = config.unfinished_allowance;
		return true;
	}
	return walk->allowance >= UNFINISHED_MIN_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES;
}

/* Half of the allowance is for walks that only lack a table. */
static __always_inline bool unwind_may_guess(const struct unwind_walk *walk)
{
	return UNWIND_FINDS_RETURNS && walk->may_stop &&
	       walk->allowance >= config.unfinished_allowance / 2;
}

/*
 * The caller is known without a table: RETURNS says that the thread is at a return instruction. A
 * guess by frame pointer would miss that caller.
 */
static __always_inline int unwind_all(struct unwind_walk *walk, bool returns)
{
	int end = ABI_UNWIND_GOES_ON;

	if (returns) {
		walk->record.frames[0] = walk->state.pc;
		walk->record.frame_count = 1;
		end = unwind_leave(&walk->state);
		if (end != ABI_UNWIND_GOES_ON)
			return end;
	}
	if (!walk->known) {
		walk->record.frames[returns] = walk->state.pc;
		walk->record.frame_count = returns + 1;
		return unwind_without(walk);
	}
	for (__u32 i = returns; i < ABI_MAX_FRAMES; i++) {
		end = unwind_frame(i);
		if (end != ABI_UNWIND_GOES_ON)
			break;
	}
	for (__u32 i = ABI_MAX_FRAMES; i < UNWIND_ALL_FRAMES && end == ABI_UNWIND_GOES_ON;
		i += UNWIND_AT_ONCE)
		end = unwind_frames(i);
	return end == ABI_UNWIND_GOES_ON ? ABI_UNWIND_DEPTH : end;
}

/* Prepares WALK for the task. Returns false if the kernel has to walk. */
static __always_inline bool unwind_begin(const struct capture *t, struct unwind_walk *walk,
	struct abi_sample *sample, const struct runtime_thread *thread)
{
	/* Read before anything that leads to a slot: slots may be given to other pages meanwhile.
	 */
	walk->rules_epoch = shared.unwind_rules_epoch;
	walk->sightings.count = 0;
	walk->key.mm = walk->key.arg_start = 0;
	walk->key.changes = walk->key.files_epoch = 0;
	walk->key.tgid = sample->tgid;
	walk->key.exec_id = sample->exec_id;
	walk->may_stop = unwind_may_stop(walk);
	walk->may_guess = unwind_may_guess(walk);
	walk->gap = 0;
	walk->known = config.unwind_by_mapping ? unwind_begin_mappings(t->task, walk)
					       : unwind_begin_ranges(walk, sample);
	if (!walk->known && config.unwind_by_mapping)
		return false;
	unwind_cache_begin(&walk->key);
	walk->mapping.end = 0;
	walk->range.end = 0;
	walk->missed = 0;
	walk->frames = 0;
	walk->state.block_address = 0;
	walk->state.is_return = 0;
	runtime_begin_walk(walk, sample, thread);
	return regs_of_user(t->interrupted, t->task, &walk->state);
}

/*
 * Captures the user stack of the task, by tables if possible, else with the kernel's walk. Returns
 * its id, or 0 if there is none. Sets ABI_SAMPLE_UNFINISHED if user space has to finish it.
 */
static __always_inline __u64 unwind_take(const struct capture *t, struct scratch *s)
{
	struct abi_sample *sample = &s->walk.sample;
	struct unwind_walk *walk = &s->walk;
	int end;

	if (!unwind_begin(t, walk, sample, &s->runtime))
		return stack_take(t, &walk->record, 0);
	end = unwind_all(walk, t->stack_flags & ABI_STACK_CALL);
	unwind_cache_end(walk->key.tgid, walk->blocks);
	sample->unwind_missed = walk->missed;
	walk->record.flags =
		(walk->gap ? ABI_UNWIND_GAP : end) << ABI_STACK_END_SHIFT | t->stack_flags;
	if (end == ABI_UNWIND_DEPTH)
		walk->record.flags |= ABI_STACK_DEPTH;
	if (walk->frames > ABI_MAX_FRAMES)
		walk->record.flags |= ABI_STACK_MIDDLE | (walk->frames & (ABI_OUTER_FRAMES - 1))
								 << ABI_STACK_RING_SHIFT;
	walk->record.id = stack_hash();
	walk->stack_waits = end != ABI_UNWIND_MISSED;
	if (end == ABI_UNWIND_MISSED) {
		stack_ship(t, &walk->record, 0);
		sample->flags |= ABI_SAMPLE_UNFINISHED;
	}
	return walk->record.id;
}
