/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The commands. Each takes its own argv (argv[0] is its name) and returns the exit status. */
#include <stddef.h>

#include "agent/settings/config.h"

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

/* What is said of a command in --help, the manual page and completion. */
struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	enum config_command settings; /* 0 = none */
	const char *summary; /* NULL = hidden */
	const char *synopsis; /* what follows its name */
	const char *description; /* sentences for the manual page; paragraphs end in a newline */
};

/* In the order of --help; NULL at the end. */
const struct command *commands_at(size_t number);
const struct command *commands_find(const char *name); /* NULL = no such command */

int command_agent(int argc, char **argv);
int command_record(int argc, char **argv);
int command_top(int argc, char **argv);
int command_symbolize(int argc, char **argv);
int command_upload(int argc, char **argv);
int command_check(int argc, char **argv);
int command_completion(int argc, char **argv);
/* Hidden: the manual page, for `make`. */
int command_manual(int argc, char **argv);
