/* SPDX-License-Identifier: Apache-2.0 */
/* A command that is held back: when it starts, and what becomes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/commands/held_command.h"
#include "base/cleanup.h"

/* Runs SCRIPT to its end. */
static struct held_command ended(const char *script)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	struct held_command command;
	siginfo_t info;

	assert_int_equal(held_command_spawn(argv, &command), 0);
	assert_int_equal(held_command_go(&command), 0);
	assert_int_equal(waitid(P_PID, (id_t)command.pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(held_command_reap(&command));
	return command;
}

/* What held_command_say_end() writes. */
static const char *said(const struct held_command *command)
{
	static char text[256];
	int saved = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	size_t size;

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	held_command_say_end(command, "trace");
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = 0;
	fclose(file);
	return text;
}

static void a_command_waits_until_it_may_go(void **)
{
	char path[] = "/tmp/held-XXXXXX";
	char *argv[] = { (char *)"rm", path, NULL };
	struct held_command command;
	autoclose int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(held_command_spawn(argv, &command), 0);
	held_command_deinit(&command); /* returns once the process has ended */
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(held_command_spawn(argv, &command), 0);
	assert_false(held_command_reap(&command));
	assert_int_equal(held_command_go(&command), 0);
	assert_int_equal(waitpid(command.pid, NULL, 0), command.pid);
	assert_int_equal(access(path, F_OK), -1);
	held_command_deinit(&command);
}

static void its_end_is_handed_on(void **)
{
	static const struct {
		const char *script, *said;
		int status;
	} cases[] = {
		{ "exit 0", "", 0 },
		{ "exit 3", "fathom trace: sh ended with status 3\n", 3 },
		{ "exit 255", "fathom trace: sh ended with status 255\n", 255 },
		{ "kill -SEGV $$",
			"fathom trace: sh was killed by signal 11 (Segmentation fault)\n", 139 },
		{ "kill -KILL $$", "fathom trace: sh was killed by signal 9 (Killed)\n", 137 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct held_command command = ended(cases[i].script);

		assert_string_equal(said(&command), cases[i].said);
		assert_int_equal(held_command_exit_status(&command), cases[i].status);
		held_command_deinit(&command);
	}
}

static void what_still_runs_has_no_end(void **)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct held_command command;
	pid_t pid;

	assert_int_equal(held_command_spawn(argv, &command), 0);
	assert_int_equal(held_command_go(&command), 0);
	pid = command.pid;
	assert_false(held_command_reap(&command));
	assert_string_equal(said(&command), "");
	assert_int_equal(held_command_exit_status(&command), 0);
	held_command_deinit(&command);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void what_cannot_be_executed_has_the_status_of_shells(void **)
{
	static const struct {
		const char *path;
		int error, status;
	} cases[] = {
		{ "/no/such/program", -ENOENT, 127 },
		{ "/etc/passwd", -EACCES, 126 },
		{ "/etc/passwd/x", -ENOTDIR, 126 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *argv[] = { (char *)cases[i].path, NULL };
		struct held_command command;

		assert_int_equal(held_command_spawn(argv, &command), 0);
		assert_int_equal(held_command_go(&command), cases[i].error);
		assert_int_equal(held_command_exit_status(&command), cases[i].status);
		assert_string_equal(said(&command), "");
		held_command_deinit(&command);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_waits_until_it_may_go),
		cmocka_unit_test(its_end_is_handed_on),
		cmocka_unit_test(what_still_runs_has_no_end),
		cmocka_unit_test(what_cannot_be_executed_has_the_status_of_shells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
