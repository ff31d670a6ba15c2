/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point: finds the command and runs it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/sampler/files/file_child.h"
#include "agent/sampler/recording/recorder.h"
#include "agent/server/merge/merge_child.h"
#include "base/suggestion.h"
#include "base/version.h"
#include "symbolizer/sandboxed/main.h"

static void print_help(FILE *out)
{
	const struct command *command;

	fputs("fathom - a sampling profiler for whole Linux machines\n\n"
	      "usage: fathom COMMAND [OPTION]…\n\n",
		out);
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (command->summary)
			fprintf(out, "  %-10s %s\n", command->name, command->summary);
	}
	fputs("\nfathom help COMMAND shows the options of a command, fathom version the "
	      "version.\nTo get started: sudo fathom top, or sudo fathom record -d 10\n",
		out);
}

static int refuse_command(const char *name)
{
	struct suggestion s = { .word = name, .size = strlen(name) };
	const struct command *command;

	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (command->summary)
			suggestion_offer(&s, command->name);
	}
	fprintf(stderr, "fathom: unknown command '%s'", name);
	if (s.name)
		fprintf(stderr, ": did you mean %s?\n", s.name);
	else
		fputs("; see fathom --help\n", stderr);
	return EXIT_USAGE;
}

/* `fathom help [COMMAND]`. */
static int help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 3) {
		print_help(stdout);
		return EXIT_DONE;
	}
	command = commands_find(argv[2]);
	return command && command->summary ? commands_help(command) : refuse_command(argv[2]);
}

/* For developers: tests/replay/README.md. */
static bool start_recording(void)
{
	const char *path = getenv("FATHOM_RECORD_INPUT");
	int err = path ? recorder_start(path) : 0;

	if (err)
		fprintf(stderr, "fathom: cannot record into %s: %s\n", path, strerror(-err));
	return !err;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct command *command;

	/*
	 * Fathom executes itself again to open foreign files, to parse them in a sandbox and to
	 * merge stored profiles; those children get all of argv.
	 */
	if (file_child_is_command(name))
		return file_child_main(argc, argv);
	if (merge_child_is_command(name))
		return merge_child_main(argc, argv);
	if (sandboxed_is_command(name))
		return sandboxed_main(argc, argv);
	command = commands_find(name);
	if (command && !start_recording())
		return EXIT_FAILED;
	if (command)
		return commands_run(command, argc - 1, argv + 1);
	if (!strcmp(name, "--version") || !strcmp(name, "-V") || !strcmp(name, "version")) {
		puts("fathom " FATHOM_VERSION);
		return EXIT_DONE;
	}
	if (argc < 2) {
		print_help(stdout);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return help(argc, argv);
	return refuse_command(name);
}
