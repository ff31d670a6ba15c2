/* SPDX-License-Identifier: Apache-2.0 */
/* The table of probes: what each row promises to reports and metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/profile/sample_type.h"

static const struct collect_options all = { .off_cpu_share = 1 };

static bool writes_samples(const struct probe *probe)
{
	for (size_t i = 0; i < PROBE_MAX_KINDS; i++)
		if (probe->records[i].is_sample)
			return true;
	return false;
}

static void each_probe_that_writes_samples_says_what_they_count(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROBES; i++) {
		const struct sample_type *type;

		if (!writes_samples(probes_all[i]))
			continue;
		type = probes_all[i]->sample_type(&all);
		assert_non_null(type->count.type);
		assert_non_null(type->count.unit);
		assert_non_null(type->weight.type);
		assert_non_null(type->weight.unit);
		assert_true(type->labels);
		assert_int_equal(type->labels >> SAMPLE_LABEL_COUNT, 0);
		assert_int_equal(type->is_time, !strcmp(type->weight.unit, "nanoseconds"));
	}
}

/* pprof's tools select a value by its name. */
static void values_of_a_profile_have_names_of_their_own(void **state)
{
	const char *names[2 * SAMPLE_TYPES];
	struct sample_types types;
	size_t count = 0;

	(void)state;
	probes_sample_types(&all, &types);
	for (uint32_t i = 0; i < SAMPLE_TYPES; i++) {
		if (!sample_types_have(&types, i))
			continue;
		names[count++] = types.of[i].count.type;
		names[count++] = types.of[i].weight.type;
	}
	/* Those of latency take none unless the callers' stacks are wanted, too; traced calls and
	 * forks none.
	 */
	assert_int_equal(count, 2 * (PROBES - 7));
	for (size_t i = 0; i < count; i++)
		for (size_t n = 0; n < i; n++)
			assert_string_not_equal(names[i], names[n]);
}

static void a_window_has_the_types_of_the_probes_that_are_wanted(void **state)
{
	const struct collect_options cycles = { .event = COLLECT_CYCLES };
	struct sample_types types;

	(void)state;
	probes_sample_types(&cycles, &types);
	assert_string_equal(types.of[SAMPLE_TYPE_TICKS].weight.type, "cycles");
	assert_false(types.of[SAMPLE_TYPE_TICKS].is_time);
	assert_false(sample_types_have(&types, PROBE_off_cpu));
	probes_sample_types(&all, &types);
	assert_true(sample_types_have(&types, PROBE_off_cpu));
}

static void the_sampling_event_has_the_first_probe_alone(void **state)
{
	(void)state;
	assert_ptr_equal(probes_all[SAMPLE_TYPE_TICKS], &probe_cpu);
	for (size_t i = 0; i < PROBES; i++)
		assert_int_equal(probes_all[i]->sampling_event, i == SAMPLE_TYPE_TICKS);
	assert_null(probes_all[PROBES]);
}

static void a_probe_counts_its_own_losses(void **state)
{
	uint64_t counts[ABI_COUNTERS];
	struct metrics metrics = { 0 };

	(void)state;
	for (size_t i = 0; i < ABI_COUNTERS; i++)
		counts[i] = 1000 + i;
	probe_count_losses(&probe_cpu, counts, &metrics);
	assert_int_equal(metrics_get(&metrics, METRIC_LOST_WAITS_FULL), 0);
	probe_count_losses(&probe_off_cpu, counts, &metrics);
	assert_int_equal(
		metrics_get(&metrics, METRIC_LOST_WAITS_FULL), 1000 + ABI_COUNT_WAITS_FULL);
	assert_int_equal(
		metrics_get(&metrics, METRIC_LOST_WAITS_UNENDED), 1000 + ABI_COUNT_WAITS_UNENDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_probe_that_writes_samples_says_what_they_count),
		cmocka_unit_test(values_of_a_profile_have_names_of_their_own),
		cmocka_unit_test(a_window_has_the_types_of_the_probes_that_are_wanted),
		cmocka_unit_test(the_sampling_event_has_the_first_probe_alone),
		cmocka_unit_test(a_probe_counts_its_own_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
