/* SPDX-License-Identifier: Apache-2.0 */
/* Rings in memory become calls of handlers. */
#include "agent/sampler/collect/drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/sampler/probes/probes.h"
#include "base/clock.h"
#include "tests/unit/perf_ring.h"

enum { RINGS = 2, MAX_SEEN = 8 };

struct fixture {
	struct perf_ring written[RINGS];
	struct ring rings[RINGS];
	struct ring *all[RINGS];
	struct metrics metrics;
	struct drain drain;
	uint32_t tgids[MAX_SEEN]; /* of the exits */
	size_t exits;
	unsigned int gaps; /* calls */
	uint64_t gap_ns, gap_until_ns;
};

static void saw_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	struct fixture *f = context;

	(void)time_ns;
	(void)tid;
	assert_true(f->exits < MAX_SEEN);
	f->tgids[f->exits++] = tgid;
}

static void saw_gap(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct fixture *f = context;

	f->gaps++;
	f->gap_ns = time_ns;
	f->gap_until_ns = until_ns;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	for (size_t i = 0; i < RINGS; i++) {
		perf_ring_init(&f->written[i], 0);
		ring_over(
			&f->rings[i], &f->written[i].control, f->written[i].data, PERF_RING_BYTES);
		f->all[i] = &f->rings[i];
	}
	assert_int_equal(
		drain_init(&f->drain,
			&(struct collect_options){
				.probes = probes_all,
				.metrics = &f->metrics,
				.handlers = { .exit = saw_exit, .lost = saw_gap, .context = f },
			}),
		0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	drain_deinit(&f->drain);
	free(f);
	return 0;
}

static int64_t drain(struct fixture *f, uint64_t limit_ns)
{
	return drain_rings(&f->drain, f->all, RINGS, limit_ns);
}

static void records_of_all_rings_are_delivered_by_time(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 100, 1);
	perf_ring_exit(&f->written[1], 200, 2);
	perf_ring_exit(&f->written[0], 300, 3);
	assert_int_equal(drain(f, 250), 2);
	assert_int_equal(f->exits, 2);
	assert_int_equal(f->tgids[0], 1);
	assert_int_equal(f->tgids[1], 2);
	assert_int_equal(drain(f, 300), 1);
	assert_int_equal(f->tgids[2], 3);
	assert_int_equal(f->gaps, 0);
}

/* An interrupt may be in the middle of their output. */
static void while_sampling_runs_the_newest_records_wait(void **state)
{
	struct fixture *f = *state;
	uint64_t before_ns = clock_monotonic_ns(), limit_ns;

	drain_set_sampling(&f->drain, true);
	limit_ns = drain_limit_ns(&f->drain, 0);
	assert_true(limit_ns <= clock_monotonic_ns() - 200000);
	drain_set_sampling(&f->drain, false);
	assert_true(drain_limit_ns(&f->drain, 0) >= before_ns);
}

/* The reader is not woken again for them. */
static void much_that_is_too_new_is_told(void **state)
{
	struct fixture *f = *state;
	const uint8_t raw[PERF_RING_BYTES / 8] = { 0 };

	perf_ring_exit(&f->written[1], 100, 1);
	assert_int_equal(drain(f, 50), 0);
	assert_false(f->drain.left_much);
	perf_ring_raw(&f->written[1], 200, raw, sizeof(raw));
	assert_int_equal(drain(f, 150), 1);
	assert_true(f->drain.left_much);
	assert_int_equal(drain(f, 200), 1);
	assert_false(f->drain.left_much);
}

static void an_earlier_limit_is_kept_and_a_later_one_is_not(void **state)
{
	struct fixture *f = *state;

	drain_set_sampling(&f->drain, true);
	assert_int_equal(drain_limit_ns(&f->drain, 1000), 1000);
	assert_true(drain_limit_ns(&f->drain, UINT64_MAX) < clock_monotonic_ns());
}

static void an_invalid_record_is_a_gap_up_to_now(void **state)
{
	struct fixture *f = *state;
	uint64_t before_ns = clock_monotonic_ns();

	perf_ring_exit(&f->written[0], 100, 1);
	perf_ring_begin(&f->written[0], PERF_RECORD_EXIT, 0);
	perf_ring_u64(&f->written[0], 0);
	perf_ring_end_as(&f->written[0], 3);
	drain(f, before_ns);
	assert_int_equal(f->exits, 1);
	assert_int_equal(f->gaps, 1);
	assert_int_equal(f->gap_ns, 100);
	assert_true(f->gap_until_ns >= before_ns);
	assert_int_equal(metrics_get(&f->metrics, METRIC_LOST_BAD_RECORD), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SIDEBAND_GAPS), 1);
}

static void a_gap_on_demand_begins_with_the_last_record(void **state)
{
	struct fixture *f = *state;
	uint64_t before_ns = clock_monotonic_ns();

	perf_ring_exit(&f->written[0], 100, 1);
	drain(f, before_ns);
	drain_report_gap(&f->drain);
	assert_int_equal(f->gaps, 1);
	assert_int_equal(f->gap_ns, 100);
	assert_true(f->gap_until_ns >= before_ns);
	assert_int_equal(metrics_get(&f->metrics, METRIC_LOST_BAD_RECORD), 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SIDEBAND_GAPS), 1);
}

static void the_gap_handler_is_optional(void **state)
{
	struct fixture *f = *state;

	f->drain.events.handlers.lost = NULL;
	drain_report_gap(&f->drain);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SIDEBAND_GAPS), 1);
}

static void halves_of_mappings_are_joined_if_there_are_any(void **state)
{
	struct fixture *f = *state;

	assert_null(f->drain.events.files);
	drain_join_files(&f->drain);
	assert_ptr_equal(f->drain.events.files, &f->drain.files);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(records_of_all_rings_are_delivered_by_time),
		CASE(while_sampling_runs_the_newest_records_wait),
		CASE(much_that_is_too_new_is_told),
		CASE(an_earlier_limit_is_kept_and_a_later_one_is_not),
		CASE(an_invalid_record_is_a_gap_up_to_now),
		CASE(a_gap_on_demand_begins_with_the_last_record),
		CASE(the_gap_handler_is_optional),
		CASE(halves_of_mappings_are_joined_if_there_are_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
