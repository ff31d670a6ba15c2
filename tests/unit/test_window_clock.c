/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/window_clock.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/timex.h>
#include <unistd.h>
#include <cmocka.h>

static const uint64_t SECOND = 1000000000;

static void windows_end_at_multiples_of_their_length(void **state)
{
	(void)state;
	assert_int_equal(window_clock_left_ns(1000 * SECOND, 10 * SECOND), 10 * SECOND);
	assert_int_equal(window_clock_left_ns(1004 * SECOND, 10 * SECOND), 6 * SECOND);
	assert_int_equal(window_clock_left_ns(1009 * SECOND, 10 * SECOND), 1 * SECOND);
	assert_int_equal(window_clock_left_ns(3601 * SECOND, 3600 * SECOND), 3599 * SECOND);
}

static void a_short_remainder_is_added_to_the_next_window(void **state)
{
	(void)state;
	assert_int_equal(window_clock_left_ns(1009 * SECOND + 1, 10 * SECOND), 11 * SECOND - 1);
	assert_int_equal(window_clock_left_ns(999999999, SECOND), SECOND + 1);
}

/* Whatever the time is, a window lasts between 0.1 and 1.1 of its length. */
static void no_clock_time_makes_a_window_endless(void **state)
{
	const uint64_t times[] = { 0, 1, SECOND, UINT64_MAX / 2, UINT64_MAX - SECOND, UINT64_MAX };
	const uint64_t lengths[] = { SECOND, 7 * SECOND, 10 * SECOND, 3600 * SECOND };

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
			uint64_t left = window_clock_left_ns(times[i], lengths[j]);

			assert_true(left >= lengths[j] / 10);
			assert_true(left <= lengths[j] + lengths[j] / 10);
		}
	}
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Shifts the clock by NS nanoseconds. */
static int shift_clock(long ns)
{
	struct timex t = { .modes = ADJ_SETOFFSET | ADJ_NANO };

	t.time.tv_sec = ns < 0 ? -1 : 0;
	t.time.tv_usec = ns < 0 ? 1000000000 + ns : ns;
	return adjtimex(&t) < 0 ? -errno : 0;
}

/* Even a shift by a nanosecond notifies the watchers. */
static void a_clock_that_is_set_is_noticed_each_time(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(window_clock_watch(&fd), 0);
	assert_false(is_readable(fd));
	for (int i = 0; i < 4; i++) {
		if (shift_clock(i % 2 ? -1 : 1) == -EPERM) {
			close(fd);
			skip();
		}
		assert_true(is_readable(fd));
		assert_int_equal(window_clock_again(fd), 0);
		assert_false(is_readable(fd));
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_end_at_multiples_of_their_length),
		cmocka_unit_test(a_short_remainder_is_added_to_the_next_window),
		cmocka_unit_test(no_clock_time_makes_a_window_endless),
		cmocka_unit_test(a_clock_that_is_set_is_noticed_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
