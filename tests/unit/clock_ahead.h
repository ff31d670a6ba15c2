/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A clock that the test advances, so that timers of a real loop are due when it says. Include in
 * one file of a test program: it takes the place of two functions of libc.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/loop/loop.h"
#include "base/clock.h"

static const uint64_t SECOND = 1000000000;

static uint64_t ahead_ns; /* of the system's clocks */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int err = (int)syscall(SYS_clock_gettime, clock, time);
	uint64_t ns = (uint64_t)time->tv_nsec + ahead_ns;

	time->tv_sec += (time_t)(ns / SECOND);
	time->tv_nsec = (long)(ns % SECOND);
	return err;
}

/* The loop looks at once whether a timer is due. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	const struct itimerspec at_once = { .it_value.tv_nsec = 1 }, never = { 0 };
	bool set = when->it_value.tv_sec || when->it_value.tv_nsec;

	(void)flags;
	return (int)syscall(SYS_timerfd_settime, fd, 0, set ? &at_once : &never, before);
}

static void stop_loop(void *context)
{
	loop_stop(context);
}

/* Runs the timers that are due within NS. */
static inline void pass(struct loop *loop, uint64_t ns)
{
	int timer;

	ahead_ns += ns;
	assert_int_equal(loop_timer(loop, 0, 0, stop_loop, loop, &timer), 0);
	assert_int_equal(loop_run(loop), 0);
	loop_cancel(loop, timer);
}

/* Up to the next multiple of NS, where timers with LOOP_NEXT_MULTIPLE are due. */
static inline void pass_to_multiple(struct loop *loop, uint64_t ns)
{
	pass(loop, ns - clock_monotonic_ns() % ns);
}
