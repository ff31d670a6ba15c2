/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that is full, and somebody else in the directory. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/spool_fixture.h"

enum { LIMIT = 1 << 20, SIZE = 1000 };

static const char *const one[] = { "one", NULL };
static const char *const two[] = { "one", "two", NULL };

/* As on a full disk: files may have SIZE bytes. */
static void limit_files(rlim_t size)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int set_up(void **state)
{
	static struct spool_fixture fixture;

	limit_files(RLIM_INFINITY);
	spool_fixture_init(&fixture);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	spool_fixture_deinit(*state);
	return 0;
}

static void a_full_disk_keeps_in_memory_and_in_order(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, one);

	limit_files(2500);
	/* Two fit; of the third only a part does. */
	assert_int_equal(spool_fixture_put(s, 1, SIZE), 0);
	assert_int_equal(spool_fixture_put(s, 2, SIZE), 0);
	assert_int_equal(spool_fixture_put(s, 3, SIZE), 1);
	assert_int_equal(spool_fixture_put(s, 4, SIZE), 1);
	assert_int_equal(spool_fixture_take(s, 0), 1);
	limit_files(RLIM_INFINITY);
	assert_int_equal(spool_fixture_put(s, 5, SIZE), 0);
	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, one);
	for (uint64_t n = 2; n <= 5; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	assert_int_equal(
		metrics_get(&((struct spool_fixture *)*state)->metrics, METRIC_SPOOL_MEMORY_ONLY),
		2);
	spool_destroy(s);
}

/* Takes all there is, which begins with FIRST, then goes on with SECOND to LAST. */
static void take_two_runs(struct spool *s, uint64_t first, uint64_t second, uint64_t last)
{
	assert_int_equal(spool_fixture_take(s, 0), first);
	for (uint64_t n = second; n <= last; n++) {
		assert_int_equal(spool_pending(s, 0), last - n + 1);
		assert_int_equal(spool_fixture_take(s, 0), n);
	}
	assert_int_equal(spool_pending(s, 0), 0);
}

static void an_overflow_of_memory_leaves_the_disk_alone(void **state)
{
	struct spool *s = spool_fixture_open(*state, 64 << 10, one);
	uint64_t dropped;

	assert_int_equal(spool_fixture_put(s, 1, SIZE), 0);
	limit_files(1500);
	for (uint64_t n = 2; n <= 100; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 1);
	dropped = spool_dropped(s, 0, SPOOL_DROP_LIMIT);
	assert_in_range(dropped, 30, 60);
	assert_int_equal(spool_pending(s, 0), 100 - dropped);
	/* Each further one costs one, the oldest of those in memory. */
	assert_int_equal(spool_fixture_put(s, 101, SIZE), 1);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT), dropped + 1);
	take_two_runs(s, 1, dropped + 3, 101);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT), dropped + 1);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	limit_files(RLIM_INFINITY);
	spool_destroy(s);
}

static void a_hole_that_memory_left_is_counted_once_on_disk(void **state)
{
	enum { LARGE = 400000, LARGE_LIMIT = 64 << 20 };
	struct spool *s = spool_fixture_open(*state, LARGE_LIMIT, two);
	uint64_t dropped;

	assert_int_equal(spool_fixture_put(s, 1, SIZE), 0);
	limit_files(1500);
	for (uint64_t n = 2; n <= 50; n++)
		assert_int_equal(spool_fixture_put(s, n, LARGE), 1);
	dropped = spool_dropped(s, 0, SPOOL_DROP_LIMIT);
	assert_in_range(dropped, 5, 20);
	/* The second target is past the hole before the disk takes what is behind it. */
	assert_int_equal(spool_fixture_take(s, 1), 1);
	assert_int_equal(spool_fixture_take(s, 1), dropped + 2);
	limit_files(RLIM_INFINITY);
	spool_upkeep(s);
	take_two_runs(s, 1, dropped + 2, 50);
	for (uint64_t n = dropped + 3; n <= 50; n++)
		assert_int_equal(spool_fixture_take(s, 1), n);
	for (size_t target = 0; target < 2; target++) {
		assert_int_equal(spool_dropped(s, target, SPOOL_DROP_LIMIT), dropped);
		assert_int_equal(spool_dropped(s, target, SPOOL_DROP_CORRUPT), 0);
	}
	spool_destroy(s);
}

/* Puts so many that what was there before is dropped. */
static void drop_the_oldest(struct spool *s, uint64_t from)
{
	for (uint64_t n = from; n < from + 100; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
}

static void a_record_that_is_dropped_while_it_is_sent_counts_once(void **state)
{
	struct spool *s = spool_fixture_open(*state, 64 << 10, two);

	assert_int_equal(spool_fixture_put(s, 1, SIZE), 0);
	for (size_t target = 0; target < 2; target++) {
		assert_int_equal(spool_fixture_peek(s, target), 1);
		assert_false(spool_begin(s, target));
	}
	drop_the_oldest(s, 2);
	/* One server takes it after all, the other does not. */
	assert_int_equal(spool_advance(s, 0), 0);
	spool_not_sent(s, 1);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT) + 1 + spool_pending(s, 0), 101);
	assert_int_equal(spool_dropped(s, 1, SPOOL_DROP_LIMIT) + spool_pending(s, 1), 101);
	assert_int_equal(spool_fixture_peek(s, 0), spool_fixture_peek(s, 1));
	spool_destroy(s);
}

/* Where a cursor's successor would be written something else is in the way. */
static void block_cursors(const struct spool_fixture *f)
{
	char command[200];

	snprintf(command, sizeof(command),
		"for f in %s/*.cursor; do mkdir $f.tmp && touch $f.tmp/full || exit 1; done",
		f->directory);
	assert_int_equal(system(command), 0);
}

static void without_room_for_a_new_cursor_the_old_one_is_written(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, one);

	for (uint64_t n = 1; n <= 20; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	block_cursors(*state);
	for (uint64_t n = 1; n <= 15; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	assert_int_equal(spool_fixture_peek(s, 0), 16);
	assert_false(spool_begin(s, 0));
	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, one);
	assert_int_equal(spool_fixture_peek(s, 0), 16);
	assert_true(spool_begin(s, 0));
	assert_int_equal(spool_advance(s, 0), 0);
	assert_int_equal(spool_fixture_take(s, 0), 17);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	spool_destroy(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_disk_keeps_in_memory_and_in_order),
		CASE(an_overflow_of_memory_leaves_the_disk_alone),
		CASE(a_hole_that_memory_left_is_counted_once_on_disk),
		CASE(a_record_that_is_dropped_while_it_is_sent_counts_once),
		CASE(without_room_for_a_new_cursor_the_old_one_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
