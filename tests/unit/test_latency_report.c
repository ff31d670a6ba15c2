/* SPDX-License-Identifier: Apache-2.0 */
/* agent/latency: histograms, their figures, and the difference of two totals. */
#include "tests/unit/latency_fixture.h"

#include <errno.h>

#include "agent/latency/latency_figures.h"

static const uint64_t HOUR_NS = UINT64_C(3600000000000);

static struct latency_sums sums_of(const struct latency_report *report, uint32_t function)
{
	struct latency_sums sums;

	latency_sums_of_function(&report->functions[function], &sums);
	return sums;
}

/* ---- buckets and figures --------------------------------------------------------------------- */

static void test_buckets_are_contiguous(void **state)
{
	(void)state;
	for (uint32_t i = 0; i + 1 < ABI_LATENCY_BUCKETS; i++) {
		assert_int_equal(latency_bucket_last(i) + 1, abi_latency_bucket_start(i + 1));
		assert_int_equal(abi_latency_bucket(latency_bucket_last(i)), i);
	}
	assert_true(latency_bucket_last(ABI_LATENCY_BUCKETS - 1) == UINT64_MAX);
	assert_true(abi_latency_bucket_start(ABI_LATENCY_BUCKETS - 1) > HOUR_NS);
}

static void test_no_calls_have_no_figures(void **state)
{
	struct latency_sums sums = { 0 };
	struct latency_figures figures = latency_figures(&sums);

	(void)state;
	assert_true(figures.mean_ns == 0);
	assert_int_equal(figures.p50_ns, 0);
	assert_int_equal(figures.p99_ns, 0);
	assert_int_equal(latency_percentile(&sums, 100), 0);
}

static void test_one_call_is_every_percentile(void **state)
{
	struct latency_report *report = *state;
	struct latency_figures figures;
	struct latency_sums sums;

	took(report, function_named(report, "f"), 1, 1234567);
	sums = sums_of(report, 0);
	figures = latency_figures(&sums);
	assert_true(figures.mean_ns == 1234567);
	/* The bucket goes further than the longest call. */
	assert_int_equal(figures.p50_ns, 1234567);
	assert_int_equal(figures.p99_ns, 1234567);
	assert_int_equal(latency_percentile(&sums, 1), 1234567);
}

static void test_percentiles_count_calls(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	struct latency_sums sums;

	/* 1 to 10 ns, each exact, ten times. */
	for (uint64_t ns = 1; ns <= 10; ns++)
		took(report, f, 10, ns);
	sums = sums_of(report, f);
	assert_int_equal(latency_percentile(&sums, 1), 1);
	assert_int_equal(latency_percentile(&sums, 10), 1);
	assert_int_equal(latency_percentile(&sums, 11), 2);
	assert_int_equal(latency_percentile(&sums, 50), 5);
	assert_int_equal(latency_percentile(&sums, 51), 6);
	assert_int_equal(latency_percentile(&sums, 90), 9);
	assert_int_equal(latency_percentile(&sums, 99), 10);
	assert_int_equal(latency_percentile(&sums, 100), 10);
	assert_true(latency_figures(&sums).mean_ns == 5.5);
}

static void test_percentiles_are_at_most_an_eighth_too_high(void **state)
{
	struct latency_report *report = *state;

	(void)state;
	for (uint64_t ns = 1; ns < HOUR_NS; ns = ns * 5 / 4 + 1) {
		struct latency_sums sums;
		uint64_t p50;

		latency_report_clear(report);
		took(report, function_named(report, "f"), 9, ns);
		took(report, 0, 1, HOUR_NS);
		sums = sums_of(report, 0);
		p50 = latency_percentile(&sums, 50);
		assert_in_range(p50, ns, ns + ns / 8);
	}
}

static void test_figures_of_several_histograms(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	struct latency_sums sums;

	took_by(report, f, 1, 3, 0);
	took_by(report, f, 1, 1, 10);
	took_by(report, f, 2, 4, 10);
	sums = sums_of(report, f);
	assert_int_equal(sums.calls, 8);
	assert_int_equal(sums.total_ns, 50);
	assert_int_equal(sums.max_ns, 10);
	assert_int_equal(sums.buckets[0], 3);
	assert_int_equal(sums.buckets[10], 5);
	assert_int_equal(latency_percentile(&sums, 37), 0);
	assert_int_equal(latency_percentile(&sums, 38), 10);
}

static void test_the_last_bucket_ends_at_the_longest_call(void **state)
{
	struct latency_report *report = *state;
	struct latency_sums sums;

	took(report, function_named(report, "f"), 3, 5 * HOUR_NS);
	sums = sums_of(report, 0);
	assert_int_equal(sums.buckets[ABI_LATENCY_BUCKETS - 1], 3);
	assert_int_equal(latency_percentile(&sums, 50), 5 * HOUR_NS);
}

static void test_very_many_calls_do_not_overflow(void **state)
{
	struct latency_sums sums = { .calls = UINT64_MAX, .max_ns = 9 };

	(void)state;
	sums.buckets[3] = UINT64_MAX / 2;
	sums.buckets[9] = UINT64_MAX - UINT64_MAX / 2;
	assert_int_equal(latency_percentile(&sums, 49), 3);
	assert_int_equal(latency_percentile(&sums, 51), 9);
}

static void test_rows_are_powers_of_two(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	struct latency_sums sums;
	struct latency_rows rows;

	took(report, f, 1, 0);
	took(report, f, 2, 1);
	took(report, f, 4, 2);
	took(report, f, 8, 3);
	took(report, f, 16, 1023);
	took(report, f, 32, 1024);
	took(report, f, 64, HOUR_NS);
	took(report, f, 128, 2 * HOUR_NS);
	sums = sums_of(report, f);
	latency_rows_of(&sums, &rows);
	assert_int_equal(rows.calls[0], 3);
	assert_int_equal(rows.calls[1], 12);
	assert_int_equal(rows.calls[9], 16);
	assert_int_equal(rows.calls[10], 32);
	assert_int_equal(rows.calls[41], 64);
	assert_int_equal(rows.calls[LATENCY_ROW_ABOVE], 128);
}

static void expect_duration(double ns, const char *expected)
{
	char text[LATENCY_DURATION_BYTES];

	latency_duration(ns, text);
	assert_string_equal(text, expected);
}

static void test_durations_have_three_digits_and_a_unit(void **state)
{
	(void)state;
	expect_duration(0, "0ns");
	expect_duration(1, "1ns");
	expect_duration(1.5, "1.50ns");
	expect_duration(999, "999ns");
	expect_duration(999.6, "1.00us");
	expect_duration(1000, "1.00us");
	expect_duration(9994, "9.99us");
	expect_duration(9996, "10.0us");
	expect_duration(99949, "99.9us");
	expect_duration(99960, "100us");
	expect_duration(999499, "999us");
	expect_duration(999501, "1.00ms");
	expect_duration(45600000, "45.6ms");
	expect_duration(1e9, "1.00s");
	expect_duration(3.6e12, "3600s");
	expect_duration((double)UINT64_MAX, "18446744074s");
}

/* ---- functions and cells --------------------------------------------------------------------- */

static void test_equal_functions_of_two_files_are_one(void **state)
{
	struct latency_report *report = *state;

	assert_int_equal(function_at(report, "f", "/bin/a", 0x10), 0);
	assert_int_equal(function_at(report, "f", "/bin/a", 0x20), 1);
	assert_int_equal(function_at(report, "f", "/bin/b", 0x10), 2);
	assert_int_equal(function_at(report, "f", "/bin/a", 0x10), 0);
	assert_int_equal(function_at(report, "g", "/bin/a", 0x10), 3);
	/* The border between two strings counts. */
	assert_int_equal(function_at(report, "f/", "bin/a", 0x10), 4);
	assert_int_equal(report->function_count, 5);
	assert_string_equal(report->functions[2].identity.binary, "/bin/b");
}

static void test_cells_add_up(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	const struct latency_function *function = &report->functions[f];

	took_by(report, f, 7, 1, 5000);
	took_by(report, f, 7, 2, 10);
	took_by(report, f, 7, 3, 5001);
	took_by(report, f, 9, 4, 70);
	assert_int_equal(function->histogram_count, 2);
	assert_int_equal(function->calls, 10);
	assert_int_equal(function->total_ns, 5000 + 20 + 15003 + 280);
	assert_int_equal(function->max_ns, 5001);
	assert_int_equal(function->histograms[0].key, 7);
	assert_int_equal(function->histograms[0].calls, 6);
	assert_int_equal(function->histograms[0].bucket_count, 2);
	assert_int_equal(function->histograms[0].buckets[0].number, 10);
	assert_int_equal(function->histograms[0].buckets[0].calls, 2);
	assert_int_equal(function->histograms[0].buckets[1].calls, 4);
	assert_int_equal(function->histograms[1].calls, 4);
	assert_int_equal(latency_report_calls(report), 10);
}

static void test_cells_that_make_no_sense(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");

	assert_int_equal(latency_report_add(report,
				 &(struct latency_report_cell){ .function = 1, .calls = 1 }),
		-EINVAL);
	assert_int_equal(latency_report_add(report, &(struct latency_report_cell){ .function = f,
							    .bucket = ABI_LATENCY_BUCKETS,
							    .calls = 1 }),
		-EINVAL);
	/* Just being written: no call yet, or a call without its time. */
	assert_int_equal(
		latency_report_add(report, &(struct latency_report_cell){ .function = f }), 0);
	assert_int_equal(report->functions[f].histogram_count, 0);
	assert_int_equal(
		latency_report_add(report,
			&(struct latency_report_cell){ .function = f, .bucket = 80, .calls = 1 }),
		0);
	assert_int_equal(report->functions[f].max_ns, abi_latency_bucket_start(80));
}

static void test_functions_are_shown_by_total_time(void **state)
{
	struct latency_report *report = *state;
	autofree uint32_t *order = NULL;

	function_named(report, "never");
	took(report, function_named(report, "short"), 1000, 10);
	took(report, function_named(report, "long"), 1, 20000);
	took(report, function_named(report, "same a"), 1, 100);
	took(report, function_named(report, "same b"), 2, 50);
	function_named(report, "also never");
	assert_int_equal(latency_report_order(report, &order), 0);
	assert_int_equal(order[0], 2);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[2], 4);
	assert_int_equal(order[3], 3);
	assert_int_equal(order[4], 5);
	assert_int_equal(order[5], 0);
}

static void test_keys_are_shown_by_total_time(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");
	autofree uint32_t *order = NULL;

	took_by(report, f, 5, 1, 10);
	took_by(report, f, 6, 1, 30);
	took_by(report, f, 4, 1, 10);
	assert_int_equal(latency_function_order(&report->functions[f], &order), 0);
	assert_int_equal(report->functions[f].histograms[order[0]].key, 6);
	assert_int_equal(report->functions[f].histograms[order[1]].key, 4);
	assert_int_equal(report->functions[f].histograms[order[2]].key, 5);
}

static void test_names_of_keys(void **state)
{
	struct latency_report *report = *state;

	assert_int_equal(latency_report_name_key(report, 17, "worker"), 0);
	assert_string_equal(latency_report_key_name(report, 17), "worker");
	assert_string_equal(latency_report_key_name(report, 18), "");
	assert_int_equal(latency_report_name_key(report, 17, "renamed"), 0);
	assert_string_equal(latency_report_key_name(report, 17), "renamed");
}

static void test_names_of_keys_kinds(void **state)
{
	enum abi_latency_by by = ABI_LATENCY_BY_FUNCTION;

	(void)state;
	assert_null(latency_by_name(ABI_LATENCY_BY_FUNCTION));
	assert_int_equal(latency_by_of_name("pid", &by), 0);
	assert_int_equal(by, ABI_LATENCY_BY_PROCESS);
	assert_int_equal(latency_by_of_name("goid", &by), 0);
	assert_int_equal(by, ABI_LATENCY_BY_FIBER);
	assert_int_equal(latency_by_of_name("cgroup", &by), 0);
	assert_int_equal(by, ABI_LATENCY_BY_CGROUP);
	assert_int_equal(latency_by_of_name("thread", &by), -EINVAL);
	assert_int_equal(latency_by_of_name("", &by), -EINVAL);
}

static void test_ten_thousand_functions(void **state)
{
	struct latency_report *report = *state;
	autofree uint32_t *order = NULL;

	for (uint32_t i = 0; i < 10000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(function_named(report, name), i);
		took(report, i, 1, i + 1);
	}
	assert_int_equal(latency_report_order(report, &order), 0);
	assert_int_equal(order[0], 9999);
	assert_int_equal(order[9999], 0);
	assert_int_equal(latency_report_calls(report), 10000);
}

static void test_ten_thousand_keys(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");

	for (uint64_t round = 1; round <= 2; round++) {
		for (uint64_t i = 0; i < 10000; i++)
			took_by(report, f, i * 64, 1, 100);
	}
	assert_int_equal(report->functions[f].histogram_count, 10000);
	assert_int_equal(report->functions[f].histograms[9999].calls, 2);
	assert_int_equal(report->functions[f].histograms[9999].bucket_count, 1);
}

/* ---- intervals ------------------------------------------------------------------------------- */

static void test_clearing_keeps_functions_and_names(void **state)
{
	struct latency_report *report = *state;
	uint32_t f = function_named(report, "f");

	took_by(report, f, 3, 1, 100);
	report->lost[LATENCY_LOSS_evicted] = report->hits = report->duration_ns = 5;
	report->estimated = 5;
	latency_report_factor(report, f, 4);
	assert_int_equal(latency_report_name_key(report, 3, "three"), 0);
	latency_report_clear(report);
	assert_int_equal(report->function_count, 1);
	assert_int_equal(report->functions[f].calls, 0);
	assert_int_equal(report->functions[f].histogram_count, 0);
	assert_int_equal(report->functions[f].factor, 1);
	assert_int_equal(report->lost[LATENCY_LOSS_evicted], 0);
	assert_int_equal(report->hits + report->duration_ns + report->estimated, 0);
	assert_string_equal(latency_report_key_name(report, 3), "three");
	took_by(report, f, 3, 1, 100);
	assert_int_equal(report->functions[f].calls, 1);
}

static void test_an_interval_is_the_difference(void **state)
{
	struct latency_report *now = *state, interval;
	autocall(latency_report_deinit) struct latency_report before;
	uint32_t f = function_named(now, "f");

	assert_int_equal(latency_report_init(&before, ABI_LATENCY_BY_FIBER), 0);
	function_named(&before, "f");
	took_by(&before, f, 1, 5, 1000);
	took_by(&before, f, 1, 1, 2000);
	before.lost[LATENCY_LOSS_no_entry] = before.hits = before.estimated = 10;
	before.duration_ns = 1000;
	took_by(now, f, 1, 8, 1000);
	took_by(now, f, 1, 1, 2000);
	took_by(now, f, 2, 1, 500);
	took_by(now, function_named(now, "new"), 1, 1, 7);
	latency_report_factor(now, f, 16);
	assert_int_equal(latency_report_name_key(now, 2, "two"), 0);
	now->lost[LATENCY_LOSS_no_entry] = now->hits = now->estimated = 13;
	now->duration_ns = 3000;
	now->trap_ns = 12;

	assert_int_equal(latency_report_since(now, &before, &interval), 0);
	assert_int_equal(interval.by, ABI_LATENCY_BY_FIBER);
	assert_int_equal(interval.function_count, 2);
	assert_int_equal(interval.functions[f].calls, 4);
	assert_int_equal(interval.functions[f].total_ns, 3 * 1000 + 500);
	assert_int_equal(interval.functions[f].histogram_count, 2);
	assert_int_equal(interval.functions[f].factor, 16);
	assert_int_equal(interval.functions[1].calls, 1);
	assert_string_equal(interval.functions[1].identity.name, "new");
	assert_string_equal(latency_report_key_name(&interval, 2), "two");
	assert_int_equal(interval.lost[LATENCY_LOSS_no_entry], 3);
	assert_int_equal(interval.hits, 3);
	assert_int_equal(interval.estimated, 3);
	assert_int_equal(interval.duration_ns, 2000);
	assert_int_equal(interval.trap_ns, 12);
	latency_report_deinit(&interval);
}

static void test_the_longest_call_of_an_interval(void **state)
{
	struct latency_report *now = *state, interval;
	autocall(latency_report_deinit) struct latency_report before;
	uint32_t f = function_named(now, "f"), g = function_named(now, "g");

	assert_int_equal(latency_report_init(&before, ABI_LATENCY_BY_FUNCTION), 0);
	function_named(&before, "f");
	function_named(&before, "g");
	took(&before, f, 1, 900);
	took(&before, g, 1, 900);
	took(now, f, 1, 900);
	took(now, f, 1, 1100);
	/* The longest call came before: of this one only the bucket is known. */
	took(now, g, 1, 900);
	took(now, g, 1, 100);
	assert_int_equal(latency_report_since(now, &before, &interval), 0);
	assert_int_equal(interval.functions[f].max_ns, 1100);
	assert_in_range(interval.functions[g].max_ns, 100, 112);
	latency_report_deinit(&interval);
}

static void test_an_interval_without_calls(void **state)
{
	struct latency_report *now = *state, interval;
	uint32_t f = function_named(now, "f");

	took(now, f, 3, 900);
	assert_int_equal(latency_report_since(now, now, &interval), 0);
	assert_int_equal(interval.function_count, 1);
	assert_int_equal(interval.functions[f].calls, 0);
	assert_int_equal(interval.functions[f].histogram_count, 0);
	latency_report_deinit(&interval);
}

/* Functions that were removed and came back begin anew. */
static void test_totals_that_shrink_are_no_calls(void **state)
{
	struct latency_report *now = *state, interval;
	autocall(latency_report_deinit) struct latency_report before;
	uint32_t f = function_named(now, "f");

	assert_int_equal(latency_report_init(&before, ABI_LATENCY_BY_FUNCTION), 0);
	function_named(&before, "f");
	took(&before, f, 10, 900);
	took(now, f, 4, 900);
	assert_int_equal(latency_report_since(now, &before, &interval), 0);
	assert_int_equal(interval.functions[f].calls, 0);
	latency_report_deinit(&interval);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, report_by_function, free_report)
#define GOID_CASE(test) cmocka_unit_test_setup_teardown(test, report_by_goid, free_report)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets_are_contiguous),
		cmocka_unit_test(test_no_calls_have_no_figures),
		CASE(test_one_call_is_every_percentile),
		CASE(test_percentiles_count_calls),
		CASE(test_percentiles_are_at_most_an_eighth_too_high),
		GOID_CASE(test_figures_of_several_histograms),
		CASE(test_the_last_bucket_ends_at_the_longest_call),
		cmocka_unit_test(test_very_many_calls_do_not_overflow),
		CASE(test_rows_are_powers_of_two),
		cmocka_unit_test(test_durations_have_three_digits_and_a_unit),
		CASE(test_equal_functions_of_two_files_are_one),
		GOID_CASE(test_cells_add_up),
		CASE(test_cells_that_make_no_sense),
		CASE(test_functions_are_shown_by_total_time),
		GOID_CASE(test_keys_are_shown_by_total_time),
		GOID_CASE(test_names_of_keys),
		cmocka_unit_test(test_names_of_keys_kinds),
		CASE(test_ten_thousand_functions),
		GOID_CASE(test_ten_thousand_keys),
		GOID_CASE(test_clearing_keeps_functions_and_names),
		GOID_CASE(test_an_interval_is_the_difference),
		CASE(test_the_longest_call_of_an_interval),
		CASE(test_an_interval_without_calls),
		CASE(test_totals_that_shrink_are_no_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
