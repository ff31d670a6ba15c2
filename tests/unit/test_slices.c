/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of time over which the page sums stored profiles. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "agent/daemon/slices.h"
#include "base/cleanup.h"
#include "tests/unit/remove_tree.h"

enum { PLENTY = 1 << 26, LIST_BYTES = 1 << 16 };

static const int64_t SECOND = 1000000000, MINUTE = INT64_C(60000000000);
static const int64_t NOON = INT64_C(1795262400000000000); /* 2026-11-21T12:00:00Z */

struct fixture {
	char directory[64];
	struct metrics metrics;
	struct store *store;
	struct buffer list;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->directory, sizeof(f->directory), "/tmp/test-slices-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	buffer_init(&f->list, LIST_BYTES);
	*state = f;
	return store_create(
		&(struct store_options){
			.directory = f->directory,
			.limit_bytes = PLENTY,
			.now = { .real_ns = NOON, .boot_ns = (uint64_t)SECOND },
			.metrics = &f->metrics,
		},
		&f->store);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	store_destroy(f->store);
	buffer_deinit(&f->list);
	remove_tree(f->directory);
	free(f);
	return 0;
}

/* A profile of 10 s. */
static void put(struct fixture *f, const char *name, int64_t time_ns)
{
	assert_int_equal(store_put(f->store, name, time_ns, 10 * SECOND, "12345", 5), 0);
}

static const char *listed(struct fixture *f, const struct slices *slices, int64_t to_ns)
{
	f->list.size = 0;
	assert_int_equal(slices_write(f->store, slices, to_ns, &f->list), 0);
	assert_int_equal(buffer_append(&f->list, "", 1), 0);
	return (const char *)f->list.bytes;
}

static void a_day_has_72_and_a_week_84(void **state)
{
	(void)state;
	assert_int_equal(slices_length_ns(60 * MINUTE, 96), 10 * MINUTE);
	assert_int_equal(slices_length_ns(24 * 60 * MINUTE, 96), 20 * MINUTE);
	assert_int_equal(slices_length_ns(7 * 24 * 60 * MINUTE, 96), 120 * MINUTE);
	assert_int_equal(slices_length_ns(INT64_MAX, 1), 7 * 24 * 60 * MINUTE);
}

static void they_begin_at_multiples_of_their_length(void **state)
{
	(void)state;
	assert_int_equal(slices_begin_ns(NOON + 25 * MINUTE, 20 * MINUTE), NOON + 20 * MINUTE);
	assert_int_equal(slices_begin_ns(NOON, 20 * MINUTE), NOON);
	assert_int_equal(slices_begin_ns(-1, 20 * MINUTE), -20 * MINUTE);
}

static void little_time_is_shown_by_file(void **state)
{
	struct fixture *f = *state;
	struct slices s;

	assert_false(slices_choose(f->store, 0, INT64_MAX, 96, &s));
	put(f, NULL, NOON);
	put(f, NULL, NOON + 89 * MINUTE);
	assert_false(slices_choose(f->store, 0, INT64_MAX, 96, &s));
	put(f, NULL, NOON - 2 * MINUTE);
	assert_true(slices_choose(f->store, 0, INT64_MAX, 96, &s));
	assert_int_equal(s.length_ns, 10 * MINUTE);
	assert_int_equal(s.from_ns, NOON - 10 * MINUTE);
}

/* The first slice is a whole one, also where the range begins in it. */
static void files_are_in_the_slice_in_which_they_begin(void **state)
{
	struct fixture *f = *state;
	struct slices s;

	put(f, NULL, NOON + 599 * SECOND);
	put(f, "a", NOON + 3600 * SECOND);
	put(f, "b", NOON + 3600 * SECOND);
	put(f, NULL, NOON + 3625 * SECOND);
	put(f, NULL, NOON + 3 * 3600 * SECOND);
	assert_true(slices_choose(f->store, NOON + 605 * SECOND, INT64_MAX, 96, &s));
	assert_string_equal(listed(f, &s, INT64_MAX),
		"[\n"
		"{\"path\":\"slice/1795266000000\",\"name\":\"\",\"time_ms\":1795266000000,"
		"\"duration_ms\":20000,\"bytes\":15,\"slice_ms\":600000},\n"
		"{\"path\":\"slice/1795273200000\",\"name\":\"\",\"time_ms\":1795273200000,"
		"\"duration_ms\":10000,\"bytes\":5,\"slice_ms\":600000}]\n");
	s.from_ns = NOON;
	assert_string_equal(listed(f, &s, NOON + 3600 * SECOND),
		"[\n"
		"{\"path\":\"slice/1795262400000\",\"name\":\"\",\"time_ms\":1795262999000,"
		"\"duration_ms\":10000,\"bytes\":5,\"slice_ms\":600000}]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_has_72_and_a_week_84),
		cmocka_unit_test(they_begin_at_multiples_of_their_length),
		cmocka_unit_test_setup_teardown(little_time_is_shown_by_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			files_are_in_the_slice_in_which_they_begin, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
