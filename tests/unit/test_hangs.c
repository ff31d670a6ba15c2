/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/hangs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/cleanup.h"

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

static void the_pauses_grow_up_to_a_quarter_of_a_minute(void **state)
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
		assert_in_range(pause_ns, 5 * SECOND, 15 * SECOND);
		now_ns += pause_ns;
	}
	assert_int_equal(pause_ns, 15 * SECOND);
}

static void a_hang_is_said_once(void **state)
{
	struct hangs h = fresh();

	(void)state;
	hang(&h, 1, START);
	hang(&h, 2, START);
	assert_true(hangs_say(&h, 1));
	assert_true(hangs_say(&h, 2));
	hang(&h, 1, START + 6 * SECOND);
	assert_false(hangs_say(&h, 1));
	hangs_answered(&h, 1, 0);
	assert_false(hangs_say(&h, 1)); /* it does not hang */
	hang(&h, 1, START + 7 * SECOND);
	assert_true(hangs_say(&h, 1));
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

/* Lets new keys hang one after the other for a hundred seconds; returns how long was waited. */
static uint64_t wait_for_new_ones(struct hangs *h, uint64_t interval_ns)
{
	uint64_t waited_ns = 0, key = 1000;

	for (uint64_t now_ns = START; now_ns < START + 100 * SECOND; key++) {
		uint64_t wait_ns = hangs_patience_ns(h, key, now_ns);

		if (wait_ns)
			hangs_timed_out(h, key, wait_ns, now_ns + wait_ns);
		waited_ns += wait_ns;
		now_ns += MAX(interval_ns, wait_ns);
	}
	return waited_ns;
}

static void all_waits_together_are_bounded(void **state)
{
	struct hangs a = fresh(), b = fresh();

	(void)state;
	/* One in ten seconds gets the whole wait; as many as there can be, a quarter of the time.
	 */
	assert_in_range(wait_for_new_ones(&a, 10 * SECOND), 19 * SECOND / 10, 2 * SECOND);
	assert_in_range(wait_for_new_ones(&b, SECOND / 1000), 24 * SECOND, 28 * SECOND);
}

static void waits_take_of_the_room_that_all_have(void **state)
{
	struct hangs h = fresh();
	uint64_t room_ns = hangs_room_ns(&h);

	(void)state;
	assert_in_range(room_ns, SECOND / 2, SECOND);
	hangs_answered(&h, 1, SECOND / 1000);
	assert_int_equal(hangs_room_ns(&h), room_ns);
	hangs_answered(&h, 1, SECOND / 4);
	assert_int_equal(hangs_room_ns(&h), room_ns - SECOND / 4);
	hangs_timed_out(&h, 2, SECOND, START);
	assert_int_equal(hangs_room_ns(&h), 0);
}

/* Spends what may be spent on waits. */
static void spend(struct hangs *h, unsigned int hangs)
{
	for (unsigned int i = 0; i < hangs; i++)
		hangs_timed_out(h, 100 + i, SECOND / 5, START);
}

static void after_some_hangs_the_waits_are_short(void **state)
{
	struct hangs h = fresh();
	uint64_t full_ns = hangs_patience_ns(&h, 1, START);

	(void)state;
	spend(&h, 2);
	hangs_timed_out(&h, 200, SECOND / 10, START);
	assert_in_range(hangs_patience_ns(&h, 1, START), 1, full_ns - 1);
	assert_int_equal(hangs_patience_ns(&h, 1, START + 60 * SECOND), full_ns);
}

static void after_many_only_who_has_answered_is_asked(void **state)
{
	struct hangs h = fresh();

	(void)state;
	hangs_answered(&h, 1, 1000);
	spend(&h, 5);
	assert_int_equal(hangs_patience_ns(&h, 2, START), 0);
	assert_true(hangs_patience_ns(&h, 1, START) > 0);
	/* It is one of them now. */
	hangs_timed_out(&h, 1, 1000, START);
	assert_int_equal(hangs_patience_ns(&h, 1, START), 0);
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
		cmocka_unit_test(the_pauses_grow_up_to_a_quarter_of_a_minute),
		cmocka_unit_test(a_hang_is_said_once),
		cmocka_unit_test(a_late_answer_ends_the_pause),
		cmocka_unit_test(all_waits_together_are_bounded),
		cmocka_unit_test(waits_take_of_the_room_that_all_have),
		cmocka_unit_test(after_some_hangs_the_waits_are_short),
		cmocka_unit_test(after_many_only_who_has_answered_is_asked),
		cmocka_unit_test(slow_answers_count_and_fast_ones_do_not),
		cmocka_unit_test(the_oldest_suspect_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
