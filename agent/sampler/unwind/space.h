/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Allocates numbered units in runs, first fit. The kernel reads what the units stand for without a
 * lock, so a freed run is not reused before space_tick() has been called twice.
 */
#include <stddef.h>
#include <stdint.h>

struct space_run {
	uint32_t first, count;
};

struct space_runs {
	struct space_run *items;
	size_t count, capacity;
};

struct space {
	struct space_runs free; /* ascending, no two adjacent */
	struct space_runs resting, rested; /* freed since the last tick, and in the tick before */
	uint32_t total; /* units that were free initially */
	uint32_t taken; /* units that are allocated or not reusable yet */
};

int space_init(struct space *s, uint32_t first, uint32_t count);
void space_deinit(struct space *s);
/* Allocates COUNT > 0 units. Returns -EAGAIN if no free run is long enough now. */
int space_take(struct space *s, uint32_t count, uint32_t *ret_first);
/* Frees a whole run from space_take(). On -ENOMEM the run is lost. */
int space_give(struct space *s, uint32_t first, uint32_t count);
void space_tick(struct space *s);
/* Units that are free now or after two more ticks. */
uint32_t space_left(const struct space *s);
