/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The unwind cache of each CPU: the mapped ranges of recently sampled processes, and the rules of
 * the code they were in. At a tick the processor's caches are cold, so each cache line that a walk
 * does not touch counts.
 *
 * Ranges belong to a process and are valid as long as their key is unchanged. Rules belong to a
 * page of a module, whichever process runs it, and are valid until user space invalidates all of
 * them: when a slot is given to another page, and from time to time, so that the use of pages is
 * noticed. A rule is cached with the extent of its row, since samples hit the same code but seldom
 * the same instruction. It is found by its block of code; a row may span several blocks.
 *
 * Ranges of files are cached, too: a process that is new or has changed its mappings mostly maps
 * files that others map.
 */
#include "bpf/stack.bpf.h"
#include "bpf/unwind/step.bpf.h"

enum {
	UNWIND_CACHE_RANGES = 8,
	UNWIND_CACHE_PROCESSES = 32,
	UNWIND_CACHE_BLOCKS = 512, /* an element of a per-CPU map has at most 32 KiB */
	UNWIND_CACHE_BLOCK_SHIFT = 6, /* bytes of code, as a power of two */
	UNWIND_CACHE_WAYS = 3, /* rules cached per block */
	UNWIND_CACHE_HASH_SHIFT = 40,
	UNWIND_CACHE_AHEAD = 16, /* blocks to prefetch */
	UNWIND_CACHE_FILES = 64,
};

/* In addition to enum unwind_place: as KEEPS_FP, for callers on an ABI_UNWIND_PAGE_FRAMED page. */
enum { UNWIND_PLACE_FRAMED = 16 };

/* The key of a process's cached ranges: they are valid while all of it is unchanged. */
struct unwind_cache_key {
	__u64 mm; /* or the version of the ranges that user space wrote */
	__u64 arg_start; /* of the stack */
	__u32 tgid;
	__u32 changes; /* of the mappings; 0 = not counted: valid for one sample only */
	__u32 files_epoch;
	__u32 exec_id; /* since without randomization mm and arg_start may recur */
};

struct unwind_cache {
	struct unwind_cache_key key;
	/* The blocks of cached rules that the innermost frames of its last walk needed. */
	unsigned short blocks[UNWIND_CACHE_AHEAD];
	__u64 next; /* range to be replaced next */
	struct abi_unwind_range ranges[UNWIND_CACHE_RANGES];
};

/* A range of a file, in file offsets, for processes that have not cached it yet. */
struct unwind_cache_file {
	struct abi_file file;
	__u64 files_epoch;
	struct abi_unwind_range range;
};

struct unwind_cache_processes {
	struct unwind_cache of[UNWIND_CACHE_PROCESSES];
	struct unwind_cache_file files[UNWIND_CACHE_FILES];
};

/* The rule of a row of the page that a slot stands for. */
struct unwind_cache_rule {
	unsigned short slot;
	unsigned short place; /* enum unwind_place, or UNWIND_PLACE_FRAMED */
	unsigned short first, last; /* bytes in the page; first > last = valid for one step only */
	struct abi_unwind_rule rule;
};

struct unwind_cache_block {
	__u32 epoch; /* shared.unwind_rules_epoch when they were cached */
	struct unwind_cache_rule of[UNWIND_CACHE_WAYS];
};

struct unwind_cache_rules {
	struct unwind_cache_block blocks[UNWIND_CACHE_BLOCKS];
};

_Static_assert(sizeof(struct unwind_cache_block) == 64, "a line of the cache");
_Static_assert(ABI_UNWIND_SLOTS <= 1 << 16, "their numbers fit");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct unwind_cache_processes);
} unwind_cache_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct unwind_cache_rules);
} unwind_cache_rules SEC(".maps");

static __always_inline struct unwind_cache_file *unwind_cache_file_of(__u64 inode)
{
	__u32 key = scratch_slot();
	struct unwind_cache_processes *all = bpf_map_lookup_elem(&unwind_cache_processes, &key);
	__u64 hash = inode * STACK_HASH_MUL_3;

	if (!all)
		return NULL;
	return &all->files[(hash >> UNWIND_CACHE_HASH_SHIFT) & (UNWIND_CACHE_FILES - 1)];
}

static __always_inline bool unwind_cache_same_file(
	const struct abi_file *a, const struct abi_file *b)
{
	return a->inode == b->inode && a->size == b->size && a->mtime_s == b->mtime_s &&
	       a->mtime_ns == b->mtime_ns && a->device == b->device &&
	       a->generation == b->generation;
}

/* The cached ranges of TGID, or of another process in the same place. */
static __always_inline struct unwind_cache *unwind_cache_of(__u32 tgid)
{
	__u32 key = scratch_slot();
	struct unwind_cache_processes *all = bpf_map_lookup_elem(&unwind_cache_processes, &key);
	__u64 hash = (__u64)tgid * STACK_HASH_MUL_3;

	if (!all)
		return NULL;
	return &all->of[(hash >> UNWIND_CACHE_HASH_SHIFT) & (UNWIND_CACHE_PROCESSES - 1)];
}

static __always_inline bool unwind_cache_same(
	const struct unwind_cache_key *a, const struct unwind_cache_key *b)
{
	return a->mm == b->mm && a->arg_start == b->arg_start && a->tgid == b->tgid &&
	       a->changes == b->changes && a->files_epoch == b->files_epoch &&
	       a->exec_id == b->exec_id;
}

/*
 * Prefetches the rules that the process needed last, since it mostly needs them again: a walk would
 * wait for one cache miss after another, where the processor can overlap them.
 */
static __always_inline void unwind_cache_ahead(const struct unwind_cache *cache)
{
	__u32 key = scratch_slot();
	const struct unwind_cache_rules *all = bpf_map_lookup_elem(&unwind_cache_rules, &key);

	if (!all)
		return;
#pragma clang loop unroll(full)
	for (int i = 0; i < UNWIND_CACHE_AHEAD; i++) {
		__u32 number = cache->blocks[i] & (UNWIND_CACHE_BLOCKS - 1);

		(void)*(const volatile __u32 *)&all->blocks[number].epoch;
	}
}

/* Prepares the cached ranges for KEY: drops them if they are of another key. */
static __always_inline void unwind_cache_begin(const struct unwind_cache_key *key)
{
	struct unwind_cache *cache = unwind_cache_of(key->tgid);

	if (!cache)
		return;
	unwind_cache_ahead(cache);
	if (key->changes && unwind_cache_same(&cache->key, key))
		return;
	cache->key = *key;
	for (int i = 0; i < UNWIND_CACHE_RANGES; i++)
		cache->ranges[i].end = 0;
}

/* Remembers the numbers of the BLOCKS that the walk needed. */
static __always_inline void unwind_cache_end(
	__u32 tgid, const unsigned short blocks[UNWIND_CACHE_AHEAD])
{
	struct unwind_cache *cache = unwind_cache_of(tgid);

	if (cache)
		__builtin_memcpy(cache->blocks, blocks, sizeof(cache->blocks));
}

/* The number of the block for the code at byte OFFSET of the page of SLOT. */
static __always_inline __u32 unwind_cache_number(__u32 slot, __u32 offset)
{
	__u64 block = ((__u64)slot << ABI_UNWIND_PAGE_SHIFT | offset) >> UNWIND_CACHE_BLOCK_SHIFT;
	__u64 hash = block * STACK_HASH_MUL_3;

	return (hash >> UNWIND_CACHE_HASH_SHIFT) & (UNWIND_CACHE_BLOCKS - 1);
}

/* The block with this number. */
static __always_inline struct unwind_cache_block *unwind_cache_block(__u32 number)
{
	__u32 key = scratch_slot();
	struct unwind_cache_rules *all = bpf_map_lookup_elem(&unwind_cache_rules, &key);

	return all ? &all->blocks[number & (UNWIND_CACHE_BLOCKS - 1)] : NULL;
}

static __always_inline bool unwind_cache_has(
	const struct unwind_cache_rule *rule, __u32 slot, __u32 offset)
{
	return rule->slot == slot && offset >= rule->first && offset <= rule->last;
}

static __always_inline void unwind_cache_forget(struct unwind_cache_rule *rule)
{
	rule->first = 1;
	rule->last = 0;
}

/* Makes room for a rule of SLOT, as the first one. EPOCH is the walk's rules_epoch. */
static __always_inline struct unwind_cache_rule *unwind_cache_room(
	struct unwind_cache_block *block, __u32 epoch, __u32 slot)
{
	for (int way = UNWIND_CACHE_WAYS - 1; way > 0; way--) {
		block->of[way] = block->of[way - 1];
		if (block->epoch != epoch)
			unwind_cache_forget(&block->of[way]);
	}
	block->epoch = epoch;
	block->of[0].slot = (unsigned short)slot;
	return &block->of[0];
}
