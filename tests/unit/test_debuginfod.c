/* SPDX-License-Identifier: Apache-2.0 */
/* The debuginfod client: pauses after failures, the rate limit, and its memory of absent files. */
#include "symbolizer/debuginfod/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbolizer/index/format.h"
#include "symbolizer/sandboxed/main.h"

enum { PLENTY = 1 << 30, PER_MINUTE = 3 };
static const uint64_t SECOND_NS = UINT64_C(1000000000);
static const uint64_t START_NS = UINT64_C(5000000000000);
static const struct build_id ID = { .size = 3, .bytes = { 0xab, 1, 2 } };
static const struct build_id OTHER = { .size = 3, .bytes = { 0xab, 1, 3 } };

struct fixture {
	char directory[64];
	struct cache *cache;
	struct metrics metrics;
	struct debuginfod *d;
};

static struct debuginfod *servers(struct fixture *f, const char *urls)
{
	struct debuginfod *d = NULL;

	assert_int_equal(debuginfod_create(
				 &(struct debuginfod_options){
					 .urls = urls,
					 .cache = f->cache,
					 .metrics = &f->metrics,
					 .per_minute = PER_MINUTE,
				 },
				 &d),
		0);
	return d;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-debuginfod-XXXXXX");
	if (!mkdtemp(f->directory) || cache_create(f->directory, PLENTY, &f->cache))
		return -1;
	f->d = servers(f, "http://127.0.0.1:1");
	*state = f;
	return 0;
}

static void marker_of(const struct fixture *f, char *path, size_t size)
{
	char id[MODULE_ID_TEXT_BYTES];

	build_id_format(&ID, id, sizeof(id));
	snprintf(path, size, "%s/%s.v%d.absent", f->directory, id, INDEX_VERSION);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[256];

	debuginfod_destroy(f->d);
	cache_destroy(f->cache);
	marker_of(f, path, sizeof(path));
	(void)unlink(path);
	if (rmdir(f->directory))
		return -1;
	free(f);
	return 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void one_list(const char *text, size_t count, const char *const *expected)
{
	const char *at = text, *url;
	size_t found = 0, length;

	while ((url = debuginfod_next_url(&at, &length)) != NULL) {
		assert_true(found < count);
		assert_int_equal(length, strlen(expected[found]));
		assert_memory_equal(url, expected[found], length);
		found++;
	}
	assert_int_equal(found, count);
}

static void test_lists_of_urls(void **state)
{
	(void)state;
	one_list("", 0, NULL);
	one_list(" \t,, \n", 0, NULL);
	one_list("https://a", 1, (const char *[]){ "https://a" });
	one_list(" https://a/ http://b:80/path//,HTTPS://c ", 3,
		(const char *[]){ "https://a", "http://b:80/path", "HTTPS://c" });
	one_list("ima:enforcing https://a ima:ignore", 1, (const char *[]){ "https://a" });
	one_list("file:///etc ftp://x debian.net", 0, NULL);
}

static void test_invalid_lists_of_urls(void **state)
{
	(void)state;
	assert_true(debuginfod_urls_are_valid(""));
	assert_true(debuginfod_urls_are_valid("  "));
	assert_true(debuginfod_urls_are_valid("https://a http://b,http://c"));
	assert_true(debuginfod_urls_are_valid("ima:enforcing https://a"));
	assert_false(debuginfod_urls_are_valid("a"));
	assert_false(debuginfod_urls_are_valid("https://a file:///b"));
	assert_false(debuginfod_urls_are_valid("https://a b"));
}

static void test_without_urls_there_is_nothing(void **state)
{
	struct debuginfod *d = NULL;

	(void)state;
	assert_int_equal(
		debuginfod_create(&(struct debuginfod_options){ .urls = " " }, &d), -ENOENT);
	assert_null(d);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void note(struct fixture *f, int error, bool answered, uint64_t now_ns)
{
	const struct debuginfod_answer answer = { .error = error, .answered = answered };

	debuginfod_note(f->d, &ID, &answer, now_ns);
}

static void test_a_failure_pauses_longer_each_time(void **state)
{
	static const uint64_t minutes[] = { 1, 2, 4, 8, 15, 15, 15, 15 };
	struct fixture *f = *state;
	uint64_t now_ns = START_NS;

	for (size_t i = 0; i < ARRAY_SIZE(minutes); i++) {
		uint64_t end_ns = now_ns + 60 * SECOND_NS * minutes[i];

		assert_false(debuginfod_is_paused(f->d, now_ns));
		note(f, -ECONNREFUSED, false, now_ns);
		assert_int_equal(debuginfod_state(f->d).failures, i + 1);
		assert_true(debuginfod_is_paused(f->d, end_ns - 1));
		assert_false(debuginfod_may_ask(f->d, end_ns - 1));
		now_ns = end_ns;
	}
	assert_true(debuginfod_may_ask(f->d, now_ns));
	assert_int_equal(debuginfod_state(f->d).last.error, -ECONNREFUSED);
	note(f, -ENOENT, true, now_ns);
	assert_int_equal(debuginfod_state(f->d).failures, 0);
	note(f, -ETIMEDOUT, false, now_ns);
	assert_false(debuginfod_is_paused(f->d, now_ns + 60 * SECOND_NS));
	assert_int_equal(f->metrics.values[METRIC_DEBUGINFOD_FAILED], ARRAY_SIZE(minutes) + 1);
}

static void test_questions_that_fail_together_are_one_failure(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 4; i++)
		note(f, -ETIMEDOUT, false, START_NS + (uint64_t)i);
	assert_int_equal(debuginfod_state(f->d).failures, 1);
	assert_false(debuginfod_is_paused(f->d, START_NS + 60 * SECOND_NS));
}

static void test_one_server_of_two_that_answers_is_enough(void **state)
{
	struct fixture *f = *state;

	note(f, -EREMOTEIO, true, START_NS);
	assert_false(debuginfod_is_paused(f->d, START_NS));
	assert_false(debuginfod_is_absent(f->d, &ID));
}

static void test_failures_are_not_remembered(void **state)
{
	static const int errors[] = { -EREMOTEIO, -ETIMEDOUT, -EHOSTUNREACH, -EACCES, -ENOSYS };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		note(f, errors[i], false, START_NS);
	assert_false(debuginfod_is_absent(f->d, &ID));
}

static void age_marker(const struct fixture *f, time_t seconds)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = 0 } };
	char path[256];

	marker_of(f, path, sizeof(path));
	times[1].tv_sec = (time_t)(clock_real_ns() / SECOND_NS) - seconds;
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void test_absence_is_remembered_for_a_day(void **state)
{
	struct fixture *f = *state;

	assert_false(debuginfod_is_absent(f->d, &ID));
	note(f, -ENOENT, true, START_NS);
	assert_true(debuginfod_is_absent(f->d, &ID));
	assert_false(debuginfod_is_absent(f->d, &OTHER));
	assert_int_equal(f->metrics.values[METRIC_DEBUGINFOD_ABSENT], 1);
	/* Also after a restart. */
	debuginfod_destroy(f->d);
	f->d = servers(f, "http://127.0.0.1:1");
	assert_true(debuginfod_is_absent(f->d, &ID));
	age_marker(f, 86400 - 600);
	assert_true(debuginfod_is_absent(f->d, &ID));
	age_marker(f, 86400 + 600);
	assert_false(debuginfod_is_absent(f->d, &ID));
	/* The clock was wrong. */
	age_marker(f, -86400);
	assert_false(debuginfod_is_absent(f->d, &ID));
	note(f, -ENOENT, true, START_NS);
	assert_true(debuginfod_is_absent(f->d, &ID));
}

static void test_absence_is_not_assumed_for_other_servers(void **state)
{
	struct fixture *f = *state;
	struct debuginfod *others = servers(f, "http://127.0.0.1:2");

	note(f, -ENOENT, true, START_NS);
	assert_false(debuginfod_is_absent(others, &ID));
	debuginfod_destroy(others);
}

static void test_a_tampered_marker_is_ignored(void **state)
{
	struct fixture *f = *state;
	char path[256];

	note(f, -ENOENT, true, START_NS);
	marker_of(f, path, sizeof(path));
	assert_int_equal(truncate(path, 3), 0);
	assert_false(debuginfod_is_absent(f->d, &ID));
	note(f, -ENOENT, true, START_NS);
	assert_int_equal(chmod(path, 0666), 0);
	assert_false(debuginfod_is_absent(f->d, &ID));
}

static void test_useless_files_are_remembered(void **state)
{
	static const int errors[] = { -EFBIG, -EBADMSG };
	struct fixture *f = *state;
	char path[256];

	marker_of(f, path, sizeof(path));
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		note(f, errors[i], true, START_NS);
		assert_true(debuginfod_is_absent(f->d, &ID));
		assert_false(debuginfod_is_paused(f->d, START_NS));
		assert_int_equal(unlink(path), 0);
	}
	debuginfod_is_wrong(f->d, &ID);
	assert_true(debuginfod_is_absent(f->d, &ID));
	assert_int_equal(debuginfod_state(f->d).wrong, 2);
	assert_int_equal(f->metrics.values[METRIC_DEBUGINFOD_WRONG], 2);
	assert_int_equal(f->metrics.values[METRIC_DEBUGINFOD_TOO_LARGE], 1);
}

/* ---- questions ------------------------------------------------------------------------------ */

/* As the child, this program sends nothing and does not end. */
static void test_no_more_questions_a_minute_than_allowed(void **state)
{
	struct fixture *f = *state;
	struct debuginfod_request r;
	int fd = -1;

	assert_true(debuginfod_may_ask(f->d, START_NS));
	for (int i = 0; i < PER_MINUTE; i++) {
		assert_true(debuginfod_may_ask(f->d, START_NS + (uint64_t)i * SECOND_NS));
		assert_int_equal(debuginfod_ask(f->d, &ID, &r), 0);
		debuginfod_abandon(&r);
	}
	assert_false(debuginfod_may_ask(f->d, START_NS + 59 * SECOND_NS));
	assert_true(debuginfod_may_ask(f->d, START_NS + 60 * SECOND_NS));
	assert_int_equal(debuginfod_ask(f->d, &ID, &r), 0);
	assert_int_equal(debuginfod_collect(f->d, &r, r.deadline_ns - 1, &fd), -EAGAIN);
	assert_int_equal(debuginfod_collect(f->d, &r, r.deadline_ns, &fd), -ETIMEDOUT);
	assert_int_equal(fd, -1);
	assert_int_equal(debuginfod_state(f->d).failures, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_lists_of_urls),
		TEST(test_invalid_lists_of_urls),
		TEST(test_without_urls_there_is_nothing),
		TEST(test_a_failure_pauses_longer_each_time),
		TEST(test_questions_that_fail_together_are_one_failure),
		TEST(test_one_server_of_two_that_answers_is_enough),
		TEST(test_failures_are_not_remembered),
		TEST(test_absence_is_remembered_for_a_day),
		TEST(test_absence_is_not_assumed_for_other_servers),
		TEST(test_a_tampered_marker_is_ignored),
		TEST(test_useless_files_are_remembered),
		TEST(test_no_more_questions_a_minute_than_allowed),
	};

	while (argc > 1 && sandboxed_is_command(argv[1]))
		pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
