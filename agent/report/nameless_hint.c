/* SPDX-License-Identifier: Apache-2.0 */
/* What would name the samples of a program that have no names. */
#include <stdio.h>
#include <string.h>

#include "agent/report/nameless.h"
#include "base/cleanup.h"

/*
 * Runtimes with a JIT compiler, by the beginning of the program's name, and how each is told to
 * write a perf map, /tmp/perf-PID.map. %u is the process.
 */
static const struct {
	const char *program, *before, *after;
	bool names_process; /* between BEFORE and AFTER */
} jits[] = {
	{ "java", "jcmd ", " Compiler.perfmap; its callers need -XX:+PreserveFramePointer", true },
	{ "node", "start it with --perf-basic-prof", "", false },
	{ "chrom", "start it with --js-flags=--perf-basic-prof --no-sandbox", "", false },
	{ "dotnet", "start it with DOTNET_PerfMapEnabled=1", "", false },
	{ "python", "start it with -X perf (Python 3.12 and newer)", "", false },
	{ "ruby", "start it with --yjit --yjit-perf", "", false },
	{ "beam", "start it with +JPperf true", "", false },
	{ "php", "set opcache.jit_debug=16", "", false },
	{ "julia", "start it with ENABLE_JITPROFILING=1 and JULIA_PERFMAP=1", "", false },
	{ "wasmtime", "start it with --profile=perfmap", "", false },
};

static void jit_hint(const struct report_nameless *n, char *text, size_t size)
{
	static const char what[] = "JIT code without a perf map";

	for (size_t i = 0; i < ARRAY_SIZE(jits); i++) {
		char pid[16] = "";

		if (strncmp(n->program, jits[i].program, strlen(jits[i].program)) != 0)
			continue;
		if (jits[i].names_process)
			snprintf(pid, sizeof(pid), "%u", n->pid);
		snprintf(text, size, "%s: %s%s%s", what, jits[i].before, pid, jits[i].after);
		return;
	}
	snprintf(text, size,
		"%s: have its compiler write /tmp/perf-%u.map; or a packed program (UPX): unpack "
		"it",
		what, n->pid);
}

void nameless_hint(const struct report_nameless *n, const char *package, char *text, size_t size)
{
	const char *where = n->contained ? " (in its container)" : "";

	switch (n->why) {
	case NAMELESS_JIT:
		jit_hint(n, text, size);
		break;
	case NAMELESS_STRIPPED:
		if (package)
			snprintf(text, size,
				"no symbols in %s: install %s, or set --debuginfod-urls", n->file,
				package);
		else
			snprintf(text, size,
				"no symbols in %s%s: install its debug symbols, set "
				"--debuginfod-urls, or do not strip it",
				n->file, where);
		break;
	case NAMELESS_NO_INDEX:
		snprintf(text, size, "%s%s could not be read yet, or is not an ELF file", n->file,
			where);
		break;
	case NAMELESS_NOWHERE:
	case NAMELESS_REASONS:
		snprintf(text, size,
			"code in no mapping of its process: records of its mappings were lost, or "
			"it "
			"is packed (UPX)");
		break;
	}
}
