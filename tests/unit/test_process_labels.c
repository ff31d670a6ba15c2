/* SPDX-License-Identifier: Apache-2.0 */
/* What relabelling may know of a process: of one that runs, with an environment that we gave it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/daemon/process_labels.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

enum { LONG_BYTES = 60 << 10 };

static pid_t start(char **environment)
{
	char *argv[] = { "sleep", "600", NULL };
	pid_t pid;

	/* It returns when the program is there. */
	assert_int_equal(posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, environment), 0);
	return pid;
}

static void finish(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void read_labels(
	struct fixture *f, pid_t pid, const char *environment, struct labels *labels)
{
	labels_deinit(labels);
	f->one->pid = (uint32_t)pid;
	assert_int_equal(process_labels_meta(f->one, f->index, environment, labels), 0);
}

static const char *get(const struct labels *labels, const char *name)
{
	const char *value = labels_get(labels, name);

	return value ? value : "(none)";
}

static void only_named_variables_are_labels(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	char *environment[] = { "TEAM=core", "TEAM=other", "SECRET=x", "EMPTY=", "TEAMS=both",
		"PATTERN=a=b c", "no name", NULL };
	pid_t pid = start(environment);

	read_labels(*state, pid, "PATTERN\0TEAM\0EMPTY\0ABSENT\0", &labels);
	finish(pid);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "core");
	assert_string_equal(get(&labels, "__meta_env_var_PATTERN"), "a=b c");
	assert_string_equal(get(&labels, "__meta_env_var_EMPTY"), "(none)");
	assert_string_equal(get(&labels, "__meta_env_var_ABSENT"), "(none)");
	assert_string_equal(get(&labels, "__meta_env_var_TEAMS"), "(none)");
	assert_string_equal(get(&labels, "__meta_env_var_SECRET"), "(none)");
}

static void no_variable_without_a_name(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	char *environment[] = { "TEAM=core", NULL };
	pid_t pid = start(environment);

	read_labels(*state, pid, NULL, &labels);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "(none)");
	assert_string_equal(get(&labels, "__meta_process_cmdline"), "sleep 600");
	read_labels(*state, pid, "\0", &labels);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "(none)");
	finish(pid);
}

/* A long value is cut as any label is; one that we see the beginning of only is none. */
static void large_environments_are_cut_between_variables(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	autofree char *first = calloc(1, LONG_BYTES), *second = calloc(1, LONG_BYTES);
	char *environment[] = { first, second, "LAST=1", NULL };
	pid_t pid;

	memset(first, 'a', LONG_BYTES - 1);
	memset(second, 'b', LONG_BYTES - 1);
	memcpy(first, "FIRST=", 6);
	memcpy(second, "SECOND=", 7);
	pid = start(environment);
	read_labels(*state, pid, "FIRST\0SECOND\0LAST\0", &labels);
	finish(pid);
	assert_int_equal(strlen(get(&labels, "__meta_env_var_FIRST")), LABEL_VALUE_BYTES);
	assert_string_equal(get(&labels, "__meta_env_var_SECOND"), "(none)");
	assert_string_equal(get(&labels, "__meta_env_var_LAST"), "(none)");
}

static void another_process_of_that_number_tells_nothing(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	struct fixture *f = *state;
	char *environment[] = { "TEAM=core", NULL };
	pid_t pid = start(environment);

	f->one->start_ticks = 1;
	read_labels(f, pid, "TEAM\0", &labels);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "(none)");
	assert_string_equal(get(&labels, "__meta_process_cmdline"), "(none)");
	finish(pid);
}

static void the_index_knows_the_file(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	struct fixture *f = *state;

	f->one->ended = true;
	read_labels(f, 1, "TEAM\0", &labels);
	assert_string_equal(get(&labels, "__meta_process_executable_file_id"), PROGRAM_HASH);
	labels_deinit(&labels);
	assert_int_equal(process_labels_meta(f->one, NULL, NULL, &labels), 0);
	assert_string_equal(get(&labels, "__meta_process_executable_file_id"), "(none)");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(only_named_variables_are_labels),
		CASE(no_variable_without_a_name),
		CASE(large_environments_are_cut_between_variables),
		CASE(another_process_of_that_number_tells_nothing),
		CASE(the_index_knows_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
