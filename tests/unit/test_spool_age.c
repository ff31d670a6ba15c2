/* SPDX-License-Identifier: Apache-2.0 */
/* What the spool drops because of its age, also while the wall clock is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/spool_fixture.h"

enum { LIMIT = 1 << 20, SIZE = 1000, MONTH_S = 30 * 24 * 3600 };

static const char *const targets[] = { "one", NULL };

/* how far the wall clock of this program is ahead */
static time_t ahead_s;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int err = (int)syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_REALTIME)
		time->tv_sec += ahead_s;
	return err;
}

static int set_up(void **state)
{
	static struct spool_fixture fixture;

	ahead_s = 0;
	spool_fixture_init(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	spool_fixture_deinit(*state);
	return 0;
}

/* Keeps records for an hour. */
static struct spool *open_spool(struct spool_fixture *f)
{
	struct spool_options options = spool_fixture_options(f, LIMIT, targets);
	struct spool *s = NULL;

	options.limit_age_ns = UINT64_C(3600000000000);
	assert_int_equal(spool_create(&options, &s), 0);
	return s;
}

static void put(struct spool *s, uint64_t number)
{
	struct payload p;

	spool_fixture_payload(number, SIZE, &p);
	assert_int_equal(spool_put(s, &p), 0);
	payload_deinit(&p);
}

/* Delivers the next record; returns its number, 0 = none. */
static uint64_t take_one(struct spool *s)
{
	struct payload p = { 0 };
	uint64_t number = 0;

	if (!spool_peek(s, 0, &p)) {
		number = spool_fixture_check(&p);
		assert_false(spool_begin(s, 0));
		assert_int_equal(spool_advance(s, 0), 0);
	}
	payload_deinit(&p);
	return number;
}

static void a_clock_that_is_ahead_for_a_moment_costs_nothing(void **state)
{
	struct spool *s = open_spool(*state);

	for (uint64_t n = 1; n <= 3; n++)
		put(s, n);
	ahead_s = MONTH_S;
	spool_upkeep(s);
	assert_int_equal(take_one(s), 1);
	put(s, 4);
	ahead_s = 0;
	spool_upkeep(s);
	for (uint64_t n = 2; n <= 4; n++)
		assert_int_equal(take_one(s), n);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_AGE), 0);
	spool_destroy(s);
}

/* While the clock is wrong, the age of the records is unknown. */
static void a_clock_that_is_ahead_at_the_start_costs_nothing(void **state)
{
	struct spool *s = open_spool(*state);

	put(s, 1);
	spool_destroy(s);
	ahead_s = MONTH_S;
	s = open_spool(*state);
	spool_upkeep(s);
	assert_int_equal(take_one(s), 1);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_AGE), 0);
	spool_destroy(s);
}

/* Records from a time when the clock was ahead are sent in their order. */
static void records_of_the_future_are_sent(void **state)
{
	struct spool *s;

	ahead_s = MONTH_S;
	s = open_spool(*state);
	put(s, 1);
	spool_destroy(s);
	ahead_s = 0;
	s = open_spool(*state);
	put(s, 2);
	spool_upkeep(s);
	assert_int_equal(take_one(s), 1);
	assert_int_equal(take_one(s), 2);
	spool_destroy(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_clock_that_is_ahead_for_a_moment_costs_nothing),
		CASE(a_clock_that_is_ahead_at_the_start_costs_nothing),
		CASE(records_of_the_future_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
