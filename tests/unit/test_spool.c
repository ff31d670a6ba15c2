/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/spool_fixture.h"

enum { LIMIT = 1 << 20, SIZE = 1000 };

static const char *const one[] = { "one", NULL };
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

static void damage(const char *path, off_t offset, const char *bytes, size_t size)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, offset), size);
	close(fd);
}

static off_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void each_target_has_all_in_order(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	for (uint64_t n = 1; n <= 20; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	for (uint64_t n = 1; n <= 20; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(spool_pending(s, 1), 20);
	for (uint64_t n = 1; n <= 20; n++)
		assert_int_equal(spool_fixture_take(s, 1), n);
	assert_int_equal(spool_pending(s, 1), 0);
	/* No target needs the segments any more. */
	assert_int_equal(spool_bytes(s), 0);
	assert_int_equal(spool_oldest_ns(s, INT64_MAX), 0);
	assert_int_equal(spool_fixture_put(s, 21, SIZE), 0);
	assert_int_equal(spool_fixture_take(s, 0), 21);
	assert_int_equal(spool_fixture_take(s, 1), 21);
	spool_destroy(s);
}

static void a_restart_goes_on_where_it_was(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, two);

	for (uint64_t n = 1; n <= 6; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	assert_int_equal(spool_fixture_take(s, 0), 1);
	assert_int_equal(spool_fixture_take(s, 0), 2);
	assert_int_equal(spool_fixture_take(s, 1), 1);
	for (int restarts = 0; restarts < 5; restarts++) {
		spool_destroy(s);
		s = spool_fixture_open(*state, LIMIT, two);
		assert_int_equal(spool_fixture_put(s, 7 + (uint64_t)restarts, SIZE), 0);
	}
	for (uint64_t n = 3; n <= 11; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	for (uint64_t n = 2; n <= 11; n++)
		assert_int_equal(spool_fixture_take(s, 1), n);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	spool_destroy(s);
}

static void a_new_target_begins_with_what_comes(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, one);

	assert_int_equal(spool_fixture_put(s, 1, SIZE), 0);
	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, two);
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_int_equal(spool_fixture_peek(s, 1), 0);
	assert_int_equal(spool_fixture_put(s, 2, SIZE), 0);
	assert_int_equal(spool_fixture_peek(s, 1), 2);
	spool_destroy(s);
}

static void the_oldest_go_first(void **state)
{
	struct spool *s = spool_fixture_open(*state, 64 << 10, two);
	uint64_t first, last = 0;

	for (uint64_t n = 1; n <= 200; n++) {
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
		assert_true(spool_bytes(s) <= 64 << 10);
		if (n <= 10)
			assert_int_equal(spool_fixture_take(s, 1), n);
	}
	first = spool_fixture_peek(s, 0);
	assert_true(first > 100);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT), first - 1);
	assert_int_equal(spool_dropped(s, 1, SPOOL_DROP_LIMIT), first - 11);
	for (uint64_t n; (n = spool_fixture_take(s, 0));) {
		assert_true(!last || n == last + 1);
		last = n;
	}
	assert_int_equal(last, 200);
	assert_int_equal(spool_fixture_put(s, 201, 100 << 10), -E2BIG);
	spool_destroy(s);
}

/* A segment has an eighth of the limit, which is how much is dropped at a time. */
static void a_small_limit_gives_small_segments(void **state)
{
	struct spool_fixture *f = *state;
	struct spool *s = spool_fixture_open(f, 64 << 10, one);
	char path[128];
	size_t count = 0;

	for (uint64_t n = 1; n <= 200; n++) {
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
		if (n > 60)
			assert_in_range(spool_bytes(s), 54 << 10, 64 << 10);
	}
	while (spool_fixture_segment(f, count, path)) {
		assert_in_range(size_of(path), SIZE, 8 << 10);
		count++;
	}
	assert_in_range(count, 7, 11);
	spool_destroy(s);
	/* Segments have at least 4 KiB. */
	s = spool_fixture_open(f, 8 << 10, one);
	for (uint64_t n = 201; n <= 240; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	assert_true(spool_fixture_segment(f, 0, path));
	assert_in_range(size_of(path), 2 * SIZE, 4 << 10);
	spool_destroy(s);
}

static void payloads_that_are_too_old_are_skipped(void **state)
{
	struct spool_options options = spool_fixture_options(*state, LIMIT, one);
	struct spool *s = NULL;
	struct payload p;

	options.limit_age_ns = UINT64_C(3600000000000);
	assert_int_equal(spool_create(&options, &s), 0);
	spool_fixture_payload(1, SIZE, &p);
	p.time_ns -= INT64_C(2) * 3600000000000;
	assert_int_equal(spool_put(s, &p), 0);
	payload_deinit(&p);
	assert_int_equal(spool_fixture_put(s, 2, SIZE), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 2);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_AGE), 1);
	spool_destroy(s);
}

/* Puts five records of one size; returns the offset of the N-th, from 1. */
static off_t five(struct spool_fixture *f, char path[128], uint64_t n)
{
	struct spool *s = spool_fixture_open(f, LIMIT, one);

	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(spool_fixture_put(s, i, SIZE), 0);
	spool_destroy(s);
	assert_true(spool_fixture_segment(f, 0, path));
	return size_of(path) / 5 * (off_t)(n - 1);
}

static void check_lost(struct spool_fixture *f, uint64_t lost)
{
	struct spool *s = spool_fixture_open(f, LIMIT, one);

	assert_int_equal(spool_fixture_put(s, 6, SIZE), 0);
	for (uint64_t n = 1; n <= 6; n++) {
		if (n != lost)
			assert_int_equal(spool_fixture_take(s, 0), n);
	}
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), lost ? 1 : 0);
	spool_destroy(s);
}

static void a_damaged_body_costs_one_record(void **state)
{
	char path[128];
	off_t at = five(*state, path, 3);

	damage(path, at + 200, "damaged", 7);
	check_lost(*state, 3);
}

static void a_damaged_header_costs_one_record(void **state)
{
	char path[128];
	off_t at = five(*state, path, 2);

	damage(path, at + 4, "\xff\xff\xff\x7f", 4);
	check_lost(*state, 2);
}

static void a_damaged_first_magic_costs_one_record(void **state)
{
	char path[128];
	off_t at = five(*state, path, 1);

	damage(path, at, "XXXX", 4);
	check_lost(*state, 1);
}

static void a_damaged_last_record_is_counted(void **state)
{
	char path[128];
	off_t at = five(*state, path, 5);

	damage(path, at, "XXXX", 4);
	check_lost(*state, 5);
}

static void a_magic_inside_a_body_is_no_record(void **state)
{
	char path[128];
	off_t at = five(*state, path, 2);

	damage(path, at, "XXXX", 4);
	damage(path, at + 300, "FPSR", 4);
	check_lost(*state, 2);
}

static void an_incomplete_record_is_not_damage(void **state)
{
	char path[128];
	off_t size = five(*state, path, 6), record = size / 5;
	struct spool *s;

	for (off_t cut = 1; cut < record; cut += 97) {
		assert_int_equal(truncate(path, size - cut), 0);
		s = spool_fixture_open(*state, LIMIT, one);
		for (uint64_t n = 1; n <= 4; n++) {
			assert_int_equal(spool_fixture_peek(s, 0), 1);
			assert_int_equal(spool_pending(s, 0), 4);
		}
		assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
		spool_destroy(s);
	}
}

static void empty_and_foreign_files_are_ignored(void **state)
{
	struct spool_fixture *f = *state;
	char path[160];

	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "0000000000000001.seg", "notes.txt",
			"zzzzzzzzzzzzzzzz.seg" };

		snprintf(path, sizeof(path), "%s/%s", f->directory, names[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	five(f, path, 1);
	check_lost(f, 0);
	snprintf(path, sizeof(path), "%s/notes.txt", f->directory);
	assert_int_equal(access(path, F_OK), 0);
}

static void a_lost_cursor_repeats_and_says_so(void **state)
{
	struct spool_fixture *f = *state;
	struct spool *s = spool_fixture_open(f, LIMIT, one);
	char command[160];

	for (uint64_t n = 1; n <= 3; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	assert_int_equal(spool_fixture_take(s, 0), 1);
	spool_destroy(s);
	snprintf(command, sizeof(command), "for f in %s/*.cursor; do echo junk >$f; done",
		f->directory);
	assert_int_equal(system(command), 0);
	s = spool_fixture_open(f, LIMIT, one);
	assert_int_equal(spool_fixture_put(s, 4, SIZE), 0);
	for (uint64_t n = 1; n <= 4; n++) {
		assert_int_equal(spool_fixture_peek(s, 0), n);
		assert_int_equal(spool_begin(s, 0), n < 4);
		assert_int_equal(spool_advance(s, 0), 0);
	}
	spool_destroy(s);
}

static void started_sends_are_remembered(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, one);

	for (uint64_t n = 1; n <= 3; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_false(spool_begin(s, 0));
	/* After a refused connection the delivery is not in doubt. */
	spool_not_sent(s, 0);
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_false(spool_begin(s, 0));
	/* After a timeout it is, and stays so. */
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_true(spool_begin(s, 0));
	spool_not_sent(s, 0);
	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, one);
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_true(spool_begin(s, 0));
	assert_int_equal(spool_advance(s, 0), 0);
	assert_int_equal(spool_fixture_take(s, 0), 2);
	spool_destroy(s);
}

static void the_second_may_be_done_before_the_first(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, one);
	struct payload p = { 0 };

	assert_int_equal(spool_fixture_put(s, 1, SIZE), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_int_equal(spool_peek_second(s, 0, &p), -ENOENT);
	for (uint64_t n = 2; n <= 4; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
	assert_int_equal(spool_peek_second(s, 0, &p), 0);
	assert_int_equal(spool_fixture_check(&p), 2);
	payload_deinit(&p);
	assert_false(spool_begin(s, 0));
	assert_int_equal(spool_advance_second(s, 0), 0);
	assert_int_equal(spool_fixture_peek(s, 0), 1);
	assert_int_equal(spool_peek_second(s, 0, &p), -ENOENT);
	spool_destroy(s);
	s = spool_fixture_open(*state, LIMIT, one);
	assert_int_equal(spool_fixture_take(s, 0), 1);
	assert_int_equal(spool_fixture_take(s, 0), 3);
	assert_int_equal(spool_fixture_take(s, 0), 4);
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	spool_destroy(s);
}

static size_t count_files(const char *directory, const char *pattern)
{
	char command[200], line[32] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "ls %s/%s 2>/dev/null | wc -l", directory, pattern);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	return strtoul(line, NULL, 10);
}

static void the_refused_are_set_aside_bounded(void **state)
{
	struct spool_fixture *f = *state;
	struct spool *s = spool_fixture_open(f, LIMIT, one);

	for (uint64_t n = 1; n <= 50; n++) {
		assert_int_equal(spool_fixture_put(s, n, SIZE), 0);
		assert_int_equal(spool_fixture_peek(s, 0), n);
		assert_int_equal(spool_reject(s, 0, "status 3: no such thing"), 0);
		if (n == 2)
			assert_int_equal(count_files(f->directory, "rejected/*"), 4);
	}
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	assert_int_equal(count_files(f->directory, "rejected/*.pb.gz"), 32);
	assert_int_equal(count_files(f->directory, "rejected/*.txt"), 32);
	assert_int_equal(spool_bytes(s), 0);
	spool_destroy(s);
}

static void memory_is_bounded_too(void **state)
{
	struct spool_fixture *f = *state;
	struct spool_options options = spool_fixture_options(f, 10000, one);
	struct spool *s = NULL;
	uint64_t first;

	options.directory = "/proc/self/no-such-directory";
	assert_int_equal(spool_create(&options, &s), 0);
	assert_non_null(spool_trouble(s));
	for (uint64_t n = 1; n <= 50; n++)
		assert_int_equal(spool_fixture_put(s, n, SIZE), 1);
	assert_true(spool_bytes(s) <= 10000);
	first = spool_fixture_peek(s, 0);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT), first - 1);
	for (uint64_t n = first; n <= 50; n++)
		assert_int_equal(spool_fixture_take(s, 0), n);
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	spool_destroy(s);
}

static void a_newer_directory_is_left_alone(void **state)
{
	struct spool_fixture *f = *state;
	char path[160], segment[128], line[64] = "";
	struct spool *s;
	FILE *file;

	five(f, segment, 1);
	snprintf(path, sizeof(path), "%s/version", f->directory);
	file = fopen(path, "w");
	fputs("fathom-spool 2\n", file);
	fclose(file);
	s = spool_fixture_open(f, LIMIT, one);
	assert_non_null(spool_trouble(s));
	assert_int_equal(spool_fixture_put(s, 9, SIZE), 1);
	assert_int_equal(spool_fixture_take(s, 0), 9);
	assert_int_equal(spool_fixture_peek(s, 0), 0);
	spool_destroy(s);
	file = fopen(path, "r");
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	assert_string_equal(line, "fathom-spool 2\n");
	assert_int_equal(access(segment, F_OK), 0);
}

static void a_second_owner_is_refused(void **state)
{
	struct spool *s = spool_fixture_open(*state, LIMIT, one), *other = NULL;
	struct spool_options options = spool_fixture_options(*state, LIMIT, one);

	assert_int_equal(spool_create(&options, &other), -EBUSY);
	spool_destroy(s);
}

static void a_directory_writable_by_others_is_refused(void **state)
{
	struct spool_fixture *f = *state;
	struct spool_options options = spool_fixture_options(f, LIMIT, one);
	struct spool *s = NULL;

	assert_int_equal(chmod(f->directory, 0777), 0);
	assert_int_equal(spool_create(&options, &s), -EPERM);
	assert_int_equal(chmod(f->directory, 0700), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_target_has_all_in_order),
		CASE(a_restart_goes_on_where_it_was),
		CASE(a_new_target_begins_with_what_comes),
		CASE(the_oldest_go_first),
		CASE(a_small_limit_gives_small_segments),
		CASE(payloads_that_are_too_old_are_skipped),
		CASE(a_damaged_body_costs_one_record),
		CASE(a_damaged_header_costs_one_record),
		CASE(a_damaged_first_magic_costs_one_record),
		CASE(a_damaged_last_record_is_counted),
		CASE(a_magic_inside_a_body_is_no_record),
		CASE(an_incomplete_record_is_not_damage),
		CASE(empty_and_foreign_files_are_ignored),
		CASE(a_lost_cursor_repeats_and_says_so),
		CASE(started_sends_are_remembered),
		CASE(the_second_may_be_done_before_the_first),
		CASE(the_refused_are_set_aside_bounded),
		CASE(memory_is_bounded_too),
		CASE(a_newer_directory_is_left_alone),
		CASE(a_second_owner_is_refused),
		CASE(a_directory_writable_by_others_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
