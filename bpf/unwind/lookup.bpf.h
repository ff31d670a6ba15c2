/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Finds the code of the module that a pc of the sampled process lies in. User space chooses one of
 * two ways before the program is loaded:
 *
 * By mapping: the kernel's VMA tree (unwind/vma.bpf.h) says which file is mapped now. Tables are
 * per file and serve all processes, so a new process has tables from its first sample on.
 *
 * By range: a table of each process's ranges, which user space writes after a sample of it. It
 * lacks what was mapped since, so walks with a pc outside the ranges are left to user space, as are
 * those of a process that executes another program than the table is for.
 *
 * In both cases each CPU caches some ranges of some processes (unwind/cache.bpf.h).
 */
#include "bpf/scratch.bpf.h"
#include "bpf/unwind/sighting.bpf.h"
#include "bpf/unwind/step.bpf.h"
#include "bpf/unwind/cache.bpf.h"
#include "bpf/unwind/vma.bpf.h"

/*
 * Sets the walk's range to the one of walk->process that contains AT, or to none. Returns 0.
 */
__noinline int unwind_find_range(__u64 at)
{
	__u32 low = 0, high;
	struct unwind_walk *walk = unwind_walk_of();

	if (!walk)
		return 0;
	walk->range.end = 0;
	high = walk->process.range_count;
	for (int i = 0; i < ABI_UNWIND_RANGE_STEPS && low < high; i++) {
		__u32 middle = (low + high) >> 1;
		__u32 number = walk->process.first_range + middle;
		const struct abi_unwind_range *range = bpf_map_lookup_elem(&unwind_ranges, &number);

		if (!range)
			return 0;
		if (at < range->start) {
			high = middle;
		} else if (at >= range->end) {
			low = middle + 1;
		} else {
			walk->range = *range;
			return 0;
		}
	}
	return 0;
}

/* ---- by mapping ----------------------------------------------------------------------------- */

/* Converts RANGE from file offsets to addresses in the mapping M. */
static __always_inline void unwind_map_range(
	struct abi_unwind_range *range, const struct abi_mapping *m)
{
	__u64 bias = m->start - m->file_off;
	__u64 end = m->file_off + (m->end - m->start);

	if (range->start < m->file_off) {
		range->address += m->file_off - range->start;
		range->start = m->file_off;
	}
	if (range->end > end)
		range->end = end;
	range->start += bias;
	range->end += bias;
}

static __always_inline void unwind_cache_put(struct unwind_walk *walk)
{
	struct unwind_cache *cache = unwind_cache_of(walk->key.tgid);

	if (cache)
		cache->ranges[cache->next++ & (UNWIND_CACHE_RANGES - 1)] = walk->range;
}

/* Field by field: a struct would be built on the stack first. */
static __always_inline void unwind_set_range(
	struct unwind_walk *walk, __u64 start, __u64 end, __u32 kind)
{
	walk->range.start = start;
	walk->range.end = end;
	walk->range.address = 0;
	walk->range.first_slot = 0;
	walk->range.slot_count = 0;
	walk->range.kind = (unsigned short)kind;
}

/* Sets the range of byte AT of WALK->mapping's file. Returns false if it is not cached. */
static __always_inline bool unwind_range_is_cached(struct unwind_walk *walk, __u64 at)
{
	const struct unwind_cache_file *cache = unwind_cache_file_of(walk->mapping.file.inode);

	if (!cache || cache->files_epoch != walk->key.files_epoch || at < cache->range.start ||
		at >= cache->range.end ||
		!unwind_cache_same_file(&cache->file, &walk->mapping.file))
		return false;
	walk->range = cache->range;
	return true;
}

static __always_inline void unwind_keep_file(struct unwind_walk *walk)
{
	struct unwind_cache_file *cache = unwind_cache_file_of(walk->mapping.file.inode);

	if (!cache || !walk->range.end || walk->range.kind == ABI_UNWIND_WAITING)
		return;
	cache->file = walk->mapping.file;
	cache->files_epoch = walk->key.files_epoch;
	cache->range = walk->range;
}

/* The state of WALK->range. */
enum unwind_found {
	UNWIND_FOUND, /* final */
	UNWIND_FOUND_NEAR, /* cached; still in file offsets */
	UNWIND_FOUND_FILE, /* yet to be searched for in WALK->process, the file */
};

/* Sets WALK->range for PC, which is in WALK->mapping. Returns an enum unwind_found. */
static __always_inline int unwind_range_of(struct unwind_walk *walk, __u64 pc)
{
	struct abi_mapping *m = &walk->mapping;
	const struct abi_unwind_process *file;

	sighting_note(walk, pc);
	unwind_set_range(walk, m->start, m->end, ABI_UNWIND_WAITING);
	if (m->file.inode == ABI_FILE_NONE) {
		walk->range.kind = ABI_UNWIND_MEMORY;
		m->end = 0;
		unwind_cache_put(walk);
		return UNWIND_FOUND;
	}
	if (unwind_range_is_cached(walk, pc - m->start + m->file_off))
		return UNWIND_FOUND_NEAR;
	file = bpf_map_lookup_elem(&unwind_files, &m->file);
	if (!file)
		return UNWIND_FOUND;
	walk->process = *file;
	return UNWIND_FOUND_FILE;
}

__noinline __u64 vma_next(__u64 entry, __u64 address)
{
	struct unwind_walk *walk = unwind_walk_of();

	return walk ? vma_read_node(walk->node, entry, address) : VMA_UNREADABLE;
}

/* Looks up the mapping of PC and sets WALK->range. Returns an enum unwind_found. */
__noinline int unwind_find_mapping(__u64 pc)
{
	struct unwind_walk *walk = unwind_walk_of();
	struct vm_area_struct *vma = NULL;
	struct mm_struct *mm;

	if (!walk || !config.unwind_by_mapping || !vma_supported())
		return UNWIND_FOUND;
	walk->mapping.end = 0;
	mm = (struct mm_struct *)walk->key.mm;
	if (vma_find(mm, pc, &vma) || (vma && vma_report(mm, vma, pc, &walk->mapping))) {
		/* The tree is being changed: leave the walk to user space. */
		walk->mapping.end = 0;
		unwind_set_range(walk, pc, pc + 1, ABI_UNWIND_WAITING);
		return UNWIND_FOUND;
	}
	if (vma && walk->mapping.executable)
		return unwind_range_of(walk, pc);
	walk->mapping.end = 0;
	return UNWIND_FOUND;
}

/* Sets WALK->range to the one of PC, or to none. */
static __always_inline void unwind_find_by_mapping(struct unwind_walk *walk, __u64 pc)
{
	struct abi_mapping *m = &walk->mapping;
	int found = unwind_find_mapping(pc);

	if (found == UNWIND_FOUND)
		return;
	if (found == UNWIND_FOUND_FILE) {
		/* Called here and not in unwind_find_mapping(): their stack frames do not add up.
		 */
		unwind_find_range(pc - m->start + m->file_off);
		unwind_keep_file(walk);
	}
	if (walk->range.end) {
		unwind_map_range(&walk->range, m);
		/* A WAITING range may become ready without notice, so it is not cached. */
		if (walk->range.kind != ABI_UNWIND_WAITING)
			unwind_cache_put(walk);
	}
	/* User space knows this file. */
	m->end = 0;
}

/* Returns false if TASK has no memory (any more). */
static __always_inline bool unwind_begin_mappings(
	struct task_struct *task, struct unwind_walk *walk)
{
	struct mm_struct *mm = TASK_READ(task, mm);

	if (!mm)
		return false;
	walk->key.mm = (__u64)mm;
	walk->key.changes = vma_changes(mm);
	walk->key.arg_start = TASK_READ(mm, arg_start);
	walk->key.files_epoch = shared.unwind_files_epoch;
	return true;
}

/* ---- either way ----------------------------------------------------------------------------- */

/* Sets the walk's range to the one of PC, or to none. Returns 0. */
__noinline int unwind_find(__u64 pc)
{
	struct unwind_walk *walk = unwind_walk_of();
	const struct unwind_cache *cache;

	if (!walk)
		return 0;
	cache = unwind_cache_of(walk->key.tgid);
	if (!cache)
		return 0;
	for (int i = 0; i < UNWIND_CACHE_RANGES; i++) {
		const struct abi_unwind_range *range = &cache->ranges[i];

		if (pc >= range->start && pc < range->end) {
			walk->range = *range;
			return 0;
		}
	}
	walk->range.end = 0;
	if (config.unwind_by_mapping) {
		unwind_find_by_mapping(walk, pc);
		return 0;
	}
	unwind_find_range(pc);
	if (walk->range.end && walk->range.kind != ABI_UNWIND_WAITING)
		unwind_cache_put(walk);
	return 0;
}

/* Whether only user space can know the code at the pc that WALK->range was looked up for. */
static __always_inline bool unwind_is_unknown(const struct unwind_walk *walk)
{
	if (!walk->range.end)
		return !config.unwind_by_mapping && !walk->process.settled;
	return walk->range.kind == ABI_UNWIND_WAITING;
}

/* Returns false if nothing is known of the process yet. */
static __always_inline bool unwind_begin_ranges(struct unwind_walk *walk, struct abi_sample *sample)
{
	const struct abi_unwind_process *process =
		bpf_map_lookup_elem(&unwind_processes, &sample->tgid);

	if (!process || process->exec_id != sample->exec_id)
		return false;
	walk->process = *process;
	sample->unwind_generation = process->generation;
	walk->key.mm = process->version;
	walk->key.changes = 1;
	return true;
}
