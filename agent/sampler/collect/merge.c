/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_RINGS = 1 << 16 };

/* A ring's next record or gap. */
struct merge_entry {
	uint64_t time_ns; /* of the record, or of the beginning of the gap */
	size_t size; /* of the record; 0 = none, only a gap */
	struct ring *ring;
	uint32_t rank; /* order among turns of the same time, lowest first */
	uint64_t gap_until_ns; /* records until then may be lost; 0 = no gap */
};

enum merge_rank { MERGE_SIDEBAND, MERGE_OWN_SAMPLE, MERGE_SAMPLE };

int merge_init(struct merge *m)
{
	*m = (struct merge){ .scratch = malloc(RING_MAX_RECORD_BYTES) };
	return m->scratch ? 0 : -ENOMEM;
}

void merge_deinit(struct merge *m)
{
	free(m->entries);
	free(m->scratch);
	*m = (struct merge){ 0 };
}

static void swap_entries(struct merge_entry *a, struct merge_entry *b)
{
	struct merge_entry kept = *a;

	*a = *b;
	*b = kept;
}

static bool comes_first(const struct merge_entry *a, const struct merge_entry *b)
{
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->rank < b->rank);
}

static void sift_up(struct merge *m, size_t i)
{
	while (i && comes_first(&m->entries[i], &m->entries[(i - 1) / 2])) {
		swap_entries(&m->entries[i], &m->entries[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct merge *m, size_t i)
{
	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < m->entry_count &&
				comes_first(&m->entries[child], &m->entries[least]))
				least = child;
		if (least == i)
			return;
		swap_entries(&m->entries[i], &m->entries[least]);
		i = least;
	}
}

static enum merge_rank merge_rank_of(const struct ring *ring)
{
	if (ring_type(ring) != PERF_RECORD_SAMPLE)
		return MERGE_SIDEBAND;
	return ring->behind_bytes ? MERGE_OWN_SAMPLE : MERGE_SAMPLE;
}

static bool gap_entry(struct ring *ring, struct merge_entry *entry)
{
	if (!ring_ends_in_loss(ring))
		return false;
	*entry = (struct merge_entry){
		.time_ns = ring->last_ns,
		.ring = ring,
		.gap_until_ns = clock_monotonic_ns(),
	};
	return true;
}

/* Sets *TURN to RING's next turn. Returns false if there is none. Drops what is no record. */
static bool next_entry(struct merge *m, struct ring *ring, const struct merge_sink *sink,
	struct merge_entry *entry)
{
	struct merge_entry next = { .ring = ring };
	int found = ring_peek(ring, &next.time_ns, &next.size);

	if (found < 0)
		sink->bad(sink->context, m->last_ns, ring_drop(ring));
	if (found <= 0)
		return found == 0 && gap_entry(ring, entry);
	/* No record can be newer than the reading of its ring; one that claims so must not wait. */
	if (next.time_ns > m->looked_ns)
		next.time_ns = m->last_ns;
	next.rank = merge_rank_of(ring);
	if (ring_type(ring) == PERF_RECORD_LOST) {
		next.gap_until_ns = ring_loss_is_known(ring) ? 0 : next.time_ns;
		next.time_ns = MIN(next.time_ns, ring->last_ns);
	}
	*entry = next;
	return true;
}

static void start(
	struct merge *m, struct ring *const *rings, size_t count, const struct merge_sink *sink)
{
	struct merge_entry entry;

	m->entry_count = 0;
	for (size_t i = 0; i < count; i++)
		ring_look(rings[i]);
	m->looked_ns = clock_monotonic_ns();
	for (size_t i = 0; i < count; i++) {
		if (!next_entry(m, rings[i], sink, &entry))
			continue;
		m->entries[m->entry_count++] = entry;
		sift_up(m, m->entry_count - 1);
	}
}

static void deliver(struct merge *m, const struct merge_entry *entry, const struct merge_sink *sink)
{
	/* The kernel's NMI-safe clock may step back by some ns between CPUs. */
	m->last_ns = MAX(m->last_ns, entry->time_ns);
	if (entry->gap_until_ns && sink->gap)
		sink->gap(sink->context, m->last_ns, MAX(m->last_ns, entry->gap_until_ns));
	if (!entry->size)
		return;
	sink->record(sink->context, m->last_ns, ring_record(entry->ring, entry->size, m->scratch),
		entry->size);
	ring_pop(entry->ring, MAX(entry->time_ns, entry->gap_until_ns), entry->size);
}

int64_t merge_rings(struct merge *m, struct ring *const *rings, size_t count, uint64_t until_ns,
	const struct merge_sink *sink)
{
	int64_t delivered = 0;
	int err = array_reserve(m->entries, m->entry_capacity, count, MAX_RINGS);

	if (err)
		return err;
	start(m, rings, count, sink);
	while (m->entry_count && m->entries[0].time_ns <= until_ns) {
		struct merge_entry *first = &m->entries[0];

		deliver(m, first, sink);
		delivered += first->size > 0;
		if (!next_entry(m, first->ring, sink, first))
			*first = m->entries[--m->entry_count];
		sift_down(m, 0);
	}
	for (size_t i = 0; i < count; i++)
		ring_release(rings[i]);
	return delivered;
}
