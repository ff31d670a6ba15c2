/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point: finds the command and runs it. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/sampler/files/file_child.h"
#include "agent/sampler/recording/recorder.h"
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
	fputs("\nfathom COMMAND --help shows the options of a command, fathom --version the "
	      "version.\nTo get started: sudo fathom top, or sudo fathom record -d 10\n",
		out);
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
	 * Fathom executes itself again to open foreign files and to parse them in a sandbox; those
	 * children get all of argv.
	 */
	if (file_child_is_command(name))
		return file_child_main(argc, argv);
	if (sandboxed_is_command(name))
		return sandboxed_main(argc, argv);
	command = commands_find(name);
	if (command && !start_recording())
		return EXIT_FAILED;
	if (command)
		return commands_run(command, argc - 1, argv + 1);
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("fathom " FATHOM_VERSION);
		return EXIT_DONE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		print_help(stdout);
		return argc > 1 ? EXIT_DONE : EXIT_USAGE;
	}
	fprintf(stderr, "fathom: unknown command '%s'; see fathom --help\n", name);
	return EXIT_USAGE;
}
