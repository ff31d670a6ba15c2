/* SPDX-License-Identifier: Apache-2.0 */
/* How many builds may wait and run with few descriptors. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/build_share.h"
#include "base/descriptors.h"

static void an_ordinary_limit_leaves_room_for_all(void **state)
{
	const struct build_share share = build_share_of(1 << 20),
				 unlimited = build_share_of(UINT_MAX);

	(void)state;
	assert_int_equal(share.children, 2);
	assert_int_equal(share.waiting, 1024);
	assert_false(share.is_small);
	assert_int_equal(unlimited.waiting, 1024);
}

/* Even then builds go on, one by one. */
static void with_next_to_nothing_one_build_waits_and_one_runs(void **state)
{
	(void)state;
	for (unsigned int left = 0; left < 20; left++) {
		const struct build_share share = build_share_of(left);

		assert_int_equal(share.children, 1);
		assert_int_equal(share.waiting, 1);
		assert_true(share.is_small);
	}
}

/* What waits never takes what is needed for a build to start: files, root, socket, index. */
static void what_waits_leaves_room_for_what_runs(void **state)
{
	(void)state;
	for (unsigned int left = 40; left < 5000; left++) {
		const struct build_share share = build_share_of(left);

		assert_true(share.waiting * 2 + share.children * 8 <= left);
		assert_int_equal(share.is_small, share.waiting < 64);
	}
	assert_int_equal(build_share_of(100).children, 2);
}

static void what_the_agent_opens_itself_is_left_out(void **state)
{
	(void)state;
	assert_true(build_share_of(build_share_left_of(64, 2)).is_small);
	assert_false(build_share_of(build_share_left_of(1024, 8)).is_small);
	assert_int_equal(build_share_left_of(64, 4096), 0);
	assert_true(build_share_left_of(1024, 8) > build_share_left_of(1024, 16));
}

static void descriptors_are_counted(void **state)
{
	struct rlimit before, low;
	unsigned int left;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){ 200, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(descriptors_limit(), 200);
	left = descriptors_left();
	assert_true(left > 0 && left < 200);
	fd = dup(0);
	assert_true(fd >= 0);
	assert_int_equal(descriptors_left(), left - 1);
	close(fd);
	descriptors_raise_limit();
	assert_true(descriptors_limit() >= 200);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(low.rlim_cur, before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* With no descriptor left there is none, rather than an error. */
static void none_left_is_no_error(void **state)
{
	struct rlimit before, low;
	unsigned int left;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){ 3, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	left = descriptors_left();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_limit_leaves_room_for_all),
		cmocka_unit_test(with_next_to_nothing_one_build_waits_and_one_runs),
		cmocka_unit_test(what_waits_leaves_room_for_what_runs),
		cmocka_unit_test(what_the_agent_opens_itself_is_left_out),
		cmocka_unit_test(descriptors_are_counted),
		cmocka_unit_test(none_left_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
