/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/commands.h"

#include <string.h>

#include "base/cleanup.h"

static const struct command commands[] = {
	{ "agent", command_agent, IN_AGENT,
		"sample all the time: a page, stored profiles, profiles on demand",
		"[--config-path FILE] [OPTION]...",
		"Samples all processes and the kernel without end. Each window (ten seconds, "
		"unless "
		"told otherwise) becomes one pprof file for each container or program in the local "
		"store, which is bounded in size and age. A page with flame graphs of the recent "
		"past, metrics and profiles on demand are served over HTTP.\n"
		"The agent keeps itself under its CPU budget by sampling less often; each profile "
		"says how often it was." },
	{ "record", command_record, IN_RECORD,
		"sample processes and the kernel, write a pprof file",
		"[OPTION]... [-- CMD ARG...]",
		"Samples all processes and the kernel, or those chosen, until Ctrl-C or for the "
		"time "
		"of -d, and writes a gzip-compressed pprof file that go tool pprof reads. With CMD "
		"it runs that command and samples it and what it starts, from the first "
		"instruction "
		"to the end; with -a, -p, -t or -G those are sampled, while CMD runs. A run ends "
		"when all of -p or -t have ended, too.\n"
		"At the end it prints the hottest functions, what was lost and why, the share of "
		"complete stacks, and its own CPU time." },
	{ "top", command_top, IN_TOP, "show what the CPUs do now: processes, functions, goroutines",
		"[OPTION]...",
		"Samples and shows, anew each second, processes with their CPU time and hottest "
		"function, functions with their own (self) and their whole (total) share of all "
		"samples, or goroutines with the function of theirs that they are in. Processes "
		"and "
		"goroutines are shown in percent of one CPU.\n"
		"Keys: p, f, g and Tab choose the table; s orders by another column, r reverses; / "
		"takes a filter (Enter keeps it, Esc drops it); j, k, arrows and Page keys move; "
		"Space holds the picture; ? helps; q ends.\n"
		"With -b tables are printed one after the other, for pipes and files." },
	{ "symbolize", command_symbolize, IN_SYMBOLIZE,
		"turn addresses of a file, a process or the kernel into functions and lines",
		"(-e FILE | -p PID | -k | --profile FILE -o FILE) [OPTION]...",
		"Reads addresses (0x..., one a line) of an ELF file, of a process that runs, or of "
		"the "
		"kernel from standard input and prints for each the function and file:line:column, "
		"inlined calls innermost first, then an empty line. What is not known is printed "
		"as ?? and ??:0:0. Functions of kernel modules and BPF programs are followed by "
		"[MODULE].\n"
		"With --profile it gives the locations of a pprof file that have no names theirs: "
		"from files of the mappings' names with the same build ID, debug files below "
		"--debuginfo-directories, the servers of --debuginfod-urls and the index cache. "
		"Names that are there stay, and what has "
		"another build ID stays an address." },
	{ "upload", command_upload, IN_UPLOAD, "send pprof files to Pyroscope, Parca or OTLP",
		"--remote-store-type TYPE --remote-store-address ADDRESS [OPTION]... FILE...",
		"Sends existing pprof files to a server, as the agent would have sent them, or "
		"into "
		"a directory." },
	{ "check", command_check, IN_CHECK,
		"say what this machine allows, and what each missing piece costs", "[OPTION]...",
		"Tries what the profiler needs and prints one line for each: ok, degraded or "
		"missing, why, and what to do. The last lines, uprobe_multi, fentry and tracefs, "
		"tell "
		"whether functions could be attached to; sampling does not need them. The exit "
		"status "
		"is 0 where the sampler can run." },
	{ "completion", command_completion, 0, "print the completion script of a shell", "bash|zsh",
		"Prints a script that completes commands, options and their values. `make install' "
		"puts both where the shells look for them; for one session: "
		"source <(fathom completion bash)." },
	{ "manual", command_manual, 0, NULL, NULL, NULL },
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
