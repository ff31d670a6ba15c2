/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost side-band is reported before every sample taken in the gap, whether the ring already has a
 * record of the loss or not; and the order of records with equal times.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/merge.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/perf_ring.h"

enum {
	SIDEBAND, /* a ring with side-band and samples */
	OWN, /* one of the sampler's own */
	OTHER,
	RINGS,
	ROOM = 200, /* with less of it the ring may have lost records */
	EXIT_BYTES = 40,
	FITS = PERF_RING_BYTES / EXIT_BYTES,
	RAW_AT = 20, /* behind header, time and size */
};

struct fixture {
	struct perf_ring written[RINGS];
	struct ring rings[RINGS];
	struct ring *all[RINGS];
	struct merge merge;
	char seen[1024]; /* what was delivered, by time: `10 gap 20 ` */
	char kinds[1024]; /* the same, by what it was */
	uint64_t gap_ns, until_ns; /* of the last gap */
	unsigned int records, gaps;
	bool fill; /* the side-band ring, while its first record is delivered */
};

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
	f->rings[SIDEBAND].room_bytes = ROOM;
	f->rings[OWN].behind_bytes = 8;
	assert_int_equal(merge_init(&f->merge), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	merge_deinit(&f->merge);
	free(f);
	return 0;
}

static void note(char *text, size_t size, const char *what)
{
	size_t length = strlen(text);

	snprintf(text + length, size - length, "%s ", what);
}

static void fill(struct fixture *f, uint64_t time_ns)
{
	struct perf_ring *w = &f->written[SIDEBAND];

	while (w->control.data_head - w->control.data_tail + EXIT_BYTES <= PERF_RING_BYTES)
		perf_ring_exit(w, time_ns, 1);
}

static void saw(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	const struct perf_event_header *header = (const struct perf_event_header *)record;
	struct fixture *f = context;
	char text[32];

	(void)size;
	f->records++;
	snprintf(text, sizeof(text), "%s%llu", header->type == PERF_RECORD_LOST ? "L" : "",
		(unsigned long long)time_ns);
	note(f->seen, sizeof(f->seen), text);
	note(f->kinds, sizeof(f->kinds),
		header->type == PERF_RECORD_SAMPLE ? (const char *)record + RAW_AT : "exit");
	if (f->fill)
		fill(f, 70);
	f->fill = false;
}

static void saw_bad(void *context, uint64_t time_ns, uint64_t bytes)
{
	(void)context;
	(void)time_ns;
	(void)bytes;
	fail();
}

static void saw_gap(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct fixture *f = context;

	f->gap_ns = time_ns;
	f->until_ns = until_ns;
	f->gaps++;
	note(f->seen, sizeof(f->seen), "gap");
}

static const char *merge_until(struct fixture *f, uint64_t until_ns)
{
	const struct merge_sink sink = {
		.record = saw, .bad = saw_bad, .gap = saw_gap, .context = f
	};

	memset(f->seen, 0, sizeof(f->seen));
	memset(f->kinds, 0, sizeof(f->kinds));
	assert_true(merge_rings(&f->merge, f->all, RINGS, until_ns, &sink) >= 0);
	return f->seen;
}

static void lost(struct fixture *f, uint64_t time_ns)
{
	struct perf_ring *w = &f->written[SIDEBAND];

	perf_ring_begin(w, PERF_RECORD_LOST, 0);
	perf_ring_u64(w, 1);
	perf_ring_u64(w, 17);
	perf_ring_u64(w, time_ns);
	perf_ring_end(w);
}

static void sample(struct fixture *f, int ring, uint64_t time_ns)
{
	perf_ring_raw(&f->written[ring], time_ns, "raw", 4);
}

static void a_gap_is_reported_before_samples_taken_in_it(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[SIDEBAND], 10, 1);
	lost(f, 50);
	perf_ring_exit(&f->written[SIDEBAND], 51, 1);
	sample(f, OWN, 20);
	sample(f, OTHER, 30);
	sample(f, OWN, 60);
	assert_string_equal(merge_until(f, 100), "10 gap L10 20 30 51 60 ");
	assert_int_equal(f->gap_ns, 10);
	assert_int_equal(f->until_ns, 50);
}

/* The gap begins at the last record read, however old. */
static void a_gap_after_earlier_records_is_reported_at_once(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[SIDEBAND], 10, 1);
	sample(f, OWN, 20);
	assert_string_equal(merge_until(f, 25), "10 20 ");
	lost(f, 50);
	sample(f, OWN, 30);
	assert_string_equal(merge_until(f, 40), "gap L20 30 ");
	assert_int_equal(f->until_ns, 50);
}

/* The kernel reports a loss with the next record that fits, which may be much later. */
static void a_full_ring_may_have_unreported_losses(void **state)
{
	struct fixture *f = *state;
	uint64_t before_ns = clock_monotonic_ns();

	fill(f, 10);
	sample(f, OWN, 9);
	sample(f, OWN, 20);
	assert_non_null(strstr(merge_until(f, 100), "10 gap 20 "));
	assert_int_equal(f->records, FITS + 2);
	assert_int_equal(f->gap_ns, 10);
	assert_in_range(f->until_ns, before_ns, clock_monotonic_ns());
	/* It is reported once, although a later record confirms it. */
	assert_string_equal(merge_until(f, 100), "");
	lost(f, 50);
	perf_ring_exit(&f->written[SIDEBAND], 50, 1);
	sample(f, OWN, 40);
	assert_string_equal(merge_until(f, 100), "L20 40 50 ");
	assert_int_equal(f->gaps, 1);
	/* A second loss is reported separately. */
	lost(f, 60);
	assert_string_equal(merge_until(f, 100), "gap L50 ");
}

static void a_ring_with_room_left_has_lost_nothing(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < FITS - ROOM / EXIT_BYTES; i++)
		perf_ring_exit(&f->written[SIDEBAND], 10, 1);
	merge_until(f, 100);
	assert_int_equal(f->gaps, 0);
}

static void a_full_ring_whose_next_record_came_has_lost_nothing(void **state)
{
	struct fixture *f = *state;

	fill(f, 10);
	/* Read in part: there is room again, and the next record reports no loss. */
	ring_look(&f->rings[SIDEBAND]);
	for (unsigned int i = 0; i < FITS / 2; i++)
		ring_pop(&f->rings[SIDEBAND], 10, EXIT_BYTES);
	perf_ring_exit(&f->written[SIDEBAND], 30, 1);
	merge_until(f, 100);
	assert_int_equal(f->gaps, 0);
}

/* The ring fills while it is read, and has room again before the next check. */
static void a_ring_that_fills_while_it_is_read_is_noticed(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[SIDEBAND], 10, 1);
	f->fill = true;
	assert_string_equal(merge_until(f, 100), "10 ");
	sample(f, OWN, 60);
	sample(f, OWN, 80);
	assert_non_null(strstr(merge_until(f, 100), "70 gap 80 "));
	assert_int_equal(f->gaps, 1);
}

static void losses_of_the_samplers_own_rings_are_not_sideband(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < FITS; i++)
		perf_ring_exit(&f->written[OWN], 10, 1);
	merge_until(f, 100);
	assert_int_equal(f->gaps, 0);
}

static void at_equal_times_causes_come_first(void **state)
{
	static const int orders[][RINGS] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 },
		{ 2, 0, 1 }, { 2, 1, 0 } };
	struct fixture *f = *state;

	/* Frames in the sampler's own ring, and what goes on from them in the other. */
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		uint64_t time_ns = 100 * (i + 1);

		perf_ring_raw(&f->written[OTHER], time_ns, "rest", 5);
		perf_ring_raw(&f->written[OWN], time_ns, "frames", 7);
		perf_ring_exit(&f->written[SIDEBAND], time_ns, 1);
		for (int j = 0; j < RINGS; j++)
			f->all[j] = &f->rings[orders[i][j]];
		merge_until(f, time_ns);
		assert_string_equal(f->kinds, "exit frames rest ");
	}
}

#define GAPS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* With as much room as the longest record takes, the next one was written. */
static void a_ring_with_just_enough_room_lost_nothing(void **state)
{
	struct fixture *f = *state;
	struct ring *r = &f->rings[SIDEBAND];
	struct perf_ring *w = &f->written[SIDEBAND];
	uint64_t time_ns;
	size_t size;

	r->room_bytes = PERF_RING_BYTES - 2 * EXIT_BYTES;
	for (unsigned int records = 2; records <= 3; records++) {
		for (unsigned int i = 0; i < records; i++)
			perf_ring_exit(w, 10, 1);
		ring_look(r);
		while (ring_peek(r, &time_ns, &size) > 0)
			ring_pop(r, time_ns, size);
		assert_int_equal(ring_ends_in_loss(r), records > 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		GAPS_TEST(a_gap_is_reported_before_samples_taken_in_it),
		GAPS_TEST(a_gap_after_earlier_records_is_reported_at_once),
		GAPS_TEST(a_full_ring_may_have_unreported_losses),
		GAPS_TEST(a_ring_with_room_left_has_lost_nothing),
		GAPS_TEST(a_full_ring_whose_next_record_came_has_lost_nothing),
		GAPS_TEST(a_ring_that_fills_while_it_is_read_is_noticed),
		GAPS_TEST(losses_of_the_samplers_own_rings_are_not_sideband),
		GAPS_TEST(at_equal_times_causes_come_first),
		GAPS_TEST(a_ring_with_just_enough_room_lost_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
