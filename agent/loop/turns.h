/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Measures the turns of a loop: how long each takes, and which of its steps took longest. Reads the
 * kernel's clock directly and not the sampler's (base/host.h): a recording of the sampler's input
 * does not contain how long its loop took.
 */
#include <stdint.h>

#include "agent/loop/loop.h"

struct turns {
	loop_turn_fn *fn; /* NULL: nothing is measured */
	void *context;
	const char *step; /* the one that runs now */
	uint64_t began_ns, step_began_ns;
	struct loop_turn turn; /* the one that runs now, so far */
};

void turns_begin(struct turns *t);
/* Ends the step before and begins STEP, a static string. */
void turns_step(struct turns *t, const char *step);
/* Calls FN with the turn. */
void turns_end(struct turns *t);
