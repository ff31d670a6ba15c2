/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What walks find mapped, for user space to compare with what it knows of the process: no record of
 * the kernel's tells of mremap() and munmap(), and a process that shares its memory with another
 * (CLONE_VM) has its mappings changed by that one's calls.
 *
 * Only the kernel's own mappings that a walk has to look for are noted, and each is told once a
 * window: which one was told last for a place is remembered in a direct-mapped table, as with
 * stacks (bpf/stack.bpf.h). What is at hand of a process (bpf/unwind/cache.bpf.h) has not changed.
 */
#include "bpf/scratch.bpf.h"

enum { SIGHTING_PAGE_SHIFT = 12, SIGHTING_HASH_SHIFT = 32 };

static __always_inline __u32 sighting_slot(const struct unwind_walk *walk)
{
	__u64 place = walk->mapping.start >> SIGHTING_PAGE_SHIFT ^ (__u64)walk->key.tgid << 40;

	return (place * STACK_HASH_MUL_3 >> SIGHTING_HASH_SHIFT) & (ABI_SIGHTING_SLOTS - 1);
}

/* Of all that user space compares, so that another process in the slot is told apart, too. */
static __always_inline __u64 sighting_tag(const struct unwind_walk *walk)
{
	const struct abi_mapping *m = &walk->mapping;
	__u64 hash = m->start;

	hash = stack_hash_frame(hash, m->start - m->file_off);
	hash = stack_hash_frame(hash, m->file.inode);
	hash = stack_hash_frame(hash, (__u64)m->file.device << 32 | walk->key.tgid);
	return stack_hash_frame(hash, walk->sample.window) | 1;
}

/* WALK->mapping, which has PC, is to be told unless it was. */
static __always_inline void sighting_note(struct unwind_walk *walk, __u64 pc)
{
	const struct abi_mapping *m = &walk->mapping;
	__u32 at = walk->sightings.count, slot = sighting_slot(walk);
	const __u64 *told = bpf_map_lookup_elem(&sightings_told, &slot);
	__u64 tag = sighting_tag(walk);
	struct abi_sighting *sighting;

	if (!told || *told == tag || at >= ABI_SIGHTINGS)
		return;
	sighting = &walk->sightings.of[at & (ABI_SIGHTINGS - 1)];
	sighting->pc = pc;
	sighting->start = m->start;
	sighting->end = m->end;
	sighting->file_off = m->file_off;
	sighting->inode = m->file.inode;
	sighting->shown_inode = m->shown.inode;
	sighting->device = m->file.device;
	sighting->shown_device = m->shown.device;
	walk->sighting_tags[at & (ABI_SIGHTINGS - 1)] = tag;
	walk->sighting_slots[at & (ABI_SIGHTINGS - 1)] = slot;
	walk->sightings.count = at + 1;
}

/* Before the sample. What does not fit the ring is told by a later walk. */
static __always_inline void sightings_output(const struct taking *t, struct unwind_walk *walk)
{
	__u64 count = *(volatile __u32 *)&walk->sightings.count;
	long error;

	if (!count)
		return;
	if (count > ABI_SIGHTINGS)
		count = ABI_SIGHTINGS;
	walk->sightings.kind = ABI_SIGHTINGS_MET;
	walk->sightings.tgid = walk->sample.tgid;
	walk->sightings.window = walk->sample.window;
	error = bpf_perf_event_output(t->ctx, &output, BPF_F_CURRENT_CPU, &walk->sightings,
		offsetof(struct sightings_record, of) + count * sizeof(struct abi_sighting));
	if (error) {
		t->counters->of[ABI_COUNT_SIGHTINGS_FULL]++;
		return;
	}
	for (__u32 i = 0; i < ABI_SIGHTINGS && i < count; i++) {
		__u32 slot = walk->sighting_slots[i];
		__u64 *told = bpf_map_lookup_elem(&sightings_told, &slot);

		if (told)
			*told = walk->sighting_tags[i];
	}
}
