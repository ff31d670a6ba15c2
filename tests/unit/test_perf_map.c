/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* A sparse file is an endless line to us and costs its writer nothing. */
static void test_file_over_the_limit(void **state)
{
	struct fixture *f = *state;

	append(f, "1000 10 a\n");
	assert_int_equal(ftruncate(f->fd, INT64_C(1) << 40), 0);
	assert_int_equal(perf_map_update(f->map, f->fd), -E2BIG);
	assert_int_equal(perf_map_update(f->map, f->fd), -E2BIG);
	expect(f, 0x1000, "a", 0x1000);
}

static void test_too_many_functions(void **state)
{
	struct fixture *f = *state;
	autocall(buffer_deinit) struct buffer b;

	buffer_init(&b, 64 << 20);
	for (uint64_t i = 0; i < (1 << 20) + 10; i++)
		buffer_printf(&b, "%" PRIx64 " 8 f\n", 0x1000 + i * 16);
	assert_int_equal(io_write_all(f->fd, b.bytes, b.size), 0);
	assert_int_equal(perf_map_update(f->map, f->fd), -E2BIG);
	assert_int_equal(perf_map_count(f->map), 1 << 20);
	expect(f, 0x1000, "f", 0x1000);
}

/* Against painting a canvas, one byte an address, in the order of the lines. */
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
		TEST(test_file_over_the_limit),
		TEST(test_too_many_functions),
		TEST(test_random_overlaps_against_a_canvas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
