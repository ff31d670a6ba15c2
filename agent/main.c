/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command and runs it. */
#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "base/cleanup.h"
#include "symbolizer/sandbox.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* NULL = hidden */
};

static const struct command commands[] = {
	{ "agent", command_agent,
		"sample all the time: a page, stored profiles, profiles on demand" },
	{ "record", command_record, "sample processes and the kernel, write a pprof file" },
	{ "top", command_top, "show what the CPUs do now: processes, functions, goroutines" },
	{ "symbolize", command_symbolize,
		"turn addresses of an ELF file into functions and lines" },
	{ "upload", command_upload, "send pprof files to Pyroscope or Parca" },
	{ "check", command_check,
		"say what this machine allows, and what each missing piece costs" },
	{ "manual", command_manual, NULL },
};

static void print_help(FILE *out)
{
	fputs("fathom - a sampling profiler for whole Linux machines\n\n"
	      "usage: fathom COMMAND [OPTION]…\n\n",
		out);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].help)
			fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	}
	fputs("\nfathom COMMAND --help shows a command's options; fathom --version the version.\n"
	      "For a start: sudo fathom record -d 10\n",
		out);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";

	/* Ourselves, executed anew to parse a foreign file: it takes the whole argv. */
	if (!strcmp(name, "index-module"))
		return sandbox_child_main(argc, argv);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("fathom " FATHOM_VERSION);
		return EXIT_DONE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		print_help(stdout);
		return argc > 1 ? EXIT_DONE : EXIT_USAGE;
	}
	fprintf(stderr, "fathom: no command '%s'; see fathom --help\n", name);
	return EXIT_USAGE;
}
