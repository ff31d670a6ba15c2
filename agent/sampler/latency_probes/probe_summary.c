/* SPDX-License-Identifier: Apache-2.0 */
/* What a window says about a probe as a whole. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/sampler/latency_probes/latency_probes_internal.h"
#include "base/cleanup.h"

__attribute__((format(printf, 2, 3))) static void summary_say(
	struct probe_summary *summary, const char *format, ...)
{
	va_list arguments;

	if (*summary->reason)
		return;
	va_start(arguments, format);
	vsnprintf(summary->reason, sizeof(summary->reason), format, arguments);
	va_end(arguments);
}

static void summary_add_function(const struct latency_probes *lp, const struct run_function *f,
	struct probe_summary *summary)
{
	if (*f->refusal) {
		summary_say(summary, "%s: %s", f->name, f->refusal);
		summary->refused_functions++;
		return;
	}
	summary->functions += f->measured;
	summary->sites += f->measured ? f->sites : 0;
	if (f->measured)
		summary->factor = MAX(summary->factor, latency_factor(lp->latency, f->number));
}

static void summary_add_kernel(const struct probe_run *run, struct probe_summary *summary)
{
	const char *problem = kernel_functions_problem(run->kernel);

	if (problem)
		summary_say(summary, "%s", problem);
}

static void summary_add_file(
	const struct probe_run *run, const struct probed_file *file, struct probe_summary *summary)
{
	summary->sites += file->sites;
	summary->files += file->sites > 0;
	switch (file->state) {
	case PROBED_FILE_NOT_OPENED:
		summary_say(summary, "%s cannot be opened: %s", file->path, strerror(-file->err));
		break;
	case PROBED_FILE_NO_INDEX:
		summary_say(summary, "%s cannot be indexed", file->path);
		break;
	case PROBED_FILE_NOT_ATTACHED:
		summary_say(summary, "%s: cannot %s: %s", file->path, file->step,
			file->err == -E2BIG ? "too many functions" : strerror(-file->err));
		break;
	default:
		summary->waiting += !run->ended && (file->state == PROBED_FILE_WAITING ||
							   file->state == PROBED_FILE_ATTACHING);
		return;
	}
	summary->refused_files++;
}

static void summary_add_run(
	const struct latency_probes *lp, const struct probe_run *run, struct probe_summary *summary)
{
	struct probed_file file;

	if (run->kernel) {
		summary_add_kernel(run, summary);
	} else if (probed_files_count(run->files)) {
		file = probed_files_at(run->files, 0);
		summary_add_file(run, &file, summary);
	}
	for (size_t i = 0; i < run_function_count(run); i++) {
		const struct run_function f = run_function_at(run, i);

		summary_add_function(lp, &f, summary);
	}
}

static enum window_latency_state summary_state(
	const struct named_probe *np, const struct probe_summary *summary)
{
	if (np->removed)
		return WINDOW_LATENCY_REMOVED;
	if (np->suspended_until_ns)
		return WINDOW_LATENCY_SUSPENDED;
	if (summary->sites)
		return WINDOW_LATENCY_MEASURED;
	return *summary->reason && !summary->waiting ? WINDOW_LATENCY_REFUSED
						     : WINDOW_LATENCY_WAITING;
}

/* A file without functions of these names is no trouble: another one may have them. */
void probe_summary_make(const struct latency_probes *lp, const struct named_probe *np,
	struct probe_summary *ret_summary)
{
	struct probe_summary *summary = ret_summary;

	*summary = (struct probe_summary){ .factor = 1 };
	if (np->spec.of.kernel && *lp->kernel_problem)
		summary_say(summary, "%s", lp->kernel_problem);
	if (np->files_refused)
		summary_say(summary, "more than %d files, or too little memory", PROBE_FILES_MAX);
	for (size_t r = 0; r < np->run_count; r++) {
		const struct probe_run *run = np->runs[r];

		if (!run->ended)
			summary_add_run(lp, run, summary);
	}
	summary->state = summary_state(np, summary);
	if (!*summary->reason && summary->state <= WINDOW_LATENCY_MEASURED)
		probe_reason(lp, np, summary->state == WINDOW_LATENCY_MEASURED, summary->reason);
}
