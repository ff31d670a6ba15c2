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
		.summary = "sample continuously: stored profiles, flame graphs, on-demand profiles",
		.synopsis = "[--config-path FILE] [OPTION]...",
		.usage = "usage: fathom agent [--config-path FILE] [OPTION]…\n"
			 "Samples this machine continuously. Profiles are stored in a directory, "
			 "shown "
			 "on a page and taken on demand.\n"
			 "\n",
		.description =
			"Samples all processes and the kernel continuously. Each window (ten "
			"seconds by default) becomes one pprof file per container or program in "
			"the local store, which is bounded in size and age. A page with flame "
			"graphs of the recent past, metrics and on-demand profiles are served over "
			"HTTP.\nThe agent stays below its CPU budget by sampling less often; each "
			"profile states its sampling period.\nThe settings file can also name "
			"functions, as probes: how long their calls take is shown on the page and "
			"in /metrics. Its lists probes, remote-stores and relabel_configs have no "
			"options; the example fathom.yaml describes them.",
	},
	{
		.name = "record",
		.run = command_record,
		.settings = IN_RECORD,
		.takes_arguments = true,
		.summary = "sample processes and the kernel, write a pprof file",
		.synopsis = "[OPTION]... [-- CMD ARG...]",
		.usage = "usage: fathom record [OPTION]… [-- CMD ARG…]\n"
			 "Samples all processes and the kernel (or CMD, or those selected) and "
			 "writes a pprof file.\n"
			 "With CMD and -a, -p, -t or -G it samples those for as long as CMD runs.\n"
			 "\n",
		.description =
			"Samples all processes and the kernel, or those selected, until Ctrl-C or "
			"for the time given with -d, and writes a gzip-compressed pprof file for "
			"go tool pprof. With CMD it runs that command and samples it and its "
			"children, from the first instruction to the end; with -a, -p, -t or -G "
			"it samples those while CMD runs. It also ends when all processes or "
			"threads of -p or -t have ended.\nAt the end it prints the hottest "
			"functions, what was lost and why, the share of complete stacks, and its "
			"own CPU time.",
	},
	{
		.name = "top",
		.run = command_top,
		.settings = IN_TOP,
		.summary = "show live what uses the CPUs: processes, functions, goroutines",
		.synopsis = "[OPTION]...",
		.usage = "usage: fathom top [OPTION]…\n"
			 "Shows what uses the CPUs, updated each second: processes (key p), "
			 "functions (f) or\n"
			 "goroutines (g). s and r sort, / filters, ? shows help, q quits.\n"
			 "\n",
		.description =
			"Samples and shows, updated each second, processes with their CPU time and "
			"hottest function, functions with their own (self) and cumulative (total) "
			"share of all samples, or goroutines with their hottest function. "
			"Processes and goroutines are shown in percent of one CPU.\nKeys: p, f, g "
			"and Tab select the table; s sorts by the next column, r reverses the "
			"order; / sets a filter (Enter keeps it, Esc clears it); j, k, arrow and "
			"Page keys move; Space freezes the display; ? shows help; q quits.\nWith "
			"-b tables are printed one after the other, for pipes and files; with "
			"--json each is one line, a JSON object.",
	},
	{
		.name = "latency",
		.run = command_latency,
		.settings = IN_LATENCY,
		.takes_arguments = true,
		.summary = "measure how long functions take, from entry to return",
		.synopsis = "[-p PID] -u [BIN:]PATTERN... [OPTION]... [-- CMD ARG...]",
		.usage =
			"usage: fathom latency -p PID -u PATTERN… [OPTION]…\n"
			"       fathom latency -u BIN:PATTERN… [OPTION]…\n"
			"       fathom latency -u PATTERN… [OPTION]… -- CMD [ARG…]\n"
			"\n"
			"Measures how long calls of functions take and prints a histogram for each "
			"function.\n"
			"Works for Go, C, C++ and Rust, also where binaries are stripped, as long "
			"as "
			"names are known.\n"
			"A PATTERN is a glob on the whole name of a function (demangled or not): "
			"'main.*',\n"
			"'net/http.(*conn).serve', 'Foo::bar', 'libc:malloc'.\n"
			"\n",
		.description =
			"Measures the time from entry to return of each call of the functions "
			"that -u names, and prints for each function the count, mean, p50, p90, "
			"p99, max and total, and a histogram, at the end and with -i for each "
			"interval. The functions are those of a running process (-p), of CMD from "
			"its first call on, or of a file, BIN, in all processes that run or load "
			"it now or later.\n"
			"PATTERN matches a whole name: * any text, ? any byte, [a-z] one of a set; "
			"demangled names match with and without parameters, linkage names as "
			"well. BIN is a path or the name of a file; libc stands for libc.so.6. "
			"Without BIN the functions are those of the process's program.\n"
			"Calls of Go functions are followed on their goroutine, whatever thread it "
			"runs on and wherever its stack moves. Calls that never return (panics, "
			"exceptions, longjmp) are counted, but not in the histograms.\n"
			"Each call costs the measured program two traps into the kernel, about 12 "
			"us each on a virtual machine. If there are very many calls, only a share "
			"of them is measured, and the report says so. --dry-run lists what would "
			"be probed, and what cannot be and why.",
	},
	{
		.name = "trace",
		.run = command_trace,
		.settings = IN_TRACE,
		.takes_arguments = true,
		.summary = "show calls of functions as trees, with their times",
		.synopsis = "(-p PID | -x FILE) [-u [BIN:]PATTERN]... [-k PATTERN]... [OPTION]... "
			    "[-- CMD ARG...]",
		.usage = "usage: fathom trace -p PID (-u PATTERN | -k PATTERN)… [OPTION]…\n"
			 "       fathom trace -x FILE (-u PATTERN | -k PATTERN)… [OPTION]…\n"
			 "       fathom trace (-u PATTERN | -k PATTERN)… [OPTION]… -- CMD [ARG…]\n"
			 "\n"
			 "Prints the calls of functions as trees: for each goroutine (elsewhere "
			 "thread), when a\n"
			 "call began, how long it took, where it was called, and what it called. "
			 "A tree is\n"
			 "printed when its outermost call has returned.\n"
			 "A PATTERN is a glob on the whole name of a function (demangled or not): "
			 "'main.*',\n"
			 "'net/http.(*conn).serve', 'Foo::bar', 'libc:malloc'. Those of -k name "
			 "functions of\n"
			 "the kernel, whose calls are trees of their own: -k 'vfs_*'.\n"
			 "\n",
		.description =
			"Prints the calls of the functions that -u and -k name as trees, one for "
			"each "
			"call that no other one of them has called: the time of the entry, the "
			"duration, the function, indented by the depth of the call, and where it "
			"was called. A tree is printed when its outermost call has returned; what "
			"did not return, was lost or left out is marked in it. At the end the "
			"slowest functions and what could not be shown are listed.\n"
			"The functions are those of a running process (-p), of all processes that "
			"run a file (-x), or of CMD from its first call on, whose exit status is "
			"handed on. --drilldown shows only what happens in calls of one function; "
			"--max-depth and --min-duration leave out what is deeper or shorter.\n"
			"Calls of kernel functions (-k) are shown as ftrace's function_graph "
			"tracer "
			"shows them, for the same processes: in trees of each thread, beside those "
			"of the program's own functions, with interrupts below what they "
			"interrupted.\n"
			"Each call costs the traced program two traps into the kernel, about 12 us "
			"each on a virtual machine; one of a kernel function costs far less. If "
			"there are too many calls, whole trees are left out, and counted.",
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
			 "Reads addresses (0x…, one per line) of an ELF file, a process or the "
			 "kernel from\n"
			 "standard input; prints for each, like llvm-symbolizer, function and\n"
			 "file:line:column, innermost first. With --profile it adds missing names "
			 "to a pprof file.\n"
			 "With --debuginfod-urls or $DEBUGINFOD_URLS, debug files of stripped "
			 "programs are\n"
			 "requested from debuginfod servers by build ID.\n"
			 "\n",
		.description = "Reads addresses (0x..., one per line) of an ELF file, of a "
			       "running process, or of the kernel from standard input and prints "
			       "for each the function and file:line:column, inlined calls "
			       "innermost first, then an empty line. Unknown addresses are "
			       "printed as ?? and ??:0:0. Functions of kernel modules and BPF "
			       "programs are followed by [MODULE].\nWith --profile it adds names "
			       "to the locations of a pprof file that have none, from the files "
			       "that its mappings name, debug files below --debuginfo-directories, "
			       "the servers of --debuginfod-urls and the index cache, where the "
			       "build ID matches. Existing names are kept.",
	},
	{
		.name = "pgo",
		.run = command_pgo,
		.settings = IN_PGO,
		.takes_arguments = true,
		.summary = "make a default.pgo for `go build` from the agent's profiles",
		.synopsis = "[-x PROGRAM] [--from TIME] [--to TIME] [OPTION]... [FILE...]",
		.usage = "usage: fathom pgo [-x PROGRAM] [--from TIME] [--to TIME] [-o FILE]\n"
			 "       fathom pgo [-x PROGRAM] [-o FILE] FILE…\n"
			 "\n"
			 "Merges the samples of one Go program from the profiles that the agent "
			 "has stored (or from\n"
			 "pprof files) into a profile for profile-guided optimization, "
			 "default.pgo. In the\n"
			 "directory of package main, `go build` uses it without further ado.\n"
			 "\n",
		.description =
			"Merges the samples of one Go program from the profiles that the agent "
			"has stored, or from pprof files, into a profile for profile-guided "
			"optimization: default.pgo, which `go build' uses if it is in the "
			"directory of package main; elsewhere go build -pgo=FILE. Without -x and "
			"--comm there must be only one Go program; otherwise they are "
			"listed.\nValues are summed exactly. Functions have the names of their "
			"symbols, as the compiler wants them; pids, goroutines and addresses are "
			"left out, as are waits, and the kernel's frames at the inner end of "
			"stacks. Comments in the profile tell where it came from.",
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
			 "Sends pprof files (from fathom record, an agent's local store, or Go's "
			 "/debug/pprof) to a\n"
			 "server. Sample labels are not sent (except with OTLP). Each value of "
			 "the label `comm`\n"
			 "becomes a series with that service_name; a file without the label "
			 "becomes one with\n"
			 "the file's name. Pyroscope rejects profiles older than an hour.\n"
			 "\n",
		.description = "Sends existing pprof files to a server, as the agent would have "
			       "sent them, or into a directory.",
	},
	{
		.name = "view",
		.run = command_view,
		.settings = IN_VIEW,
		.takes_arguments = true,
		.summary = "show a pprof file, or the difference of two, in a browser",
		.synopsis = "FILE [--diff BASE] [-o OUT.html]",
		.usage = "usage: fathom view FILE [--diff BASE] [-o OUT.html]\n"
			 "Shows a pprof file (from fathom record, Go, or any other tool), or what "
			 "`perf script` printed,\nas flame graph and table, "
			 "on a free port of this machine until Ctrl-C, or written as one file that "
			 "any browser opens.\n"
			 "\n",
		.description =
			"Shows a pprof file, of fathom or of another tool, the output of perf "
			"script, or collapsed stacks, as the page that an agent has: flame graph, "
			"table, filters by label, each type of value. With "
			"--diff it shows what has changed since BASE. The page is served on a free "
			"port of loopback, for the same user and root only, until Ctrl-C; with -o "
			"it is written as one HTML file that contains the profile, needs no server "
			"and loads nothing from elsewhere. Files that are dropped on the page, or "
			"chosen with its button Open, are shown as well; they stay in the browser.",
	},
	{
		.name = "check",
		.run = command_check,
		.settings = IN_CHECK,
		.summary =
			"show which features this machine supports, and how to enable the others",
		.synopsis = "[--config-path FILE] [OPTION]...",
		.usage = "usage: fathom check [--config-path FILE] [OPTION]…\n"
			 "\n"
			 "Shows what this machine supports, one line per feature: ok, degraded or "
			 "missing, why,\n"
			 "and what to do. The exit status is 0 if fathom can sample. With "
			 "--config-path it is 0\n"
			 "if an agent would accept that settings file; else the line and the key "
			 "are named.\n"
			 "\n",
		.description =
			"Tries each feature that the profiler needs and prints one line for it: "
			"ok, degraded or missing, why, and what to do. The last lines, "
			"uprobe_multi, fentry and tracefs, are about attaching to functions, "
			"which sampling does not need. The exit status is 0 if the sampler can "
			"run. With --config-path only that settings file of the agent is checked, "
			"and the exit status is 0 if an agent would accept it.",
	},
	{
		.name = "completion",
		.run = command_completion,
		.takes_arguments = true,
		.summary = "print a shell completion script",
		.synopsis = "bash|zsh|fish",
		.usage = "usage: fathom completion bash|zsh|fish\n"
			 "Prints a completion script: source <(fathom completion bash)\n",
		.description =
			"Prints a script that completes commands, options and their values. "
			"`make install' installs them where the shells look for them; for the "
			"current session: source <(fathom completion bash), or in fish: "
			"fathom completion fish | source.",
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

int commands_help(const struct command *command)
{
	fputs(command->usage, stdout);
	if (command->settings)
		config_print_options(stdout, command->settings);
	return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
}

static int usage_error_of(const struct command *command, const char *argument)
{
	fprintf(stderr, "fathom %s: '%s' is an unexpected argument; see fathom %s --help\n",
		command->name, argument, command->name);
	return EXIT_USAGE;
}

static int run_with_settings(struct invocation *call)
{
	const struct command *command = call->command;
	struct config *config = &call->config;

	if (config_parse(config, command->settings, call->argc, call->argv))
		return EXIT_USAGE;
	if (config_flag(config, SETTING_help))
		return commands_help(command);
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
	if (call->command->usage && asks_for_help(call->argc, call->argv))
		return commands_help(call->command);
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
