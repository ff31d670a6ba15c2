/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_RINGS = 1 << 16 };

/* A ring's next record or gap. */
struct merge_turn {
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
	free(m->turns);
	free(m->scratch);
	*m = (struct merge){ 0 };
}

static void swap_turns(struct merge_turn *a, struct merge_turn *b)
{
	struct merge_turn kept = *a;

	*a = *b;
	*b = kept;
}

static bool comes_first(const struct merge_turn *a, const struct merge_turn *b)
{
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->rank < b->rank);
}

static void sift_up(struct merge *m, size_t i)
{
	while (i && comes_first(&m->turns[i], &m->turns[(i - 1) / 2])) {
		swap_turns(&m->turns[i], &m->turns[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct merge *m, size_t i)
{
	for (;;) {
		size_t least = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < m->turn_count &&
				comes_first(&m->turns[child], &m->turns[least]))
				least = child;
		if (least == i)
			return;
		swap_turns(&m->turns[i], &m->turns[least]);
		i = least;
	}
}

static enum merge_rank merge_rank_of(const struct ring *ring)
{
	if (ring_type(ring) != PERF_RECORD_SAMPLE)
		return MERGE_SIDEBAND;
	return ring->behind_bytes ? MERGE_OWN_SAMPLE : MERGE_SAMPLE;
}

static bool gap_turn(struct ring *ring, struct merge_turn *turn)
{
	if (!ring_ends_in_loss(ring))
		return false;
	*turn = (struct merge_turn){
		.time_ns = ring->last_ns,
		.ring = ring,
		.gap_until_ns = clock_monotonic_ns(),
	};
	return true;
}

/* Sets *TURN to RING's next turn. Returns false if there is none. Drops what is no record. */
static bool next_turn(
	struct merge *m, struct ring *ring, const struct merge_sink *sink, struct merge_turn *turn)
{
	struct merge_turn next = { .ring = ring };
	int found = ring_peek(ring, &next.time_ns, &next.size);

	if (found < 0)
		sink->bad(sink->context, m->last_ns, ring_drop(ring));
	if (found <= 0)
		return found == 0 && gap_turn(ring, turn);
	/* No record can be newer than the reading of its ring; one that claims so must not wait. */
	if (next.time_ns > m->looked_ns)
		next.time_ns = m->last_ns;
	next.rank = merge_rank_of(ring);
	if (ring_type(ring) == PERF_RECORD_LOST) {
		next.gap_until_ns = ring_loss_is_known(ring) ? 0 : next.time_ns;
		next.time_ns = MIN(next.time_ns, ring->last_ns);
	}
	*turn = next;
	return true;
}

static void start(
	struct merge *m, struct ring *const *rings, size_t count, const struct merge_sink *sink)
{
	struct merge_turn turn;

	m->turn_count = 0;
	for (size_t i = 0; i < count; i++)
		ring_look(rings[i]);
	m->looked_ns = clock_monotonic_ns();
	for (size_t i = 0; i < count; i++) {
		if (!next_turn(m, rings[i], sink, &turn))
			continue;
		m->turns[m->turn_count++] = turn;
		sift_up(m, m->turn_count - 1);
	}
}

static void deliver(struct merge *m, const struct merge_turn *turn, const struct merge_sink *sink)
{
	/* The kernel's NMI-safe clock may step back by some ns between CPUs. */
	m->last_ns = MAX(m->last_ns, turn->time_ns);
	if (turn->gap_until_ns && sink->gap)
		sink->gap(sink->context, m->last_ns, MAX(m->last_ns, turn->gap_until_ns));
	if (!turn->size)
		return;
	sink->record(sink->context, m->last_ns, ring_record(turn->ring, turn->size, m->scratch),
		turn->size);
	ring_pop(turn->ring, MAX(turn->time_ns, turn->gap_until_ns), turn->size);
}

int64_t merge_rings(struct merge *m, struct ring *const *rings, size_t count, uint64_t until_ns,
	const struct merge_sink *sink)
{
	int64_t delivered = 0;
	int err = array_reserve(m->turns, m->turn_capacity, count, MAX_RINGS);

	if (err)
		return err;
	start(m, rings, count, sink);
	while (m->turn_count && m->turns[0].time_ns <= until_ns) {
		struct merge_turn *first = &m->turns[0];

		deliver(m, first, sink);
		delivered += first->size > 0;
		if (!next_turn(m, first->ring, sink, first))
			*first = m->turns[--m->turn_count];
		sift_down(m, 0);
	}
	for (size_t i = 0; i < count; i++)
		ring_release(rings[i]);
	return delivered;
}
