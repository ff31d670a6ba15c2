/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the turns of a loop take. The clock moves by hours, so that the time that the tests
 * really take makes no difference.
 */
#include "tests/unit/clock_ahead.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "agent/loop/turn_stats.h"
#include "base/cleanup.h"
#include "base/clock.h"

static const uint64_t HOUR = 3600 * UINT64_C(1000000000);
static const uint64_t MS = 1000000;

struct fixture {
	struct loop *loop;
	unsigned int turns;
	struct loop_turn last;
	struct turn_stats stats;
	char text[4096]; /* what was logged */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(loop_create(&f->loop), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_destroy(f->loop);
	free(f);
	return 0;
}

static uint64_t hours(uint64_t ns)
{
	return ns / HOUR;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void note_turn(void *context, const struct loop_turn *turn)
{
	struct fixture *f = context;

	f->turns++;
	f->last = *turn;
}

static void work_in_steps(void *context)
{
	struct fixture *f = context;

	ahead_ns += HOUR;
	loop_step(f->loop, "second");
	ahead_ns += 5 * HOUR;
	loop_step(f->loop, "third");
	ahead_ns += 3 * HOUR;
	loop_stop(f->loop);
}

static void a_turn_is_reported_with_its_longest_step(void **state)
{
	struct fixture *f = *state;
	int timer;

	loop_watch_turns(f->loop, note_turn, f);
	assert_int_equal(loop_timer(f->loop, 0, 0, work_in_steps, f, &timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->turns, 1);
	assert_string_equal(f->last.step, "second");
	assert_int_equal(hours(f->last.step_ns), 5);
	assert_int_equal(hours(f->last.duration_ns), 9);
}

static void work_unnamed(void *context)
{
	struct fixture *f = context;

	ahead_ns += HOUR;
	loop_stop(f->loop);
}

static void work_on_fd(void *context, int fd, uint32_t events)
{
	struct fixture *f = context;

	(void)fd;
	(void)events;
	ahead_ns += 2 * HOUR;
	loop_stop(f->loop);
}

static void what_names_no_step_is_named_by_its_kind(void **state)
{
	struct fixture *f = *state;
	int timer, ends[2];

	loop_watch_turns(f->loop, note_turn, f);
	assert_int_equal(loop_timer(f->loop, 0, 0, work_unnamed, f, &timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_string_equal(f->last.step, "timer");
	assert_int_equal(hours(f->last.step_ns), 1);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(loop_add(f->loop, ends[1], EPOLLOUT, work_on_fd, f), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_string_equal(f->last.step, "descriptor");
	assert_int_equal(hours(f->last.step_ns), 2);
	close(ends[0]);
	close(ends[1]);
}

/* What passes while the loop waits, or between two runs, belongs to no turn. */
static void waiting_is_no_part_of_a_turn(void **state)
{
	struct fixture *f = *state;
	int timer;

	loop_watch_turns(f->loop, note_turn, f);
	pass(f->loop, 7 * HOUR);
	ahead_ns += 7 * HOUR;
	assert_int_equal(loop_timer(f->loop, 0, 0, work_unnamed, f, &timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(hours(f->last.duration_ns), 1);
}

static void nobody_is_told_who_stopped_to_watch(void **state)
{
	struct fixture *f = *state;

	loop_watch_turns(f->loop, note_turn, f);
	loop_watch_turns(f->loop, NULL, NULL);
	pass(f->loop, HOUR);
	assert_int_equal(f->turns, 0);
}

/* ---- the sums ------------------------------------------------------------------------------- */

static const char *add(struct fixture *f, uint64_t duration_ns, const char *step)
{
	const struct loop_turn turn = { duration_ns, step, duration_ns };
	autoclose int log_fd = memfd_create("log", MFD_CLOEXEC);
	autoclose int stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	ssize_t length;

	assert_true(log_fd >= 0 && stderr_fd >= 0);
	fflush(stderr);
	assert_true(dup3(log_fd, STDERR_FILENO, O_CLOEXEC) >= 0);
	turn_stats_add(&f->stats, &turn);
	fflush(stderr);
	assert_true(dup3(stderr_fd, STDERR_FILENO, 0) >= 0);
	length = pread(log_fd, f->text, sizeof(f->text) - 1, 0);
	assert_true(length >= 0);
	f->text[length] = 0;
	return f->text;
}

static void turns_are_counted_by_their_length(void **state)
{
	struct fixture *f = *state;

	(void)add(f, MS, "a");
	(void)add(f, MS + 1, "a");
	(void)add(f, 400 * MS, "a");
	(void)add(f, 10 * SECOND, "a");
	(void)add(f, 11 * SECOND, "a");
	assert_int_equal(f->stats.buckets[0], 1);
	assert_int_equal(f->stats.buckets[1], 1);
	assert_int_equal(f->stats.buckets[8], 1);
	assert_int_equal(f->stats.buckets[TURN_STATS_BOUNDS - 1], 1);
	assert_int_equal(f->stats.buckets[TURN_STATS_BOUNDS], 1);
	assert_int_equal(f->stats.sum_ns, 21 * SECOND + 402 * MS + 1);
}

static void a_second_is_not_long_yet(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(add(f, SECOND, "rings"), "");
	assert_int_equal(f->stats.last_long.real_ns, 0);
	assert_true(f->stats.longest.real_ns > 0);
	assert_int_equal(f->stats.longest.turn.duration_ns, SECOND);
}

static void the_last_and_the_longest_are_remembered(void **state)
{
	struct fixture *f = *state;

	(void)add(f, 3 * SECOND, "rings");
	(void)add(f, 7 * SECOND, "http");
	(void)add(f, 2 * SECOND, "builds");
	assert_int_equal(f->stats.last_long.turn.duration_ns, 2 * SECOND);
	assert_string_equal(f->stats.last_long.turn.step, "builds");
	assert_int_equal(f->stats.longest.turn.duration_ns, 7 * SECOND);
	assert_string_equal(f->stats.longest.turn.step, "http");
	assert_true(f->stats.longest.real_ns > 0);
}

static void long_turns_are_logged_once_a_minute(void **state)
{
	struct fixture *f = *state;

	assert_non_null(strstr(add(f, 1500 * MS, "rings"), "a turn of the event loop took long"));
	assert_non_null(
		strstr(f->text, "seconds=1.500 step=\"rings\" step_seconds=1.500 turns=1\n"));
	assert_string_equal(add(f, 9 * SECOND, "http"), "");
	ahead_ns += 61 * SECOND;
	assert_non_null(strstr(add(f, 2 * SECOND, "builds"), "seconds=2.000 step=\"builds\""));
	assert_non_null(strstr(f->text, "turns=2\n"));
}

static void a_watched_loop_is_summed_up(void **state)
{
	struct fixture *f = *state;
	uint64_t count = 0;

	turn_stats_watch(&f->stats, f->loop);
	pass(f->loop, 0);
	pass(f->loop, 0);
	for (size_t i = 0; i <= TURN_STATS_BOUNDS; i++)
		count += f->stats.buckets[i];
	assert_int_equal(count, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_turn_is_reported_with_its_longest_step),
		CASE(what_names_no_step_is_named_by_its_kind),
		CASE(waiting_is_no_part_of_a_turn),
		CASE(nobody_is_told_who_stopped_to_watch),
		CASE(turns_are_counted_by_their_length),
		CASE(a_second_is_not_long_yet),
		CASE(the_last_and_the_longest_are_remembered),
		CASE(long_turns_are_logged_once_a_minute),
		CASE(a_watched_loop_is_summed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
