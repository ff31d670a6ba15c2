/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command table (commands.c): for each command, its settings, its help texts and its function.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/settings/config.h"
#include "agent/settings/exit_status.h"

struct command;

/* One run of a command. */
struct invocation {
	const struct command *command;
	/*
	 * Merged from defaults, environment and command line; empty if the command has no settings.
	 */
	struct config config;
	int argc;
	char **argv; /* argv[0] is the command's name; a copy, so that ps does not show secrets */
};

struct command {
	const char *name;
	/* Called with the settings parsed and --help handled. Returns the exit status. */
	int (*run)(struct invocation *call);
	enum config_command settings; /* 0 = none: the command parses argv itself */
	bool takes_arguments; /* after the options; otherwise they are refused */
	bool logs_as_file_says; /* the command sets up the log, once it has read its file */
	const char *summary; /* NULL = hidden */
	const char *synopsis; /* arguments, without the command's name */
	const char *usage; /* printed by --help before the options */
	const char *description; /* for the manual page; each paragraph ends in a newline */
};

/* Command NUMBER in --help order; NULL past the end. */
const struct command *commands_at(size_t number);
const struct command *commands_find(const char *name); /* NULL if there is no such command */
/* Prints what `fathom COMMAND --help` prints. Returns the exit status. */
int commands_help(const struct command *command);
/* Runs COMMAND and returns its exit status. Overwrites the values of secrets in ARGV. */
int commands_run(const struct command *command, int argc, char **argv);

int command_agent(struct invocation *call);
int command_record(struct invocation *call);
int command_top(struct invocation *call);
int command_trace(struct invocation *call);
int command_latency(struct invocation *call);
int command_symbolize(struct invocation *call);
int command_pgo(struct invocation *call);
int command_upload(struct invocation *call);
int command_view(struct invocation *call);
int command_check(struct invocation *call);
int command_completion(struct invocation *call);
/* Hidden; prints the manual page for `make`. */
int command_manual(struct invocation *call);
