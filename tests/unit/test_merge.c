/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/merge.h"
#include "tests/unit/perf_ring.h"

enum { RINGS = 3, MAX_SEEN = 256 };

struct fixture {
	struct perf_ring written[RINGS];
	struct ring rings[RINGS];
	struct ring *all[RINGS];
	struct merge merge;
	uint64_t times[MAX_SEEN];
	uint32_t tgids[MAX_SEEN];
	size_t seen;
	uint64_t bad_bytes;
	unsigned int bad_calls;
};

static void start_at(struct fixture *f, uint64_t position)
{
	for (size_t i = 0; i < RINGS; i++) {
		perf_ring_init(&f->written[i], position);
		ring_over(
			&f->rings[i], &f->written[i].control, f->written[i].data, PERF_RING_BYTES);
		f->all[i] = &f->rings[i];
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	start_at(f, 0);
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

static void saw(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	struct fixture *f = context;

	assert_true(f->seen < MAX_SEEN);
	assert_int_equal(size, 40);
	f->times[f->seen] = time_ns;
	memcpy(&f->tgids[f->seen], record + 8, sizeof(uint32_t));
	f->seen++;
}

static void saw_bad(void *context, uint64_t time_ns, uint64_t bytes)
{
	struct fixture *f = context;

	(void)time_ns;
	f->bad_bytes += bytes;
	f->bad_calls++;
}

static int64_t merge_until(struct fixture *f, uint64_t until_ns)
{
	const struct merge_sink sink = { .record = saw, .bad = saw_bad, .context = f };

	return merge_rings(&f->merge, f->all, RINGS, until_ns, &sink);
}

static void expect_tgids(const struct fixture *f, const uint32_t *tgids, size_t count)
{
	assert_int_equal(f->seen, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(f->tgids[i], tgids[i]);
}

static void empty_rings_give_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(merge_until(f, UINT64_MAX), 0);
	assert_int_equal(merge_rings(&f->merge, NULL, 0, UINT64_MAX, &(struct merge_sink){ 0 }), 0);
	assert_int_equal(f->seen, 0);
	assert_int_equal(f->bad_calls, 0);
}

static void records_of_several_rings_come_by_time(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 10, 1);
	perf_ring_exit(&f->written[0], 40, 4);
	perf_ring_exit(&f->written[0], 41, 5);
	perf_ring_exit(&f->written[1], 20, 2);
	perf_ring_exit(&f->written[1], 60, 7);
	perf_ring_exit(&f->written[2], 30, 3);
	perf_ring_exit(&f->written[2], 50, 6);
	assert_int_equal(merge_until(f, UINT64_MAX), 7);
	expect_tgids(f, (const uint32_t[]){ 1, 2, 3, 4, 5, 6, 7 }, 7);
	for (size_t i = 0; i < RINGS; i++)
		assert_int_equal(f->written[i].control.data_tail, f->written[i].control.data_head);
}

/* A record later than the time limit waits: another CPU may still deliver an earlier one. */
static void later_records_wait_in_their_rings(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 10, 1);
	perf_ring_exit(&f->written[0], 30, 3);
	assert_int_equal(merge_until(f, 20), 1);
	assert_int_equal(f->written[0].control.data_tail, 40);
	perf_ring_exit(&f->written[1], 25, 2);
	assert_int_equal(merge_until(f, 30), 2);
	expect_tgids(f, (const uint32_t[]){ 1, 2, 3 }, 3);
}

static void ring_keeps_its_own_order_when_the_clock_steps_back(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 20, 1);
	perf_ring_exit(&f->written[0], 18, 2);
	perf_ring_exit(&f->written[1], 21, 3);
	assert_int_equal(merge_until(f, UINT64_MAX), 3);
	expect_tgids(f, (const uint32_t[]){ 1, 2, 3 }, 3);
	assert_int_equal(f->times[1], 20);
	assert_int_equal(f->times[2], 21);
}

static void times_do_not_decrease_over_calls(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 20, 1);
	assert_int_equal(merge_until(f, 30), 1);
	perf_ring_exit(&f->written[1], 15, 2);
	assert_int_equal(merge_until(f, 30), 1);
	assert_int_equal(f->times[1], 20);
}

/* 40-byte records, so that the ring's end falls on each multiple of 8 inside one. */
static void records_around_the_rings_end_are_whole(void **state)
{
	struct fixture *f = *state;

	for (uint64_t start = PERF_RING_BYTES - 40; start <= PERF_RING_BYTES; start += 8) {
		f->seen = 0;
		start_at(f, start);
		perf_ring_exit(&f->written[0], start, (uint32_t)start);
		perf_ring_exit(&f->written[0], start + 1, (uint32_t)start + 1);
		assert_int_equal(merge_until(f, UINT64_MAX), 2);
		expect_tgids(f, (const uint32_t[]){ (uint32_t)start, (uint32_t)start + 1 }, 2);
		assert_int_equal(f->times[1], start + 1);
	}
}

static void positions_around_two_to_the_64_are_fine(void **state)
{
	struct fixture *f = *state;

	start_at(f, UINT64_MAX - 39);
	perf_ring_exit(&f->written[0], 1, 1);
	perf_ring_exit(&f->written[0], 2, 2);
	assert_int_equal(merge_until(f, UINT64_MAX), 2);
	expect_tgids(f, (const uint32_t[]){ 1, 2 }, 2);
}

static void full_ring_is_read_to_its_end(void **state)
{
	struct fixture *f = *state;
	uint32_t i;

	start_at(f, 1024);
	for (i = 0; i < PERF_RING_BYTES / 40; i++)
		perf_ring_exit(&f->written[2], i, i);
	assert_int_equal(merge_until(f, UINT64_MAX), i);
	assert_int_equal(f->seen, i);
	assert_int_equal(f->tgids[i - 1], i - 1);
}

static void expect_bad(struct fixture *f, uint64_t bytes)
{
	/* The other ring's record is delivered, and the bad ring continues afterwards. */
	perf_ring_exit(&f->written[1], 50, 7);
	merge_until(f, UINT64_MAX);
	assert_int_equal(f->bad_calls, 1);
	assert_int_equal(f->bad_bytes, bytes);
	assert_int_equal(f->tgids[f->seen - 1], 7);
	perf_ring_exit(&f->written[0], 60, 8);
	assert_int_equal(merge_until(f, UINT64_MAX), 1);
	assert_int_equal(f->tgids[f->seen - 1], 8);
	assert_int_equal(f->bad_calls, 1);
}

static void one_bad_record(struct fixture *f, uint16_t size)
{
	perf_ring_begin(&f->written[0], PERF_RECORD_EXIT, 0);
	for (int i = 0; i < 4; i++)
		perf_ring_u64(&f->written[0], 1);
	perf_ring_end_as(&f->written[0], size);
}

static void record_of_size_0_is_dropped(void **state)
{
	one_bad_record(*state, 0);
	expect_bad(*state, 40);
}

static void record_without_room_for_a_time_is_dropped(void **state)
{
	one_bad_record(*state, 8);
	expect_bad(*state, 40);
}

static void record_longer_than_the_ring_holds_is_dropped(void **state)
{
	one_bad_record(*state, 48);
	expect_bad(*state, 40);
}

static void record_of_an_odd_size_is_dropped(void **state)
{
	one_bad_record(*state, 37);
	expect_bad(*state, 40);
}

static void head_beyond_the_rings_size_is_dropped(void **state)
{
	struct fixture *f = *state;

	f->written[0].control.data_head = PERF_RING_BYTES + 8;
	expect_bad(f, PERF_RING_BYTES + 8);
}

static void good_records_before_a_bad_one_are_delivered(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 10, 1);
	one_bad_record(f, 4);
	expect_bad(f, 40);
	assert_int_equal(f->tgids[0], 1);
}

/* As the kernel writes it for a CPU with EARLIER CPUs before it: one trailer too many for each. */
static void write_ksymbol(struct perf_ring *w, const char *name, unsigned int earlier)
{
	perf_ring_begin(w, PERF_RECORD_KSYMBOL, 0);
	perf_ring_u64(w, 0xffffffffc0025bac);
	perf_ring_u64(w, 0x10001000008e9);
	perf_ring_string(w, name);
	perf_ring_u64(w, 30);
	for (unsigned int i = 0; i < earlier; i++)
		perf_ring_u64(w, UINT64_MAX / 2);
	perf_ring_end(w);
}

static void ignore_record(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	struct fixture *f = context;

	(void)record;
	(void)size;
	f->times[f->seen++] = time_ns;
}

static void time_of_a_ksymbol_stands_behind_its_name(void **state)
{
	static const char *const names[] = { "", "a", "sixchr", "seven77", "eight888",
		"fifteen15151515", "sixteen161616161" };
	struct fixture *f = *state;
	const struct merge_sink sink = { .record = ignore_record, .bad = saw_bad, .context = f };

	for (size_t name = 0; name < sizeof(names) / sizeof(names[0]); name++) {
		for (unsigned int earlier = 0; earlier < 3; earlier++) {
			f->seen = 0;
			f->merge.last_ns = 0;
			start_at(f, PERF_RING_BYTES - 8 - 8 * earlier);
			write_ksymbol(&f->written[0], names[name], earlier);
			perf_ring_exit(&f->written[0], 40, 1);
			perf_ring_exit(&f->written[1], 35, 1);
			assert_int_equal(merge_rings(&f->merge, f->all, RINGS, 100, &sink), 3);
			assert_int_equal(f->times[0], 30);
			assert_int_equal(f->times[1], 35);
			assert_int_equal(f->times[2], 40);
		}
	}
}

/* Whatever a ring holds, one wrong time must not stop the stream for ever. */
static void time_in_the_future_holds_nothing_up(void **state)
{
	struct fixture *f = *state;

	perf_ring_exit(&f->written[0], 10, 1);
	perf_ring_exit(&f->written[0], UINT64_MAX / 2, 2);
	perf_ring_exit(&f->written[0], 20, 3);
	assert_int_equal(merge_until(f, 30), 3);
	expect_tgids(f, (const uint32_t[]){ 1, 2, 3 }, 3);
	assert_int_equal(f->times[1], 10);
	assert_int_equal(f->times[2], 20);
}

static void unmapped_ring_is_empty(void **state)
{
	struct fixture *f = *state;

	f->rings[0] = (struct ring){ 0 };
	perf_ring_exit(&f->written[1], 10, 1);
	assert_int_equal(merge_until(f, UINT64_MAX), 1);
}

/* Many records on random rings, merged in random slices of time, arrive in order and complete. */
static void random_slices_come_in_order_and_complete(void **state)
{
	struct fixture *f = *state;
	uint64_t time_ns = 0;
	uint32_t random = 1, written = 0, checked = 0;

	for (int round = 0; round < 2000; round++) {
		f->seen = 0;
		for (int i = 0; i < 8; i++) {
			random = random * 1664525 + 1013904223;
			time_ns += random >> 30;
			perf_ring_exit(&f->written[(random >> 16) % RINGS], time_ns, written++);
		}
		merge_until(f, time_ns - 2);
		for (size_t i = 0; i < f->seen; i++)
			if (i)
				assert_true(f->times[i] >= f->times[i - 1]);
		checked += (uint32_t)f->seen;
	}
	f->seen = 0;
	merge_until(f, UINT64_MAX);
	assert_int_equal(checked + f->seen, written);
	assert_int_equal(f->bad_calls, 0);
}

#define MERGE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void a_ring_that_cannot_be_mapped_is_an_error(void **state)
{
	struct ring r = { .room_bytes = 77 };

	(void)state;
	assert_int_equal(ring_map(&r, -1, 1), -EBADF);
	assert_null(r.control);
	assert_int_equal(r.room_bytes, 77);
	ring_unmap(&r); /* nothing to do */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_that_cannot_be_mapped_is_an_error),
		MERGE_TEST(empty_rings_give_nothing),
		MERGE_TEST(records_of_several_rings_come_by_time),
		MERGE_TEST(later_records_wait_in_their_rings),
		MERGE_TEST(ring_keeps_its_own_order_when_the_clock_steps_back),
		MERGE_TEST(times_do_not_decrease_over_calls),
		MERGE_TEST(records_around_the_rings_end_are_whole),
		MERGE_TEST(positions_around_two_to_the_64_are_fine),
		MERGE_TEST(full_ring_is_read_to_its_end),
		MERGE_TEST(record_of_size_0_is_dropped),
		MERGE_TEST(record_without_room_for_a_time_is_dropped),
		MERGE_TEST(record_longer_than_the_ring_holds_is_dropped),
		MERGE_TEST(record_of_an_odd_size_is_dropped),
		MERGE_TEST(head_beyond_the_rings_size_is_dropped),
		MERGE_TEST(good_records_before_a_bad_one_are_delivered),
		MERGE_TEST(time_of_a_ksymbol_stands_behind_its_name),
		MERGE_TEST(time_in_the_future_holds_nothing_up),
		MERGE_TEST(unmapped_ring_is_empty),
		MERGE_TEST(random_slices_come_in_order_and_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
