/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads several rings as one stream in time order. Only records up to a time that the caller took
 * before the rings were read are delivered: a record is in its ring before a record that depends on
 * it gets its time, so causes are always delivered before their effects.
 *
 * A loss is reported right after the last record before it, ahead of everything that depends on the
 * lost records: PERF_RECORD_LOST has the time of the gap's end, and may not be in the ring yet.
 *
 * Among records with the same time, the side-band comes first, then the sampler's own rings, then
 * samples in perf's rings: with a coarse clock, an unfinished sample in perf's ring may have the
 * time of the frames in the sampler's own ring that it continues.
 *
 * Knows nothing else of what records mean, except that they are stamped with CLOCK_MONOTONIC.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/ring.h"

struct merge_entry;

struct merge {
	struct merge_entry *entries; /* a binary heap, the earliest first */
	size_t entry_count, entry_capacity;
	uint64_t last_ns; /* time of the record delivered last */
	uint64_t looked_ns; /* CLOCK_MONOTONIC after the rings' heads were read */
	uint8_t *scratch; /* RING_MAX_RECORD_BYTES */
};

struct merge_sink {
	/* RECORD is valid during the call. TIME_NS never decreases. */
	void (*record)(void *context, uint64_t time_ns, const uint8_t *record, size_t size);
	/* A ring held something that is no record; BYTES of it were dropped. */
	void (*bad)(void *context, uint64_t time_ns, uint64_t bytes);
	/*
	 * Records between TIME_NS and UNTIL_NS were lost, or may have been. If any were, a
	 * PERF_RECORD_LOST with their number follows. May be NULL.
	 */
	void (*gap)(void *context, uint64_t time_ns, uint64_t until_ns);
	void *context;
};

int merge_init(struct merge *m);
void merge_deinit(struct merge *m);
/*
 * Delivers all records of the COUNT RINGS with times up to UNTIL_NS; later ones stay in their
 * rings. Returns the number of records, or -ENOMEM or -E2BIG before anything is delivered.
 */
int64_t merge_rings(struct merge *m, struct ring *const *rings, size_t count, uint64_t until_ns,
	const struct merge_sink *sink);
