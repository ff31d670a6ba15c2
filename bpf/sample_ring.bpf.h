/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The sampler's own ring on each CPU (bpf/abi/sample_ring.h).
 *
 * Gain: bpf_perf_event_output() took 2.7 of the 10.8 us of a sample, because at a tick the caches
 * are cold and it touches a dozen pages of the kernel's code and data. Here a record costs two
 * pages of a map and one copy: on a busy machine BPF takes 10.5 us a sample instead of 11.3
 * (medians of six runs in turn, 199 Hz). Switch for tests: --test-without=own-rings.
 *
 * One writer, one reader: programs of sampling events never nest on a CPU, and the program at
 * context switches, which they can interrupt, uses perf's ring. The writer trusts its own copy of
 * the head, never the shared page. A wrong tail can only lose a record or overwrite an unread one.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sample_ring.h"
#include "bpf/scratch.bpf.h"

_Static_assert(sizeof(struct abi_ring_record) + ABI_SAMPLE_BYTES + sizeof(struct stack_record) <=
		       ABI_RING_BEHIND_BYTES,
	"the longest record");

/* Whether there is room for SIZE bytes. Reads the tail only if the last known one leaves none. */
static __always_inline bool sample_ring_room(struct ring_place *place, __u8 *ring, __u32 size)
{
	if (place->head + size - place->tail <= config.sample_ring_bytes)
		return true;
	place->tail = *(volatile __u64 *)(ring + ABI_RING_TAIL);
	return place->head + size - place->tail <= config.sample_ring_bytes;
}

/*
 * Writes a record of BYTES (a multiple of 8) of the scratch memory, from SKIP after the sample on.
 * Returns 0, ERROR_NO_SPACE, or 1 if this CPU has no such ring. A global function, so that the
 * verifier checks it once.
 */
__noinline int sample_ring_write(__u32 skip, __u32 bytes)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *s = scratch_of_cpu();
	__u8 *ring = bpf_map_lookup_elem(&sample_rings, &cpu);
	struct abi_ring_record *record;

	/* Older verifiers check this function even if it is never called (no rings, size 0). */
	if (!config.sample_ring_bytes)
		return 1;
	if (!s || !ring || bytes > ABI_SAMPLE_BYTES + sizeof(struct stack_record))
		return 1;
	if (!sample_ring_room(&s->ring, ring, sizeof(*record) + bytes))
		return ERROR_NO_SPACE;
	record = (void *)ring + ABI_RING_DATA +
		 (s->ring.head & (config.sample_ring_bytes - 1) & ~(ABI_RING_ALIGNMENT - 1ULL));
	bpf_probe_read_kernel(record->raw, bytes, (void *)&s->walk.sample + skip);
	record->type = ABI_RING_RECORD;
	record->misc = 0;
	record->size = sizeof(*record) + bytes;
	record->raw_bytes = sizeof(record->raw) + bytes;
	record->time_ns = bpf_ktime_get_ns();
	s->ring.head += sizeof(*record) + bytes;
	barrier();
	*(volatile __u64 *)(ring + ABI_RING_HEAD) = s->ring.head;
	return 0;
}
