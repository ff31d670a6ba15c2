/* SPDX-License-Identifier: Apache-2.0 */
/* Old files of the store become fewer: which, when, and what a crash leaves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/store/store.h"
#include "base/cleanup.h"
#include "tests/unit/remove_tree.h"

enum { PLENTY = 1 << 26, LIST_BYTES = 1 << 16, PATH_BYTES = 512 };

static const int64_t SECOND = 1000000000;
static const int64_t NOON = INT64_C(1795262400000000000); /* 2026-11-21T12:00:00Z */
static const int64_t HOUR = INT64_C(3600000000000), TEN = INT64_C(600000000000);
#define DAY "2026-11-21"

struct fixture {
	char directory[64];
	struct metrics metrics;
	struct store_options options;
	struct store *store;
	int64_t now_ns;
	char list[LIST_BYTES];
};

static void open_store(struct fixture *f)
{
	f->options.now.real_ns = f->now_ns;
	assert_int_equal(store_create(&f->options, &f->store), 0);
}

/* The clock goes on by NS, and old files are looked after. */
static void pass(struct fixture *f, int64_t ns)
{
	f->now_ns += ns;
	f->options.now.boot_ns += (uint64_t)ns;
	assert_int_equal(
		store_trim(f->store, (struct store_now){ f->now_ns, f->options.now.boot_ns }), 0);
}

static void reopen(struct fixture *f)
{
	store_destroy(take(f->store));
	open_store(f);
	pass(f, 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->directory, sizeof(f->directory), "/tmp/test-store-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->now_ns = NOON;
	f->options = (struct store_options){
		.directory = f->directory,
		.limit_bytes = PLENTY,
		.now = { .boot_ns = (uint64_t)SECOND },
		.metrics = &f->metrics,
	};
	*state = f;
	open_store(f);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_destroy(f->store);
	remove_tree(f->directory);
	free(f);
	return 0;
}

static void put_for(struct fixture *f, int64_t time_ns, int64_t duration_ns)
{
	assert_int_equal(store_put(f->store, NULL, time_ns, duration_ns, "x", 1), 0);
}

static void put(struct fixture *f, int64_t time_ns)
{
	put_for(f, time_ns, 10 * SECOND);
}

/* What is listed, a line each: the time in seconds after NOON, the duration, the path. */
static const char *listed(struct fixture *f, int64_t from_ns, int64_t to_ns)
{
	struct store_file file;
	size_t iterator = 0, used = 0;

	f->list[0] = 0;
	while (store_next(f->store, &iterator, from_ns, to_ns, &file))
		used += (size_t)snprintf(f->list + used, sizeof(f->list) - used, "%lld+%lld %s\n",
			(long long)((file.time_ns - NOON) / SECOND),
			(long long)(file.duration_ns / SECOND), file.path);
	return f->list;
}

static void assert_listed(struct fixture *f, const char *expected)
{
	assert_string_equal(listed(f, 0, INT64_MAX), expected);
}

static const char *path_in(const struct fixture *f, const char *name)
{
	static char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	return path;
}

static bool exists(const struct fixture *f, const char *name)
{
	struct stat st;

	return !lstat(path_in(f, name), &st);
}

static void write_there(const struct fixture *f, const char *name)
{
	autoclose int fd = open(path_in(f, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "there", 5), 5);
}

/* The sources of M: their minutes. */
static const char *sources(struct fixture *f, const struct store_merge *m)
{
	struct store_file file;
	size_t iterator = 0, used = 0;

	f->list[0] = 0;
	while (store_merge_next(f->store, m, &iterator, &file))
		used += (size_t)snprintf(
			f->list + used, sizeof(f->list) - used, "%u ", file.minute);
	return f->list;
}

static int merge_with(struct fixture *f, const char *content, int err)
{
	const struct store_now now = { f->now_ns, f->options.now.boot_ns };
	struct store_merge m;
	int fd;

	assert_true(store_merge_find(f->store, &m));
	assert_int_equal(store_merge_begin(f->store, &m, &fd), 0);
	assert_false(store_merge_find(f->store, &m));
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
	return store_merge_end(f->store, err, now);
}

static void merge(struct fixture *f)
{
	assert_int_equal(merge_with(f, "merged", 0), 0);
}

static bool is_due(const struct fixture *f)
{
	struct store_merge m;

	return store_merge_find(f->store, &m);
}

/* ---- when and which ------------------------------------------------------------------------- */

static void windows_become_minutes_after_an_hour(void **state)
{
	struct fixture *f = *state;
	struct store_merge m;

	put(f, NOON - 10 * SECOND);
	put(f, NOON);
	put(f, NOON + 590 * SECOND);
	put(f, NOON + 125 * SECOND);
	put(f, NOON + TEN);
	pass(f, HOUR);
	/* The slot before is an hour old by now. */
	merge(f);
	assert_false(is_due(f));
	pass(f, TEN - SECOND);
	assert_false(is_due(f));
	pass(f, SECOND);
	assert_true(store_merge_find(f->store, &m));
	assert_int_equal(m.sources, 3);
	assert_string_equal(sources(f, &m), "0 2 9 ");
	merge(f);
	assert_listed(f, "-60+60 " DAY "/20261121T115000Z-600s.minutes-200.pb.gz\n"
			 "0+60 " DAY "/20261121T120000Z-600s.minutes-205.pb.gz\n"
			 "120+60 " DAY "/20261121T120000Z-600s.minutes-205.pb.gz\n"
			 "540+60 " DAY "/20261121T120000Z-600s.minutes-205.pb.gz\n"
			 "600+10 " DAY "/20261121T121000Z-10s.pb.gz\n");
	assert_string_equal(listed(f, NOON + 60 * SECOND, NOON + 121 * SECOND),
		"120+60 " DAY "/20261121T120000Z-600s.minutes-205.pb.gz\n");
	reopen(f);
	assert_string_equal(listed(f, NOON + 600 * SECOND, INT64_MAX),
		"600+10 " DAY "/20261121T121000Z-10s.pb.gz\n");
}

static void minutes_become_one_after_a_day(void **state)
{
	struct fixture *f = *state;

	put(f, NOON);
	put(f, NOON + 300 * SECOND);
	pass(f, 2 * HOUR);
	merge(f);
	assert_false(is_due(f));
	pass(f, 22 * HOUR);
	assert_false(is_due(f));
	pass(f, TEN);
	merge(f);
	assert_listed(f, "0+600 " DAY "/20261121T120000Z-600s.merged.pb.gz\n");
	assert_false(is_due(f));
	reopen(f);
	assert_listed(f, "0+600 " DAY "/20261121T120000Z-600s.merged.pb.gz\n");
}

static void long_windows_wait_for_a_day_or_stay(void **state)
{
	struct fixture *f = *state;

	put_for(f, NOON, 300 * SECOND);
	put_for(f, NOON + 300 * SECOND, 310 * SECOND);
	put_for(f, NOON + TEN, TEN);
	pass(f, 20 * HOUR);
	assert_false(is_due(f));
	pass(f, 5 * HOUR);
	merge(f);
	assert_false(is_due(f));
	assert_listed(f, "0+610 " DAY "/20261121T120000Z-610s.merged.pb.gz\n"
			 "600+600 " DAY "/20261121T121000Z-600s.pb.gz\n");
}

/* Files of older versions, one for each program of a window. */
static void files_of_programs_are_merged_with_windows(void **state)
{
	struct fixture *f = *state;
	struct store_merge m;

	assert_int_equal(store_put(f->store, "nginx", NOON, 10 * SECOND, "x", 1), 0);
	assert_int_equal(store_put(f->store, "merged", NOON, 600 * SECOND, "x", 1), 0);
	assert_int_equal(store_put(f->store, "minutes-3ff", NOON + SECOND, 10 * SECOND, "x", 1), 0);
	reopen(f);
	assert_int_equal(store_count(f->store), 3);
	pass(f, 26 * HOUR);
	/* One of ten minutes stays, and so do those beside it. */
	assert_false(is_due(f));
	assert_int_equal(store_put(f->store, "nginx", NOON + TEN, 10 * SECOND, "x", 1), 0);
	put(f, NOON + TEN + 60 * SECOND);
	assert_true(store_merge_find(f->store, &m));
	assert_int_equal(m.sources, 2);
	merge(f);
	assert_string_equal(listed(f, NOON + TEN, INT64_MAX),
		"600+60 " DAY "/20261121T121000Z-600s.minutes-3.pb.gz\n"
		"660+60 " DAY "/20261121T121000Z-600s.minutes-3.pb.gz\n");
}

/* ---- replacing ------------------------------------------------------------------------------ */

static void sources_are_removed_when_nobody_reads_them_any_more(void **state)
{
	struct fixture *f = *state;
	int fd;

	put(f, NOON);
	pass(f, 2 * HOUR);
	merge(f);
	assert_true(exists(f, DAY "/20261121T120000Z-10s.pb.gz"));
	assert_int_equal(store_open(f->store, DAY "/20261121T120000Z-10s.pb.gz", &fd), -ENOENT);
	pass(f, 120 * SECOND);
	assert_true(exists(f, DAY "/20261121T120000Z-10s.pb.gz"));
	pass(f, 60 * SECOND);
	assert_false(exists(f, DAY "/20261121T120000Z-10s.pb.gz"));
	assert_int_equal(store_count(f->store), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STORE_DROPPED_LIMIT), 0);
}

/* Killed between the rename and the removal of the sources. */
static void a_crash_leaves_no_samples_twice(void **state)
{
	struct fixture *f = *state;

	put(f, NOON);
	put(f, NOON + 60 * SECOND);
	pass(f, 2 * HOUR);
	merge(f);
	reopen(f);
	assert_listed(f, "0+60 " DAY "/20261121T120000Z-600s.minutes-3.pb.gz\n"
			 "60+60 " DAY "/20261121T120000Z-600s.minutes-3.pb.gz\n");
	assert_false(exists(f, DAY "/20261121T120000Z-10s.pb.gz"));
	pass(f, 24 * HOUR);
	merge(f);
	write_there(f, DAY "/20261121T120010Z-10s.pb.gz");
	write_there(f, DAY "/20261121T120010Z-10s-shop.pb.gz");
	reopen(f);
	assert_listed(f, "0+600 " DAY "/20261121T120000Z-600s.merged.pb.gz\n");
	assert_false(exists(f, DAY "/20261121T120010Z-10s.pb.gz"));
	assert_false(exists(f, DAY "/20261121T120010Z-10s-shop.pb.gz"));
	assert_int_equal(store_count(f->store), 1);
}

/* Killed before the rename. */
static void a_file_that_was_not_finished_is_none(void **state)
{
	struct fixture *f = *state;
	struct store_merge m;
	int fd;

	put(f, NOON);
	pass(f, 2 * HOUR);
	assert_true(store_merge_find(f->store, &m));
	assert_int_equal(store_merge_begin(f->store, &m, &fd), 0);
	assert_int_equal(write(fd, "half", 4), 4);
	close(fd);
	assert_true(exists(f, DAY "/.20261121T120000Z-600s.minutes-1.pb.gz.tmp"));
	reopen(f);
	assert_false(exists(f, DAY "/.20261121T120000Z-600s.minutes-1.pb.gz.tmp"));
	assert_listed(f, "0+10 " DAY "/20261121T120000Z-10s.pb.gz\n");
	/* The clock is not believed at once. */
	assert_false(is_due(f));
	pass(f, HOUR);
	merge(f);
	assert_listed(f, "0+60 " DAY "/20261121T120000Z-600s.minutes-1.pb.gz\n");
}

/* The clock is set back: a window of a time that is merged, or is being merged. */
static void a_late_window_has_a_generation_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct store_merge m;
	int fd;

	put(f, NOON);
	pass(f, 2 * HOUR);
	assert_true(store_merge_find(f->store, &m));
	assert_int_equal(store_merge_begin(f->store, &m, &fd), 0);
	put(f, NOON);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_int_equal(store_merge_end(f->store, 0, f->options.now), 0);
	put(f, NOON);
	put(f, NOON + 60 * SECOND);
	reopen(f);
	assert_listed(f, "0+60 " DAY "/20261121T120000Z-600s.minutes-1.pb.gz\n"
			 "0+10 " DAY "/20261121T120000Z-10s.2.pb.gz\n"
			 "0+10 " DAY "/20261121T120000Z-10s.3.pb.gz\n"
			 "60+10 " DAY "/20261121T120100Z-10s.2.pb.gz\n");
	pass(f, HOUR);
	merge(f);
	assert_non_null(strstr(listed(f, 0, INT64_MAX), "-600s.minutes-1.pb.gz\n"));
	assert_non_null(strstr(listed(f, 0, INT64_MAX), "-600s.minutes-3.3.pb.gz\n"));
	pass(f, 24 * HOUR);
	merge(f);
	merge(f);
	assert_false(is_due(f));
	reopen(f);
	assert_non_null(strstr(listed(f, 0, INT64_MAX), "-600s.merged.pb.gz\n"));
	assert_non_null(strstr(listed(f, 0, INT64_MAX), "-600s.merged.3.pb.gz\n"));
	assert_int_equal(store_count(f->store), 2);
}

static void a_failed_merge_changes_nothing_and_is_tried_again(void **state)
{
	struct fixture *f = *state;

	put(f, NOON);
	pass(f, 2 * HOUR);
	assert_int_equal(merge_with(f, "x", -E2BIG), -E2BIG);
	assert_listed(f, "0+10 " DAY "/20261121T120000Z-10s.pb.gz\n");
	assert_false(exists(f, DAY "/.20261121T120000Z-600s.minutes-1.pb.gz.tmp"));
	pass(f, HOUR / 2);
	assert_false(is_due(f));
	/* Others are merged meanwhile. */
	put(f, NOON - HOUR);
	merge(f);
	pass(f, HOUR);
	/* An empty file cannot be what was there. */
	assert_int_equal(merge_with(f, "", 0), -EBADMSG);
	pass(f, HOUR + SECOND);
	merge(f);
	assert_string_equal(
		listed(f, NOON, INT64_MAX), "0+60 " DAY "/20261121T120000Z-600s.minutes-1.pb.gz\n");
}

/* A directory is where the merged file should be. */
static void a_merge_that_cannot_take_its_place_changes_nothing(void **state)
{
	struct fixture *f = *state;

	put(f, NOON);
	pass(f, 2 * HOUR);
	assert_int_equal(mkdir(path_in(f, DAY "/20261121T120000Z-600s.minutes-1.pb.gz"), 0700), 0);
	assert_int_equal(merge_with(f, "x", 0), -EISDIR);
	assert_listed(f, "0+10 " DAY "/20261121T120000Z-10s.pb.gz\n");
	assert_false(exists(f, DAY "/.20261121T120000Z-600s.minutes-1.pb.gz.tmp"));
	assert_int_equal(store_count(f->store), 1);
}

static void what_is_merged_makes_room_first(void **state)
{
	struct fixture *f = *state;

	put(f, NOON);
	put(f, NOON + 10 * SECOND);
	pass(f, 2 * HOUR);
	merge(f);
	assert_int_equal(store_count(f->store), 3);
	store_set_limits(f->store, 4096, 0);
	pass(f, 0);
	assert_listed(f, "0+60 " DAY "/20261121T120000Z-600s.minutes-1.pb.gz\n");
	assert_int_equal(store_count(f->store), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STORE_DROPPED_LIMIT), 0);
}

static void foreign_names_are_no_files_of_ours(void **state)
{
	static const char *const foreign[] = {
		DAY "/20261121T120100Z-600s.merged.pb.gz", /* no slot begins then */
		DAY "/20261121T120000Z-600s.minutes-0.pb.gz",
		DAY "/20261121T120000Z-600s.minutes-400.pb.gz",
		DAY "/20261121T120000Z-600s.minutes-03.pb.gz",
		DAY "/20261121T120000Z-600s.minutes-3F.pb.gz",
		DAY "/20261121T120000Z-600s.minutes-.pb.gz",
		DAY "/20261121T120000Z-600s.merged.1.pb.gz",
		DAY "/20261121T120000Z-600s.merged.02.pb.gz",
		DAY "/20261121T120000Z-600s.merged.101.pb.gz",
		DAY "/20261121T120000Z-600s.merged.0.pb.gz",
		DAY "/20261121T120000Z-600s.Merged.pb.gz",
		DAY "/20261121T120000Z-10s..pb.gz",
		DAY "/20261121T120000Z-10s.65537.pb.gz",
		DAY "/20261121T120000Z-10s.2",
	};
	struct fixture *f = *state;

	put(f, NOON);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		write_there(f, foreign[i]);
	assert_int_equal(symlink("20261121T120000Z-10s.pb.gz",
				 path_in(f, DAY "/20261121T120000Z-600s.merged.pb.gz")),
		0);
	reopen(f);
	assert_listed(f, "0+10 " DAY "/20261121T120000Z-10s.pb.gz\n");
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		assert_true(exists(f, foreign[i]));
}

/* A week of windows of ten seconds; files of one block. */
static void a_week_has_fewer_than_two_thousand_files(void **state)
{
	const int64_t week = 7 * 24 * HOUR;
	struct fixture *f = *state;
	size_t most = 0;

	f->options.limit_age_ns = (uint64_t)week;
	reopen(f);
	for (int64_t t = 0; t < week + 2 * HOUR; t += 10 * SECOND) {
		put(f, NOON + t);
		pass(f, 10 * SECOND);
		if (is_due(f))
			merge(f);
		most = store_count(f->store) > most ? store_count(f->store) : most;
	}
	assert_in_range(most, 1000, 1999);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STORE_REMOVE_FAILED), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(windows_become_minutes_after_an_hour),
		CASE(minutes_become_one_after_a_day),
		CASE(long_windows_wait_for_a_day_or_stay),
		CASE(files_of_programs_are_merged_with_windows),
		CASE(sources_are_removed_when_nobody_reads_them_any_more),
		CASE(a_crash_leaves_no_samples_twice),
		CASE(a_file_that_was_not_finished_is_none),
		CASE(a_late_window_has_a_generation_of_its_own),
		CASE(a_failed_merge_changes_nothing_and_is_tried_again),
		CASE(a_merge_that_cannot_take_its_place_changes_nothing),
		CASE(what_is_merged_makes_room_first),
		CASE(foreign_names_are_no_files_of_ours),
		CASE(a_week_has_fewer_than_two_thousand_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
