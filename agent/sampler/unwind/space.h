/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Numbered units that are handed out in runs, first fit. The kernel reads what the units stand for
 * without a lock, so a run that is given back rests until space_turn() was called twice.
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
	struct space_runs free; /* ascending, no two touch */
	struct space_runs resting, rested; /* given back since the last turn, and before it */
	uint32_t total; /* units that were free at first */
	uint32_t taken; /* handed out or resting */
};

int space_init(struct space *s, uint32_t first, uint32_t count);
void space_deinit(struct space *s);
/* -EAGAIN when no run is long enough now. COUNT > 0. */
int space_take(struct space *s, uint32_t count, uint32_t *ret_first);
/* A whole run that was taken. On -ENOMEM it is never used again. */
int space_give(struct space *s, uint32_t first, uint32_t count);
void space_turn(struct space *s);
/* Units that are free now, or will be after two turns. */
uint32_t space_left(const struct space *s);
