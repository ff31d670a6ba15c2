/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loop/turns.h"

#include <time.h>

static uint64_t turns_now_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void turns_end_step(struct turns *t, uint64_t now_ns)
{
	uint64_t step_ns = now_ns - t->step_began_ns;

	if (!t->step || step_ns < t->turn.step_ns)
		return;
	t->turn.step_ns = step_ns;
	t->turn.step = t->step;
}

void turns_begin(struct turns *t)
{
	if (!t->fn)
		return;
	t->began_ns = t->step_began_ns = turns_now_ns();
	t->step = NULL;
	t->turn = (struct loop_turn){ .step = "none" };
}

void turns_step(struct turns *t, const char *step)
{
	uint64_t now_ns;

	if (!t->fn)
		return;
	now_ns = turns_now_ns();
	turns_end_step(t, now_ns);
	t->step = step;
	t->step_began_ns = now_ns;
}

void turns_end(struct turns *t)
{
	uint64_t now_ns;

	if (!t->fn)
		return;
	now_ns = turns_now_ns();
	turns_end_step(t, now_ns);
	t->turn.duration_ns = now_ns - t->began_ns;
	t->step = NULL;
	t->fn(t->context, &t->turn);
}
