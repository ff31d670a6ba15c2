/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, from the settings table: `make` writes it to build/fathom.1. */
#include <stdio.h>

#include "agent/commands/commands.h"
#include "agent/config.h"

static void print_command(const char *synopsis, const char *what, enum config_command command)
{
	printf(".SS fathom %s\n%s\n", synopsis, what);
	config_print_man(stdout, command);
}

int command_manual(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts(".TH FATHOM 1 \"\" \"fathom " FATHOM_VERSION "\"\n.SH NAME\n"
	     "fathom \\- a sampling profiler for whole Linux machines\n.SH SYNOPSIS\n"
	     ".B fathom\n.I command\n[\\fIoption\\fR]...\n.SH COMMANDS");
	print_command("record [OPTION]... [\\-\\- CMD ARG...]",
		"Samples all processes and the kernel (or CMD, or those chosen) and writes a gzip-"
		"compressed pprof file that \\fBgo tool pprof\\fR reads.",
		IN_RECORD);
	print_command("symbolize \\-e FILE [OPTION]...",
		"Reads addresses of an ELF file, one a line, from standard input and prints "
		"functions "
		"and lines, innermost first.",
		IN_SYMBOLIZE);
	print_command("upload [OPTION]... FILE...",
		"Sends pprof files to Pyroscope or Parca, or into a directory.", IN_UPLOAD);
	print_command("check [OPTION]...",
		"Says what this machine allows, what each missing piece costs and what to do.",
		IN_CHECK);
	puts(".SH EXIT STATUS\n0 done, 1 failed, 2 bad usage.\n.SH FILES\n.TP\n/var/cache/fathom\n"
	     "Module indexes; may be removed at any time.");
	return EXIT_DONE;
}
