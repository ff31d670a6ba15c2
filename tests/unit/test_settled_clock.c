/* SPDX-License-Identifier: Apache-2.0 */
/* The clock for ages follows the wall clock, but jumps into the future only after a while. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/settled_clock.h"

static const int64_t SECOND = 1000000000;
static const int64_t DAY = INT64_C(24) * 3600 * 1000000000;
static const int64_t NOON = INT64_C(1795262400000000000); /* 2026-11-21T12:00:00Z */
static const int64_t WAIT = (int64_t)SETTLED_CLOCK_WAIT_NS;

static int64_t look(struct settled_clock *c, int64_t real_ns, int64_t up_ns)
{
	return settled_clock_now(c, real_ns, (uint64_t)up_ns);
}

static void it_is_the_wall_clock(void **state)
{
	struct settled_clock c;

	(void)state;
	settled_clock_init(&c, NOON, 0, INT64_MAX);
	assert_int_equal(look(&c, NOON, 0), NOON);
	assert_int_equal(look(&c, NOON + DAY, DAY), NOON + DAY);
	/* A correction by some seconds. */
	assert_int_equal(
		look(&c, NOON + DAY + 11 * SECOND, DAY + SECOND), NOON + DAY + 11 * SECOND);
}

static void a_moment_in_the_future_is_not_followed(void **state)
{
	struct settled_clock c;

	(void)state;
	settled_clock_init(&c, NOON, 0, INT64_MAX);
	assert_int_equal(look(&c, NOON + 30 * DAY, 1 * SECOND), NOON + 1 * SECOND);
	assert_int_equal(look(&c, NOON + 30 * DAY + 3 * SECOND, 4 * SECOND), NOON + 4 * SECOND);
	assert_int_equal(look(&c, NOON + 5 * SECOND, 5 * SECOND), NOON + 5 * SECOND);
	/* The next jump has to wait as long again. */
	assert_int_equal(look(&c, NOON + 30 * DAY + WAIT, WAIT), NOON + WAIT);
}

static void a_clock_that_stays_there_is_believed(void **state)
{
	struct settled_clock c;

	(void)state;
	settled_clock_init(&c, NOON, 0, INT64_MAX);
	assert_int_equal(look(&c, NOON + DAY, 0), NOON);
	assert_int_equal(look(&c, NOON + DAY + WAIT / 2, WAIT / 2), NOON + WAIT / 2);
	assert_int_equal(look(&c, NOON + DAY + WAIT, WAIT), NOON + DAY + WAIT);
	assert_int_equal(look(&c, NOON + DAY + 2 * WAIT, 2 * WAIT), NOON + DAY + 2 * WAIT);
}

static void a_second_jump_ahead_waits_anew(void **state)
{
	struct settled_clock c;

	(void)state;
	settled_clock_init(&c, NOON, 0, INT64_MAX);
	assert_int_equal(look(&c, NOON + DAY, 0), NOON);
	assert_int_equal(look(&c, NOON + 30 * DAY + WAIT - 1, WAIT - 1), NOON + WAIT - 1);
	assert_int_equal(look(&c, NOON + 30 * DAY + WAIT, WAIT), NOON + WAIT);
	assert_int_equal(look(&c, NOON + 30 * DAY + 2 * WAIT - 1, 2 * WAIT - 1),
		NOON + 30 * DAY + 2 * WAIT - 1);
}

static void a_step_back_is_followed_at_once(void **state)
{
	struct settled_clock c;

	(void)state;
	settled_clock_init(&c, NOON, 0, INT64_MAX);
	assert_int_equal(look(&c, NOON - 30 * DAY, SECOND), NOON - 30 * DAY);
}

static void at_the_start_the_newest_file_tells(void **state)
{
	struct settled_clock c;

	(void)state;
	settled_clock_init(&c, NOON, 0, NOON - 30 * DAY);
	assert_int_equal(look(&c, NOON, 0), NOON - 30 * DAY);
	assert_int_equal(look(&c, NOON + WAIT, WAIT), NOON + WAIT);
	/* A file from the future does not make others older. */
	settled_clock_init(&c, NOON, 0, NOON + DAY);
	assert_int_equal(look(&c, NOON, 0), NOON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_wall_clock),
		cmocka_unit_test(a_moment_in_the_future_is_not_followed),
		cmocka_unit_test(a_clock_that_stays_there_is_believed),
		cmocka_unit_test(a_second_jump_ahead_waits_anew),
		cmocka_unit_test(a_step_back_is_followed_at_once),
		cmocka_unit_test(at_the_start_the_newest_file_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
