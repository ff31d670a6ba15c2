/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Command lines of a command that makes a plan of its settings, and what it says of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/config.h"

enum { MAX_WORDS = 40, MESSAGE_BYTES = 4096 };

/* The command under test. Each test defines one named `planner`. */
struct planner {
	const char *name;
	enum config_command command;
	int (*make)(const struct config *config); /* the plan */
	void (*deinit)(void);
};

static const struct planner planner;

struct line {
	struct config config;
	char *argv[MAX_WORDS + 1];
	char message[MESSAGE_BYTES]; /* on standard error */
};

/* Reads WORDS, which end in NULL, as the command line. Returns the plan's result. */
static int read_line(struct line *line, va_list words)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO), argc = 1, err;
	const char *word;
	size_t size;

	line->argv[0] = strdup(planner.name);
	while ((word = va_arg(words, const char *)) != NULL && argc < MAX_WORDS)
		line->argv[argc++] = strdup(word);
	line->argv[argc] = NULL;
	assert_non_null(file);
	fflush(NULL);
	dup2(fileno(file), STDERR_FILENO);
	err = config_parse(&line->config, planner.command, argc, line->argv);
	if (!err)
		err = planner.make(&line->config);
	fflush(NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	size = fread(line->message, 1, MESSAGE_BYTES - 1, file);
	line->message[size] = 0;
	fclose(file);
	return err;
}

static void line_deinit(struct line *line)
{
	planner.deinit();
	config_deinit(&line->config);
	for (size_t i = 0; line->argv[i]; i++)
		free(line->argv[i]);
	*line = (struct line){ 0 };
}

static void expect_plan(struct line *line, ...)
{
	va_list words;

	*line = (struct line){ 0 };
	va_start(words, line);
	assert_int_equal(read_line(line, words), 0);
	va_end(words);
	assert_string_equal(line->message, "");
}

/* The command line is refused with ERROR and this message, after the name of the command. */
static void expect_refusal(int error, const char *message, ...)
{
	struct line line = { 0 };
	char expected[MESSAGE_BYTES];
	va_list words;

	va_start(words, message);
	assert_int_equal(read_line(&line, words), error);
	va_end(words);
	snprintf(expected, sizeof(expected), "fathom %s: %s\n", planner.name, message);
	assert_string_equal(line.message, expected);
	line_deinit(&line);
}

static char *own_pid(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", (int)getpid());
	return text;
}
