/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perf_map/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/io.h"

struct fixture {
	struct perf_map *map;
	int fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->fd = memfd_create("perf-1.map", MFD_CLOEXEC);
	*state = f;
	return f->fd < 0 ? -1 : perf_map_create(&f->map);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	perf_map_destroy(f->map);
	close(f->fd);
	free(f);
	return 0;
}

static void append(struct fixture *f, const char *text)
{
	assert_int_equal(io_write_all(f->fd, text, strlen(text)), 0);
}

static void update(struct fixture *f, const char *text)
{
	append(f, text);
	assert_int_equal(perf_map_update(f->map, f->fd), 0);
}

static void expect(const struct fixture *f, uint64_t pc, const char *name, uint64_t start)
{
	const char *found = NULL;
	uint64_t found_start = 0;

	assert_true(perf_map_lookup(f->map, pc, &found, &found_start));
	assert_string_equal(found, name);
	assert_int_equal(found_start, start);
}

static void expect_none(const struct fixture *f, uint64_t pc)
{
	const char *name;
	uint64_t start;

	assert_false(perf_map_lookup(f->map, pc, &name, &start));
}

static void test_functions(void **state)
{
	struct fixture *f = *state;

	expect_none(f, 0x1000);
	update(f, "2000 10 second\n1000 80 LazyCompile:~f /a b.js:1:2\n0x3000 0x10 third\n");
	expect(f, 0x1000, "LazyCompile:~f /a b.js:1:2", 0x1000);
	expect(f, 0x107f, "LazyCompile:~f /a b.js:1:2", 0x1000);
	expect(f, 0x200f, "second", 0x2000);
	expect(f, 0x3000, "third", 0x3000);
	expect_none(f, 0xfff);
	expect_none(f, 0x1080);
	expect_none(f, 0x2010);
	expect_none(f, UINT64_MAX);
	assert_int_equal(perf_map_count(f->map), 3);
	assert_int_equal(perf_map_bad_lines(f->map), 0);
}

static void test_reads_what_was_appended(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 10 a\n");
	update(f, "");
	update(f, "2000 10 b\n3000 10 c\n");
	expect(f, 0x1000, "a", 0x1000);
	expect(f, 0x2000, "b", 0x2000);
	expect(f, 0x3000, "c", 0x3000);
	assert_int_equal(perf_map_count(f->map), 3);
}

static void test_line_that_is_being_written(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 10 a\n2000 10 lo");
	expect_none(f, 0x2000);
	update(f, "ng");
	expect_none(f, 0x2000);
	update(f, "er\n");
	expect(f, 0x2000, "longer", 0x2000);
	assert_int_equal(perf_map_bad_lines(f->map), 0);
}

static void test_later_line_wins(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 100 old\n1000 100 new\n");
	expect(f, 0x1000, "new", 0x1000);
	expect(f, 0x10ff, "new", 0x1000);
	assert_int_equal(perf_map_count(f->map), 1);
	update(f, "1000 100 newest\n");
	expect(f, 0x1080, "newest", 0x1000);
	assert_int_equal(perf_map_count(f->map), 1);
}

static void test_stub_inside_a_bigger_one(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 1000 interpreter\n1400 100 stub\n");
	expect(f, 0x13ff, "interpreter", 0x1000);
	expect(f, 0x1400, "stub", 0x1400);
	expect(f, 0x1500, "interpreter", 0x1000);
	update(f, "1800 100 later\n");
	expect(f, 0x17ff, "interpreter", 0x1000);
	expect(f, 0x18ff, "later", 0x1800);
	expect(f, 0x1900, "interpreter", 0x1000);
}

static void test_partial_overlaps(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 100 a\n1100 100 b\n1200 100 c\n");
	update(f, "1080 100 x\n11f0 20 y\n");
	expect(f, 0x107f, "a", 0x1000);
	expect(f, 0x1080, "x", 0x1080);
	expect(f, 0x117f, "x", 0x1080);
	expect(f, 0x1180, "b", 0x1100);
	expect(f, 0x11f0, "y", 0x11f0);
	expect(f, 0x120f, "y", 0x11f0);
	expect(f, 0x1210, "c", 0x1200);
	expect_none(f, 0x1300);
}

static void test_bad_lines_are_counted(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 10 good\n"
		  "\n"
		  "1000\n"
		  "1000 10\n"
		  "1000 10 \n"
		  " 10 name\n"
		  "xyz 10 name\n"
		  "1000 -1 name\n"
		  "1000 0 empty\n"
		  "0x 10 name\n"
		  "11112222333344445 10 long_address\n"
		  "1000 100000000 long_size\n"
		  "fffffffffffffff0 10 wraps\n"
		  "2000 10 good\n");
	assert_int_equal(perf_map_bad_lines(f->map), 12);
	assert_int_equal(perf_map_count(f->map), 2);
	expect(f, 0x1000, "good", 0x1000);
	expect(f, 0x2000, "good", 0x2000);
}

static void test_names_are_made_showable(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 10 a\xff\x1b[31m\xc3\xa4\n");
	expect(f, 0x1000, "a??[31m\xc3\xa4", 0x1000);
	assert_int_equal(write(f->fd, "2000 10 a\0b\n", 12), 12);
	update(f, "");
	expect(f, 0x2000, "a?b", 0x2000);
}

static void test_overlong_line_is_skipped(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 10 a\n2000 10 ");
	for (int i = 0; i < 20000; i++)
		append(f, "long name ");
	assert_int_equal(perf_map_update(f->map, f->fd), 0);
	update(f, "end\n3000 10 b\n");
	expect(f, 0x1000, "a", 0x1000);
	expect(f, 0x3000, "b", 0x3000);
	expect_none(f, 0x2000);
	assert_int_equal(perf_map_bad_lines(f->map), 1);
}

static void test_long_name_is_cut(void **state)
{
	struct fixture *f = *state;
	const char *name;
	uint64_t start;

	append(f, "1000 10 ");
	for (int i = 0; i < 1000; i++)
		append(f, "0123456789");
	update(f, "\n");
	assert_true(perf_map_lookup(f->map, 0x1000, &name, &start));
	assert_int_equal(strlen(name), 4096);
}

static void test_shorter_file_is_read_anew(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 10 a\n2000 10 b\n");
	assert_int_equal(ftruncate(f->fd, 0), 0);
	assert_int_equal(lseek(f->fd, 0, SEEK_SET), 0);
	update(f, "3000 10 c\n");
	expect_none(f, 0x1000);
	expect(f, 0x3000, "c", 0x3000);
}

static void test_another_file_is_read_anew(void **state)
{
	struct fixture *f = *state;
	int old = f->fd;

	update(f, "1000 10 a\n");
	f->fd = memfd_create("perf-1.map", MFD_CLOEXEC);
	update(f, "2000 10 b\n3000 10 c\n");
	close(old);
	expect_none(f, 0x1000);
	expect(f, 0x2000, "b", 0x2000);
}

static void test_only_regular_files(void **state)
{
	struct fixture *f = *state;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(perf_map_update(f->map, ends[0]), -EBADMSG);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(perf_map_update(f->map, -1), -EBADF);
}

/* Rewrites the file in place, like JITs that dump all of their code each time. */
static void rewrite(struct fixture *f, const char *text)
{
	assert_int_equal(ftruncate(f->fd, 0), 0);
	assert_int_equal(lseek(f->fd, 0, SEEK_SET), 0);
	update(f, text);
}

static void test_rewritten_file_is_read_anew(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 100 old_name\n2000 100 old_two\n");
	rewrite(f, "1000 100 new_name\n3000 100 new_two\n");
	expect(f, 0x1010, "new_name", 0x1000);
	expect(f, 0x3010, "new_two", 0x3000);
	expect_none(f, 0x2010);
	rewrite(f, "1000 100 later_longer_name\n2000 100 later_two\n3000 100 three\n");
	expect(f, 0x1010, "later_longer_name", 0x1000);
	expect(f, 0x2010, "later_two", 0x2000);
	expect(f, 0x3010, "three", 0x3000);
	assert_int_equal(perf_map_bad_lines(f->map), 0);
}

/* Every line is compared: in the middle of a long file, only a name of the same length differs. */
static void test_another_name_in_a_long_file_is_noticed(void **state)
{
	struct fixture *f = *state;
	autocall(buffer_deinit) struct buffer b;

	buffer_init(&b, 1 << 20);
	for (uint64_t i = 0; i < 20000; i++)
		buffer_printf(&b, "%06" PRIx64 " 8 interpreted\n", 0x1000 + i * 16);
	assert_int_equal(io_write_all(f->fd, b.bytes, b.size), 0);
	update(f, "");
	expect(f, 0x1000 + 10000 * 16, "interpreted", 0x1000 + 10000 * 16);
	memcpy(strstr((char *)b.bytes + b.size / 2, "interpreted"), "incompilers", 11);
	assert_int_equal(pwrite(f->fd, b.bytes, b.size, 0), b.size);
	update(f, "");
	expect(f, 0x1000 + 10000 * 16, "incompilers", 0x1000 + 10000 * 16);
}

/* A sparse file is an endless line for fathom and costs its writer nothing. */
static void test_endless_file_gives_no_names(void **state)
{
	struct fixture *f = *state;

	update(f, "1000 10 a\n");
	assert_int_equal(ftruncate(f->fd, INT64_C(1) << 40), 0);
	assert_int_equal(perf_map_update(f->map, f->fd), -EAGAIN);
	assert_int_equal(perf_map_update(f->map, f->fd), -EAGAIN);
	/* The unread part may name another function at that address. */
	assert_true(perf_map_is_behind(f->map));
	expect_none(f, 0x1000);
	assert_true(perf_map_bytes(f->map) < 1 << 20);
}

/* As much as a server compiles in hours; the newest lines win, however many there are. */
static void test_long_file_names_what_came_last(void **state)
{
	struct fixture *f = *state;
	autocall(buffer_deinit) struct buffer b;

	buffer_init(&b, 200 << 20);
	for (uint64_t i = 0; i < 900000; i++)
		buffer_printf(&b,
			"%" PRIx64 " 40 LazyCompile:*someFunctionWithAName%d /srv/app/node_modules/"
			"some-package/lib/index.js:%d:1\n",
			0x10000000 + i * 64, (int)i, (int)i);
	buffer_printf(&b, "10000000 40 compiled_last_at_a_reused_address\n");
	assert_true(b.size > 80 << 20);
	assert_int_equal(io_write_all(f->fd, b.bytes, b.size), 0);
	update(f, "f0000000 40 compiled_last\n");
	assert_false(perf_map_is_behind(f->map));
	expect(f, 0xf0000000, "compiled_last", 0xf0000000);
	expect(f, 0x10000000, "compiled_last_at_a_reused_address", 0x10000000);
	expect_none(f, 0x10000040); /* the oldest names are dropped */
	assert_true(perf_map_dropped(f->map) > 0);
	assert_true(perf_map_bytes(f->map) < 150 << 20);
	update(f, "20000000 40 later\n");
	expect(f, 0x20000000, "later", 0x20000000);
	expect(f, 0x10000000, "compiled_last_at_a_reused_address", 0x10000000);
}

static void test_of_too_many_functions_the_oldest_go(void **state)
{
	enum { FUNCTIONS = (1 << 20) + (1 << 17) };
	struct fixture *f = *state;
	autocall(buffer_deinit) struct buffer b;

	buffer_init(&b, 64 << 20);
	for (uint64_t i = 0; i < FUNCTIONS; i++)
		buffer_printf(&b, "%" PRIx64 " 8 f\n", 0x1000 + i * 16);
	assert_int_equal(io_write_all(f->fd, b.bytes, b.size), 0);
	update(f, "");
	assert_true(perf_map_count(f->map) <= 1 << 20);
	assert_int_equal(perf_map_count(f->map) + perf_map_dropped(f->map), FUNCTIONS);
	expect_none(f, 0x1000);
	expect(f, 0x1000 + (FUNCTIONS - 1) * UINT64_C(16), "f",
		0x1000 + (FUNCTIONS - 1) * UINT64_C(16));
}

/* ---- whose names they are ------------------------------------------------------------------- */

static void date_file(const struct fixture *f, time_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	assert_int_equal(futimens(f->fd, times), 0);
}

static void test_lines_of_an_earlier_program_are_not_its(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 100 of_another\n2000 100 of_another\n");
	date_file(f, 1000);
	perf_map_set_beginning(f->map, UINT64_C(2000000000000));
	update(f, "");
	expect_none(f, 0x1000);
	/* Python appends to an existing file. */
	update(f, "2000 10 its_own\n");
	expect(f, 0x2000, "its_own", 0x2000);
	expect_none(f, 0x2010);
	rewrite(f, "1000 100 new\n");
	expect(f, 0x1000, "new", 0x1000);
}

static void test_the_file_of_the_running_program_is_its(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 100 its_own\n");
	date_file(f, 1000);
	perf_map_set_beginning(f->map, UINT64_C(1000000000000));
	update(f, "");
	expect(f, 0x1000, "its_own", 0x1000);
}

static void test_a_forked_child_goes_on_with_its_parents_names(void **state)
{
	struct fixture *f = *state, child = { 0 }, grandchild = { 0 };

	assert_int_equal(perf_map_fork(f->map, &child.map), -ENOENT);
	update(f, "1000 100 early\n2000 100 early_two\n");
	assert_int_equal(perf_map_fork(f->map, &child.map), 0);
	/* A child without lines of its own has the names of its parent. */
	assert_int_equal(perf_map_fork(child.map, &grandchild.map), 0);
	update(f, "2000 100 of_the_parent\n3000 100 of_the_parent\n");
	expect(&child, 0x1000, "early", 0x1000);
	expect_none(&child, 0x2000); /* a newer line covers early_two: no name */
	expect_none(&child, 0x3000);
	child.fd = memfd_create("perf-2.map", MFD_CLOEXEC);
	update(&child, "1000 10 of_the_child\n3000 100 of_the_child\n");
	expect(&child, 0x1000, "of_the_child", 0x1000);
	expect(&child, 0x1010, "early", 0x1000);
	expect(&child, 0x3000, "of_the_child", 0x3000);
	expect(f, 0x3000, "of_the_parent", 0x3000);
	/* A map that others use is not evicted. */
	perf_map_evict(f->map);
	perf_map_destroy(take(f->map));
	expect(&child, 0x1010, "early", 0x1000);
	perf_map_destroy(child.map);
	expect(&grandchild, 0x1000, "early", 0x1000);
	perf_map_destroy(grandchild.map);
	close(child.fd);
}

static void test_what_was_read_too_late_is_rolled_back(void **state)
{
	struct fixture *f = *state;
	struct perf_map_mark mark;

	update(f, "1000 100 a\n2000 100 b\n");
	mark = perf_map_mark(f->map);
	update(f, "2000 100 of_the_next_program\n3000 100 of_the_next_program\n");
	perf_map_roll_back(f->map, &mark);
	expect(f, 0x1000, "a", 0x1000);
	expect_none(f, 0x2000);
	expect_none(f, 0x3000);
}

static void test_what_was_let_go_is_read_again(void **state)
{
	struct fixture *f = *state;

	append(f, "5000 10 of_another\n");
	date_file(f, 1000);
	perf_map_set_beginning(f->map, UINT64_C(2000000000000));
	update(f, "");
	update(f, "1000 100 a\n");
	assert_true(perf_map_is_unchanged(f->map, f->fd));
	perf_map_evict(f->map);
	expect_none(f, 0x1000);
	assert_true(perf_map_is_unchanged(f->map, f->fd));
	update(f, "");
	expect(f, 0x1000, "a", 0x1000);
	expect_none(f, 0x5000);
	append(f, "2000 100 b\n");
	assert_false(perf_map_is_unchanged(f->map, f->fd));
}

static void test_continuing_is_told_from_another_content(void **state)
{
	struct fixture *f = *state;

	assert_true(perf_map_continues(f->map, f->fd));
	update(f, "1000 100 a\n");
	append(f, "2000 100 b\n");
	assert_true(perf_map_continues(f->map, f->fd));
	assert_int_equal(pwrite(f->fd, "1000 200", 8, 0), 8);
	assert_false(perf_map_continues(f->map, f->fd));
}

/* The reference is a canvas with one byte per address, painted in the order of the lines. */
static void test_random_overlaps_against_a_canvas(void **state)
{
	enum { CANVAS = 1024, LINES = 400, PER_UPDATE = 37 };
	struct fixture *f = *state;
	int canvas[CANVAS] = { 0 };
	uint64_t starts[LINES + 1] = { 0 }, x = 88172645463325252u;
	char line[64];

	for (int i = 1; i <= LINES; i++) {
		uint64_t start, size;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		start = x % (CANVAS - 64);
		size = 1 + x / CANVAS % (i % 10 ? 64 : 16);
		starts[i] = start;
		for (uint64_t at = start; at < start + size; at++)
			canvas[at] = i;
		snprintf(line, sizeof(line), "%" PRIx64 " %" PRIx64 " f%d\n", start, size, i);
		append(f, line);
		if (i % PER_UPDATE == 0 || i == LINES)
			assert_int_equal(perf_map_update(f->map, f->fd), 0);
	}
	for (int at = 0; at < CANVAS; at++) {
		snprintf(line, sizeof(line), "f%d", canvas[at]);
		if (canvas[at])
			expect(f, (uint64_t)at, line, starts[canvas[at]]);
		else
			expect_none(f, (uint64_t)at);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_functions),
		TEST(test_reads_what_was_appended),
		TEST(test_line_that_is_being_written),
		TEST(test_later_line_wins),
		TEST(test_stub_inside_a_bigger_one),
		TEST(test_partial_overlaps),
		TEST(test_bad_lines_are_counted),
		TEST(test_names_are_made_showable),
		TEST(test_overlong_line_is_skipped),
		TEST(test_long_name_is_cut),
		TEST(test_shorter_file_is_read_anew),
		TEST(test_another_file_is_read_anew),
		TEST(test_only_regular_files),
		TEST(test_rewritten_file_is_read_anew),
		TEST(test_another_name_in_a_long_file_is_noticed),
		TEST(test_endless_file_gives_no_names),
		TEST(test_long_file_names_what_came_last),
		TEST(test_of_too_many_functions_the_oldest_go),
		TEST(test_lines_of_an_earlier_program_are_not_its),
		TEST(test_the_file_of_the_running_program_is_its),
		TEST(test_a_forked_child_goes_on_with_its_parents_names),
		TEST(test_what_was_read_too_late_is_rolled_back),
		TEST(test_what_was_let_go_is_read_again),
		TEST(test_continuing_is_told_from_another_content),
		TEST(test_random_overlaps_against_a_canvas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
