/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The commands, a row each in commands.c: what it reads from the command line, what is said of it,
 * and the function that runs it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/settings/config.h"
#include "agent/settings/exit_status.h"

struct command;

/* One run of a command. */
struct invocation {
	const struct command *command;
	/* Defaults, environment and command line; a command without settings has nothing in it. */
	struct config config;
	int argc;
	char **argv; /* argv[0] is the command's name; a copy, without secrets in what ps shows */
};

struct command {
	const char *name;
	/* Its settings are parsed, --help is answered. Returns the exit status. */
	int (*run)(struct invocation *call);
	enum config_command settings; /* 0 = none: it reads argv itself */
	bool takes_arguments; /* behind its options; else they are refused */
	bool logs_as_file_says; /* it sets up the log itself, when it has read its file */
	const char *summary; /* NULL = hidden */
	const char *synopsis; /* what follows its name */
	const char *usage; /* what --help says before the options */
	const char *description; /* sentences for the manual page; paragraphs end in a newline */
};

/* In the order of --help; NULL at the end. */
const struct command *commands_at(size_t number);
const struct command *commands_find(const char *name); /* NULL = no such command */
/* Returns the exit status. The values of secrets in ARGV are overwritten. */
int commands_run(const struct command *command, int argc, char **argv);

int command_agent(struct invocation *call);
int command_record(struct invocation *call);
int command_top(struct invocation *call);
int command_symbolize(struct invocation *call);
int command_upload(struct invocation *call);
int command_check(struct invocation *call);
int command_completion(struct invocation *call);
/* Hidden: the manual page, for `make`. */
int command_manual(struct invocation *call);
