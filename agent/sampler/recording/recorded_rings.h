/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rings as the recorder sees them: what a ring holds is moved into a copy (ring_copy.h), which the
 * sampler reads, and is written.
 */
#include <stddef.h>

struct recorded_ring;
struct ring;
struct writer;

struct recorded_rings {
	struct writer *writer; /* borrowed */
	struct recorded_ring *rings; /* all at once: readers have pointers to them */
	size_t count;
};

/* Returns -ENOMEM. */
int recorded_rings_init(struct recorded_rings *r, struct writer *writer);
void recorded_rings_deinit(struct recorded_rings *r);
/* Replaces each of the COUNT RINGS by its copy, which now holds what the ring held. */
void recorded_rings_move(struct recorded_rings *r, struct ring **rings, size_t count);
