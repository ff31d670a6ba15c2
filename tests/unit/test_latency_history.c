/* SPDX-License-Identifier: Apache-2.0 */
/* What functions took in recent windows: what is kept, what is left out, what is written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_history.h"
#include "base/cleanup.h"

enum { BIG = 4 << 20, MANY = 200 };

static struct latency_history *make(size_t windows, size_t functions, size_t bytes)
{
	struct latency_history *h;

	assert_int_equal(latency_history_create(
				 &(struct latency_history_limits){ windows, functions, bytes }, &h),
		0);
	return h;
}

static const struct latency_history_name NAMES[] = {
	{ "p", "f", "/bin/x" }, { "p", "g", "/bin/x" }, { "q", "f", "/bin/x" },
	{ "p", "f", "/bin/x" }, /* the same as the first */
};

static int add(struct latency_history *h, int64_t time_ms, const struct latency_history_cell *cells,
	size_t count)
{
	struct latency_history_cell copy[8];

	assert_in_range(count, 0, ARRAY_SIZE(copy));
	if (count)
		memcpy(copy, cells, count * sizeof(*cells));
	return latency_history_add(h, &(struct latency_history_measured){ .time_ms = time_ms,
					      .duration_ms = 10,
					      .names = NAMES,
					      .name_count = ARRAY_SIZE(NAMES),
					      .cells = copy,
					      .cell_count = count });
}

static char *text_of(const struct latency_history *h, int64_t from_ms, int64_t to_ms)
{
	struct buffer out;
	struct json j;

	buffer_init(&out, BIG);
	json_init(&j, &out, JSON_COMPACT);
	json_object_by_line(&j, NULL);
	assert_int_equal(latency_history_write(h, from_ms, to_ms, &j), 0);
	json_close(&j);
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	return (char *)out.bytes;
}

static void assert_has(const struct latency_history *h, const char *wanted)
{
	autofree char *text = text_of(h, 0, INT64_MAX);

	if (!strstr(text, wanted))
		fail_msg("%s is not in %s", wanted, text);
}

static void assert_lacks(const struct latency_history *h, const char *unwanted)
{
	autofree char *text = text_of(h, 0, INT64_MAX);

	if (strstr(text, unwanted))
		fail_msg("%s is in %s", unwanted, text);
}

static void cells_of_a_function_become_one_histogram(void **state)
{
	static const struct latency_history_cell cells[] = { { 3, 20, 1, 24, 24 },
		{ 1, 9, 1, 9, 9 }, { 0, 20, 2, 50, 25 }, { 0, 7, 5, 35, 7 } };
	struct latency_history *h = make(10, 10, BIG);

	(void)state;
	assert_int_equal(add(h, 1000, cells, ARRAY_SIZE(cells)), 0);
	assert_has(h, "{\"probe\":\"p\",\"function\":\"f\",\"binary\":\"/bin/x\"}");
	assert_has(h, "{\"function\":0,\"calls\":8,\"total_ns\":109,\"p50_ns\":7,\"p90_ns\":25,"
		      "\"p99_ns\":25,\"max_ns\":25,\"buckets\":[7,5,20,3]}");
	assert_has(h, "{\"function\":1,\"calls\":1,\"total_ns\":9,");
	assert_has(h, "\"time_ms\":1000,\"duration_ms\":10,\"left_out_functions\":0");
	assert_lacks(h, "\"probe\":\"q\"");
	latency_history_destroy(h);
}

static void bounds_of_buckets_are_written(void **state)
{
	struct latency_history *h = make(1, 1, BIG);

	(void)state;
	assert_has(h, "\"bucket_starts_ns\":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,18,");
	assert_has(h, "\"functions\":[");
	latency_history_destroy(h);
}

static void windows_of_a_range(void **state)
{
	static const struct latency_history_cell f[] = { { 0, 1, 1, 1, 1 } };
	static const struct latency_history_cell g[] = { { 1, 1, 1, 1, 1 } };
	struct latency_history *h = make(10, 10, BIG);
	autofree char *text = NULL;

	(void)state;
	assert_int_equal(add(h, 1000, f, 1), 0);
	assert_int_equal(add(h, 1010, g, 1), 0);
	assert_int_equal(add(h, 1020, f, 1), 0);
	text = text_of(h, 1010, 1020);
	assert_null(strstr(text, "\"time_ms\":1000"));
	assert_non_null(strstr(text, "\"time_ms\":1010"));
	assert_null(strstr(text, "\"time_ms\":1020"));
	assert_null(strstr(text, "\"function\":\"f\""));
	assert_non_null(strstr(text, "\"function\":\"g\""));
	latency_history_destroy(h);
}

static void windows_without_calls_are_kept(void **state)
{
	struct latency_history *h = make(10, 10, BIG);

	(void)state;
	assert_int_equal(add(h, 1000, NULL, 0), 0);
	assert_has(h, "\"time_ms\":1000");
	latency_history_destroy(h);
}

static void the_oldest_window_makes_room(void **state)
{
	static const struct latency_history_cell f[] = { { 0, 1, 1, 1, 1 } };
	static const struct latency_history_cell g[] = { { 1, 1, 1, 1, 1 } };
	struct latency_history *h = make(2, 10, BIG);

	(void)state;
	assert_int_equal(add(h, 1000, f, 1), 0);
	assert_int_equal(add(h, 1010, g, 1), 0);
	assert_int_equal(add(h, 1020, g, 1), 0);
	assert_lacks(h, "\"time_ms\":1000");
	assert_lacks(h, "\"function\":\"f\"");
	assert_has(h, "\"time_ms\":1010");
	assert_has(h, "\"time_ms\":1020");
	latency_history_destroy(h);
}

static void functions_beyond_the_limit_are_counted(void **state)
{
	static const struct latency_history_cell cells[] = { { 0, 9, 1, 10, 10 }, { 1, 9, 3, 9, 9 },
		{ 2, 9, 4, 90, 90 } };
	struct latency_history *h = make(2, 2, BIG);

	(void)state;
	assert_int_equal(add(h, 1000, cells, ARRAY_SIZE(cells)), 0);
	assert_has(h, "\"left_out_functions\":1,\"left_out_calls\":3");
	assert_lacks(h, "\"function\":\"g\"");
	assert_has(h, "\"probe\":\"q\"");
	latency_history_destroy(h);
}

static void a_cell_without_a_name_or_bucket_is_refused(void **state)
{
	static const struct latency_history_cell no_name[] = { { 4, 1, 1, 1, 1 } };
	static const struct latency_history_cell no_bucket[] = { { 0, ABI_LATENCY_BUCKETS, 1, 1,
		1 } };
	struct latency_history *h = make(2, 2, BIG);

	(void)state;
	assert_int_equal(add(h, 1000, no_name, 1), -EINVAL);
	assert_int_equal(add(h, 1000, no_bucket, 1), -EINVAL);
	assert_lacks(h, "time_ms");
	assert_int_equal(latency_history_bytes(h), 0);
	latency_history_destroy(h);
}

/* A window with a function of a name of its own. */
static int add_named(struct latency_history *h, size_t number)
{
	char name[40];
	const struct latency_history_name names[] = { { "p", name, "" } };
	struct latency_history_cell cells[] = { { 0, (uint32_t)(number % 300), 1, number,
		number } };

	snprintf(name, sizeof(name), "function-%zu", number);
	return latency_history_add(
		h, &(struct latency_history_measured){ .time_ms = (int64_t)number,
			   .duration_ms = 1,
			   .names = names,
			   .name_count = 1,
			   .cells = cells,
			   .cell_count = 1 });
}

static void nothing_grows(void **state)
{
	struct latency_history *h = make(5, 5, BIG);
	size_t bytes;

	(void)state;
	for (size_t i = 100; i < 110; i++)
		assert_int_equal(add_named(h, i), 0);
	bytes = latency_history_bytes(h);
	for (size_t i = 200; i < 200 + MANY; i++) {
		assert_int_equal(add_named(h, i), 0);
		assert_int_equal(latency_history_bytes(h), bytes);
	}
	assert_lacks(h, "function-394");
	assert_has(h, "function-395");
	latency_history_destroy(h);
}

static void bytes_are_limited(void **state)
{
	enum { WINDOW_BYTES = 16 + 48 + 20 };
	struct latency_history *h = make(1000, 5, WINDOW_BYTES * 10);

	(void)state;
	for (size_t i = 100; i < 100 + MANY; i++) {
		assert_int_equal(add_named(h, i), 0);
		assert_in_range(latency_history_bytes(h), 1, WINDOW_BYTES * 11);
	}
	assert_has(h, "function-299");
	assert_lacks(h, "function-280");
	latency_history_destroy(h);
}

static void a_window_that_is_too_large_is_refused(void **state)
{
	static const struct latency_history_cell cells[] = { { 0, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 },
		{ 2, 1, 1, 1, 1 } };
	struct latency_history *h = make(5, 5, 200);

	(void)state;
	assert_int_equal(add(h, 1000, cells, 1), 0);
	assert_int_equal(add(h, 1010, cells, ARRAY_SIZE(cells)), -E2BIG);
	assert_has(h, "\"time_ms\":1000");
	assert_lacks(h, "\"time_ms\":1010");
	latency_history_destroy(h);
}

static void foreign_names_become_json(void **state)
{
	static const struct latency_history_name names[] = { { "p", "a\"\n\xff", "b\\" } };
	struct latency_history_cell cells[] = { { 0, 1, 1, 1, 1 } };
	struct latency_history *h = make(5, 5, BIG);

	(void)state;
	assert_int_equal(latency_history_add(h, &(struct latency_history_measured){ .time_ms = 1,
							.duration_ms = 1,
							.names = names,
							.name_count = 1,
							.cells = cells,
							.cell_count = 1 }),
		0);
	assert_has(h, "\"function\":\"a\\\"\\u000a\\ufffd\",\"binary\":\"b\\\\\"");
	latency_history_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_of_a_function_become_one_histogram),
		cmocka_unit_test(bounds_of_buckets_are_written),
		cmocka_unit_test(windows_of_a_range),
		cmocka_unit_test(windows_without_calls_are_kept),
		cmocka_unit_test(the_oldest_window_makes_room),
		cmocka_unit_test(functions_beyond_the_limit_are_counted),
		cmocka_unit_test(a_cell_without_a_name_or_bucket_is_refused),
		cmocka_unit_test(nothing_grows),
		cmocka_unit_test(bytes_are_limited),
		cmocka_unit_test(a_window_that_is_too_large_is_refused),
		cmocka_unit_test(foreign_names_become_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
