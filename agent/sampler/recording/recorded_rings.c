/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/recording/recorded_rings.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/recording/ring_copy.h"
#include "agent/sampler/recording/writer.h"
#include "base/buffer.h"
#include "base/cleanup.h"

enum { MAX_RINGS = 1 << 12 };

struct recorded_ring {
	const struct perf_event_mmap_page *control; /* of the ring that is copied */
	struct ring_copy copy;
};

int recorded_rings_init(struct recorded_rings *r, struct writer *writer)
{
	*r = (struct recorded_rings){
		.writer = writer,
		.rings = calloc(MAX_RINGS, sizeof(*r->rings)),
	};
	return r->rings ? 0 : -ENOMEM;
}

void recorded_rings_deinit(struct recorded_rings *r)
{
	for (size_t i = 0; i < r->count; i++)
		ring_copy_deinit(&r->rings[i].copy);
	free(r->rings);
	*r = (struct recorded_rings){ 0 };
}

static struct recorded_ring *recorded_rings_find(struct recorded_rings *r, const struct ring *ring)
{
	struct recorded_ring *recorded;

	for (size_t i = 0; i < r->count; i++)
		if (r->rings[i].control == ring->control)
			return &r->rings[i];
	if (r->count == MAX_RINGS)
		return NULL;
	recorded = &r->rings[r->count];
	if (ring_copy_init(&recorded->copy, ring->size_bytes, ring->behind_bytes, ring->room_bytes))
		return NULL;
	recorded->control = ring->control;
	r->count++;
	return recorded;
}

/* Moves what RING holds into its copy, as far as that has room. */
static void recorded_ring_move(
	struct recorded_ring *recorded, struct ring *ring, uint8_t *scratch, struct buffer *moved)
{
	uint64_t time_ns;
	size_t size;
	int found;

	ring_look(ring);
	while ((found = ring_peek(ring, &time_ns, &size)) > 0 &&
		size <= ring_copy_left(&recorded->copy)) {
		const uint8_t *record = ring_record(ring, size, scratch);

		(void)buffer_append(moved, record, size);
		ring_copy_append(&recorded->copy, record, size);
		ring_pop(ring, time_ns, size);
	}
	if (found < 0) {
		const uint64_t nonsense[2] = { 0 };

		(void)buffer_append(moved, nonsense, sizeof(nonsense));
		ring_copy_append(&recorded->copy, (const uint8_t *)nonsense, sizeof(nonsense));
		ring_drop(ring);
	}
	ring_release(ring);
}

void recorded_rings_move(struct recorded_rings *r, struct ring **rings, size_t count)
{
	autofree uint8_t *scratch = malloc(RING_MAX_RECORD_BYTES);

	for (size_t i = 0; scratch && i < count; i++) {
		autocall(buffer_deinit) struct buffer moved;
		struct recorded_ring *recorded = recorded_rings_find(r, rings[i]);
		struct recording_ring ring;

		if (!recorded)
			continue;
		buffer_init(&moved, UINT32_MAX);
		recorded_ring_move(recorded, rings[i], scratch, &moved);
		ring = (struct recording_ring){
			.number = (uint32_t)(recorded - r->rings),
			.behind_bytes = (uint32_t)rings[i]->behind_bytes,
			.size_bytes = rings[i]->size_bytes,
			.room_bytes = rings[i]->room_bytes,
		};
		writer_put(r->writer, RECORDING_RING,
			&(struct writer_body){
				{ { &ring, sizeof(ring) }, { moved.bytes, moved.size } } });
		rings[i] = &recorded->copy.ring;
	}
}
