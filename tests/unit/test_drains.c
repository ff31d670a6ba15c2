/* SPDX-License-Identifier: Apache-2.0 */
/* Drains on a real loop whose clock the test advances; a pipe stands for the rings' descriptor. */
#include "tests/unit/clock_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "agent/sampler/schedule/drains.h"

enum { MS = 1000000 };

struct fixture {
	struct loop *loop;
	struct drains drains;
	int pipe[2];
	int64_t records; /* what the next drains return */
	bool news; /* what they say of what they read */
	bool much; /* and of what they left */
	unsigned int drains_run, followed; /* calls */
	bool ends_loop; /* the next drain does */
	bool in_order; /* `drained` was called after each drain, before anything else */
};

static int64_t drain(void *context)
{
	struct fixture *f = context;
	char byte;

	f->in_order &= f->drains_run == f->followed;
	f->drains_run++;
	(void)!read(f->pipe[0], &byte, 1);
	return f->records;
}

static void drained(void *context)
{
	struct fixture *f = context;

	f->followed++;
	f->in_order &= f->drains_run == f->followed;
	if (f->ends_loop)
		loop_stop(f->loop);
}

static bool saw_news(void *context)
{
	const struct fixture *f = context;

	return f->news;
}

static bool left_much(void *context)
{
	const struct fixture *f = context;

	return f->much;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(loop_create(&f->loop), 0);
	assert_int_equal(pipe2(f->pipe, O_NONBLOCK | O_CLOEXEC), 0);
	f->in_order = true;
	assert_int_equal(drains_init(&f->drains,
				 &(struct drains_options){
					 .loop = f->loop,
					 .fd = f->pipe[0],
					 .drain = drain,
					 .drained = drained,
					 .saw_news = saw_news,
					 .left_much = left_much,
					 .context = f,
				 }),
		0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_true(f->in_order);
	assert_int_equal(f->drains_run, f->followed);
	drains_deinit(&f->drains);
	loop_destroy(f->loop);
	close(f->pipe[0]);
	close(f->pipe[1]);
	free(f);
	return 0;
}

/* Counts the drains in a second that all intervals begin with, by 50 ms at a time. */
static unsigned int drains_in_a_second(struct fixture *f)
{
	unsigned int before;

	pass_to_multiple(f->loop, 500 * MS);
	before = f->drains_run;
	for (int i = 0; i < 20; i++)
		pass(f->loop, 50 * MS);
	return f->drains_run - before;
}

static void a_descriptor_that_is_ready_is_drained_at_once(void **state)
{
	struct fixture *f = *state;

	pass(f->loop, 0);
	assert_int_equal(f->drains_run, 0);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	/* Only the descriptor can end the loop. */
	loop_cancel(f->loop, f->drains.timer);
	f->ends_loop = true;
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->drains_run, 1);
}

static void a_timer_drains_rings_that_cause_no_wakeup(void **state)
{
	struct fixture *f = *state;

	f->records = 5;
	f->news = true;
	assert_in_range(drains_in_a_second(f), 9, 10);
}

static void samples_of_what_is_known_are_read_less_often(void **state)
{
	struct fixture *f = *state;

	f->records = 33;
	pass(f->loop, 100 * MS);
	assert_in_range(drains_in_a_second(f), 3, 4);
	f->news = true;
	pass(f->loop, 250 * MS);
	assert_in_range(drains_in_a_second(f), 9, 10);
}

static void few_samples_are_read_even_less_often(void **state)
{
	struct fixture *f = *state;

	pass(f->loop, 100 * MS);
	assert_in_range(drains_in_a_second(f), 1, 2);
	f->records = 32;
	assert_in_range(drains_in_a_second(f), 1, 2);
	f->records = 1;
	f->news = true;
	pass(f->loop, 500 * MS);
	assert_in_range(drains_in_a_second(f), 9, 10);
}

/* As before the first sample: a new program's index is requested in time for it. */
static void news_keep_drains_frequent_though_nothing_is_read(void **state)
{
	struct fixture *f = *state;

	f->news = true;
	assert_in_range(drains_in_a_second(f), 9, 10);
}

/* Their descriptor does not become ready again for them. */
static void what_is_too_new_to_be_read_does_not_wait_for_the_timer(void **state)
{
	struct fixture *f = *state;
	unsigned int before;

	f->much = true;
	drains_now(&f->drains);
	before = f->drains_run;
	f->much = false;
	pass(f->loop, 2 * MS);
	assert_int_equal(f->drains_run, before + 1);
	assert_in_range(drains_in_a_second(f), 1, 2);
}

static void rings_that_cannot_be_read_are_tried_again(void **state)
{
	struct fixture *f = *state;

	f->records = -ENOMEM;
	assert_in_range(drains_in_a_second(f), 9, 10);
}

static void a_drain_on_demand_is_like_the_others(void **state)
{
	struct fixture *f = *state;

	drains_now(&f->drains);
	assert_int_equal(f->drains_run, 1);
	assert_in_range(drains_in_a_second(f), 1, 2);
}

static void ignore_fd(void *context, int fd, uint32_t events)
{
	(void)context;
	(void)fd;
	(void)events;
}

static void after_the_end_nothing_is_drained(void **state)
{
	struct fixture *f = *state;

	drains_deinit(&f->drains);
	drains_deinit(&f->drains);
	assert_int_equal(write(f->pipe[1], "x", 1), 1);
	assert_int_equal(drains_in_a_second(f), 0);
	/* The loop no longer has the descriptor. */
	assert_int_equal(loop_add(f->loop, f->pipe[0], EPOLLIN, ignore_fd, NULL), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_descriptor_that_is_ready_is_drained_at_once),
		CASE(a_timer_drains_rings_that_cause_no_wakeup),
		CASE(samples_of_what_is_known_are_read_less_often),
		CASE(few_samples_are_read_even_less_often),
		CASE(news_keep_drains_frequent_though_nothing_is_read),
		CASE(what_is_too_new_to_be_read_does_not_wait_for_the_timer),
		CASE(rings_that_cannot_be_read_are_tried_again),
		CASE(a_drain_on_demand_is_like_the_others),
		CASE(after_the_end_nothing_is_drained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
