/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Reports the mappings that walks find, for user space to compare with what it knows of a process:
 * the kernel has no records for mremap() and munmap(), and a process that shares its memory with
 * another one (CLONE_VM) has its mappings changed by that one's calls.
 *
 * Only VMA lookups are reported, each mapping once a window: a direct-mapped table has the tag that
 * was reported last for a place, as for stacks (bpf/stack.bpf.h). Mappings found in the cache
 * (bpf/unwind/cache.bpf.h) have not changed.
 */
#include "bpf/scratch.bpf.h"

enum { SIGHTING_PAGE_SHIFT = 12, SIGHTING_HASH_SHIFT = 32 };

static __always_inline __u32 sighting_slot(const struct unwind_walk *walk)
{
	__u64 place = walk->mapping.start >> SIGHTING_PAGE_SHIFT ^ (__u64)walk->key.tgid << 40;

	return (place * STACK_HASH_MUL_3 >> SIGHTING_HASH_SHIFT) & (ABI_SIGHTING_SLOTS - 1);
}

/* A hash of all that user space compares and of the tgid, so that processes can share a slot. */
static __always_inline __u64 sighting_tag(const struct unwind_walk *walk)
{
	const struct abi_mapping *m = &walk->mapping;
	__u64 hash = m->start;

	hash = stack_hash_frame(hash, m->start - m->file_off);
	hash = stack_hash_frame(hash, m->file.inode);
	hash = stack_hash_frame(hash, (__u64)m->file.device << 32 | walk->key.tgid);
	return stack_hash_frame(hash, walk->sample.window) | 1;
}

/* Adds WALK->mapping, which contains PC, to the sightings unless it was reported. */
static __always_inline void sighting_note(struct unwind_walk *walk, __u64 pc)
{
	const struct abi_mapping *m = &walk->mapping;
	__u32 at = walk->sightings.count, slot = sighting_slot(walk);
	const __u64 *reported = bpf_map_lookup_elem(&sightings_reported, &slot);
	__u64 tag = sighting_tag(walk);
	struct abi_sighting *sighting;

	if (!reported || *reported == tag || at >= ABI_SIGHTINGS)
		return;
	/* Older verifiers forget the bound of a number that was on the stack. */
	barrier_var(at);
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

/* Call it before the sample is output. A later walk reports what does not fit the ring now. */
static __always_inline void sightings_output(const struct capture *t, struct unwind_walk *walk)
{
	__u64 count = *(volatile __u32 *)&walk->sightings.count;
	long error;

	if (!count)
		return;
	if (count > ABI_SIGHTINGS)
		count = ABI_SIGHTINGS;
	walk->sightings.kind = ABI_SIGHTINGS_RECORD;
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
		__u64 *reported = bpf_map_lookup_elem(&sightings_reported, &slot);

		if (reported)
			*reported = walk->sighting_tags[i];
	}
}
