/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/space.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t take_run(struct space *s, uint32_t count)
{
	uint32_t first;

	assert_int_equal(space_take(s, count, &first), 0);
	return first;
}

static void runs_are_allocated_one_after_another(void **state)
{
	struct space s;
	uint32_t first = 77;

	(void)state;
	assert_int_equal(space_init(&s, 10, 100), 0);
	assert_int_equal(take_run(&s, 60), 10);
	assert_int_equal(take_run(&s, 30), 70);
	assert_int_equal(space_take(&s, 11, &first), -EAGAIN);
	assert_int_equal(first, 77);
	assert_int_equal(take_run(&s, 10), 100);
	assert_int_equal(space_left(&s), 0);
	space_deinit(&s);
}

static void freed_slots_are_reused_after_two_epochs(void **state)
{
	struct space s;
	uint32_t first;

	(void)state;
	assert_int_equal(space_init(&s, 0, 8), 0);
	assert_int_equal(take_run(&s, 8), 0);
	assert_int_equal(space_give(&s, 0, 8), 0);
	assert_int_equal(space_left(&s), 8);
	assert_int_equal(space_take(&s, 8, &first), -EAGAIN);
	space_tick(&s);
	assert_int_equal(space_take(&s, 8, &first), -EAGAIN);
	assert_int_equal(space_left(&s), 8);
	space_tick(&s);
	assert_int_equal(take_run(&s, 8), 0);
	space_deinit(&s);
}

static void neighbours_join_in_any_order(void **state)
{
	static const uint32_t orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
		{ 2, 0, 1 }, { 2, 1, 0 } };
	struct space s;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(space_init(&s, 0, 30), 0);
		for (int run = 0; run < 3; run++)
			(void)take_run(&s, 10);
		for (size_t run = 0; run < 3; run++) {
			assert_int_equal(space_give(&s, orders[i][run] * 10, 10), 0);
			space_tick(&s);
		}
		space_tick(&s);
		assert_int_equal(take_run(&s, 30), 0);
		space_deinit(&s);
	}
}

/* The model knows the owner of each unit: no run overlaps another, and all are free at the end. */
static void random_use_loses_nothing(void **state)
{
	enum { UNITS = 500, RUNS = 64, STEPS = 20000 };
	struct {
		uint32_t first, count;
	} runs[RUNS] = { 0 };
	bool taken[UNITS] = { false };
	unsigned int seed = 5;
	struct space s;

	(void)state;
	assert_int_equal(space_init(&s, 0, UNITS), 0);
	for (int step = 0; step < STEPS; step++) {
		size_t run = (size_t)rand_r(&seed) % RUNS;

		if (step % 7 == 0)
			space_tick(&s);
		if (runs[run].count) {
			assert_int_equal(space_give(&s, runs[run].first, runs[run].count), 0);
			memset(taken + runs[run].first, false, runs[run].count);
			runs[run].count = 0;
			continue;
		}
		runs[run].count = 1 + (uint32_t)rand_r(&seed) % 20;
		if (space_take(&s, runs[run].count, &runs[run].first)) {
			runs[run].count = 0;
			continue;
		}
		for (uint32_t i = 0; i < runs[run].count; i++) {
			assert_false(taken[runs[run].first + i]);
			taken[runs[run].first + i] = true;
		}
	}
	for (size_t run = 0; run < RUNS; run++)
		if (runs[run].count)
			assert_int_equal(space_give(&s, runs[run].first, runs[run].count), 0);
	space_tick(&s);
	space_tick(&s);
	assert_int_equal(take_run(&s, UNITS), 0);
	space_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_allocated_one_after_another),
		cmocka_unit_test(freed_slots_are_reused_after_two_epochs),
		cmocka_unit_test(neighbours_join_in_any_order),
		cmocka_unit_test(random_use_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
