/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows on a real loop whose clock the test advances, with an owner that records each call as one
 * letter: d(rain) n(umber) c(ompleted) g (about to be sealed) s(ealed) r(eleased) t (settled).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/loop/loop.h"
#include "agent/sampler/windows/windows.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/clock_ahead.h"

enum { LIMIT_BYTES = 1 << 20, PERIOD = 52631578 };

static const uint64_t MS = 1000000;
struct owner {
	struct loop *loop;
	struct windows *windows;
	char calls[64]; /* since the last take_calls() */
	uint32_t number; /* last window number */
	bool building;
	struct sealed_window sealed; /* last sealed window */
	uint64_t sealed_samples;
	uint64_t open_ns; /* of the last `settled` */
	/* Samples of window `late` that arrive with the next drain. */
	unsigned int late_samples;
	uint32_t late;
	uint64_t telling_ns; /* how long the kernel side takes to begin a window */
	uint64_t reporting_ns; /* how long the owner's report of a sealed window takes */
	uint64_t reported_ns; /* when it finished the last one */
	unsigned int last_samples; /* added when a window is about to be sealed */
};

static void note(struct owner *o, char letter)
{
	size_t length = strlen(o->calls);

	assert_true(length + 1 < sizeof(o->calls));
	o->calls[length] = letter;
}

static void assert_calls(struct owner *o, const char *expected)
{
	assert_string_equal(o->calls, expected);
	memset(o->calls, 0, sizeof(o->calls));
}

static void add_samples(struct owner *o, uint32_t window, unsigned int count)
{
	struct profile *profile = windows_profile(o->windows, window);
	struct profile_sample sample = { .process = 1, .pid = 7, .count = 1, .weight = PERIOD };

	assert_int_equal(profile_stack(profile, &(struct profile_stack){ 0 }, &sample.stack), 0);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(profile_add(profile, &sample), 0);
}

static void on_drain(void *context)
{
	struct owner *o = context;

	note(o, 'd');
	if (o->late_samples)
		add_samples(o, o->late, o->late_samples);
	o->late_samples = 0;
}

static uint32_t on_next_number(void *context)
{
	struct owner *o = context;

	note(o, 'n');
	ahead_ns += o->telling_ns;
	return ++o->number;
}

static bool on_is_building(void *context)
{
	const struct owner *o = context;

	return o->building;
}

static void on_completed(void *context)
{
	note(context, 'c');
}

static void on_sealing(void *context, uint32_t number)
{
	struct owner *o = context;

	note(o, 'g');
	assert_int_equal(windows_number(o->windows, number), number);
	if (o->last_samples)
		add_samples(o, number, o->last_samples);
}

static void on_sealed(void *context, const struct sealed_window *window)
{
	struct owner *o = context;

	note(o, 's');
	o->sealed = *window;
	o->sealed_samples = profile_total_count(window->profile);
	/* From now on records of this window are late. */
	assert_ptr_not_equal(windows_profile(o->windows, window->number), window->profile);
	ahead_ns += o->reporting_ns;
	o->reported_ns = clock_monotonic_ns();
}

static void on_released(void *context)
{
	note(context, 'r');
}

static void on_settled(void *context, uint64_t open_ns)
{
	struct owner *o = context;

	note(o, 't');
	o->open_ns = open_ns;
	loop_stop(o->loop);
}

static int setup(void **state)
{
	struct owner *o = calloc(1, sizeof(*o));
	struct windows_options options = {
		.limit_bytes = LIMIT_BYTES,
		.period = PERIOD,
		.types.of[1].count = { "waits", "count" },
		.handlers = {
			.drain = on_drain,
			.next_number = on_next_number,
			.is_building = on_is_building,
			.completed = on_completed,
			.sealing = on_sealing,
			.sealed = on_sealed,
			.released = on_released,
			.settled = on_settled,
			.context = o,
		},
	};

	assert_non_null(o);
	ahead_ns = 0;
	assert_int_equal(loop_create(&o->loop), 0);
	options.loop = o->loop;
	assert_int_equal(windows_create(&options, &o->windows), 0);
	assert_calls(o, "n");
	*state = o;
	return 0;
}

static int teardown(void **state)
{
	struct owner *o = *state;

	windows_destroy(o->windows);
	loop_destroy(o->loop);
	free(o);
	return 0;
}

/* Runs until the timer has sealed the previous window. */
static void run_until_settled(struct owner *o)
{
	ahead_ns += SECOND;
	assert_int_equal(loop_run(o->loop), 0);
}

/* ---- rotation ------------------------------------------------------------------------------- */

static void window_is_sealed_after_its_last_records(void **state)
{
	struct owner *o = *state;

	windows_start(o->windows);
	add_samples(o, 1, 3);
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_calls(o, "n");
	run_until_settled(o);
	assert_calls(o, "dcgsrt");
	assert_int_equal(o->sealed.number, 1);
	assert_int_equal(o->sealed_samples, 3);
	assert_int_equal(profile_total_count(windows_profile(o->windows, 2)), 0);
}

static void window_cannot_end_while_records_of_the_one_before_may_come(void **state)
{
	struct owner *o = *state;

	assert_false(windows_are_busy(o->windows));
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_true(windows_are_busy(o->windows));
	assert_int_equal(windows_rotate(o->windows), -EBUSY);
	assert_calls(o, "n");
	assert_int_equal(windows_number(o->windows, 0), 2);
	run_until_settled(o);
	assert_false(windows_are_busy(o->windows));
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_int_equal(windows_number(o->windows, 0), 3);
}

static void late_records_go_into_their_own_window(void **state)
{
	struct owner *o = *state;

	assert_int_equal(windows_rotate(o->windows), 0);
	add_samples(o, 1, 2);
	add_samples(o, 2, 5);
	/* Two samples arrive with the last drain, four when the window is about to be sealed. */
	o->late = 1;
	o->late_samples = 2;
	o->last_samples = 4;
	run_until_settled(o);
	assert_int_equal(o->sealed.number, 1);
	assert_int_equal(o->sealed_samples, 8);
	assert_int_equal(profile_total_count(windows_profile(o->windows, 2)), 5);
}

static void records_of_a_sealed_window_go_into_the_current_one(void **state)
{
	struct owner *o = *state;

	assert_int_equal(windows_rotate(o->windows), 0);
	run_until_settled(o);
	assert_int_equal(windows_number(o->windows, 1), 2);
	assert_ptr_equal(windows_profile(o->windows, 1), windows_profile(o->windows, 2));
	assert_ptr_equal(windows_profile(o->windows, 0), windows_profile(o->windows, 2));
}

static void raw_stacks_are_those_of_their_window(void **state)
{
	struct owner *o = *state;
	const struct abi_stack first = { .kind = ABI_STACK, .window = 1, .id = 7 };
	const struct abi_stack second = { .kind = ABI_STACK, .window = 2, .id = 7 };

	assert_int_equal(windows_put_raw(o->windows, &first), 0);
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_non_null(windows_get_raw(o->windows, 1, 7));
	assert_null(windows_get_raw(o->windows, 2, 7));
	assert_int_equal(windows_put_raw(o->windows, &second), 0);
	assert_int_equal(windows_get_raw(o->windows, 1, 7)->window, 1);
	assert_int_equal(windows_get_raw(o->windows, 2, 7)->window, 2);
	run_until_settled(o);
	assert_null(windows_get_raw(o->windows, 1, 7));
	assert_non_null(windows_get_raw(o->windows, 2, 7));
}

/* ---- index builds --------------------------------------------------------------------------- */

static void complete_window_waits_for_builds(void **state)
{
	struct owner *o = *state;

	o->building = true;
	assert_int_equal(windows_rotate(o->windows), 0);
	pass(o->loop, 20 * MS);
	assert_calls(o, "ndc");
	pass(o->loop, 100 * MS);
	/* No more records are drained for the window. */
	assert_calls(o, "c");
	assert_false(windows_are_busy(o->windows));
	o->building = false;
	run_until_settled(o);
	assert_calls(o, "cgsrt");
}

static void wait_for_builds_has_an_end(void **state)
{
	struct owner *o = *state;

	o->building = true;
	assert_int_equal(windows_rotate(o->windows), 0);
	for (unsigned int i = 0; i < 49; i++)
		pass(o->loop, 100 * MS);
	assert_null(strchr(o->calls, 's'));
	memset(o->calls, 0, sizeof(o->calls));
	pass(o->loop, 200 * MS);
	assert_calls(o, "cgsrt");
}

static void next_rotation_ends_the_wait_for_builds(void **state)
{
	struct owner *o = *state;

	o->building = true;
	assert_int_equal(windows_rotate(o->windows), 0);
	pass(o->loop, 20 * MS);
	assert_calls(o, "ndc");
	assert_int_equal(windows_rotate(o->windows), 0);
	/* Builds that never end do not keep what has ended: it is settled, too. */
	assert_calls(o, "gsrtn");
	assert_int_equal(o->sealed.number, 1);
	assert_true(windows_are_busy(o->windows));
	assert_int_equal(windows_number(o->windows, 2), 2);
}

/* While the previous window is reported, samples still belong to the window about to end. */
static void a_window_ends_after_the_one_before_was_reported(void **state)
{
	const uint64_t hour_ns = 3600 * SECOND;
	struct owner *o = *state;
	struct sealed_window next;
	uint64_t reported_ns, offset_ns;

	o->building = true;
	assert_int_equal(windows_rotate(o->windows), 0);
	pass(o->loop, 20 * MS);
	o->reporting_ns = hour_ns;
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_int_equal(o->sealed.number, 1);
	reported_ns = o->reported_ns;
	o->building = false;
	run_until_settled(o);
	assert_int_equal(o->sealed.number, 2);
	assert_true(o->sealed.ended_ns >= reported_ns);
	next = windows_current(o->windows);
	assert_int_equal(next.began_ns, o->sealed.ended_ns);
	/* Both clocks were read at that moment. */
	offset_ns = clock_real_ns() - clock_monotonic_ns();
	assert_in_range(next.began_real_ns - next.began_ns, offset_ns - hour_ns / 2,
		offset_ns + hour_ns / 2);
}

static void window_can_be_sealed_at_once(void **state)
{
	struct owner *o = *state;

	windows_seal_previous(o->windows);
	assert_calls(o, "");
	assert_int_equal(windows_rotate(o->windows), 0);
	windows_seal_previous(o->windows);
	assert_calls(o, "ngsr");
	/* Sealing also cancels the timer. */
	pass(o->loop, SECOND);
	assert_calls(o, "");
}

/* ---- times and periods ---------------------------------------------------------------------- */

static void window_carries_its_own_times(void **state)
{
	struct owner *o = *state;
	uint64_t began_ns, began_real_ns;

	ahead_ns += SECOND;
	windows_start(o->windows);
	began_ns = windows_current(o->windows).began_ns;
	began_real_ns = windows_current(o->windows).began_real_ns;
	assert_true(clock_monotonic_ns() - began_ns < SECOND);
	assert_true(clock_real_ns() - began_real_ns < SECOND);
	ahead_ns += 10 * SECOND;
	assert_int_equal(windows_rotate(o->windows), 0);
	/* The time until the window is sealed is not part of it. */
	ahead_ns += 100 * SECOND;
	run_until_settled(o);
	assert_int_equal(o->sealed.began_ns, began_ns);
	assert_int_equal(o->sealed.began_real_ns, began_real_ns);
	assert_in_range(o->sealed.ended_ns, began_ns + 10 * SECOND, began_ns + 20 * SECOND);
	/* The next window begins where this one ended. */
	assert_int_equal(windows_current(o->windows).began_ns, o->sealed.ended_ns);
	assert_true(sample_types_have(&o->sealed.types, 1));
	assert_false(sample_types_have(&o->sealed.types, 0));
}

static uint64_t real_end_of(const struct sealed_window *window)
{
	return window->began_real_ns + window->ended_ns - window->began_ns;
}

/* Whatever keeps the thread off the CPU between its steps. */
static void a_window_begins_where_the_one_before_ends_on_both_clocks(void **state)
{
	static const uint64_t telling_ns[] = { 500 * 1000000, 0, 3, 20 * 1000000 };
	struct owner *o = *state;
	struct sealed_window before;

	windows_start(o->windows);
	for (size_t i = 0; i < ARRAY_SIZE(telling_ns); i++) {
		ahead_ns += 10 * SECOND;
		o->telling_ns = telling_ns[i];
		assert_int_equal(windows_rotate(o->windows), 0);
		run_until_settled(o);
		if (i) {
			assert_int_equal(o->sealed.began_ns, before.ended_ns);
			assert_int_equal(o->sealed.began_real_ns, real_end_of(&before));
		}
		before = o->sealed;
	}
}

/* Ticks of two CPUs, taken while the thread is off its CPU in the middle of the change. */
static void a_window_has_no_more_time_than_passed(void **state)
{
	struct owner *o = *state;
	const uint64_t cpus = 2;
	uint64_t asked_ns, told_ns, ticks[2] = { 0 };
	struct sealed_window windows[2];

	windows_start(o->windows);
	ahead_ns += SECOND;
	o->telling_ns = SECOND / 2;
	asked_ns = clock_monotonic_ns();
	told_ns = asked_ns + SECOND / 4;
	assert_int_equal(windows_rotate(o->windows), 0);
	for (uint64_t at = asked_ns - SECOND; at < asked_ns + SECOND / 2; at += PERIOD) {
		windows_sampled(o->windows, at < told_ns ? 1 : 2, at);
		ticks[at >= told_ns] += cpus;
	}
	run_until_settled(o);
	windows[0] = o->sealed;
	windows[1] = windows_current(o->windows);
	windows[1].ended_ns = asked_ns + SECOND / 2;
	assert_int_equal(windows[1].began_ns, windows[0].ended_ns);
	assert_int_equal(windows[1].began_real_ns, real_end_of(&windows[0]));
	for (size_t i = 0; i < 2; i++)
		assert_in_range(ticks[i] * PERIOD, 1,
			cpus * (windows[i].ended_ns - windows[i].began_ns + PERIOD));
}

static void only_the_first_samples_of_a_window_say_when_it_began(void **state)
{
	struct owner *o = *state;
	uint64_t asked_ns, began_ns;

	windows_start(o->windows);
	ahead_ns += SECOND;
	asked_ns = clock_monotonic_ns();
	o->telling_ns = SECOND;
	assert_int_equal(windows_rotate(o->windows), 0);
	began_ns = windows_current(o->windows).began_ns;
	assert_true(began_ns >= asked_ns + SECOND);
	windows_sampled(o->windows, 1, asked_ns + 7);
	windows_sampled(o->windows, 2, began_ns + 7);
	assert_int_equal(windows_current(o->windows).began_ns, began_ns);
	windows_sampled(o->windows, 2, began_ns - 7);
	assert_int_equal(windows_current(o->windows).began_ns, began_ns - 7);
	/* It cannot have begun before the kernel side was asked. */
	windows_sampled(o->windows, 2, 7);
	assert_in_range(windows_current(o->windows).began_ns, asked_ns, asked_ns + SECOND / 2);
	began_ns = windows_current(o->windows).began_ns;
	run_until_settled(o);
	assert_int_equal(o->sealed.ended_ns, began_ns);
	windows_sampled(o->windows, 2, began_ns - 1);
	assert_int_equal(windows_current(o->windows).began_ns, began_ns);
}

static void window_keeps_the_period_that_it_had(void **state)
{
	struct owner *o = *state;

	assert_int_equal(windows_rotate(o->windows), 0);
	windows_set_period(o->windows, 10000000);
	run_until_settled(o);
	assert_int_equal(o->sealed.period, PERIOD);
	assert_int_equal(windows_current(o->windows).period, 10000000);
	assert_int_equal(windows_rotate(o->windows), 0);
	run_until_settled(o);
	assert_int_equal(o->sealed.period, 10000000);
	assert_int_equal(windows_current(o->windows).period, 10000000);
}

static void last_window_ends_when_sampling_stops(void **state)
{
	struct owner *o = *state;
	struct sealed_window window;
	uint64_t began_ns;

	windows_start(o->windows);
	began_ns = windows_current(o->windows).began_ns;
	ahead_ns += 3 * SECOND;
	windows_stop(o->windows);
	ahead_ns += 50 * SECOND;
	window = windows_current(o->windows);
	assert_int_equal(window.began_ns, began_ns);
	assert_in_range(window.ended_ns, began_ns + 3 * SECOND, began_ns + 50 * SECOND);
	/* The window goes on. */
	windows_start(o->windows);
	window = windows_current(o->windows);
	assert_int_equal(window.began_ns, began_ns);
	assert_true(window.ended_ns >= began_ns + 53 * SECOND);
}

static void window_that_never_started_is_empty(void **state)
{
	struct owner *o = *state;
	struct sealed_window window = windows_current(o->windows);

	assert_int_equal(window.began_ns, window.ended_ns);
	assert_true(window.began_real_ns > 0);
}

static void processes_that_ended_before_the_oldest_open_window_are_not_needed(void **state)
{
	struct owner *o = *state;
	struct windows_tap *tap;
	uint64_t began_ns;

	windows_start(o->windows);
	/* The first window needs everything that was there before. */
	assert_int_equal(windows_oldest_open_ns(o->windows), 0);
	ahead_ns += SECOND;
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_int_equal(windows_oldest_open_ns(o->windows), 0);
	run_until_settled(o);
	began_ns = windows_current(o->windows).began_ns;
	assert_int_equal(o->open_ns, began_ns);
	assert_int_equal(windows_oldest_open_ns(o->windows), began_ns);
	assert_int_equal(windows_tap_open(o->windows, 0, &tap), 0);
	ahead_ns += SECOND;
	assert_int_equal(windows_rotate(o->windows), 0);
	run_until_settled(o);
	/* From now on the tap counts as open. */
	assert_true(o->open_ns >= began_ns);
	assert_true(o->open_ns < windows_current(o->windows).began_ns);
	windows_tap_close(tap);
	assert_int_equal(windows_oldest_open_ns(o->windows), windows_current(o->windows).began_ns);
}

/* ---- taps ----------------------------------------------------------------------------------- */

static void tap_has_samples_taken_while_it_is_open(void **state)
{
	struct owner *o = *state;
	struct windows_tap *tap;
	struct sealed_window window;
	size_t i = 0;

	windows_set_period(o->windows, 10000000);
	assert_int_equal(windows_tap_open(o->windows, 7, &tap), 0);
	/* The tap has none of the earlier samples. */
	assert_calls(o, "d");
	ahead_ns += 2 * SECOND;
	window = windows_tap_read(o->windows, tap);
	assert_calls(o, "d");
	assert_int_equal(window.number, 0);
	assert_in_range(
		window.ended_ns, window.began_ns + 2 * SECOND, window.began_ns + 3 * SECOND);
	assert_int_equal(window.period, 10000000);
	assert_true(sample_types_have(&window.types, 1));
	assert_ptr_equal(windows_next_tap(o->windows, 7, &i), window.profile);
	assert_null(windows_next_tap(o->windows, 7, &i));
	windows_tap_close(tap);
	i = 0;
	assert_null(windows_next_tap(o->windows, 7, &i));
}

static void taps_are_of_one_process_or_of_all(void **state)
{
	struct owner *o = *state;
	struct windows_tap *one, *all;
	size_t i = 0;

	assert_int_equal(windows_tap_open(o->windows, 7, &one), 0);
	assert_int_equal(windows_tap_open(o->windows, 0, &all), 0);
	assert_non_null(windows_next_tap(o->windows, 7, &i));
	assert_non_null(windows_next_tap(o->windows, 7, &i));
	assert_null(windows_next_tap(o->windows, 7, &i));
	i = 0;
	assert_ptr_equal(
		windows_next_tap(o->windows, 8, &i), windows_tap_read(o->windows, all).profile);
	assert_null(windows_next_tap(o->windows, 8, &i));
}

static void taps_are_limited_and_their_places_are_used_again(void **state)
{
	struct owner *o = *state;
	struct windows_tap *taps[WINDOWS_MAX_TAPS], *more = NULL;

	for (size_t i = 0; i < WINDOWS_MAX_TAPS; i++)
		assert_int_equal(windows_tap_open(o->windows, 0, &taps[i]), 0);
	assert_int_equal(windows_tap_open(o->windows, 0, &more), -EAGAIN);
	assert_null(more);
	windows_tap_close(taps[3]);
	assert_int_equal(windows_tap_open(o->windows, 0, &more), 0);
	assert_ptr_equal(more, taps[3]);
	assert_int_equal(windows_tap_number(o->windows, more), 3);
}

/* Adds as many distinct stacks as fit. */
static unsigned int fill(struct profile *profile)
{
	struct profile_frame frame = { .address = 1 };
	uint32_t number;

	while (!profile_stack(
		profile, &(struct profile_stack){ .frames = &frame, .frame_count = 1 }, &number))
		frame.address++;
	return (unsigned int)frame.address;
}

static void tap_has_a_limit_of_its_own(void **state)
{
	struct owner *o = *state;
	struct windows_tap *tap;
	size_t i = 0;
	unsigned int in_tap, in_window;

	assert_int_equal(windows_tap_open(o->windows, 0, &tap), 0);
	in_tap = fill(windows_next_tap(o->windows, 1, &i));
	in_window = fill(windows_profile(o->windows, 0));
	assert_in_range(in_tap, in_window / 8, in_window / 2);
}

/* ---- failures and ends ---------------------------------------------------------------------- */

static void nothing(void *context)
{
	(void)context;
}

static void window_goes_on_where_it_cannot_be_timed(void **state)
{
	struct owner *o = *state;
	int timer;

	add_samples(o, 1, 2);
	while (!loop_timer(o->loop, 3600 * SECOND, 0, nothing, o, &timer))
		;
	assert_true(windows_rotate(o->windows) < 0);
	assert_calls(o, "");
	assert_int_equal(windows_number(o->windows, 0), 1);
	assert_false(windows_are_busy(o->windows));
	loop_cancel(o->loop, timer);
	assert_int_equal(windows_rotate(o->windows), 0);
	run_until_settled(o);
	assert_int_equal(o->sealed_samples, 2);
}

static void closing_windows_can_be_destroyed(void **state)
{
	struct owner *o = *state;
	struct windows_tap *tap;

	/* Closes with an open tap; teardown() destroys it, and sanitizers see leaks. */
	assert_int_equal(windows_tap_open(o->windows, 0, &tap), 0);
	assert_int_equal(windows_rotate(o->windows), 0);
	assert_true(windows_are_busy(o->windows));
	windows_destroy(NULL);
}

static void complete_windows_can_be_destroyed(void **state)
{
	struct owner *o = *state;

	o->building = true;
	assert_int_equal(windows_rotate(o->windows), 0);
	pass(o->loop, 20 * MS);
	assert_calls(o, "ndc");
	windows_destroy(o->windows);
	o->windows = NULL;
	/* No timer is left. */
	pass(o->loop, 10 * SECOND);
	assert_calls(o, "");
}

#define WINDOWS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WINDOWS_TEST(window_is_sealed_after_its_last_records),
		WINDOWS_TEST(window_cannot_end_while_records_of_the_one_before_may_come),
		WINDOWS_TEST(late_records_go_into_their_own_window),
		WINDOWS_TEST(records_of_a_sealed_window_go_into_the_current_one),
		WINDOWS_TEST(raw_stacks_are_those_of_their_window),
		WINDOWS_TEST(complete_window_waits_for_builds),
		WINDOWS_TEST(wait_for_builds_has_an_end),
		WINDOWS_TEST(next_rotation_ends_the_wait_for_builds),
		WINDOWS_TEST(a_window_ends_after_the_one_before_was_reported),
		WINDOWS_TEST(window_can_be_sealed_at_once),
		WINDOWS_TEST(window_carries_its_own_times),
		WINDOWS_TEST(a_window_begins_where_the_one_before_ends_on_both_clocks),
		WINDOWS_TEST(a_window_has_no_more_time_than_passed),
		WINDOWS_TEST(only_the_first_samples_of_a_window_say_when_it_began),
		WINDOWS_TEST(window_keeps_the_period_that_it_had),
		WINDOWS_TEST(last_window_ends_when_sampling_stops),
		WINDOWS_TEST(window_that_never_started_is_empty),
		WINDOWS_TEST(processes_that_ended_before_the_oldest_open_window_are_not_needed),
		WINDOWS_TEST(tap_has_samples_taken_while_it_is_open),
		WINDOWS_TEST(taps_are_of_one_process_or_of_all),
		WINDOWS_TEST(taps_are_limited_and_their_places_are_used_again),
		WINDOWS_TEST(tap_has_a_limit_of_its_own),
		WINDOWS_TEST(window_goes_on_where_it_cannot_be_timed),
		WINDOWS_TEST(closing_windows_can_be_destroyed),
		WINDOWS_TEST(complete_windows_can_be_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
