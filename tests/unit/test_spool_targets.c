/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that are added, removed and reordered. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/intern.h"
#include "tests/unit/spool_fixture.h"

enum { LIMIT = 1 << 20, SIZE = 1000 };

static const char *const two[] = { "one", "two", NULL };

static int set_up(void **state)
{
	static struct spool_fixture fixture;

	spool_fixture_init(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	spool_fixture_deinit(*state);
	return 0;
}

static const char *const two_turned[] = { "two", "one", NULL };
static const char *const only_two[] = { "two", NULL };
static const char *const three[] = { "three", "two", "one", NULL };

static uint64_t abandoned(struct spool_fixture *f)
{
	return metrics_get(&f->metrics, METRIC_SPOOL_ABANDONED_STORE);
}

/* Puts ten records; target one has received three of them, target two seven. */
static struct spool *ten_for_two(struct spool_fixture *f)
{
	struct spool *s = spool_fixture_open(f, LIMIT, two);

	for (uint64_t n = 1; n <= 10; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	for (uint64_t n = 1; n <= 7; n++) {
		assert_int_equal(spool_fixture_take(s, 1), n);
		if (n <= 3)
			assert_int_equal(spool_fixture_take(s, 0), n);
	}
	return s;
}

static void a_target_is_identified_by_name_not_position(void **state)
{
	struct spool *s = ten_for_two(*state);

	assert_int_equal(spool_set_targets(s, two_turned, 2), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 8);
	assert_int_equal(spool_fixture_peek(s, 1), 4);
	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, two);
	assert_int_equal(spool_fixture_peek(s, 0), 4);
	assert_int_equal(spool_fixture_peek(s, 1), 8);
	assert_int_equal(abandoned(*state), 0);
	spool_destroy(s);
}

static void payloads_of_a_removed_target_are_dropped(void **state)
{
	struct spool *s = ten_for_two(*state);

	assert_int_equal(spool_set_targets(s, only_two, 1), 0);
	assert_int_equal(abandoned(*state), 7);
	assert_int_equal(spool_abandoned(s), 7);
	assert_int_equal(spool_fixture_take(s, 0), 8);
	/* A target that returns is a new one. */
	assert_int_equal(spool_set_targets(s, two, 2), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(spool_fixture_peek(s, 1), 9);
	assert_int_equal(spool_fixture_put(s, 11, SIZE), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 11);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	spool_destroy(s);
}

static void payloads_of_a_target_missing_at_the_start_are_dropped(void **state)
{
	struct spool *s = ten_for_two(*state);

	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, only_two);
	assert_int_equal(abandoned(*state), 7);
	assert_int_equal(spool_fixture_take(s, 0), 8);
	spool_destroy(s);
	/* The abandoned records are counted once. */
	s = spool_fixture_open(*state, LIMIT, only_two);
	assert_int_equal(abandoned(*state), 7);
	assert_int_equal(spool_fixture_peek(s, 0), 9);
	spool_destroy(s);
}

static void a_new_target_is_missing_nothing(void **state)
{
	struct spool *s = ten_for_two(*state);

	for (uint64_t n = 4; n <= 10; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	for (uint64_t n = 8; n <= 10; n++)
		assert_int_equal(spool_fixture_take(s, 1), n);
	spool_destroy(s);
	/* No record is left, so only the cursors hold the last number. */
	s = spool_fixture_open(*state, LIMIT, three);
	assert_int_equal(spool_fixture_put(s, 11, SIZE), 0);
	for (size_t target = 0; target < 3; target++) {
		assert_int_equal(spool_pending(s, target), 1);
		assert_int_equal(spool_fixture_take(s, target), 11);
		assert_int_equal(spool_dropped(s, target, SPOOL_DROP_CORRUPT), 0);
	}
	spool_destroy(s);
}

/* Renames the cursor of NAME to its name in version 0.1.0. */
static void make_cursor_old(const struct spool_fixture *f, const char *name, const char *old_name)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	char from[160], to[160];

	snprintf(from, sizeof(from), "%s/%s-%016llx.cursor", f->directory, name,
		(unsigned long long)hash);
	snprintf(to, sizeof(to), "%s/%s-%08x.cursor", f->directory, old_name,
		(unsigned int)hash_bytes(old_name, strlen(old_name)));
	assert_int_equal(rename(from, to), 0);
}

static void cursors_of_an_earlier_version_are_taken_over(void **state)
{
	static const char *const old_names[] = { "pyroscope" };
	struct spool_options options = spool_fixture_options(*state, LIMIT, only_two);
	struct spool *s = ten_for_two(*state);

	spool_destroy(s);
	make_cursor_old(*state, "two", "pyroscope");
	make_cursor_old(*state, "one", "parca");
	options.old_targets = old_names;
	assert_int_equal(spool_create(&options, &s), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 8);
	assert_int_equal(abandoned(*state), 7);
	spool_destroy(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_target_is_identified_by_name_not_position),
		CASE(payloads_of_a_removed_target_are_dropped),
		CASE(payloads_of_a_target_missing_at_the_start_are_dropped),
		CASE(a_new_target_is_missing_nothing),
		CASE(cursors_of_an_earlier_version_are_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
