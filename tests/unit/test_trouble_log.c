/* SPDX-License-Identifier: Apache-2.0 */
/* What is logged about servers and builds, read back from standard error. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/sampler/module_indexes/trouble_log.h"
#include "base/cleanup.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "tests/unit/fake_builds.h"

struct debuginfod {
	struct debuginfod_state state;
};

struct debuginfod_state debuginfod_state(const struct debuginfod *d)
{
	return d->state;
}

const char *debuginfod_explain(int error)
{
	return error == -ETIMEDOUT ? "it takes too long" : "another error";
}

struct trouble {
	struct trouble_log log;
	struct debuginfod servers;
	struct builds builds;
	char text[4096]; /* output of the last check */
};

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct trouble));
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static const char *check(struct trouble *t, const struct debuginfod *servers)
{
	autoclose int log_fd = memfd_create("log", MFD_CLOEXEC);
	autoclose int stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	ssize_t length;

	assert_true(log_fd >= 0 && stderr_fd >= 0);
	fflush(stderr);
	assert_true(dup3(log_fd, STDERR_FILENO, O_CLOEXEC) >= 0);
	trouble_log_check_servers(&t->log, servers);
	trouble_log_check_builds(&t->log, &t->builds);
	fflush(stderr);
	assert_true(dup3(stderr_fd, STDERR_FILENO, 0) >= 0);
	length = pread(log_fd, t->text, sizeof(t->text) - 1, 0);
	assert_true(length >= 0);
	t->text[length] = 0;
	return t->text;
}

static void nothing_is_logged_while_all_is_well(void **state)
{
	struct trouble *t = *state;

	assert_string_equal(check(t, NULL), "");
	assert_string_equal(check(t, &t->servers), "");
}

static void servers_that_fail_and_recover_are_reported_once_each(void **state)
{
	struct trouble *t = *state;

	t->servers.state = (struct debuginfod_state){ .failures = 1, .last.error = -ETIMEDOUT };
	assert_non_null(strstr(check(t, &t->servers), "debuginfod does not respond"));
	assert_non_null(strstr(t->text, "error=\"it takes too long\""));
	t->servers.state.failures = 2;
	assert_string_equal(check(t, &t->servers), "");
	t->servers.state.failures = 0;
	assert_non_null(strstr(check(t, &t->servers), "debuginfod responds again"));
	assert_string_equal(check(t, &t->servers), "");
}

static void files_of_no_use_are_reported_once(void **state)
{
	struct trouble *t = *state;

	t->servers.state.wrong = 1;
	assert_non_null(strstr(check(t, &t->servers), "do not match the request"));
	t->servers.state.wrong = 2;
	assert_string_equal(check(t, &t->servers), "");
}

/* As if the last lines had been written two minutes ago. */
static void let_time_pass(struct trouble *t)
{
	t->log.interrupted_log.last_ns -= UINT64_C(120000000000);
	t->log.not_started_log.last_ns -= UINT64_C(120000000000);
}

/* The count covers the time since the last line. */
static void setbacks_of_builds_are_reported_once_a_minute(void **state)
{
	struct trouble *t = *state;

	t->builds.setbacks.interrupted = 3;
	assert_non_null(strstr(check(t, NULL), "builds were killed"));
	assert_non_null(strstr(t->text, "builds=3"));
	assert_string_equal(check(t, NULL), "");
	t->builds.setbacks.hanging = 2;
	assert_non_null(strstr(check(t, NULL), "did not answer while they were indexed"));
	assert_non_null(strstr(t->text, "builds=2"));
	assert_string_equal(check(t, NULL), "");
	t->builds.setbacks = (struct builds_setbacks){ 3, 2, -EMFILE, .hanging = 2 };
	assert_non_null(strstr(check(t, NULL), "cannot be started"));
	assert_non_null(strstr(t->text, "builds=2 error=\"Too many open files\""));
	assert_null(strstr(t->text, "killed"));
	t->builds.setbacks.interrupted = 4;
	t->builds.setbacks.not_started = 4;
	assert_string_equal(check(t, NULL), "");
	t->builds.setbacks.interrupted = 5;
	let_time_pass(t);
	assert_non_null(strstr(check(t, NULL), "trying again later\" builds=2\n"));
	assert_non_null(strstr(t->text, "builds=2 error=\"Too many open files\""));
	let_time_pass(t);
	assert_string_equal(check(t, NULL), "");
}

/* For /status: what was short when builds last could not be started. */
static void the_last_builds_that_could_not_be_started_are_remembered(void **state)
{
	struct trouble *t = *state;

	(void)check(t, NULL);
	assert_int_equal(t->log.not_started.real_ns, 0);
	t->builds.setbacks = (struct builds_setbacks){ 0, 2, -EMFILE };
	(void)check(t, NULL);
	assert_int_equal(t->log.not_started.builds, 2);
	t->builds.setbacks = (struct builds_setbacks){ 0, 5, -ENOMEM };
	(void)check(t, NULL);
	(void)check(t, NULL);
	assert_true(t->log.not_started.real_ns > 0);
	assert_int_equal(t->log.not_started.builds, 3);
	assert_int_equal(t->log.not_started.error, -ENOMEM);
}

static void a_full_disk_is_reported_with_its_error(void **state)
{
	struct trouble *t = *state;

	t->builds.setbacks.no_space = 2;
	t->builds.setbacks.space_error = -EDQUOT;
	assert_non_null(
		strstr(check(t, NULL), "no space for module indexes in the cache directory"));
	assert_non_null(strstr(t->text, "builds=2 error=\"Disk quota exceeded\""));
	assert_int_equal(t->log.no_space.builds, 2);
	t->builds.setbacks.no_space = 3;
	assert_string_equal(check(t, NULL), "");
	assert_int_equal(t->log.no_space.builds, 1);
	t->log.no_space_log.last_ns -= UINT64_C(120000000000);
	assert_non_null(strstr(check(t, NULL), "builds=1"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_logged_while_all_is_well),
		CASE(servers_that_fail_and_recover_are_reported_once_each),
		CASE(files_of_no_use_are_reported_once),
		CASE(setbacks_of_builds_are_reported_once_a_minute),
		CASE(the_last_builds_that_could_not_be_started_are_remembered),
		CASE(a_full_disk_is_reported_with_its_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
