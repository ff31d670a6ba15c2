/* SPDX-License-Identifier: Apache-2.0 */
/* The command table, and what all commands have in common. */
#include "agent/commands/commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { OUTPUT_BYTES = 256 << 10 };

/* Runs NAME and copies what it writes to FD (standard output or error) to OUTPUT. */
static int run_and_read(const char *name, const char *argument, int fd, char output[OUTPUT_BYTES])
{
	char first[32], second[64];
	char *argv[] = { first, second, NULL };
	FILE *file = tmpfile();
	int before = dup(fd), status;
	size_t size;

	assert_non_null(file);
	snprintf(first, sizeof(first), "%s", name);
	snprintf(second, sizeof(second), "%s", argument);
	fflush(NULL);
	dup2(fileno(file), fd);
	status = commands_run(commands_find(name), 2, argv);
	fflush(NULL);
	dup2(before, fd);
	close(before);
	rewind(file);
	size = fread(output, 1, OUTPUT_BYTES - 1, file);
	output[size] = 0;
	fclose(file);
	return status;
}

static void rows_are_complete(void **state)
{
	const struct command *command;

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		assert_ptr_equal(commands_find(command->name), command);
		assert_non_null(command->run);
		assert_int_equal(command->summary != NULL, command->usage != NULL);
		assert_int_equal(command->summary != NULL, command->synopsis != NULL);
		assert_int_equal(command->summary != NULL, command->description != NULL);
	}
	assert_null(commands_find("recor"));
	assert_null(commands_find(""));
}

static void help_is_the_usage_and_the_options(void **state)
{
	static char output[OUTPUT_BYTES];
	const struct command *command;
	char begin[64];

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->summary)
			continue;
		snprintf(begin, sizeof(begin), "usage: fathom %s ", command->name);
		assert_int_equal(
			run_and_read(command->name, "--help", STDOUT_FILENO, output), EXIT_DONE);
		assert_memory_equal(output, begin, strlen(begin));
		assert_int_equal(strstr(output, "--log-level") != NULL, command->settings != 0);
	}
}

static void a_superfluous_argument_is_named(void **state)
{
	static char output[OUTPUT_BYTES];
	const struct command *command;

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->settings || command->takes_arguments)
			continue;
		assert_int_equal(
			run_and_read(command->name, "stray", STDERR_FILENO, output), EXIT_USAGE);
		assert_non_null(strstr(output, "'stray' is an unexpected argument"));
	}
}

static void an_unknown_option_is_bad_usage(void **state)
{
	static char output[OUTPUT_BYTES];
	const struct command *command;

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->settings)
			continue;
		assert_int_equal(
			run_and_read(command->name, "--nope", STDERR_FILENO, output), EXIT_USAGE);
		assert_non_null(strstr(output, "--nope"));
	}
}

static void a_log_level_that_does_not_exist_is_bad_usage(void **state)
{
	static char output[OUTPUT_BYTES];
	const struct command *command;

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->settings || command->logs_as_file_says)
			continue;
		assert_int_equal(
			run_and_read(command->name, "--log-level=x", STDERR_FILENO, output),
			EXIT_USAGE);
		assert_non_null(strstr(output, "must be error, warn, info or debug"));
	}
}

static void secrets_are_not_left_in_the_arguments(void **state)
{
	char name[] = "upload", option[] = "--remote-store-bearer-token=abc", help[] = "--help";
	char *argv[] = { name, option, help, NULL };

	(void)state;
	assert_int_equal(commands_run(commands_find("upload"), 3, argv), EXIT_DONE);
	assert_string_equal(option, "--remote-store-bearer-token=***");
}

static void completion_knows_every_remote_store(void **state)
{
	static char output[OUTPUT_BYTES];

	(void)state;
	assert_int_equal(run_and_read("completion", "bash", STDOUT_FILENO, output), EXIT_DONE);
	assert_non_null(strstr(output, "pyroscope parca otlp file"));
	assert_int_equal(run_and_read("completion", "tcsh", STDERR_FILENO, output), EXIT_USAGE);
	assert_non_null(strstr(output, "usage: fathom completion bash|zsh|fish"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_complete),
		cmocka_unit_test(help_is_the_usage_and_the_options),
		cmocka_unit_test(a_superfluous_argument_is_named),
		cmocka_unit_test(an_unknown_option_is_bad_usage),
		cmocka_unit_test(a_log_level_that_does_not_exist_is_bad_usage),
		cmocka_unit_test(secrets_are_not_left_in_the_arguments),
		cmocka_unit_test(completion_knows_every_remote_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
