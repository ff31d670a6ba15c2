/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting on a real loop whose clock the test advances, for builds that the test counts down. */
#include "tests/unit/clock_ahead.h"

#include <string.h>

#include "agent/sampler/schedule/build_wait.h"
#include "symbolizer/builds/builds.h"

/* These take the place of symbolizer/builds. */
struct builds {
	unsigned int pending, improving;
	unsigned int hurried; /* calls */
};

unsigned int builds_pending(const struct builds *b)
{
	return b->pending;
}

struct builds_improving builds_improving(const struct builds *b)
{
	return (struct builds_improving){ .modules = b->improving };
}

void builds_hurry(struct builds *b)
{
	b->hurried++;
}

struct fixture {
	struct loop *loop;
	struct builds builds;
	struct build_wait wait;
	char retries[32]; /* a(ll) or s(ome) */
	unsigned int requested; /* builds that the next retry requests */
	unsigned int rounds; /* of ending a build */
	unsigned int silent; /* asks that a file does not answer */
	unsigned int asks;
};

static struct fixture fixture;

static void retry(void *context, bool all)
{
	struct fixture *f = context;
	size_t length = strlen(f->retries);

	assert_true(length + 1 < sizeof(f->retries));
	f->retries[length] = all ? 'a' : 's';
	f->builds.pending += f->requested;
	f->requested = 0;
}

/* The file's index is requested once it answers. */
static bool ask_postponed(void *context)
{
	struct fixture *f = context;

	f->asks++;
	if (!f->silent)
		return false;
	f->silent--;
	f->builds.pending += !f->silent;
	return f->silent;
}

static int setup(void **state)
{
	struct fixture *f = &fixture;

	*f = (struct fixture){ 0 };
	assert_int_equal(loop_create(&f->loop), 0);
	build_wait_init(&f->wait, &(struct build_wait_options){
					  .loop = f->loop,
					  .builds = &f->builds,
					  .retry = retry,
					  .ask_postponed = ask_postponed,
					  .context = f,
				  });
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_destroy(f->loop);
	return 0;
}

/* Each time the loop checks, one build ends, or one module gets its debug files. */
static void end_one(void *context)
{
	struct fixture *f = context;
	int timer;

	f->rounds++;
	if (f->builds.pending)
		f->builds.pending--;
	else if (f->builds.improving)
		f->builds.improving--;
	build_wait_progress(&f->wait);
	assert_int_equal(loop_timer(f->loop, 0, 0, end_one, f, &timer), 0);
}

static void begin_ending(struct fixture *f)
{
	int timer;

	assert_int_equal(loop_timer(f->loop, 0, 0, end_one, f, &timer), 0);
}

static void without_builds_there_is_no_wait(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(build_wait_run(&f->wait, SECOND), 0);
	assert_string_equal(f->retries, "a");
	assert_int_equal(f->builds.hurried, 0);
}

static void all_builds_are_waited_for_and_hurried(void **state)
{
	struct fixture *f = *state;

	f->builds.pending = 3;
	begin_ending(f);
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->builds.pending, 0);
	assert_int_equal(f->rounds, 3);
	/* At the beginning, and after each build but the last. */
	assert_int_equal(f->builds.hurried, 3);
	assert_string_equal(f->retries, "aaaa");
	assert_false(f->wait.waiting);
}

static void builds_requested_by_a_finished_walk_are_waited_for(void **state)
{
	struct fixture *f = *state;

	f->requested = 2;
	begin_ending(f);
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->rounds, 2);
	assert_int_equal(f->builds.pending, 0);
}

static void the_wait_ends_with_its_time(void **state)
{
	struct fixture *f = *state;

	f->builds.pending = 1;
	assert_int_equal(build_wait_run(&f->wait, 0), 0);
	assert_int_equal(f->builds.pending, 1);
	assert_false(f->wait.waiting);
	/* It can begin again. */
	begin_ending(f);
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->builds.pending, 0);
}

/* A wait that has ended does not stop the loop later. */
static void a_wait_that_has_ended_leaves_no_timer(void **state)
{
	struct fixture *f = *state;
	int timer;

	f->builds.pending = 1;
	begin_ending(f);
	assert_int_equal(build_wait_run(&f->wait, SECOND), 0);
	f->wait.expired = false;
	ahead_ns += 2 * SECOND;
	assert_int_equal(loop_timer(f->loop, SECOND, 0, stop_loop, f->loop, &timer), 0);
	pass(f->loop, 0);
	assert_false(f->wait.expired);
}

static void debug_files_are_waited_for_only_on_request(void **state)
{
	struct fixture *f = *state;

	f->builds.improving = 2;
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->builds.improving, 2);
	begin_ending(f);
	assert_int_equal(build_wait_run_debug(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->builds.improving, 0);
	f->builds.improving = 1;
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->builds.improving, 1);
}

/* Each time the loop's clock goes on, so that files are asked again. */
static void go_on(void *context)
{
	struct fixture *f = context;
	int timer;

	ahead_ns += SECOND;
	if (!f->silent && f->builds.pending)
		end_one(f);
	else
		assert_int_equal(loop_timer(f->loop, 0, 0, go_on, f, &timer), 0);
}

static void a_file_that_answers_late_is_asked_again_and_its_build_waited_for(void **state)
{
	struct fixture *f = *state;
	int timer;

	f->silent = 4;
	assert_int_equal(loop_timer(f->loop, 0, 0, go_on, f, &timer), 0);
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_int_equal(f->asks, 4);
	assert_int_equal(f->rounds, 1);
	assert_int_equal(f->builds.pending, 0);
}

static void a_file_that_never_answers_is_given_up(void **state)
{
	struct fixture *f = *state;
	int timer;

	f->silent = 1000;
	assert_int_equal(loop_timer(f->loop, 0, 0, go_on, f, &timer), 0);
	assert_int_equal(build_wait_run(&f->wait, 1000 * SECOND), 0);
	assert_in_range(f->asks, 10, 40);
	assert_false(f->wait.waiting);
}

/* Outside of a wait, the end of a build neither hurries the others nor stops the loop. */
static void builds_outside_of_a_wait_are_left_alone(void **state)
{
	struct fixture *f = *state;

	f->builds.pending = 1;
	build_wait_progress(&f->wait);
	f->builds.pending = 0;
	build_wait_progress(&f->wait);
	assert_string_equal(f->retries, "ss");
	assert_int_equal(f->builds.hurried, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_builds_there_is_no_wait),
		CASE(all_builds_are_waited_for_and_hurried),
		CASE(builds_requested_by_a_finished_walk_are_waited_for),
		CASE(the_wait_ends_with_its_time),
		CASE(a_wait_that_has_ended_leaves_no_timer),
		CASE(debug_files_are_waited_for_only_on_request),
		CASE(a_file_that_answers_late_is_asked_again_and_its_build_waited_for),
		CASE(a_file_that_never_answers_is_given_up),
		CASE(builds_outside_of_a_wait_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
