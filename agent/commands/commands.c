/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "agent/settings/arguments.h"
#include "agent/settings/log_options.h"
#include "base/cleanup.h"

static const struct command commands[] = {
	{
		.name = "agent",
		.run = command_agent,
		.settings = IN_AGENT,
		.logs_as_file_says = true,
		.summary = "sample all the time: a page, stored profiles, profiles on demand",
		.synopsis = "[--config-path FILE] [OPTION]...",
		.usage = "usage: fathom agent [--config-path FILE] [OPTION]…\n"
			 "Samples this machine all the time: profiles of the recent past in a "
			 "directory, on a page and on demand.\n"
			 "\n",
		.description =
			"Samples all processes and the kernel without end. Each window (ten "
			"seconds, unless told otherwise) becomes one pprof file for each container "
			"or program in the local store, which is bounded in size and age. A page "
			"with flame graphs of the recent past, metrics and profiles on demand are "
			"served over HTTP.\nThe agent keeps itself under its CPU budget by "
			"sampling less often; each profile says how often it was.",
	},
	{
		.name = "record",
		.run = command_record,
		.settings = IN_RECORD,
		.takes_arguments = true,
		.summary = "sample processes and the kernel, write a pprof file",
		.synopsis = "[OPTION]... [-- CMD ARG...]",
		.usage = "usage: fathom record [OPTION]… [-- CMD ARG…]\n"
			 "Samples all processes and the kernel (or CMD, or those chosen) and "
			 "writes a pprof file.\n"
			 "\n",
		.description =
			"Samples all processes and the kernel, or those chosen, until Ctrl-C or "
			"for the time of -d, and writes a gzip-compressed pprof file that go tool "
			"pprof reads. With CMD it runs that command and samples it and what it "
			"starts, from the first instruction to the end; with -a, -p, -t or -G "
			"those are sampled, while CMD runs. A run ends when all of -p or -t have "
			"ended, too.\nAt the end it prints the hottest functions, what was lost "
			"and why, the share of complete stacks, and its own CPU time.",
	},
	{
		.name = "top",
		.run = command_top,
		.settings = IN_TOP,
		.summary = "show what the CPUs do now: processes, functions, goroutines",
		.synopsis = "[OPTION]...",
		.usage = "usage: fathom top [OPTION]…\n"
			 "Shows what the CPUs do, anew each second: processes (key p), functions "
			 "(f) or\n"
			 "goroutines (g). s and r order, / filters, ? helps, q ends.\n"
			 "\n",
		.description =
			"Samples and shows, anew each second, processes with their CPU time and "
			"hottest function, functions with their own (self) and their whole (total) "
			"share of all samples, or goroutines with the function of theirs that they "
			"are in. Processes and goroutines are shown in percent of one CPU.\nKeys: "
			"p, f, g and Tab choose the table; s orders by another column, r reverses; "
			"/ takes a filter (Enter keeps it, Esc drops it); j, k, arrows and Page "
			"keys move; Space holds the picture; ? helps; q ends.\nWith -b tables are "
			"printed one after the other, for pipes and files.",
	},
	{
		.name = "symbolize",
		.run = command_symbolize,
		.settings = IN_SYMBOLIZE,
		.takes_arguments = true,
		.summary = "turn addresses of a file, a process or the kernel into functions and "
			   "lines",
		.synopsis = "(-e FILE | -p PID | -k | --profile FILE -o FILE) [OPTION]...",
		.usage = "usage: fathom symbolize (-e FILE | -p PID | -k) [OPTION]…\n"
			 "       fathom symbolize --profile FILE -o FILE [OPTION]…\n"
			 "\n"
			 "Reads addresses (0x…, one a line) of an ELF file, a process or the "
			 "kernel from\n"
			 "standard input; prints for each, as llvm-symbolizer does, function and\n"
			 "file:line:column, innermost first. Or gives a pprof file the names it "
			 "lacks.\n"
			 "With --debuginfod-urls or $DEBUGINFOD_URLS, servers are asked for the "
			 "debug files of\n"
			 "stripped programs; they are told build IDs.\n"
			 "\n",
		.description = "Reads addresses (0x..., one a line) of an ELF file, of a process "
			       "that runs, or of the kernel from standard input and prints for "
			       "each the function and file:line:column, inlined calls innermost "
			       "first, then an empty line. What is not known is printed as ?? and "
			       "??:0:0. Functions of kernel modules and BPF programs are followed "
			       "by [MODULE].\nWith --profile it gives the locations of a pprof "
			       "file that have no names theirs: from files of the mappings' names "
			       "with the same build ID, debug files below --debuginfo-directories, "
			       "the servers of --debuginfod-urls and the index cache. Names that "
			       "are there stay, and what has another build ID stays an address.",
	},
	{
		.name = "upload",
		.run = command_upload,
		.settings = IN_UPLOAD,
		.takes_arguments = true,
		.summary = "send pprof files to Pyroscope, Parca or OTLP",
		.synopsis = "--remote-store-type TYPE --remote-store-address ADDRESS [OPTION]... "
			    "FILE...",
		.usage = "usage: fathom upload --remote-store-type TYPE --remote-store-address "
			 "ADDRESS [OPTION]… FILE…\n"
			 "\n"
			 "Sends pprof files (of fathom record, of an agent's local store, of Go's "
			 "/debug/pprof) to a\n"
			 "server. Sample labels are left out (but for OTLP); each value of the "
			 "label `comm` becomes a\n"
			 "series of that service_name, files without it one of the file's name. "
			 "Pyroscope refuses\n"
			 "profiles older than an hour.\n"
			 "\n",
		.description = "Sends existing pprof files to a server, as the agent would have "
			       "sent them, or into a directory.",
	},
	{
		.name = "check",
		.run = command_check,
		.settings = IN_CHECK,
		.summary = "say what this machine allows, and what each missing piece costs",
		.synopsis = "[OPTION]...",
		.usage = "usage: fathom check [OPTION]…\n"
			 "\n"
			 "Says what this machine allows: one line a feature, ok, degraded or "
			 "missing, why,\n"
			 "and what to do. Exits with 0 when profiles can be taken.\n"
			 "\n",
		.description =
			"Tries what the profiler needs and prints one line for each: ok, degraded "
			"or missing, why, and what to do. The last lines, uprobe_multi, fentry and "
			"tracefs, tell whether functions could be attached to; sampling does not "
			"need them. The exit status is 0 where the sampler can run.",
	},
	{
		.name = "completion",
		.run = command_completion,
		.takes_arguments = true,
		.summary = "print the completion script of a shell",
		.synopsis = "bash|zsh",
		.usage = "usage: fathom completion bash|zsh\n"
			 "Prints the shell's completion script: source <(fathom completion bash)\n",
		.description = "Prints a script that completes commands, options and their values. "
			       "`make install' puts both where the shells look for them; for one "
			       "session: source <(fathom completion bash).",
	},
	{
		.name = "manual",
		.run = command_manual,
	},
};

const struct command *commands_at(size_t number)
{
	return number < ARRAY_SIZE(commands) ? &commands[number] : NULL;
}

const struct command *commands_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	}
	return NULL;
}

static void print_usage(const struct command *command)
{
	fputs(command->usage, stdout);
	if (command->settings)
		config_print_options(stdout, command->settings);
}

static int usage_error_of(const struct command *command, const char *argument)
{
	fprintf(stderr, "fathom %s: '%s' is not wanted here; see fathom %s --help\n", command->name,
		argument, command->name);
	return EXIT_USAGE;
}

static int run_with_settings(struct invocation *call)
{
	const struct command *command = call->command;
	struct config *config = &call->config;

	if (config_parse(config, command->settings, call->argc, call->argv))
		return EXIT_USAGE;
	if (config_flag(config, SETTING_help)) {
		print_usage(command);
		return EXIT_DONE;
	}
	if (config->rest_count && !command->takes_arguments)
		return usage_error_of(command, config->rest[0]);
	if (!command->logs_as_file_says && log_options(config))
		return EXIT_USAGE;
	return command->run(call);
}

static bool asks_for_help(int argc, char **argv)
{
	return argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

static int run_without_settings(struct invocation *call)
{
	if (call->command->usage && asks_for_help(call->argc, call->argv)) {
		print_usage(call->command);
		return EXIT_DONE;
	}
	return call->command->run(call);
}

int commands_run(const struct command *command, int argc, char **argv)
{
	struct invocation call = { .command = command, .argc = argc };
	int status;

	if (arguments_take(argc, argv, &call.argv)) {
		fprintf(stderr, "fathom %s: out of memory\n", command->name);
		return EXIT_FAILED;
	}
	status = command->settings ? run_with_settings(&call) : run_without_settings(&call);
	config_deinit(&call.config);
	arguments_free(call.argv);
	return status;
}
