/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates the man(7) page from the tables of commands and settings; `make` writes it to
 * build/fathom.1. Sections without a table (signals, HTTP, files) are written here.
 */
#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/settings/config.h"
#include "base/cleanup.h"
#include "base/version.h"

/* Escapes plain text for roff: hyphens stay copyable, and no line starts a request. */
static void put_text(const char *text)
{
	bool begin = true;

	for (; *text; text++) {
		if (begin && (*text == '.' || *text == '\''))
			fputs("\\&", stdout);
		begin = *text == '\n';
		if (begin)
			fputs("\n.PP", stdout);
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\'')
			fputs("\\(aq", stdout);
		else if (*text == '`')
			fputs("\\(ga", stdout);
		else
			putchar(*text);
	}
}

static void put_option(enum setting id)
{
	const struct setting_row *row = config_row(id);
	char name[80];

	puts(".TP");
	if (row->letter)
		printf("\\fB\\-%c\\fR, ", row->letter);
	fputs("\\fB\\-\\-", stdout);
	put_text(row->name);
	fputs("\\fR", stdout);
	if (row->argument)
		printf("=\\fI%s\\fR", row->argument);
	putchar('\n');
	put_text(row->help);
	putchar('.');
	if (row->fallback) {
		fputs(" Default: ", stdout);
		put_text(row->fallback);
		putchar('.');
	}
	if (id != SETTING_help) {
		config_environment_name(id, name, sizeof(name));
		printf("\nEnvironment: \\fB%s\\fR.", name);
	}
	putchar('\n');
}

static void put_synopsis(void)
{
	const struct command *command;

	puts(".SH SYNOPSIS");
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->summary)
			continue;
		printf("%s.B fathom %s\n", i ? ".br\n" : "", command->name);
		put_text(command->synopsis);
		putchar('\n');
	}
	puts(".br\n.B fathom \\-\\-help\n|\n.B \\-\\-version");
}

static void put_commands(void)
{
	const struct command *command;

	puts(".SH COMMANDS");
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->summary)
			continue;
		printf(".SS fathom %s\n", command->name);
		put_text(command->description);
		putchar('\n');
	}
}

static void put_options(void)
{
	const struct command *command;

	puts(".SH OPTIONS\nTimes are in seconds or have a unit: 500ms, 10s, 2m, 1h. Sizes in "
	     "bytes may end in K, M or G. List items are separated by commas, or the option is "
	     "repeated; a comma inside an item is escaped with a backslash.");
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->summary || !command->settings)
			continue;
		printf(".SS Options of fathom %s\n", command->name);
		for (enum setting id = 0; id < SETTING_COUNT; id++) {
			if ((config_row(id)->commands & command->settings) && !config_is_hidden(id))
				put_option(id);
		}
	}
}

static void put_configuration(void)
{
	char name[80];

	puts(".SH CONFIGURATION\n\\fBfathom agent \\-\\-config\\-path\\fR \\fIFILE\\fR reads a "
	     "YAML "
	     "file of \\fIkey\\fR: \\fIvalue\\fR lines. The command line takes precedence over the "
	     "environment, and the environment over the file. A file with an error is rejected as "
	     "a whole; the message names its line and key. Keys and environment names:");
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (!(config_row(id)->commands & IN_AGENT) || !config_in_file(id))
			continue;
		config_environment_name(id, name, sizeof(name));
		fputs(".TP\n\\fB", stdout);
		put_text(config_row(id)->name);
		printf("\\fR\n%s\n", name);
	}
	puts(".PP\nOther commands take their options from the environment in the same way.");
}

struct entry {
	const char *head, *text;
};

static void put_entries(const char *section, const struct entry *entries, size_t count)
{
	printf(".SH %s\n", section);
	for (size_t i = 0; i < count; i++) {
		fputs(".TP\n\\fB", stdout);
		put_text(entries[i].head);
		fputs("\\fR\n", stdout);
		put_text(entries[i].text);
		putchar('\n');
	}
}

static const struct entry signal_entries[] = {
	{ "SIGINT, SIGTERM",
		"Stop cleanly. record writes what was collected, agent stores its last window, top "
		"restores the terminal. A second SIGINT ends record's wait for names." },
	{ "SIGHUP", "agent: reload the settings. Other commands stop." },
	{ "SIGTSTP, SIGCONT, SIGWINCH", "top: suspend, resume, adapt to the terminal's new size." },
};

static const struct entry http_entries[] = {
	{ "GET /", "the page: flame graphs of the recent past" },
	{ "GET /debug/pprof/profile?seconds=N[&pid=P][&hz=F]",
		"a profile of the next N seconds (1 to 300), for go tool pprof; with hz=F at least "
		"F samples a second on each CPU (up to 1000)" },
	{ "GET /debug/pprof/merge?from=TIME[&to=TIME][&group=G][&container=C][&comm=NAME]",
		"what is stored of that time as one profile; TIME is in RFC 3339, in seconds since "
		"1970, or so long ago: 15m, 2h" },
	{ "GET /debug/pprof/", "a list of these profiles" },
	{ "POST /debug/pprof/symbol", "returns no names; exists because pprof expects it" },
	{ "GET /api/profiles?from=&to=",
		"JSON list of the stored profiles (ms since 1970); of a file that has minutes, one "
		"entry each" },
	{ "GET /api/profiles/PATH", "one stored file" },
	{ "GET /api/merged?from=&to=",
		"stored profiles as one, by file, for the page (ms since 1970)" },
	{ "GET /api/latency?from=&to=",
		"JSON: how long functions took in recent windows (ms since 1970)" },
	{ "GET /metrics", "OpenMetrics text" },
	{ "GET /status", "JSON: settings, sizes, what was lost, own CPU" },
	{ "GET /healthy, /-/healthy", "200 while the agent runs" },
	{ "GET /ready, /-/ready", "200 if it samples, else 503" },
	{ "POST /-/reload", "reload the settings; 400 with the line and key of an error" },
};

static const struct entry file_entries[] = {
	{ "/etc/fathom/fathom.yaml", "The agent's settings when started by the systemd unit." },
	{ "/var/lib/fathom/profiles",
		"The local store: DATE/TIME-LENGTH.pb.gz, for go tool pprof; after an hour, and "
		"again after a day, ten minutes become one file, without process IDs." },
	{ "/var/lib/fathom/spool", "Profiles waiting to be sent to remote stores." },
	{ "/var/cache/fathom",
		"Cached module indexes; may be removed at any time. For users other than root: "
		"~/.cache/fathom." },
	{ "/var/cache/fathom/http-token",
		"The token of the HTTP address, unless \\-\\-http\\-token\\-file names one." },
	{ "fathom.pb.gz", "The default output file of record." },
};

static const struct entry status_entries[] = {
	{ "0", "Success." },
	{ "1", "Failed; standard error says why and what to do." },
	{ "2", "Usage error: a bad option, value or settings file." },
	{ "status of CMD",
		"Of record, latency and trace with a CMD that ends the run with another status "
		"than 0: that status; 128 + N if signal N has killed it, 126 if it cannot be "
		"executed, "
		"127 if it is not there. Standard error says if fathom itself has failed, too." },
};

static const struct entry example_entries[] = {
	{ "sudo fathom top", "Live view; f shows functions." },
	{ "sudo fathom record -d 10", "The whole machine for ten seconds." },
	{ "sudo fathom record -p 1234 -d 30 -o app.pb.gz", "One process." },
	{ "sudo fathom record -- make -j8", "A command and its children." },
	{ "go tool pprof -http=: fathom.pb.gz", "View a profile." },
	{ "sudo fathom top -b -n 5 --by function", "Five tables, for a pipe or file." },
	{ "sudo fathom agent", "The page is at http://127.0.0.1:7071/." },
	{ "go tool pprof 'http://127.0.0.1:7071/debug/pprof/profile?seconds=5'",
		"A profile from a running agent." },
	{ "sudo fathom latency -p 1234 -u 'main.*' --exclude-vendor -d 10",
		"Latencies of a Go program's own functions." },
	{ "sudo fathom latency -u 'nginx:ngx_http_*' -i 1 -d 10",
		"Functions of all nginx processes, each second." },
	{ "echo 0x1149 | fathom symbolize -e ./program", "Look up an address." },
	{ "fathom symbolize --profile bare.pb.gz -o named.pb.gz",
		"Add names to a profile that was written without them." },
};

static const struct entry label_entries[] = {
	{ "pid, tid, cpu", "Process, thread and CPU; numbers, as all IDs." },
	{ "comm, thread_comm", "Names of the process and of the thread." },
	{ "container_id", "The container, if the process is in one." },
	{ "goid", "The goroutine that the thread runs, or works for." },
	{ "go_created_by, go_created_at",
		"The function whose go statement created the goroutine; its file and line." },
	{ "go_parent_goid", "The goroutine that did so (Go 1.21 and newer)." },
	{ "go_state", "What the thread does: user (the goroutine itself), g0 (the runtime or C "
		      "code for it), "
		      "gc_worker, signal, scheduler or idle (for no goroutine)." },
	{ "go_wait_reason",
		"Why the goroutine waits, where its thread waits with it: LockOSThread." },
	{ "any other", "Labels that a Go program set with pprof.Do or SetGoroutineLabels." },
};

int command_manual(struct invocation *call)
{
	(void)call;
	puts(".TH FATHOM 1 \"2026-11-21\" \"fathom " FATHOM_VERSION
	     "\" \"User Commands\"\n.SH NAME\n"
	     "fathom \\- a sampling profiler for whole Linux machines");
	put_synopsis();
	puts(".SH DESCRIPTION\nFathom samples every process and the kernel, resolves functions "
	     "locally (inlined functions, Go, JITs, short\\-lived processes, containers), labels "
	     "samples with process, thread, CPU and goroutine, and writes profiles for "
	     "\\fBgo tool pprof\\fR. Addresses without a known symbol stay addresses, and "
	     "everything "
	     "that is lost is counted.");
	put_commands();
	put_options();
	put_configuration();
	put_entries("LABELS OF SAMPLES", label_entries, ARRAY_SIZE(label_entries));
	put_entries("SIGNALS", signal_entries, ARRAY_SIZE(signal_entries));
	put_entries("HTTP", http_entries, ARRAY_SIZE(http_entries));
	puts(".PP\nServed by \\fBfathom agent\\fR at \\-\\-http\\-address. Anyone may read health, "
	     "readiness and /metrics. The rest is for root and the agent's own user on this "
	     "machine, and for clients that send the token (\\-\\-http\\-token\\-file): "
	     "\\fBAuthorization: Bearer\\fR, or as the password of any user. A GET changes "
	     "nothing.");
	put_entries("FILES", file_entries, ARRAY_SIZE(file_entries));
	put_entries("EXIT STATUS", status_entries, ARRAY_SIZE(status_entries));
	put_entries("EXAMPLES", example_entries, ARRAY_SIZE(example_entries));
	puts(".SH SEE ALSO\n.BR perf (1),\n.BR capabilities (7)");
	return EXIT_DONE;
}
