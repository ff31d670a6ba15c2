/* SPDX-License-Identifier: Apache-2.0 */
/* Upkeep on a real loop whose clock the test advances. Each job writes its letter. */
#include "tests/unit/clock_ahead.h"

#include <string.h>

#include "agent/sampler/schedule/upkeep.h"
#include "base/cleanup.h"

struct fixture {
	struct loop *loop;
	struct upkeep upkeep;
	char calls[32];
};

static void note(struct fixture *f, char letter)
{
	size_t length = strlen(f->calls);

	assert_true(length + 1 < sizeof(f->calls));
	f->calls[length] = letter;
}

static void always(void *context)
{
	note(context, 'a');
}

static void sampling(void *context)
{
	note(context, 's');
}

static void once(void *context)
{
	note(context, 'o');
}

static void last(void *context)
{
	note(context, 'l');
}

static const struct upkeep_job jobs[] = {
	{ always, UPKEEP_ALWAYS, "always" },
	{ once, UPKEEP_ONCE, "once" },
	{ sampling, UPKEEP_SAMPLING, "sampling" },
	{ last, UPKEEP_ALWAYS, "last" },
};

static struct fixture fixture;

static int setup(void **state)
{
	struct fixture *f = &fixture;

	*f = (struct fixture){ 0 };
	assert_int_equal(loop_create(&f->loop), 0);
	assert_int_equal(upkeep_init(&f->upkeep,
				 &(struct upkeep_options){
					 .loop = f->loop,
					 .jobs = jobs,
					 .count = ARRAY_SIZE(jobs),
					 .context = f,
				 }),
		0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	upkeep_deinit(&f->upkeep);
	loop_destroy(f->loop);
	return 0;
}

static void assert_calls(struct fixture *f, const char *calls)
{
	assert_string_equal(f->calls, calls);
	memset(f->calls, 0, sizeof(f->calls));
}

static void assert_second(struct fixture *f, const char *calls)
{
	pass(f->loop, SECOND);
	assert_calls(f, calls);
}

static void jobs_run_each_second_in_their_order(void **state)
{
	struct fixture *f = *state;

	pass_to_multiple(f->loop, SECOND);
	assert_calls(f, "al");
	pass(f->loop, SECOND / 2);
	assert_calls(f, "");
	pass(f->loop, SECOND / 2);
	assert_calls(f, "al");
	assert_second(f, "al");
}

static void some_jobs_run_only_while_sampling_runs(void **state)
{
	struct fixture *f = *state;

	assert_second(f, "al");
	upkeep_set_sampling(&f->upkeep, true);
	assert_second(f, "aosl");
	assert_second(f, "asl");
	upkeep_set_sampling(&f->upkeep, false);
	assert_second(f, "al");
}

static void one_time_jobs_do_not_run_at_the_next_start(void **state)
{
	struct fixture *f = *state;

	upkeep_set_sampling(&f->upkeep, true);
	assert_second(f, "aosl");
	upkeep_set_sampling(&f->upkeep, false);
	assert_second(f, "al");
	upkeep_set_sampling(&f->upkeep, true);
	assert_second(f, "asl");
}

static void after_the_end_no_job_runs(void **state)
{
	struct fixture *f = *state;

	upkeep_deinit(&f->upkeep);
	assert_second(f, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(jobs_run_each_second_in_their_order),
		CASE(some_jobs_run_only_while_sampling_runs),
		CASE(one_time_jobs_do_not_run_at_the_next_start),
		CASE(after_the_end_no_job_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
