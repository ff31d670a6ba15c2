/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/loop/loop.h"
#include "agent/loop/timers.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MS = 1000000 };

static const uint64_t HOUR_NS = UINT64_C(3600000000000);

struct fixture {
	struct loop *loop;
	int pipe[2], other_pipe[2];
	unsigned int fd_calls, other_calls, timer_calls, signal_calls;
	unsigned int stop_after; /* timer calls */
	int last_signal, timer;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .stop_after = 1 };
	assert_int_equal(loop_create(&f.loop), 0);
	assert_int_equal(pipe(f.pipe), 0);
	assert_int_equal(pipe(f.other_pipe), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_destroy(f->loop);
	for (int i = 0; i < 2; i++) {
		close(f->pipe[i]);
		close(f->other_pipe[i]);
	}
	return 0;
}

static void read_and_stop(void *context, int fd, uint32_t events)
{
	struct fixture *f = context;
	char byte;

	assert_true(events & EPOLLIN);
	assert_int_equal(read(fd, &byte, 1), 1);
	f->fd_calls++;
	loop_stop(f->loop);
}

static void count_other(void *context, int fd, uint32_t events)
{
	struct fixture *f = context;

	(void)fd;
	(void)events;
	f->other_calls++;
}

static void timer_fired(void *context)
{
	struct fixture *f = context;

	if (++f->timer_calls >= f->stop_after)
		loop_stop(f->loop);
}

static void signal_came(void *context, int signal)
{
	struct fixture *f = context;

	f->signal_calls++;
	f->last_signal = signal;
	loop_stop(f->loop);
}

static void readable_fd_is_called_with_its_context(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->fd_calls, 1);
}

static void second_callback_for_an_fd_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, count_other, f), -EEXIST);
}

static void loop_may_run_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(write(f->pipe[1], "x", 1), 1);
		assert_int_equal(loop_run(f->loop), 0);
	}
	assert_int_equal(f->fd_calls, 2);
}

static void removed_fd_is_not_called(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add(f->loop, f->other_pipe[0], EPOLLIN, count_other, f), 0);
	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	loop_remove(f->loop, f->other_pipe[0]);
	assert_int_equal(write(f->other_pipe[1], "x", 1), 1);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->other_calls, 0);
}

/* Removes both, puts a third fd where one of them was. */
static void remove_both(void *context, int fd, uint32_t events)
{
	struct fixture *f = context;

	(void)fd;
	(void)events;
	f->fd_calls++;
	loop_remove(f->loop, f->pipe[0]);
	loop_remove(f->loop, f->other_pipe[0]);
	assert_int_equal(loop_add(f->loop, f->pipe[1], EPOLLERR, count_other, f), 0);
	assert_int_equal(loop_timer(f->loop, 0, 0, timer_fired, f, &f->timer), 0);
}

static void event_of_a_removed_fd_is_dropped(void **state)
{
	struct fixture *f = *state;

	/* Both are readable in the same iteration; whichever is called first removes the other. */
	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, remove_both, f), 0);
	assert_int_equal(loop_add(f->loop, f->other_pipe[0], EPOLLIN, remove_both, f), 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_int_equal(write(f->other_pipe[1], "x", 1), 1);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->fd_calls, 1);
	assert_int_equal(f->other_calls, 0);
}

static void one_shot_timer_fires_once(void **state)
{
	struct fixture *f = *state;
	uint64_t start = clock_monotonic_ns();
	int later;

	f->stop_after = 2;
	assert_int_equal(loop_timer(f->loop, 1 * MS, 0, timer_fired, f, &f->timer), 0);
	assert_int_equal(loop_timer(f->loop, 20 * MS, 0, timer_fired, f, &later), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 2);
	assert_true(clock_monotonic_ns() - start >= 20 * MS);
}

static void periodic_timer_fires_again(void **state)
{
	struct fixture *f = *state;

	f->stop_after = 3;
	assert_int_equal(loop_timer(f->loop, 0, MS, timer_fired, f, &f->timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 3);
	loop_cancel(f->loop, f->timer);
}

static void cancelled_timer_does_not_fire(void **state)
{
	struct fixture *f = *state;
	int other;

	f->stop_after = 1;
	assert_int_equal(loop_timer(f->loop, 0, MS, timer_fired, f, &other), 0);
	loop_cancel(f->loop, other);
	assert_int_equal(loop_timer(f->loop, 5 * MS, 0, timer_fired, f, &f->timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 1);
}

static void retimed_timer_keeps_its_new_interval(void **state)
{
	struct fixture *f = *state;

	f->stop_after = 3;
	assert_int_equal(loop_timer(f->loop, HOUR_NS, HOUR_NS, timer_fired, f, &f->timer), 0);
	assert_int_equal(loop_retime(f->loop, f->timer, MS, 0), -EINVAL);
	assert_int_equal(loop_retime(f->loop, f->timer + 1, MS, MS), -ENOENT);
	assert_int_equal(loop_retime(f->loop, f->timer, MS, MS), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 3);
	loop_cancel(f->loop, f->timer);
}

static void timers_at_multiples_are_due_together(void **state)
{
	const struct timer hourly = { .interval_ns = HOUR_NS, .fn = timer_fired };
	const struct timer often = { .interval_ns = HOUR_NS / 4, .fn = timer_fired };
	uint64_t before_ns = clock_monotonic_ns();
	autocall(timers_deinit) struct timers timers;
	uint32_t name, other;

	(void)state;
	assert_int_equal(timers_init(&timers), 0);
	assert_int_equal(timers_add(&timers, &hourly, LOOP_NEXT_MULTIPLE, &name), 0);
	assert_int_equal(timers.all[0].due_ns % HOUR_NS, 0);
	assert_true(timers.all[0].due_ns > before_ns);
	assert_int_equal(timers_add(&timers, &often, 5 * HOUR_NS, &other), 0);
	assert_int_equal(timers_retime(&timers, other, LOOP_NEXT_MULTIPLE, HOUR_NS / 4), 0);
	assert_int_equal(timers.all[1].due_ns % (HOUR_NS / 4), 0);
	assert_true(timers.all[1].due_ns > before_ns);
	assert_true(timers.all[1].due_ns - before_ns < HOUR_NS);
}

/* Order must hold although removal moves the last timer into the freed slot. */
static void timers_of_equal_time_fire_in_order_of_creation(void **state)
{
	const struct timer one_shot = { .fn = timer_fired };
	autocall(timers_deinit) struct timers timers;
	struct timer due;
	uint32_t name;

	(void)state;
	assert_int_equal(timers_init(&timers), 0);
	for (uint32_t i = 1; i <= 4; i++) {
		assert_int_equal(timers_add(&timers, &one_shot, 0, &name), 0);
		assert_int_equal(name, i);
		timers.all[i - 1].due_ns = i == 1 ? 1 : 2;
	}
	for (uint32_t i = 1; i <= 4; i++) {
		assert_int_equal(timers_due_ns(&timers), i == 1 ? 1 : 2);
		assert_true(timers_take_due(&timers, 2, &due));
		assert_int_equal(due.name, i);
	}
	assert_int_equal(timers_due_ns(&timers), UINT64_MAX);
	assert_false(timers_take_due(&timers, 2, &due));
}

/* A timer that has fired is gone; its number must not refer to the one made after it. */
static void fired_timers_name_is_not_reused(void **state)
{
	struct fixture *f = *state;
	int fired;

	assert_int_equal(loop_timer(f->loop, 0, 0, timer_fired, f, &fired), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(loop_timer(f->loop, 0, 0, timer_fired, f, &f->timer), 0);
	loop_cancel(f->loop, fired);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 2);
}

/* A timer may end a wait for descriptors, so it must not need one. */
static void timers_take_no_descriptor(void **state)
{
	struct fixture *f = *state;
	struct rlimit before, none;
	int periodic, errs[2];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	errs[0] = loop_timer(f->loop, 0, 0, timer_fired, f, &f->timer);
	errs[1] = loop_timer(f->loop, 0, MS, timer_fired, f, &periodic);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(errs[0], 0);
	assert_int_equal(errs[1], 0);
	f->stop_after = 3;
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 3);
}

static void outlast_the_interval(void *context)
{
	const struct timespec longer = { .tv_nsec = 2 * MS };

	timer_fired(context);
	nanosleep(&longer, NULL);
}

/* A timer that is always due again does not starve the others or the descriptors. */
static void slow_timer_does_not_starve_others(void **state)
{
	struct fixture *f = *state;
	int other;

	f->stop_after = UINT_MAX;
	assert_int_equal(loop_timer(f->loop, 0, MS, outlast_the_interval, f, &f->timer), 0);
	assert_int_equal(loop_timer(f->loop, 0, MS, outlast_the_interval, f, &other), 0);
	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->fd_calls, 1);
}

static void watch_again(void *context)
{
	struct fixture *f = context;

	loop_set_events(f->loop, f->pipe[0], EPOLLIN);
}

static void paused_fd_is_called_when_it_is_watched_again(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	loop_set_events(f->loop, f->pipe[0], 0);
	assert_int_equal(loop_timer(f->loop, 0, 0, timer_fired, f, &f->timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->fd_calls, 0);
	assert_int_equal(loop_timer(f->loop, 0, 0, watch_again, f, &f->timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->fd_calls, 1);
	/* One that is not there is no error. */
	loop_set_events(f->loop, f->other_pipe[0], EPOLLIN);
}

static void cancel_itself(void *context)
{
	struct fixture *f = context;

	f->timer_calls++;
	loop_cancel(f->loop, f->timer);
	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, read_and_stop, f), 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
}

static void timer_may_cancel_itself(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_timer(f->loop, 0, MS, cancel_itself, f, &f->timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->timer_calls, 1);
}

static void signal_is_delivered_on_the_loop(void **state)
{
	struct fixture *f = *state;
	sigset_t signals, before;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(loop_signals(f->loop, &signals, signal_came, f), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(f->signal_calls, 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->signal_calls, 1);
	assert_int_equal(f->last_signal, SIGUSR1);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void destroy_accepts_null(void **state)
{
	(void)state;
	loop_destroy(NULL);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(readable_fd_is_called_with_its_context),
		LOOP_TEST(second_callback_for_an_fd_is_refused),
		LOOP_TEST(loop_may_run_again),
		LOOP_TEST(removed_fd_is_not_called),
		LOOP_TEST(event_of_a_removed_fd_is_dropped),
		LOOP_TEST(one_shot_timer_fires_once),
		LOOP_TEST(periodic_timer_fires_again),
		LOOP_TEST(retimed_timer_keeps_its_new_interval),
		LOOP_TEST(cancelled_timer_does_not_fire),
		cmocka_unit_test(timers_at_multiples_are_due_together),
		cmocka_unit_test(timers_of_equal_time_fire_in_order_of_creation),
		LOOP_TEST(fired_timers_name_is_not_reused),
		LOOP_TEST(timer_may_cancel_itself),
		LOOP_TEST(timers_take_no_descriptor),
		LOOP_TEST(slow_timer_does_not_starve_others),
		LOOP_TEST(paused_fd_is_called_when_it_is_watched_again),
		LOOP_TEST(signal_is_delivered_on_the_loop),
		cmocka_unit_test(destroy_accepts_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
