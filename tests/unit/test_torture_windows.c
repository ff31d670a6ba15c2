/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/windows while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include "agent/loop/loop.h"
#include "agent/loop/timers.h"
#include "agent/sampler/windows/windows.h"

enum { LIMIT_BYTES = 1 << 20 };

struct owner {
	struct loop *loop;
	struct windows *windows;
	uint32_t number;
	unsigned int sealed;
	struct windows_tap *tap;
};

static void nothing(void *context)
{
	(void)context;
}

static uint32_t on_next_number(void *context)
{
	struct owner *o = context;

	return ++o->number;
}

static bool on_is_building(void *context)
{
	(void)context;
	return false;
}

static void on_sealing(void *context, uint32_t number)
{
	(void)context;
	(void)number;
}

static void on_sealed(void *context, const struct sealed_window *window)
{
	struct owner *o = context;

	assert_int_equal(window->number, ++o->sealed);
}

static void on_settled(void *context, uint64_t open_ns)
{
	(void)context;
	(void)open_ns;
}

static int create(void *context)
{
	struct owner *o = context;

	return windows_create(
		&(struct windows_options){
			.loop = o->loop,
			.limit_bytes = LIMIT_BYTES,
			.handlers = {
				.drain = nothing,
				.next_number = on_next_number,
				.is_building = on_is_building,
				.completed = nothing,
				.sealing = on_sealing,
				.sealed = on_sealed,
				.released = nothing,
				.settled = on_settled,
				.context = o,
			},
		},
		&o->windows);
}

static void begin_loop(void *context)
{
	struct owner *o = context;

	*o = (struct owner){ 0 };
	assert_int_equal(loop_create(&o->loop), 0);
}

static void begin_windows(void *context)
{
	begin_loop(context);
	assert_int_equal(create(context), 0);
}

static void nothing_is_due(void *context)
{
	(void)context;
}

/* The loop's reserve is used up: another timer needs memory. */
static void begin_windows_without_timers(void *context)
{
	const struct owner *o = context;
	int timer;

	begin_windows(context);
	for (int i = 0; i < TIMERS_RESERVED; i++)
		assert_int_equal(
			loop_timer(o->loop, UINT64_MAX / 4, 0, nothing_is_due, NULL, &timer), 0);
}

static void end_windows(struct owner *o)
{
	windows_destroy(o->windows);
	loop_destroy(o->loop);
}

static void end_of_create(void *context, int result)
{
	struct owner *o = context;

	assert_int_equal(o->windows != NULL, result == 0);
	end_windows(o);
}

static void windows_are_created_whole_or_not_at_all(void **state)
{
	struct owner o;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin_loop, .operation = create, .end = end_of_create, .context = &o });
}

static int rotate(void *context)
{
	struct owner *o = context;

	return windows_rotate(o->windows);
}

/* The window goes on, and can be ended once there is memory. */
static void end_of_rotate(void *context, int result)
{
	struct owner *o = context;

	assert_int_equal(windows_number(o->windows, 0), result ? 1 : 2);
	assert_int_equal(windows_are_busy(o->windows), result == 0);
	if (result)
		assert_int_equal(windows_rotate(o->windows), 0);
	windows_seal_previous(o->windows);
	assert_int_equal(o->sealed, 1);
	assert_int_equal(windows_number(o->windows, 0), 2);
	end_windows(o);
}

static void window_that_cannot_be_ended_goes_on(void **state)
{
	struct owner o;

	(void)state;
	torture_run(&(struct torture){ .begin = begin_windows_without_timers,
		.operation = rotate,
		.end = end_of_rotate,
		.context = &o,
		.optional = "timerfd_settime" });
}

static int open_tap(void *context)
{
	struct owner *o = context;

	return windows_tap_open(o->windows, 0, &o->tap);
}

static void end_of_tap(void *context, int result)
{
	struct owner *o = context;
	size_t i = 0;

	assert_int_equal(o->tap != NULL, result == 0);
	assert_int_equal(windows_next_tap(o->windows, 7, &i) != NULL, result == 0);
	if (o->tap)
		windows_tap_close(o->tap);
	assert_int_equal(windows_tap_open(o->windows, 0, &o->tap), 0);
	end_windows(o);
}

static void tap_that_cannot_be_opened_takes_no_place(void **state)
{
	struct owner o;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin_windows, .operation = open_tap, .end = end_of_tap, .context = &o });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(windows_are_created_whole_or_not_at_all),
		torture_test(window_that_cannot_be_ended_goes_on),
		torture_test(tap_that_cannot_be_opened_takes_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
