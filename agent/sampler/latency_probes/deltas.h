/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was added to cells since they were last read. BPF goes on adding to a cell while it is read,
 * so cells are not cleared: what they had is remembered and subtracted. Knows nothing of windows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/probes/latency/latency.h"

struct delta_cell {
	struct latency_cell cell; /* as last read, without what came since a count of 0 */
	uint32_t idle; /* readings without a call */
};

struct deltas {
	struct delta_cell *items; /* a hash table of open addresses; function UINT32_MAX = free */
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

struct deltas_reading {
	/* A cell has more calls. DELTA: what was added; max_ns: see struct window_latency_cell. */
	void (*added)(void *context, const struct latency_cell *delta);
	/*
	 * Whether CELL is forgotten, now that it was read; IDLE times it had no new call. Its owner
	 * then deletes it.
	 */
	bool (*forget)(void *context, const struct latency_cell *cell, uint32_t idle);
	void *context;
};

void deltas_deinit(struct deltas *d);
/*
 * CELLS are all that there are now; those that were there and are not are forgotten. Returns
 * -ENOMEM, and nothing has happened: the next reading has all.
 */
int deltas_read(struct deltas *d, const struct latency_cell *cells, size_t count,
	const struct deltas_reading *reading);
