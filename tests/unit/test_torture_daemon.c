/* SPDX-License-Identifier: Apache-2.0 */
/* agent/daemon while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include "agent/daemon/daemon_internal.h"

struct counting {
	unsigned int before, counted;
};

static void begin_counting(void *context)
{
	struct counting *c = context;

	c->before = daemon_open_fds();
	assert_int_not_equal(c->before, 0);
}

static int count_open_fds(void *context)
{
	struct counting *c = context;

	c->counted = daemon_open_fds();
	return 0;
}

static void all_or_none_are_counted(void *context, int result)
{
	const struct counting *c = context;

	(void)result;
	if (!torture_failed() || c->counted != 0)
		assert_int_equal(c->counted, c->before);
}

static void open_fds_are_all_counted_or_not_known(void **state)
{
	struct counting c;
	struct torture t = { .begin = begin_counting,
		.operation = count_open_fds,
		.end = all_or_none_are_counted,
		.context = &c,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(open_fds_are_all_counted_or_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
