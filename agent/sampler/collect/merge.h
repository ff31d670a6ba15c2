/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads several rings as one stream in time order. What may be delivered is bounded by a time that
 * the caller took before the rings were looked at: a record that another record depends on was in
 * its ring before the other got its time, so whatever is delivered has all its causes before it.
 *
 * Records that the kernel lost are told of when the last one before them has been delivered, ahead
 * of everything that depends on them: what tells of them in the ring is stamped with the end of the
 * gap, and may not be there yet.
 *
 * Of records with the same time the side-band's come first, then those of the sampler's own rings,
 * then samples in perf's: a clock that ticks slowly gives a piece of stack in perf's ring the time
 * of the frames in the sampler's own that it goes on from.
 *
 * Knows nothing else of what records mean, and that they are stamped with CLOCK_MONOTONIC.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/ring.h"

struct merge_turn;

struct merge {
	struct merge_turn *turns; /* a binary heap, the earliest first */
	size_t turn_count, turn_capacity;
	uint64_t last_ns; /* time of the record delivered last */
	uint64_t looked_ns; /* CLOCK_MONOTONIC when the rings had been looked at */
	uint8_t *scratch; /* RING_MAX_RECORD_BYTES */
};

struct merge_sink {
	/* RECORD lives for the call. TIME_NS never decreases from call to call. */
	void (*record)(void *context, uint64_t time_ns, const uint8_t *record, size_t size);
	/* A ring held something that is no record; BYTES of it were dropped. */
	void (*bad)(void *context, uint64_t time_ns, uint64_t bytes);
	/*
	 * Records between TIME_NS and UNTIL_NS were lost, or may have been. How many says a record
	 * (PERF_RECORD_LOST) that follows, unless there were none. NULL: nobody wants to know.
	 */
	void (*gap)(void *context, uint64_t time_ns, uint64_t until_ns);
	void *context;
};

int merge_init(struct merge *m);
void merge_deinit(struct merge *m);
/*
 * Delivers all records of the COUNT RINGS with times up to UNTIL_NS; later ones stay in their
 * rings. Returns how many, or -ENOMEM / -E2BIG before anything was delivered.
 */
int64_t merge_rings(struct merge *m, struct ring *const *rings, size_t count, uint64_t until_ns,
	const struct merge_sink *sink);
