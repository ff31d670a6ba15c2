/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/hangs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uint64_t SECOND = 1000000000, START = 77 * 1000000000ULL;

static struct hangs fresh(void)
{
	struct hangs h;

	hangs_init(&h, START);
	return h;
}

/* Lets KEY hang for as long as it is waited for. */
static void hang(struct hangs *h, uint64_t key, uint64_t now_ns)
{
	uint64_t wait_ns = hangs_patience_ns(h, key, now_ns);

	assert_true(wait_ns > 0);
	hangs_timed_out(h, key, wait_ns, now_ns);
}

static void what_is_new_is_waited_for(void **state)
{
	struct hangs h = fresh();

	(void)state;
	assert_in_range(hangs_patience_ns(&h, 1, START), SECOND / 100, SECOND / 2);
}

static void what_hangs_is_left_alone_for_a_while(void **state)
{
	struct hangs h = fresh();

	(void)state;
	hang(&h, 1, START);
	assert_int_equal(hangs_patience_ns(&h, 1, START + SECOND), 0);
	assert_true(hangs_patience_ns(&h, 2, START + SECOND) > 0);
	assert_true(hangs_patience_ns(&h, 1, START + 6 * SECOND) > 0);
}

static void the_pauses_grow_up_to_five_minutes(void **state)
{
	struct hangs h = fresh();
	uint64_t now_ns = START, pause_ns = 0;

	(void)state;
	for (unsigned int times = 1; times < 12; times++) {
		uint64_t before_ns = pause_ns;

		assert_int_equal(hangs_timed_out(&h, 1, 0, now_ns), times);
		for (pause_ns = 0; !hangs_patience_ns(&h, 1, now_ns + pause_ns);)
			pause_ns += SECOND;
		assert_true(pause_ns >= before_ns);
		assert_in_range(pause_ns, 5 * SECOND, 300 * SECOND);
		now_ns += pause_ns;
	}
	assert_int_equal(pause_ns, 300 * SECOND);
}

static void a_late_answer_ends_the_pause(void **state)
{
	struct hangs h = fresh();

	(void)state;
	hang(&h, 1, START);
	hangs_answered(&h, 1, 0);
	assert_true(hangs_patience_ns(&h, 1, START + 1) > 0);
	assert_int_equal(hangs_timed_out(&h, 1, 0, START + 2), 1);
}

static void hundreds_that_hang_cost_a_second_and_then_a_twentieth(void **state)
{
	struct hangs h = fresh();
	uint64_t waited_ns = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t now_ns = START + waited_ns + i * SECOND / 10;
		uint64_t wait_ns = hangs_patience_ns(&h, 1000 + i, now_ns);

		if (wait_ns)
			hangs_timed_out(&h, 1000 + i, wait_ns, now_ns);
		waited_ns += wait_ns;
	}
	assert_in_range(waited_ns, 4 * SECOND, 7 * SECOND);
}

static void who_has_answered_is_asked_even_then(void **state)
{
	struct hangs h = fresh();
	uint64_t full_ns = hangs_patience_ns(&h, 1, START);

	(void)state;
	hangs_answered(&h, 1, 1000);
	for (uint64_t key = 10; key < 15; key++)
		hang(&h, key, START);
	assert_int_equal(hangs_patience_ns(&h, 15, START), 0);
	assert_in_range(hangs_patience_ns(&h, 1, START), 1, full_ns - 1);
	/* It is one of them now. */
	hangs_timed_out(&h, 1, 1000, START);
	assert_int_equal(hangs_patience_ns(&h, 1, START + 6 * SECOND / 10), 0);
}

static void slow_answers_count_and_fast_ones_do_not(void **state)
{
	struct hangs h = fresh();

	(void)state;
	for (int i = 0; i < 1000000; i++)
		hangs_answered(&h, 1, 20000);
	assert_true(hangs_patience_ns(&h, 2, START) > 0);
	for (int i = 0; i < 10; i++)
		hangs_answered(&h, 1, SECOND / 10);
	assert_int_equal(hangs_patience_ns(&h, 2, START), 0);
}

static void the_oldest_suspect_makes_room(void **state)
{
	struct hangs h = fresh();

	(void)state;
	for (uint64_t key = 1; key <= HANGS_SUSPECTS + 1; key++)
		hangs_timed_out(&h, key, 0, START);
	assert_true(hangs_patience_ns(&h, 1, START) > 0);
	assert_int_equal(hangs_patience_ns(&h, 2, START), 0);
	assert_int_equal(hangs_patience_ns(&h, HANGS_SUSPECTS + 1, START), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_new_is_waited_for),
		cmocka_unit_test(what_hangs_is_left_alone_for_a_while),
		cmocka_unit_test(the_pauses_grow_up_to_five_minutes),
		cmocka_unit_test(a_late_answer_ends_the_pause),
		cmocka_unit_test(hundreds_that_hang_cost_a_second_and_then_a_twentieth),
		cmocka_unit_test(who_has_answered_is_asked_even_then),
		cmocka_unit_test(slow_answers_count_and_fast_ones_do_not),
		cmocka_unit_test(the_oldest_suspect_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
