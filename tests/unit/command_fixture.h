/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a command of the program in a child process, through the command table, and returns what it
 * wrote and its exit status. Include in one file of a test program, as it links all commands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/commands/commands.h"
#include "base/cleanup.h"

enum { COMMAND_MAX_ARGUMENTS = 32, COMMAND_OUTPUT_BYTES = 256 << 10 };

struct command_run {
	const char *input; /* standard input; NULL = empty */
	void (*prepare)(void *context); /* called in the child before the command; may be NULL */
	void *context;

	int status; /* exit status; 128 + N if signal N ended it */
	char out[COMMAND_OUTPUT_BYTES], err[COMMAND_OUTPUT_BYTES]; /* what it wrote, with a zero */
	size_t out_size; /* of a file that is not text */
};

static _Noreturn void command_run_child(
	const struct command_run *run, char *words, FILE *const files[3])
{
	char *argv[COMMAND_MAX_ARGUMENTS + 1] = { NULL };
	int argc = 0, status;

	for (char *at = words, *word; (word = strsep(&at, " ")) != NULL;) {
		if (*word && argc < COMMAND_MAX_ARGUMENTS)
			argv[argc++] = word;
	}
	for (int fd = 0; fd < 3; fd++)
		dup2(fileno(files[fd]), fd);
	if (run->prepare)
		run->prepare(run->context);
	status = commands_run(commands_find(argv[0]), argc, argv);
	fflush(NULL);
	_exit(status);
}

static size_t command_read_back(FILE *file, char text[COMMAND_OUTPUT_BYTES])
{
	size_t size;

	rewind(file);
	size = fread(text, 1, COMMAND_OUTPUT_BYTES - 1, file);
	text[size] = 0;
	fclose(file);
	return size;
}

/* Runs WORDS, separated by blanks: the command's name and its arguments. */
static void command_run(struct command_run *run, const char *words)
{
	FILE *files[3] = { tmpfile(), tmpfile(), tmpfile() };
	autofree char *copy = strdup(words);
	int status;
	pid_t pid;

	assert_non_null(copy);
	if (run->input)
		fputs(run->input, files[0]);
	rewind(files[0]);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		command_run_child(run, copy, files);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	run->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	fclose(files[0]);
	run->out_size = command_read_back(files[1], run->out);
	command_read_back(files[2], run->err);
}

/* Fails the test unless STATUS is the exit status and MESSAGE is in standard error. */
static void command_expect(
	struct command_run *run, const char *words, int status, const char *message)
{
	command_run(run, words);
	if (run->status != status || !strstr(run->err, message))
		fail_msg("`%s`: status %d and, on standard error, '%s', instead of %d and '%s'",
			words, run->status, run->err, status, message);
}
