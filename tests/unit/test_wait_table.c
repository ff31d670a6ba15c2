/* SPDX-License-Identifier: Apache-2.0 */
/* Waits are looked up by thread and time, one for each thread, and have the right weight. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/sampler/probes/off_cpu/wait_table.h"
#include "bpf/abi/sampler.h"

static void test_wait_is_found_by_thread_and_beginning(void **state)
{
	struct wait_table w;
	struct wait *wait;

	(void)state;
	wait_table_init(&w, 1);
	assert_null(wait_table_find(&w, 7, 100));
	assert_int_equal(wait_table_begin(&w, 7, 100), 0);
	assert_null(wait_table_find(&w, 7, 99));
	assert_null(wait_table_find(&w, 8, 100));
	wait = wait_table_find(&w, 7, 100);
	assert_non_null(wait);
	assert_int_equal(wait->state, WAIT_BEGUN);
	assert_int_equal(wait->tid, 7);
	wait_table_forget_thread(&w, 7);
	assert_null(wait_table_find(&w, 7, 100));
	wait_table_forget_thread(&w, 7);
	wait_table_deinit(&w);
}

static void test_next_wait_of_a_thread_replaces_one_whose_end_was_lost(void **state)
{
	struct wait_table w;
	size_t i = 0;

	(void)state;
	wait_table_init(&w, 1);
	assert_int_equal(wait_table_begin(&w, 7, 100), 0);
	wait_table_find(&w, 7, 100)->state = WAIT_RESOLVED;
	assert_int_equal(wait_table_begin(&w, 7, 200), 0);
	assert_null(wait_table_find(&w, 7, 100));
	assert_int_equal(wait_table_find(&w, 7, 200)->state, WAIT_BEGUN);
	assert_non_null(wait_table_next(&w, &i));
	assert_null(wait_table_next(&w, &i));
	wait_table_deinit(&w);
}

static void test_ended_waits_of_a_thread_stay_until_they_are_forgotten(void **state)
{
	struct wait_table w;

	(void)state;
	wait_table_init(&w, 1);
	for (uint64_t left_ns = 1; left_ns <= 4; left_ns++) {
		assert_int_equal(wait_table_begin(&w, 7, left_ns), 0);
		wait_table_find(&w, 7, left_ns)->state = WAIT_ENDED;
	}
	wait_table_forget_thread(&w, 7);
	for (uint64_t left_ns = 1; left_ns <= 4; left_ns++)
		assert_int_equal(wait_table_find(&w, 7, left_ns)->left_ns, left_ns);
	/* Removes one in the middle, the oldest, the newest, and the only one. */
	wait_table_forget(&w, wait_table_find(&w, 7, 2));
	assert_null(wait_table_find(&w, 7, 2));
	wait_table_forget(&w, wait_table_find(&w, 7, 1));
	wait_table_forget(&w, wait_table_find(&w, 7, 4));
	assert_non_null(wait_table_find(&w, 7, 3));
	wait_table_forget(&w, wait_table_find(&w, 7, 3));
	assert_null(wait_table_find(&w, 7, 3));
	assert_int_equal(w.by_tid.count, 0);
	wait_table_deinit(&w);
}

static void test_walk_forgets_on_its_way_and_places_are_used_again(void **state)
{
	struct wait_table w;
	struct wait *wait;
	size_t i = 0, seen = 0;

	(void)state;
	wait_table_init(&w, 1);
	for (uint32_t tid = 1; tid <= 100; tid++)
		assert_int_equal(wait_table_begin(&w, tid, 1000 + tid), 0);
	while ((wait = wait_table_next(&w, &i))) {
		seen++;
		if (wait->tid % 2)
			wait_table_forget(&w, wait);
	}
	assert_int_equal(seen, 100);
	for (uint32_t tid = 101; tid <= 150; tid++)
		assert_int_equal(wait_table_begin(&w, tid, 1000 + tid), 0);
	assert_int_equal(w.count, 100);
	for (uint32_t tid = 1; tid <= 150; tid++)
		assert_int_equal(
			wait_table_find(&w, tid, 1000 + tid) != NULL, tid > 100 || tid % 2 == 0);
	wait_table_deinit(&w);
}

static void test_full_table_refuses_new_threads_only(void **state)
{
	struct wait_table w;
	uint32_t tid = 1;

	(void)state;
	wait_table_init(&w, 1);
	while (!wait_table_begin(&w, tid, tid))
		tid++;
	assert_true(tid > ABI_WAITS);
	assert_int_equal(wait_table_begin(&w, tid, tid), -E2BIG);
	assert_int_equal(wait_table_begin(&w, 5, 500), 0);
	wait_table_forget_thread(&w, 6);
	assert_int_equal(wait_table_begin(&w, tid, tid), 0);
	assert_non_null(wait_table_find(&w, tid, tid));
	wait_table_deinit(&w);
}

static void test_every_wait_weighs_itself(void **state)
{
	uint64_t count, weight;
	struct wait_table w;

	(void)state;
	wait_table_init(&w, 1);
	for (uint64_t ns = 1; ns; ns <<= 1) {
		wait_table_weigh(&w, ns | 1, &count, &weight);
		assert_int_equal(count, 1);
		assert_int_equal(weight, ns | 1);
	}
	wait_table_deinit(&w);
}

static void test_one_of_many_weighs_them_all(void **state)
{
	static const double shares[] = { 0.5, 0.3, 0.07, 0.001, 0.9 };
	struct wait_table w;

	(void)state;
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		uint64_t counts = 0, weights = 0, count, weight;

		wait_table_init(&w, shares[i]);
		for (int n = 0; n < 1000; n++) {
			wait_table_weigh(&w, 1000000, &count, &weight);
			assert_true(count >= 1);
			counts += count;
			weights += weight;
		}
		assert_in_range(
			counts, (uint64_t)(1000 / shares[i]) - 1, (uint64_t)(1000 / shares[i]) + 1);
		assert_in_range(weights, (uint64_t)(1e9 / shares[i]) - 1000,
			(uint64_t)(1e9 / shares[i]) + 1);
		wait_table_deinit(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait_is_found_by_thread_and_beginning),
		cmocka_unit_test(test_next_wait_of_a_thread_replaces_one_whose_end_was_lost),
		cmocka_unit_test(test_ended_waits_of_a_thread_stay_until_they_are_forgotten),
		cmocka_unit_test(test_walk_forgets_on_its_way_and_places_are_used_again),
		cmocka_unit_test(test_full_table_refuses_new_threads_only),
		cmocka_unit_test(test_every_wait_weighs_itself),
		cmocka_unit_test(test_one_of_many_weighs_them_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
