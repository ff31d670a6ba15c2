/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/builds/builds_internal.h"

static struct build new_build(void)
{
	return (struct build){
		.elf_fd = -1,
		.first_fd = -1,
		.debug = { .child = { .pid = -1, .result_fd = -1 }, .fd = -1 },
		.sandbox = { .pid = -1, .result_fd = -1 },
	};
}

/* What sandbox_start_files() and sandbox_finish() do to a build; the process is never signalled. */
static void set_child(struct build *build, bool there)
{
	build->sandbox.pid = there ? 1 : -1;
}

static bool is_first(const struct build *build, const void *context)
{
	(void)context;
	return build->bytes == 1;
}

static bool is_any(const struct build *build, const void *context)
{
	(void)build;
	(void)context;
	return true;
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool reaches_over(enum build_state state, unsigned int seen)
{
	if (state == BUILD_OVER)
		return true;
	for (int next = 0; next < BUILD_STATES; next++)
		if (build_may_become(state, (enum build_state)next) && !(seen >> next & 1) &&
			reaches_over((enum build_state)next, seen | 1u << next))
			return true;
	return false;
}

static void test_every_state_reaches_the_end(void **state)
{
	(void)state;
	for (int i = 0; i < BUILD_STATES; i++)
		assert_true(reaches_over((enum build_state)i, 1u << i));
}

static void test_nothing_follows_the_end(void **state)
{
	(void)state;
	for (int i = 0; i < BUILD_STATES; i++) {
		assert_false(build_may_become(BUILD_OVER, (enum build_state)i));
		assert_false(build_may_become((enum build_state)i, BUILD_NEW));
	}
}

static void test_only_a_first_pass_is_tried_again(void **state)
{
	(void)state;
	assert_true(build_may_become(BUILD_WAITING, BUILD_POSTPONED));
	assert_true(build_may_become(BUILD_RUNNING, BUILD_POSTPONED));
	assert_false(build_may_become(BUILD_RUNNING_SPLIT, BUILD_POSTPONED));
	for (int i = 0; i < BUILD_STATES; i++)
		if (BUILDS_IMPROVING >> i & 1)
			assert_false(build_may_become((enum build_state)i, BUILD_POSTPONED));
}

static void test_a_build_with_an_index_keeps_it(void **state)
{
	(void)state;
	for (int from = 0; from < BUILD_STATES; from++)
		for (int to = 0; to < BUILD_STATES; to++)
			if (BUILDS_IMPROVING >> from & 1 && BUILDS_PENDING >> to & 1)
				assert_false(build_may_become(
					(enum build_state)from, (enum build_state)to));
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void test_a_build_is_in_the_list_of_its_state(void **state)
{
	struct build build = new_build();
	struct builds b = { 0 };

	(void)state;
	builds_lists_init(&b);
	builds_move(&b, &build, BUILD_WAITING);
	assert_int_equal(builds_number(&b, BUILDS_WAITING), 1);
	assert_int_equal(builds_number(&b, BUILDS_PENDING), 1);
	set_child(&build, true);
	builds_move(&b, &build, BUILD_RUNNING);
	assert_int_equal(builds_number(&b, BUILDS_WAITING), 0);
	assert_int_equal(builds_number(&b, BUILDS_RUNNING), 1);
	set_child(&build, false);
	builds_move(&b, &build, BUILD_QUEUED);
	assert_int_equal(builds_number(&b, BUILDS_PENDING), 0);
	assert_int_equal(builds_number(&b, BUILDS_IMPROVING), 1);
	builds_move(&b, &build, BUILD_OVER);
	assert_int_equal(builds_number(&b, BUILDS_ALL), 0);
	assert_null(builds_find(&b, BUILDS_ALL, is_any, NULL));
}

static void test_the_oldest_is_found_first(void **state)
{
	struct build builds[3] = { new_build(), new_build(), new_build() };
	struct builds b = { 0 };

	(void)state;
	builds_lists_init(&b);
	builds[1].bytes = builds[2].bytes = 1;
	for (size_t i = 0; i < 3; i++)
		builds_move(&b, &builds[i], BUILD_WAITING);
	assert_ptr_equal(builds_find(&b, BUILDS_WAITING, is_any, NULL), &builds[0]);
	assert_ptr_equal(builds_find(&b, BUILDS_WAITING, is_first, NULL), &builds[1]);
	/* Removes from the middle, then from the end; the next build is appended to the rest. */
	builds_move(&b, &builds[1], BUILD_POSTPONED);
	builds_move(&b, &builds[2], BUILD_OVER);
	builds_move(&b, &builds[1], BUILD_WAITING);
	assert_ptr_equal(builds_find(&b, BUILDS_WAITING, is_any, NULL), &builds[0]);
	assert_ptr_equal(builds_find(&b, BUILDS_WAITING, is_first, NULL), &builds[1]);
	assert_int_equal(builds_number(&b, BUILDS_WAITING), 2);
}

static void test_a_missing_file_may_lead_to_a_question(void **state)
{
	struct build build = new_build();
	struct builds b = { 0 };

	(void)state;
	builds_lists_init(&b);
	builds_move(&b, &build, BUILD_QUEUED);
	build.debug.child.pid = 1;
	builds_move(&b, &build, BUILD_ASKING);
	build.debug.child.pid = -1;
	builds_move(&b, &build, BUILD_WAITING_BETTER);
	set_child(&build, true);
	builds_move(&b, &build, BUILD_RUNNING_BETTER);
	set_child(&build, false);
	build.debug.child.pid = 1;
	builds_move(&b, &build, BUILD_ASKING);
	assert_int_equal(builds_number(&b, BUILDS_ASKING), 1);
	assert_int_equal(builds_number(&b, BUILDS_OPEN), 1);
}

/* ---- our own mistakes ----------------------------------------------------------------------- */

static void assert_aborts(struct build *build, enum build_state from, enum build_state to)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		const struct rlimit none = { 0 };
		struct builds b = { 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		freopen("/dev/null", "w", stderr);
		builds_lists_init(&b);
		if (from != BUILD_NEW)
			builds_move(&b, build, from);
		builds_move(&b, build, to);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void test_an_illegal_transition_aborts(void **state)
{
	struct build build = new_build();

	(void)state;
	assert_aborts(&build, BUILD_NEW, BUILD_ASKING);
	assert_aborts(&build, BUILD_WAITING, BUILD_QUEUED);
	assert_aborts(&build, BUILD_POSTPONED, BUILD_OVER);
	assert_aborts(&build, BUILD_OVER, BUILD_WAITING);
}

static void test_a_state_with_contradictory_fields_aborts(void **state)
{
	struct build childless = new_build(), running = new_build(), fileful = new_build();

	(void)state;
	assert_aborts(&childless, BUILD_WAITING, BUILD_RUNNING);
	assert_aborts(&childless, BUILD_QUEUED, BUILD_ASKING);
	set_child(&running, true);
	assert_aborts(&running, BUILD_NEW, BUILD_WAITING);
	fileful.fetched_files = 1;
	assert_aborts(&fileful, BUILD_NEW, BUILD_WAITING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_state_reaches_the_end),
		cmocka_unit_test(test_nothing_follows_the_end),
		cmocka_unit_test(test_only_a_first_pass_is_tried_again),
		cmocka_unit_test(test_a_build_with_an_index_keeps_it),
		cmocka_unit_test(test_a_build_is_in_the_list_of_its_state),
		cmocka_unit_test(test_the_oldest_is_found_first),
		cmocka_unit_test(test_a_missing_file_may_lead_to_a_question),
		cmocka_unit_test(test_an_illegal_transition_aborts),
		cmocka_unit_test(test_a_state_with_contradictory_fields_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
