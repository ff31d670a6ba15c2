/* SPDX-License-Identifier: Apache-2.0 */
/* The local store: names, limits, and directories with foreign files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/store/entries.h"
#include "agent/server/store/store.h"
#include "base/cleanup.h"
#include "base/settled_clock.h"

enum { BLOCK = 4096, LABELS = 64, PATH_BYTES = 512 };

static const int64_t SECOND = 1000000000;
static const int64_t NOON = INT64_C(1795262400000000000); /* 2026-11-21T12:00:00Z */
#define DAY "2026-11-21"

struct fixture {
	char directory[64];
	struct metrics metrics;
	struct store_options options;
	struct store *store;
};

static void open_store(struct fixture *f)
{
	assert_int_equal(store_create(&f->options, &f->store), 0);
}

static void reopen(struct fixture *f)
{
	store_destroy(take(f->store));
	open_store(f);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->directory, sizeof(f->directory), "/tmp/test-store-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->options = (struct store_options){
		.directory = f->directory,
		.limit_bytes = 100 * BLOCK,
		.now = { NOON, 0 },
		.metrics = &f->metrics,
	};
	*state = f;
	open_store(f);
	return 0;
}

static void remove_tree(const char *path)
{
	autoclosedir DIR *directory = opendir(path);
	struct dirent *e;
	char below[PATH_BYTES];

	while (directory && (e = readdir(directory))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
		if (unlink(below))
			remove_tree(below);
	}
	rmdir(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_destroy(f->store);
	(void)umount2(f->directory, MNT_DETACH); /* left by a failed test */
	remove_tree(f->directory);
	free(f);
	return 0;
}

static int put(struct fixture *f, const char *name, int64_t time_ns)
{
	return store_put(f->store, name, time_ns, 10 * SECOND, name, strlen(name) + 1);
}

/* Trims as if only the wall clock had advanced since the start. */
static int trim(struct fixture *f, int64_t now_ns)
{
	return store_trim(f->store, (struct store_now){ now_ns, 0 });
}

static const char *path_in(const struct fixture *f, const char *name)
{
	static char path[2 * PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", f->directory, name);
	return path;
}

static bool exists(const struct fixture *f, const char *name)
{
	struct stat st;

	return !lstat(path_in(f, name), &st);
}

static void write_there(const struct fixture *f, const char *name, const char *content)
{
	int fd = open(path_in(f, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static uint64_t count(const struct fixture *f, enum metric metric)
{
	return metrics_get(&f->metrics, metric);
}

/* The paths of [FROM, TO), one per line. */
static const char *listed(const struct fixture *f, int64_t from_ns, int64_t to_ns)
{
	static char all[4096];
	struct store_file file;
	size_t iterator = 0, used = 0;

	all[0] = 0;
	while (store_next(f->store, &iterator, from_ns, to_ns, &file))
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s\n", file.path);
	return all;
}

/* ---- putting and finding -------------------------------------------------------------------- */

static void file_names_show_time_and_name(void **state)
{
	struct fixture *f = *state;
	char bytes[16] = "";
	int fd;

	assert_int_equal(put(f, "nginx", NOON), 0);
	assert_true(exists(f, DAY "/20261121T120000Z-10s-nginx.pb.gz"));
	assert_int_equal(store_count(f->store), 1);
	assert_int_equal(store_bytes(f->store), BLOCK);
	assert_int_equal(store_open(f->store, DAY "/20261121T120000Z-10s-nginx.pb.gz", &fd), 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 6);
	assert_string_equal(bytes, "nginx");
	close(fd);
}

static void tenths_of_seconds(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		store_put(f->store, "x", NOON + 649999999, 6 * SECOND + 250000000, "x", 1), 0);
	assert_string_equal(listed(f, 0, INT64_MAX), DAY "/20261121T120000.6Z-6.3s-x.pb.gz\n");
}

static void foreign_names_are_sanitized(void **state)
{
	static const struct {
		const char *name, *file;
	} cases[] = {
		{ "../../etc/passwd", ".._.._etc_passwd-????????" },
		{ "a b\n\"\\", "a_b___-????????" },
		{ "\xff\xfe", "__-????????" },
		{ "", "_-????????" },
		{ "..", ".." },
		{ "-rf", "-rf" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char pattern[PATH_BYTES];

		assert_int_equal(store_put(f->store, cases[i].name, NOON + (int64_t)i * SECOND,
					 SECOND, "x", 1),
			0);
		snprintf(pattern, sizeof(pattern), DAY "/20261121T12000%zuZ-1s-%s.pb.gz\n", i,
			cases[i].file);
		assert_int_equal(fnmatch(pattern,
					 listed(f, NOON + (int64_t)i * SECOND,
						 NOON + (int64_t)(i + 1) * SECOND),
					 0),
			0);
	}
	reopen(f);
	assert_int_equal(store_count(f->store), ARRAY_SIZE(cases));
}

static void long_names_are_cut(void **state)
{
	struct fixture *f = *state;
	char name[4096];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(put(f, name, NOON), 0);
	assert_int_equal(put(f, name, NOON), 0);
	reopen(f);
	assert_int_equal(store_count(f->store), 2);
}

/* The label in the name of the only file between FROM_NS and TO_NS. */
static void label_of(const struct fixture *f, int64_t from_ns, char label[PATH_BYTES])
{
	const char *at = strstr(listed(f, from_ns, from_ns + SECOND), "s-");

	assert_non_null(at);
	snprintf(label, PATH_BYTES, "%s", at + strlen("s-"));
}

/* Labels are distinct in any order within a window, and at any length. */
static void names_that_look_the_same_stay_apart(void **state)
{
	static const size_t lengths[] = { 1, 90, 100, 200 };
	static const char seconds[] = " /_?\n";
	struct fixture *f = *state;
	int64_t time_ns = NOON;

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		char names[2][sizeof(seconds)][PATH_BYTES], name[256] = "";

		memset(name, 'a', lengths[i]);
		for (size_t k = 0; k < 2 * strlen(seconds); k++, time_ns += SECOND) {
			/* The second round is in reverse order. */
			size_t of = k < strlen(seconds) ? k : 2 * strlen(seconds) - 1 - k;

			snprintf(name + lengths[i], 3, "%cb", seconds[of]);
			assert_int_equal(store_put(f->store, name, time_ns, SECOND, "x", 1), 0);
			label_of(f, time_ns, names[k >= strlen(seconds)][of]);
		}
		for (size_t k = 0; k < strlen(seconds); k++) {
			assert_string_equal(names[0][k], names[1][k]);
			for (size_t other = 0; other < k; other++)
				assert_string_not_equal(names[0][k], names[0][other]);
		}
	}
}

static void equal_names_do_not_replace_each_other(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "a_b", NOON), 0);
	assert_int_equal(put(f, "a_b", NOON), 0);
	assert_int_equal(put(f, "a_b", NOON), 0);
	assert_true(exists(f, DAY "/20261121T120000Z-10s-a_b.pb.gz"));
	assert_true(exists(f, DAY "/20261121T120000Z-10s-a_b_2.pb.gz"));
	assert_true(exists(f, DAY "/20261121T120000Z-10s-a_b_3.pb.gz"));
	for (int i = 3; i < 100; i++)
		assert_int_equal(put(f, "a_b", NOON), 0);
	assert_int_equal(put(f, "a_b", NOON), -EEXIST);
	assert_int_equal(count(f, METRIC_STORE_FAILED), 1);
}

static void invalid_times_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(store_put(f->store, "x", -1, SECOND, "x", 1), -EINVAL);
	assert_int_equal(store_put(f->store, "x", INT64_MAX, SECOND, "x", 1), -EINVAL);
	assert_int_equal(store_put(f->store, "x", NOON, -1, "x", 1), -EINVAL);
	assert_int_equal(store_put(f->store, "x", NOON, INT64_MAX, "x", 1), -EINVAL);
	assert_int_equal(store_put(f->store, "x", NOON, SECOND, "", 0), -EINVAL);
	assert_int_equal(store_put(f->store, "x", 0, 0, "x", 1), 0);
	assert_true(exists(f, "1970-01-01/19700101T000000Z-0s-x.pb.gz"));
	assert_int_equal(count(f, METRIC_STORE_FAILED), 5);
}

static void ranges(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "b", NOON + 10 * SECOND), 0);
	assert_int_equal(put(f, "a", NOON), 0);
	assert_int_equal(put(f, "c", NOON + 20 * SECOND), 0);
	assert_string_equal(listed(f, 0, NOON), "");
	assert_string_equal(listed(f, NOON, NOON + 1), DAY "/20261121T120000Z-10s-a.pb.gz\n");
	assert_string_equal(listed(f, NOON + 9 * SECOND, NOON + 11 * SECOND),
		DAY "/20261121T120000Z-10s-a.pb.gz\n" DAY "/20261121T120010Z-10s-b.pb.gz\n");
	assert_string_equal(
		listed(f, NOON + 20 * SECOND, INT64_MAX), DAY "/20261121T120020Z-10s-c.pb.gz\n");
	assert_string_equal(listed(f, NOON + 30 * SECOND, INT64_MAX), "");
}

static void only_what_is_listed_can_be_opened(void **state)
{
	static const char *const bad[] = { "", "/", "..", "../x", DAY, DAY "/../../etc/passwd",
		"/etc/passwd", DAY "/secret", DAY "/20261121T120000Z-10s-b.pb.gz",
		DAY "/20261121T120000Z-10s-a.pb.gz/", "./" DAY "/20261121T120000Z-10s-a.pb.gz",
		"2026-11-22/20261121T120000Z-10s-a.pb.gz" };
	struct fixture *f = *state;
	int fd = -7;

	assert_int_equal(put(f, "a", NOON), 0);
	write_there(f, DAY "/secret", "x");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(store_open(f->store, bad[i], &fd), -ENOENT);
	/* A link in the place of a file is not followed. */
	assert_int_equal(unlink(path_in(f, DAY "/20261121T120000Z-10s-a.pb.gz")), 0);
	assert_int_equal(symlink("secret", path_in(f, DAY "/20261121T120000Z-10s-a.pb.gz")), 0);
	assert_int_equal(store_open(f->store, DAY "/20261121T120000Z-10s-a.pb.gz", &fd), -ELOOP);
	assert_int_equal(fd, -7);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void bytes_are_bounded(void **state)
{
	static const char big[4 * BLOCK];
	struct fixture *f = *state;

	store_set_limits(f->store, 3 * BLOCK, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(put(f, "x", NOON + i * 10 * SECOND), 0);
	assert_int_equal(store_bytes(f->store), 3 * BLOCK);
	assert_string_equal(
		listed(f, 0, NOON + 25 * SECOND), DAY "/20261121T120020Z-10s-x.pb.gz\n");
	assert_false(exists(f, DAY "/20261121T120010Z-10s-x.pb.gz"));
	assert_int_equal(count(f, METRIC_STORE_DROPPED_LIMIT), 2);
	assert_int_equal(store_put(f->store, "big", NOON, SECOND, big, sizeof(big)), -E2BIG);
	assert_int_equal(store_count(f->store), 3);
}

static void age_is_bounded(void **state)
{
	const int64_t day = 24 * 3600 * SECOND;
	struct fixture *f = *state;

	store_set_limits(f->store, 100 * BLOCK, (uint64_t)day);
	assert_int_equal(put(f, "old", NOON - day), 0);
	assert_int_equal(put(f, "older", NOON - day - 20 * SECOND), 0);
	assert_int_equal(put(f, "new", NOON), 0);
	assert_int_equal(trim(f, NOON), 0);
	assert_int_equal(store_count(f->store), 2);
	assert_int_equal(trim(f, NOON + 30 * SECOND), 0);
	assert_int_equal(store_count(f->store), 1);
	/* The directory of the day is removed with its last file. */
	assert_false(exists(f, "2026-11-20"));
	assert_int_equal(count(f, METRIC_STORE_DROPPED_LIMIT), 2);
	/* A clock that is set back removes nothing. */
	assert_int_equal(trim(f, 0), 0);
	assert_int_equal(store_count(f->store), 1);
}

/* A time server gives a wrong time, and the right one three seconds later. */
static void a_clock_that_is_ahead_for_a_moment_removes_nothing(void **state)
{
	const int64_t day = 24 * 3600 * SECOND;
	struct fixture *f = *state;

	store_set_limits(f->store, 100 * BLOCK, (uint64_t)day);
	for (int i = 0; i < 5; i++)
		assert_int_equal(put(f, "x", NOON + i * SECOND), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(f, "x", NOON + 30 * day + i * SECOND), 0);
		assert_int_equal(trim(f, NOON + 30 * day + (i + 1) * SECOND), 0);
	}
	assert_int_equal(put(f, "x", NOON + 8 * SECOND), 0);
	assert_int_equal(trim(f, NOON + 9 * SECOND), 0);
	assert_int_equal(store_count(f->store), 9);
	assert_int_equal(count(f, METRIC_STORE_DROPPED_LIMIT), 0);
}

static void a_clock_that_stays_ahead_is_believed_in_the_end(void **state)
{
	const int64_t day = 24 * 3600 * SECOND;
	const uint64_t later_ns = SETTLED_CLOCK_WAIT_NS;
	struct fixture *f = *state;

	store_set_limits(f->store, 100 * BLOCK, (uint64_t)day);
	assert_int_equal(put(f, "x", NOON), 0);
	assert_int_equal(trim(f, NOON + 30 * day), 0);
	assert_int_equal(store_count(f->store), 1);
	assert_int_equal(
		store_trim(f->store,
			(struct store_now){ NOON + 30 * day + (int64_t)later_ns, later_ns }),
		0);
	assert_int_equal(store_count(f->store), 0);
}

/* A machine boots with a wrong clock. */
static void a_clock_that_is_ahead_at_the_start_removes_nothing(void **state)
{
	const int64_t day = 24 * 3600 * SECOND;
	struct fixture *f = *state;

	f->options.limit_age_ns = (uint64_t)day;
	assert_int_equal(put(f, "x", NOON), 0);
	f->options.now.real_ns = NOON + 30 * day;
	reopen(f);
	assert_int_equal(trim(f, NOON + 30 * day), 0);
	assert_int_equal(put(f, "x", NOON + 30 * day), 0);
	assert_int_equal(trim(f, NOON + 10 * SECOND), 0);
	assert_int_equal(store_count(f->store), 2);
}

/* The times of the files, in seconds after NOON, in the order of the list. */
static void assert_listed(const struct fixture *f, const char *expected)
{
	struct store_file file;
	size_t iterator = 0, used = 0;
	char all[256] = "";

	while (store_next(f->store, &iterator, 0, INT64_MAX, &file))
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%lld", used ? " " : "",
			(long long)((file.time_ns - NOON) / SECOND));
	assert_string_equal(all, expected);
}

/* Files from the future are dropped in order; newer ones are kept. */
static void files_from_the_future_do_not_displace_new_ones(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		assert_int_equal(put(f, "x", NOON + (1000 + i) * SECOND), 0);
	reopen(f);
	store_set_limits(f->store, 3 * BLOCK, 0);
	assert_int_equal(put(f, "x", NOON), 0);
	assert_listed(f, "0 1001 1002");
	assert_int_equal(put(f, "x", NOON + 1 * SECOND), 0);
	assert_listed(f, "0 1 1002");
	assert_int_equal(put(f, "x", NOON + 2 * SECOND), 0);
	assert_listed(f, "0 1 2");
	assert_int_equal(put(f, "x", NOON + 3 * SECOND), 0);
	assert_listed(f, "1 2 3");
	assert_int_equal(store_bytes(f->store), 3 * BLOCK);
	assert_int_equal(count(f, METRIC_STORE_DROPPED_LIMIT), 4);
}

/* While the clock is behind, the oldest file goes, not the one written just before. */
static void older_files_go_before_files_from_the_future(void **state)
{
	struct fixture *f = *state;

	store_set_limits(f->store, 3 * BLOCK, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(put(f, "x", NOON + i * SECOND), 0);
	assert_int_equal(put(f, "x", NOON - 100 * SECOND), 0);
	assert_listed(f, "-100 1 2");
	assert_int_equal(put(f, "x", NOON - 99 * SECOND), 0);
	assert_listed(f, "-100 -99 2");
}

static void new_limits_apply_when_asked(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 10; i++)
		assert_int_equal(put(f, "x", NOON + i * SECOND), 0);
	store_set_limits(f->store, 4 * BLOCK, 0);
	assert_int_equal(trim(f, NOON), 0);
	assert_int_equal(store_count(f->store), 4);
	store_set_limits(f->store, 0, 0);
	assert_int_equal(trim(f, NOON), 0);
	assert_int_equal(store_count(f->store), 0);
	assert_int_equal(put(f, "x", NOON), -E2BIG);
}

/* Wherever windows end between two tenths of a second. */
static void windows_that_touch_have_names_that_touch(void **state)
{
	const int64_t ms = SECOND / 1000;
	int64_t begin = NOON, end;
	struct file_name name;

	(void)state;
	for (int64_t i = 0; i < 500; i++, begin = end) {
		int64_t tenths = (begin + 50 * ms) / FILE_NAME_TENTH_NS;

		end = begin + 10 * SECOND + (i * 37 % 101) * ms;
		assert_true(file_name_init(&name, "x", begin, end - begin));
		assert_int_equal(name.time_tenths, tenths);
		assert_int_equal(name.time_tenths + name.duration_tenths,
			(end + 50 * ms) / FILE_NAME_TENTH_NS);
	}
}

/* Files with distinct names: the list stores each name once, and has a limit for them. */
static void as_many_names_as_the_list_holds(void **state)
{
	struct file_name name;
	struct entries e;
	char label[16];

	(void)state;
	assert_int_equal(entries_init(&e, LABELS), 0);
	for (int i = 0; i < LABELS - 1; i++) {
		snprintf(label, sizeof(label), "n%d", i);
		assert_true(file_name_init(&name, label, NOON + i * SECOND, SECOND));
		assert_int_equal(entries_append(&e, &name, 1), 0);
	}
	assert_true(file_name_init(&name, "one-more", NOON, SECOND));
	assert_int_equal(entries_add(&e, &name, 1), -E2BIG);
	assert_int_equal(entries_count(&e), LABELS - 1);
	/* A known name needs no space. */
	assert_true(file_name_init(&name, "n7", NOON, SECOND));
	assert_int_equal(entries_add(&e, &name, 1), 0);
	/* The names of removed files are freed. */
	for (int i = 0; i < 10; i++)
		entries_remove(&e, 0);
	assert_true(file_name_init(&name, "one-more", NOON, SECOND));
	assert_int_equal(entries_add(&e, &name, 1), 0);
	assert_non_null(entries_find(&e, &name));
	entries_deinit(&e);
}

static void more_names_than_the_list_holds_cost_the_oldest(void **state)
{
	struct fixture *f = *state;
	char label[16];

	f->options.limit_names = LABELS;
	reopen(f);
	for (int i = 0; i < LABELS; i++) {
		snprintf(label, sizeof(label), "n%d", i);
		assert_int_equal(put(f, label, NOON + i * SECOND), 0);
	}
	assert_int_equal(count(f, METRIC_STORE_FAILED), 0);
	assert_in_range(count(f, METRIC_STORE_DROPPED_LIMIT), LABELS / 8 - 1, LABELS / 8 + 1);
	assert_false(exists(f, DAY "/20261121T120000Z-10s-n0.pb.gz"));
	/* A restart reads the same list, in whatever order the directory gives the files. */
	reopen(f);
	assert_int_equal(store_count(f->store), LABELS - count(f, METRIC_STORE_DROPPED_LIMIT));
	assert_true(strlen(listed(f, NOON + (LABELS - 1) * SECOND + 1, INT64_MAX)) > 0);
}

/* ---- what is found at the start ------------------------------------------------------------- */

static void a_restart_goes_on(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 20; i++)
		assert_int_equal(put(f, "x", NOON + (i * 7 % 20) * 10 * SECOND), 0);
	reopen(f);
	assert_int_equal(store_count(f->store), 20);
	assert_int_equal(store_bytes(f->store), 20 * BLOCK);
	store_set_limits(f->store, BLOCK, 0);
	assert_int_equal(trim(f, NOON), 0);
	assert_string_equal(listed(f, 0, INT64_MAX), DAY "/20261121T120310Z-10s-x.pb.gz\n");
}

static void partly_written_files_are_removed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "x", NOON), 0);
	write_there(f, DAY "/.20261121T120010Z-10s-x.pb.gz.tmp", "half");
	write_there(f, DAY "/20261121T120020Z-10s-x.pb.gz", "");
	reopen(f);
	assert_false(exists(f, DAY "/.20261121T120010Z-10s-x.pb.gz.tmp"));
	assert_false(exists(f, DAY "/20261121T120020Z-10s-x.pb.gz"));
	assert_int_equal(store_count(f->store), 1);
}

/* The time in its name is 0. */
static void a_file_of_midnight_is_found_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "x", NOON - 12 * 3600 * SECOND), 0);
	reopen(f);
	assert_string_equal(listed(f, 0, INT64_MAX), DAY "/20261121T000000Z-10s-x.pb.gz\n");
}

/* Times are nanoseconds since 1970 in 64 bits. */
static void names_before_1970_or_after_2262_are_invalid(void **state)
{
	struct file_name name = { 0 };

	(void)state;
	assert_true(file_name_parse("2262-03-03/22620303T230640Z-10s-x.pb.gz", &name));
	assert_int_equal(name.time_tenths, INT64_C(92200000000));
	assert_true(file_name_parse("1970-01-01/19700101T000000Z-10s-x.pb.gz", &name));
	assert_int_equal(name.time_tenths, 0);
	assert_false(file_name_parse("2262-03-03/22620303T230640.1Z-10s-x.pb.gz", &name));
	assert_false(file_name_parse("2263-01-01/22630101T000000Z-10s-x.pb.gz", &name));
	assert_false(file_name_parse("9999-12-31/99991231T235959Z-10s-x.pb.gz", &name));
	assert_false(file_name_parse("1969-12-31/19691231T235959Z-10s-x.pb.gz", &name));
	assert_false(file_name_parse("0000-01-01/00000101T000000Z-10s-x.pb.gz", &name));
	assert_int_equal(name.time_tenths, 0);
}

static void foreign_files_are_left_alone(void **state)
{
	static const char *const foreign[] = {
		"README",
		DAY "/notes.txt",
		DAY "/.hidden.tmp",
		DAY "/.tmp",
		DAY "/..tmp",
		DAY "/20261121T120000Z-10s-.pb.gz",
		DAY "/20261121T120000Z-10s-a b.pb.gz",
		DAY "/20261121T120000Z-010s-x.pb.gz",
		DAY "/20261121T120000.0Z-10s-x.pb.gz",
		DAY "/20261121T126000Z-10s-x.pb.gz",
		DAY "/20261122T120000Z-10s-x.pb.gz",
		DAY "/20261121T120000Z-99999999999999s-x.pb.gz",
		DAY "/20261121T120000Z-10s-x.pb.gz.old",
		DAY "/20261121T120000Z-10s-x.pb",
		DAY "/\n\x1b[2J\xff",
	};
	struct fixture *f = *state;

	assert_int_equal(put(f, "x", NOON), 0);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		write_there(f, foreign[i], "theirs");
	reopen(f);
	assert_int_equal(store_count(f->store), 1);
	store_set_limits(f->store, 0, 0);
	assert_int_equal(trim(f, NOON), 0);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		assert_true(exists(f, foreign[i]));
}

static void special_files_are_left_alone(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "x", NOON), 0);
	write_there(f, "target", "theirs");
	assert_int_equal(symlink("../target", path_in(f, DAY "/20261121T120010Z-10s-l.pb.gz")), 0);
	assert_int_equal(mkdir(path_in(f, DAY "/20261121T120020Z-10s-d.pb.gz"), 0700), 0);
	assert_int_equal(mkfifo(path_in(f, DAY "/20261121T120030Z-10s-p.pb.gz"), 0600), 0);
	assert_int_equal(symlink("/etc", path_in(f, "2026-11-20")), 0);
	write_there(f, "2026-11-19", "a file");
	assert_int_equal(mkdir(path_in(f, "9999-99-99"), 0700), 0);
	reopen(f);
	assert_int_equal(store_count(f->store), 1);
	assert_true(exists(f, "target") && exists(f, "2026-11-20") && exists(f, "2026-11-19"));
	/* A directory in the place of a new file is an error, and its contents stay. */
	assert_int_equal(put(f, "d", NOON + 20 * SECOND), -EISDIR);
	assert_true(exists(f, DAY "/20261121T120020Z-10s-d.pb.gz"));
}

static void the_directory_must_belong_to_us(void **state)
{
	struct fixture *f = *state;
	struct store *other;
	char path[PATH_BYTES];

	assert_int_equal(store_create(&f->options, &other), -EBUSY);
	store_destroy(take(f->store));
	assert_int_equal(chmod(f->directory, 0777), 0);
	assert_int_equal(store_create(&f->options, &other), -EPERM);
	assert_int_equal(chmod(f->directory, 0700), 0);
	write_there(f, "file", "x");
	snprintf(path, sizeof(path), "%s/file/below", f->directory);
	f->options.directory = path;
	assert_int_equal(store_create(&f->options, &other), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/a/b/c", f->directory);
	open_store(f);
	assert_true(exists(f, "a/b/c"));
}

static void a_file_removed_by_others_is_not_an_error(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(put(f, "x", NOON), 0);
	assert_int_equal(put(f, "y", NOON + SECOND), 0);
	assert_int_equal(unlink(path_in(f, DAY "/20261121T120000Z-10s-x.pb.gz")), 0);
	store_set_limits(f->store, 0, 0);
	assert_int_equal(trim(f, NOON), 0);
	assert_int_equal(store_count(f->store), 0);
}

/* A directory took the file's place: it stays, is reported, and is not tried again. */
static void a_file_that_cannot_be_removed_is_reported(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		assert_int_equal(put(f, "x", NOON + i * SECOND), 0);
	assert_int_equal(unlink(path_in(f, DAY "/20261121T120000Z-10s-x.pb.gz")), 0);
	assert_int_equal(mkdir(path_in(f, DAY "/20261121T120000Z-10s-x.pb.gz"), 0700), 0);
	store_set_limits(f->store, BLOCK, 0);
	assert_int_equal(trim(f, NOON), -EISDIR);
	assert_string_equal(listed(f, 0, INT64_MAX), DAY "/20261121T120002Z-10s-x.pb.gz\n");
	assert_false(exists(f, DAY "/20261121T120001Z-10s-x.pb.gz"));
	assert_int_equal(trim(f, NOON), 0);
}

/* ---- a full disk ---------------------------------------------------------------------------- */

static void fill(const struct fixture *f, const char *name)
{
	static char bytes[BLOCK];
	int fd = open(path_in(f, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	close(fd);
}

static void a_full_disk_removes_the_oldest_file(void **state)
{
	static const char big[64 * BLOCK];
	struct fixture *f = *state;

	store_destroy(take(f->store));
	if (mount("test", f->directory, "tmpfs", 0, "size=128k,mode=0700"))
		skip();
	open_store(f);
	for (int i = 0; i < 8; i++)
		assert_int_equal(put(f, "x", NOON + i * SECOND), 0);
	fill(f, "of-somebody-else");
	assert_int_equal(put(f, "x", NOON + 8 * SECOND), 0);
	assert_int_equal(store_count(f->store), 8);
	assert_int_equal(count(f, METRIC_STORE_DROPPED_DISK_FULL), 1);
	assert_false(exists(f, DAY "/20261121T120000Z-10s-x.pb.gz"));
	/* Dropping files makes too little room: the new one is lost, and no part of it remains. */
	assert_int_equal(
		store_put(f->store, "big", NOON + 9 * SECOND, SECOND, big, sizeof(big)), -ENOSPC);
	assert_int_equal(count(f, METRIC_STORE_FAILED), 1);
	assert_int_equal(store_count(f->store), 0);
	assert_int_equal(unlink(path_in(f, "of-somebody-else")), 0);
	assert_int_equal(put(f, "x", NOON + 10 * SECOND), 0);
	reopen(f);
	assert_int_equal(store_count(f->store), 1);
	store_destroy(take(f->store));
	assert_int_equal(umount2(f->directory, MNT_DETACH), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(file_names_show_time_and_name),
		CASE(tenths_of_seconds),
		CASE(foreign_names_are_sanitized),
		CASE(names_that_look_the_same_stay_apart),
		CASE(long_names_are_cut),
		CASE(equal_names_do_not_replace_each_other),
		CASE(invalid_times_are_refused),
		CASE(ranges),
		CASE(only_what_is_listed_can_be_opened),
		CASE(bytes_are_bounded),
		CASE(age_is_bounded),
		CASE(a_clock_that_is_ahead_for_a_moment_removes_nothing),
		CASE(a_clock_that_stays_ahead_is_believed_in_the_end),
		CASE(a_clock_that_is_ahead_at_the_start_removes_nothing),
		CASE(files_from_the_future_do_not_displace_new_ones),
		CASE(older_files_go_before_files_from_the_future),
		CASE(new_limits_apply_when_asked),
		cmocka_unit_test(as_many_names_as_the_list_holds),
		cmocka_unit_test(windows_that_touch_have_names_that_touch),
		CASE(more_names_than_the_list_holds_cost_the_oldest),
		CASE(a_restart_goes_on),
		CASE(partly_written_files_are_removed),
		CASE(a_file_of_midnight_is_found_again),
		cmocka_unit_test(names_before_1970_or_after_2262_are_invalid),
		CASE(foreign_files_are_left_alone),
		CASE(special_files_are_left_alone),
		CASE(the_directory_must_belong_to_us),
		CASE(a_file_removed_by_others_is_not_an_error),
		CASE(a_file_that_cannot_be_removed_is_reported),
		CASE(a_full_disk_removes_the_oldest_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
