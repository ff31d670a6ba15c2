/* SPDX-License-Identifier: Apache-2.0 */
/* Process facts for relabelling, read from a running process whose environment the test sets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/daemon/process_labels.h"
#include "base/cleanup.h"
#include "base/version.h"
#include "tests/unit/report_fixture.h"

enum { LONG_BYTES = 60 << 10 };

struct program {
	pid_t pid;
	int fd; /* its input and output */
};

/*
 * A program that echoes its input. When posix_spawn() returns, the kernel may not have laid out the
 * memory of the new program yet; its first answer shows that it runs.
 */
static struct program start(char **environment)
{
	char *argv[] = { "cat", "-", NULL };
	posix_spawn_file_actions_t actions;
	int pair[2];
	char byte;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
	assert_int_equal(posix_spawn(&pid, "/bin/cat", &actions, NULL, argv, environment), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	assert_int_equal(write(pair[0], "x", 1), 1);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	return (struct program){ pid, pair[0] };
}

static void finish(struct program *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->fd);
}

static const struct process_facts *facts_of(struct fixture *f, const struct process *p)
{
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, p, &frame, 1);
	return window_processes_find(describe(f), p->number);
}

static void read_labels(
	struct fixture *f, pid_t pid, const char *environment, struct labels *labels)
{
	struct symbolized_program program;

	labels_deinit(labels);
	f->one->pid = (uint32_t)pid;
	assert_true(symbolize_program(f->symbolize, f->program->number, &program));
	assert_int_equal(
		process_labels_meta(facts_of(f, f->one), &program, environment, labels), 0);
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
	autocall(finish) struct program p = start(environment);

	read_labels(*state, p.pid, "PATTERN\0TEAM\0EMPTY\0ABSENT\0", &labels);
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
	autocall(finish) struct program p = start(environment);

	read_labels(*state, p.pid, NULL, &labels);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "(none)");
	assert_string_equal(get(&labels, "__meta_process_cmdline"), "cat -");
	read_labels(*state, p.pid, "\0", &labels);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "(none)");
}

/* A long value is cut like any label; a value whose end is not read is dropped. */
static void large_environments_are_cut_between_variables(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	autofree char *first = calloc(1, LONG_BYTES), *second = calloc(1, LONG_BYTES);
	char *environment[] = { first, second, "LAST=1", NULL };
	struct program p;

	memset(first, 'a', LONG_BYTES - 1);
	memset(second, 'b', LONG_BYTES - 1);
	memcpy(first, "FIRST=", 6);
	memcpy(second, "SECOND=", 7);
	p = start(environment);
	read_labels(*state, p.pid, "FIRST\0SECOND\0LAST\0", &labels);
	finish(&p);
	assert_int_equal(strlen(get(&labels, "__meta_env_var_FIRST")), LABEL_VALUE_BYTES);
	assert_string_equal(get(&labels, "__meta_env_var_SECOND"), "(none)");
	assert_string_equal(get(&labels, "__meta_env_var_LAST"), "(none)");
}

static void another_process_of_that_number_tells_nothing(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	struct fixture *f = *state;
	char *environment[] = { "TEAM=core", NULL };
	autocall(finish) struct program p = start(environment);

	f->one->start_ticks = 1;
	read_labels(f, p.pid, "TEAM\0", &labels);
	assert_string_equal(get(&labels, "__meta_env_var_TEAM"), "(none)");
	assert_string_equal(get(&labels, "__meta_process_cmdline"), "(none)");
}

static void the_index_knows_the_file(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	struct fixture *f = *state;

	f->one->ended = true;
	read_labels(f, 1, "TEAM\0", &labels);
	assert_string_equal(get(&labels, "__meta_process_executable_file_id"), PROGRAM_HASH);
	labels_deinit(&labels);
	assert_int_equal(process_labels_meta(facts_of(f, f->one), NULL, NULL, &labels), 0);
	assert_string_equal(get(&labels, "__meta_process_executable_file_id"), "(none)");
}

/* The path in the unified hierarchy, which is the last line; else the path of the first line. */
static void read_own_cgroup(char *path, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096];

	assert_non_null(file);
	*path = 0;
	while (fgets(line, sizeof(line), file)) {
		const char *at = strchr(strchr(line, ':') + 1, ':') + 1;

		line[strcspn(line, "\n")] = 0;
		if (!*path || !strncmp(line, "0::", 3))
			snprintf(path, size, "%s", at);
	}
	fclose(file);
}

static void a_running_process_tells_of_itself(void **state)
{
	autocall(labels_deinit) struct labels labels = { .count = 0 };
	char *environment[] = { NULL }, number[16], cgroup[LABEL_VALUE_BYTES + 1];
	autocall(finish) struct program p = start(environment);

	read_labels(*state, p.pid, NULL, &labels);
	snprintf(number, sizeof(number), "%d", p.pid);
	assert_string_equal(get(&labels, "__meta_process_pid"), number);
	snprintf(number, sizeof(number), "%d", getpid());
	assert_string_equal(get(&labels, "__meta_process_ppid"), number);
	assert_string_equal(get(&labels, "__meta_process_cmdline"), "cat -");
	read_own_cgroup(cgroup, sizeof(cgroup));
	assert_string_equal(get(&labels, "__meta_process_cgroup"), cgroup);
	assert_string_equal(get(&labels, "__meta_agent_revision"), FATHOM_VERSION);
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
		CASE(a_running_process_tells_of_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
