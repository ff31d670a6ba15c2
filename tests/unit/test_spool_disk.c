/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk, and foreign files in the directory. */
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

/* Limits files to SIZE bytes, as on a full disk. */
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
	/* Two records fit; of the third only a part does. */
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

/* Takes all records: FIRST, then SECOND to LAST. */
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
	/* Each further record costs the oldest one in memory. */
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
	/* The second target is past the hole before the disk gets the records behind it. */
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

/* Puts so many records that the older ones are dropped. */
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
	/* In the end one server accepts the record, the other does not. */
	assert_int_equal(spool_advance(s, 0), 0);
	spool_not_sent(s, 1);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT) + 1 + spool_pending(s, 0), 101);
	assert_int_equal(spool_dropped(s, 1, SPOOL_DROP_LIMIT) + spool_pending(s, 1), 101);
	assert_int_equal(spool_fixture_peek(s, 0), spool_fixture_peek(s, 1));
	spool_destroy(s);
}

/* Puts something else in the places where new cursors are written. */
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

/* ---- changes to the directory by others ----------------------------------------------------- */

static void run_in(const struct spool_fixture *f, const char *command)
{
	char line[300];

	snprintf(line, sizeof(line), "d=%s; cd / && %s", f->directory, command);
	assert_int_equal(system(line), 0);
}

static void put_some(struct spool *s, uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n <= last; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
}

/* How many records TARGET lost with removed files; none may count as damaged. */
static uint64_t removed(const struct spool *s, size_t target)
{
	assert_int_equal(spool_dropped(s, target, SPOOL_DROP_CORRUPT), 0);
	return spool_dropped(s, target, SPOOL_DROP_REMOVED);
}

/* The state of the spool agrees with the directory: a restart finds only record N. */
static void assert_restart_finds(struct spool_fixture *f, struct spool *s, uint64_t n)
{
	spool_destroy(s);
	s = spool_fixture_open(f, LIMIT, two);
	for (size_t target = 0; target < 2; target++) {
		assert_int_equal(spool_fixture_take(s, target), n);
		assert_int_equal(spool_fixture_peek(s, target), 0);
		assert_int_equal(removed(s, target), 0);
	}
	spool_destroy(s);
}

static void an_emptied_directory_is_noticed(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	put_some(s, 1, 5);
	assert_int_equal(spool_fixture_take(s, 1), 1);
	run_in(*state, "rm -r $d/*");
	spool_upkeep(s);
	assert_int_equal(spool_removals(s), 1);
	assert_int_equal(removed(s, 0), 5);
	assert_int_equal(removed(s, 1), 4);
	assert_int_equal(spool_pending(s, 0), 0);
	assert_int_equal(spool_bytes(s), 0);
	put_some(s, 6, 6);
	assert_restart_finds(*state, s, 6);
}

static void nothing_is_put_into_a_removed_segment(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	put_some(s, 1, 5);
	run_in(*state, "rm -r $d/*");
	put_some(s, 6, 6);
	assert_int_equal(removed(s, 0), 5);
	assert_restart_finds(*state, s, 6);
}

static void records_of_removed_files_are_not_taken_for_damaged(void **state)
{
	struct spool *s = spool_fixture_open(*state, 64 << 10, two);

	/* Segments have 8 KiB: seven records each. */
	put_some(s, 1, 28);
	run_in(*state, "rm $d/0000000000000001.seg");
	for (uint64_t n = 1; n <= 7; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	assert_int_equal(spool_fixture_take(s, 0), 15);
	assert_int_equal(removed(s, 0), 7);
	assert_int_equal(removed(s, 1), 7);
	assert_int_equal(spool_pending(s, 0), 13);
	assert_int_equal(spool_pending(s, 1), 21);
	run_in(*state, "rm $d/*.seg");
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(removed(s, 0), 20);
	assert_int_equal(removed(s, 1), 28);
	spool_destroy(s);
}

static void a_removed_cursor_is_written_again(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	put_some(s, 1, 1);
	run_in(*state, "rm $d/*.cursor");
	spool_upkeep(s);
	assert_restart_finds(*state, s, 1);
}

static void a_directory_that_was_replaced_is_left(void **state)
{
	static const char *const ways[] = { "mv $d $d.old && mkdir -m 700 $d", "rm -r $d" };

	for (size_t i = 0; i < 2; i++) {
		struct spool *s = spool_fixture_open(*state, LIMIT, two);

		put_some(s, 1, 5);
		run_in(*state, ways[i]);
		spool_upkeep(s);
		assert_int_equal(removed(s, 0), 5);
		put_some(s, 6, 6);
		assert_restart_finds(*state, s, 6);
		run_in(*state, "rm -rf $d.old");
	}
}

static void a_directory_that_cannot_be_used_yet_is_tried_again(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	put_some(s, 1, 5);
	run_in(*state, "rm -r $d && mkdir $d && chmod 777 $d");
	spool_upkeep(s);
	assert_non_null(spool_trouble(s));
	assert_int_equal(removed(s, 0), 5);
	assert_int_equal(spool_fixture_put(s, 6, SIZE), 1);
	run_in(*state, "chmod 700 $d");
	spool_upkeep(s);
	assert_null(spool_trouble(s));
	assert_int_equal(spool_memory_records(s), 0);
	assert_restart_finds(*state, s, 6);
}

static void a_directory_with_profiles_in_it_is_left_alone(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	put_some(s, 1, 5);
	run_in(*state, "mv $d $d.old && cp -r $d.old $d");
	spool_upkeep(s);
	assert_non_null(spool_trouble(s));
	assert_int_equal(spool_fixture_put(s, 6, SIZE), 1);
	assert_int_equal(spool_fixture_take(s, 0), 6);
	spool_destroy(s);
	run_in(*state, "diff $d/0000000000000000.seg $d.old/0000000000000000.seg && rm -r $d.old");
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
		CASE(an_emptied_directory_is_noticed),
		CASE(nothing_is_put_into_a_removed_segment),
		CASE(records_of_removed_files_are_not_taken_for_damaged),
		CASE(a_removed_cursor_is_written_again),
		CASE(a_directory_that_was_replaced_is_left),
		CASE(a_directory_that_cannot_be_used_yet_is_tried_again),
		CASE(a_directory_with_profiles_in_it_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
