/* SPDX-License-Identifier: Apache-2.0 */
/* Running totals of the kernel side become increments of metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/sampler/collect/counters.h"
#include "base/cleanup.h"

static const struct {
	enum abi_counter counter;
	enum metric metric;
} rows[] = {
	{ ABI_COUNT_OUTPUT_FULL, METRIC_LOST_RING_FULL },
	{ ABI_COUNT_OUTPUT_ERROR, METRIC_LOST_BPF_ERROR },
	{ ABI_COUNT_SIGHTINGS_FULL, METRIC_LOST_SIGHTINGS },
	{ ABI_COUNT_FIBER_ERROR, METRIC_FIBERS_UNREADABLE },
	{ ABI_COUNT_UNWIND_MISSES, METRIC_UNWIND_MISSES },
};

static void each_counter_has_its_metric(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct counters counters = { 0 };
		struct metrics metrics = { 0 };
		uint64_t now[ABI_COUNTERS] = { 0 }, since[ABI_COUNTERS];

		now[rows[i].counter] = 3;
		counters_add(&counters, now, &metrics, since);
		for (size_t j = 0; j < ARRAY_SIZE(rows); j++)
			assert_int_equal(metrics_get(&metrics, rows[j].metric), i == j ? 3 : 0);
	}
}

static void only_the_difference_is_added(void **state)
{
	struct counters counters = { 0 };
	struct metrics metrics = { 0 };
	uint64_t now[ABI_COUNTERS] = { 0 }, since[ABI_COUNTERS];

	(void)state;
	now[ABI_COUNT_OUTPUT_FULL] = 5;
	counters_add(&counters, now, &metrics, since);
	counters_add(&counters, now, &metrics, since);
	assert_int_equal(metrics_get(&metrics, METRIC_LOST_RING_FULL), 5);
	now[ABI_COUNT_OUTPUT_FULL] = 7;
	counters_add(&counters, now, &metrics, since);
	assert_int_equal(metrics_get(&metrics, METRIC_LOST_RING_FULL), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_counter_has_its_metric),
		cmocka_unit_test(only_the_difference_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
