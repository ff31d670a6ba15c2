/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bounds the work on one source by the size of the file. Parts of a file may refer to each other
 * arbitrarily often: thousands of units to one table, of functions to one list of ranges, of
 * symbols to one long string. Whoever follows such a reference spends what it costs to read the
 * target, and once the allowance is spent, the rest of the source is left out. A step is about one
 * byte that is parsed. Compilers' output takes about two steps for each byte.
 */
#include <stdbool.h>
#include <stdint.h>

struct work {
	uint64_t left; /* steps */
};

static const uint64_t WORK_BASE_STEPS = UINT64_C(32) << 20;
static const uint64_t WORK_STEPS_PER_BYTE = 16;

/* The allowance for a source of BYTES. */
static inline struct work work_for(uint64_t bytes)
{
	const uint64_t most = (UINT64_MAX - WORK_BASE_STEPS) / WORK_STEPS_PER_BYTE;

	return (struct work){ WORK_BASE_STEPS +
			      (bytes < most ? bytes : most) * WORK_STEPS_PER_BYTE };
}

/* False if fewer than STEPS are left; then no step is left. WORK NULL: not bounded. */
static inline bool work_spend(struct work *work, uint64_t steps)
{
	if (!work)
		return true;
	if (work->left < steps) {
		work->left = 0;
		return false;
	}
	work->left -= steps;
	return true;
}
