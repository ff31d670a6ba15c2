/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What each CPU has at hand: where the code of the processes that were sampled on it last is
 * mapped, and the rules of the code they were in. A tick finds the processor's caches full of other
 * things, so that each line of memory that a walk does without counts.
 *
 * Mappings are a process's, and hold as long as nothing changes that they were made of. Rules are
 * of a page of a module, whichever process runs it, and hold until user space turns them all away:
 * when a slot becomes another page's, and from time to time, so that pages are seen to be used. A
 * rule is kept with the extent of its row, for samples hit the same code and seldom the same
 * instruction; it is found by the block of code that was asked for, of which a row may have
 * several.
 *
 * Of files ranges are kept, too: a process that is new, or has changed its mappings, mostly maps
 * files that others did.
 */
#include "bpf/stack.bpf.h"
#include "bpf/unwind/step.bpf.h"

enum {
	UNWIND_NEAR_RANGES = 8,
	UNWIND_NEAR_PROCESSES = 32,
	UNWIND_NEAR_BLOCKS = 512, /* an element of a per-CPU map has at most 32 KiB */
	UNWIND_NEAR_BLOCK_SHIFT = 6, /* bytes of code, as a power of two */
	UNWIND_NEAR_WAYS = 3, /* rules that a block can have at hand */
	UNWIND_NEAR_HASH_SHIFT = 40,
	UNWIND_NEAR_AHEAD = 16, /* blocks that are asked for before they are needed */
	UNWIND_NEAR_FILES = 64,
};

/* More than enum unwind_place tells: as KEEPS_FP, and at calls it is the function's own. */
enum { UNWIND_PLACE_FRAMED = 16 };

/* Of what a process's ranges are. All the same: nothing has changed. */
struct unwind_near_key {
	__u64 mm; /* or the version of the ranges that user space wrote */
	__u64 arg_start; /* of the stack */
	__u32 tgid;
	__u32 changes; /* of the mappings; 0: not counted, valid for one sample only */
	__u32 files_turn;
	__u32 exec_id; /* the program: without randomization both places may be used again */
};

struct unwind_near {
	struct unwind_near_key key;
	/* Of the rules at hand, those that the innermost frames of its last walk needed. */
	unsigned short blocks[UNWIND_NEAR_AHEAD];
	__u64 next; /* place to be filled */
	struct abi_unwind_range ranges[UNWIND_NEAR_RANGES];
};

/* A range of a file, by its offsets, for processes that have not met it yet. */
struct unwind_near_file {
	struct abi_file file;
	__u64 files_turn;
	struct abi_unwind_range range;
};

struct unwind_near_processes {
	struct unwind_near of[UNWIND_NEAR_PROCESSES];
	struct unwind_near_file files[UNWIND_NEAR_FILES];
};

/* The rule of a row of the page that a slot stands for. */
struct unwind_near_rule {
	unsigned short slot;
	unsigned short place; /* enum unwind_place, or UNWIND_PLACE_GO_FRAME */
	unsigned short first, last; /* bytes in the page; first > last: of one step only */
	struct abi_unwind_rule rule;
};

struct unwind_near_block {
	__u32 turn; /* of the shared unwind_rules_turn */
	struct unwind_near_rule of[UNWIND_NEAR_WAYS];
};

struct unwind_near_rules {
	struct unwind_near_block blocks[UNWIND_NEAR_BLOCKS];
};

_Static_assert(sizeof(struct unwind_near_block) == 64, "a line of the cache");
_Static_assert(ABI_UNWIND_SLOTS <= 1 << 16, "their numbers fit");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_near_processes);
} unwind_near_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_near_rules);
} unwind_near_rules SEC(".maps");

static __always_inline struct unwind_near_file *unwind_near_file_of(__u32 whose, __u64 inode)
{
	struct unwind_near_processes *all = bpf_map_lookup_elem(&unwind_near_processes, &whose);
	__u64 hash = inode * STACK_HASH_MUL_3;

	if (!all)
		return NULL;
	return &all->files[(hash >> UNWIND_NEAR_HASH_SHIFT) & (UNWIND_NEAR_FILES - 1)];
}

static __always_inline bool unwind_near_same_file(
	const struct abi_file *a, const struct abi_file *b)
{
	return a->inode == b->inode && a->size == b->size && a->mtime_s == b->mtime_s &&
	       a->mtime_ns == b->mtime_ns && a->device == b->device &&
	       a->generation == b->generation;
}

/* What is at hand of TGID, or of another that has its place. */
static __always_inline struct unwind_near *unwind_near_of(__u32 whose, __u32 tgid)
{
	struct unwind_near_processes *all = bpf_map_lookup_elem(&unwind_near_processes, &whose);
	__u64 hash = (__u64)tgid * STACK_HASH_MUL_3;

	if (!all)
		return NULL;
	return &all->of[(hash >> UNWIND_NEAR_HASH_SHIFT) & (UNWIND_NEAR_PROCESSES - 1)];
}

static __always_inline bool unwind_near_same(
	const struct unwind_near_key *a, const struct unwind_near_key *b)
{
	return a->mm == b->mm && a->arg_start == b->arg_start && a->tgid == b->tgid &&
	       a->changes == b->changes && a->files_turn == b->files_turn &&
	       a->exec_id == b->exec_id;
}

/*
 * Asks for the rules that the process needed last, mostly the same: a walk would wait for one after
 * the other, where the processor fetches many at once.
 */
static __always_inline void unwind_near_ahead(__u32 whose, const struct unwind_near *near)
{
	const struct unwind_near_rules *all = bpf_map_lookup_elem(&unwind_near_rules, &whose);

	if (!all)
		return;
#pragma clang loop unroll(full)
	for (int i = 0; i < UNWIND_NEAR_AHEAD; i++) {
		__u32 number = near->blocks[i] & (UNWIND_NEAR_BLOCKS - 1);

		(void)*(const volatile __u32 *)&all->blocks[number].turn;
	}
}

/* Makes what is at hand that of KEY, emptied where it was another's. */
static __always_inline void unwind_near_begin(__u32 whose, const struct unwind_near_key *key)
{
	struct unwind_near *near = unwind_near_of(whose, key->tgid);

	if (!near)
		return;
	unwind_near_ahead(whose, near);
	if (key->changes && unwind_near_same(&near->key, key))
		return;
	near->key = *key;
	for (int i = 0; i < UNWIND_NEAR_RANGES; i++)
		near->ranges[i].end = 0;
}

/* BLOCKS: the numbers of those that the walk needed. */
static __always_inline void unwind_near_end(
	__u32 whose, __u32 tgid, const unsigned short blocks[UNWIND_NEAR_AHEAD])
{
	struct unwind_near *near = unwind_near_of(whose, tgid);

	if (near)
		__builtin_memcpy(near->blocks, blocks, sizeof(near->blocks));
}

/* The number of the block of the code around byte OFFSET of the page of SLOT. */
static __always_inline __u32 unwind_near_number(__u32 slot, __u32 offset)
{
	__u64 block = ((__u64)slot << ABI_UNWIND_PAGE_SHIFT | offset) >> UNWIND_NEAR_BLOCK_SHIFT;
	__u64 hash = block * STACK_HASH_MUL_3;

	return (hash >> UNWIND_NEAR_HASH_SHIFT) & (UNWIND_NEAR_BLOCKS - 1);
}

/* Where its rules are, or are to be written. */
static __always_inline struct unwind_near_block *unwind_near_block(__u32 whose, __u32 number)
{
	struct unwind_near_rules *all = bpf_map_lookup_elem(&unwind_near_rules, &whose);

	return all ? &all->blocks[number & (UNWIND_NEAR_BLOCKS - 1)] : NULL;
}

static __always_inline bool unwind_near_has(
	const struct unwind_near_rule *rule, __u32 slot, __u32 offset)
{
	return rule->slot == slot && offset >= rule->first && offset <= rule->last;
}

static __always_inline void unwind_near_forget(struct unwind_near_rule *rule)
{
	rule->first = 1;
	rule->last = 0;
}

/* Makes room for a rule of SLOT, as the first one. TURN: of the walk. */
static __always_inline struct unwind_near_rule *unwind_near_room(
	struct unwind_near_block *block, __u32 turn, __u32 slot)
{
	for (int way = UNWIND_NEAR_WAYS - 1; way > 0; way--) {
		block->of[way] = block->of[way - 1];
		if (block->turn != turn)
			unwind_near_forget(&block->of[way]);
	}
	block->turn = turn;
	block->of[0].slot = (unsigned short)slot;
	return &block->of[0];
}
