/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency_say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct latency_tally {
	size_t measured, refused; /* functions */
};

static const char *reason_of(const struct probed_file *file)
{
	switch (file->state) {
	case PROBED_FILE_NO_INDEX:
		return "its functions could not be read";
	case PROBED_FILE_WAITING:
		return "its functions could not be read in time";
	case PROBED_FILE_CHANGED:
		return "it was written to, so that measuring it had to end";
	default:
		return file->err == -ESTALE ? "it was written to meanwhile" : strerror(-file->err);
	}
}

static void say_file(const struct probed_file *file)
{
	if (file->state == PROBED_FILE_READY)
		return;
	if (file->err == -E2BIG)
		fprintf(stderr,
			"fathom latency: %s: the patterns name %zu functions, %d are possible at "
			"once; a narrower pattern or --exclude helps\n",
			file->path, file->probeable, LATENCY_MAX_FUNCTIONS);
	else
		fprintf(stderr, "fathom latency: %s: %s%s%s\n", file->path,
			file->state == PROBED_FILE_NOT_ATTACHED ? file->step : "",
			file->state == PROBED_FILE_NOT_ATTACHED ? ": " : "", reason_of(file));
}

static struct latency_tally tally_of(const struct probed_files *files)
{
	struct latency_tally tally = { 0 };

	for (size_t i = 0; i < probed_functions_count(files); i++) {
		if (probed_functions_at(files, i)->state == PROBED_FUNCTION_MEASURED)
			tally.measured++;
		else
			tally.refused++;
	}
	return tally;
}

/* Whether a file that PATTERN applies to was looked at. */
static bool was_seen(const struct probed_files *files, const struct function_pattern *pattern)
{
	if (!pattern->binary)
		return probed_files_count(files) > 0;
	for (size_t i = 0; i < probed_files_count(files); i++)
		if (function_pattern_names_file(pattern, probed_files_at(files, i).path))
			return true;
	return false;
}

/* Returns whether a file may still come that one of the patterns names. */
static bool say_patterns(const struct probed_files *files, const struct latency_plan *plan)
{
	bool may_come = false;

	for (size_t i = 0; i < plan->wanted.count; i++) {
		const struct function_pattern *pattern = &plan->wanted.items[i];
		bool seen = was_seen(files, pattern);

		may_come |= !seen;
		if (!probed_files_matches(files, i))
			fprintf(stderr, "fathom latency: -u '%s': %s\n", pattern->text,
				seen ? "there is no such function"
				     : "no process maps such a file so far");
	}
	return may_come;
}

static int say_begin(const struct probed_files *files, const struct latency_plan *plan)
{
	const struct latency_tally tally = tally_of(files);
	bool may_come = say_patterns(files, plan);

	if (tally.refused && !plan->dry_run)
		fprintf(stderr,
			"fathom latency: %zu of the functions cannot be measured; --dry-run says "
			"why\n",
			tally.refused);
	if (tally.measured || (plan->dry_run && tally.refused))
		return 0;
	if (!may_come || plan->dry_run) {
		fprintf(stderr, "fathom latency: there is nothing to measure%s\n",
			plan->command ? "; if CMD starts another program, name that: -u "
					"/path/of/program:PATTERN"
				      : "");
		return -ENOENT;
	}
	fprintf(stderr, "fathom latency: waiting for a process with such functions\n");
	return 0;
}

static int say_end(const struct probed_files *files)
{
	if (tally_of(files).measured)
		return 0;
	fprintf(stderr, "fathom latency: no process had such functions\n");
	return -ENOENT;
}

int latency_say_files(
	const struct probed_files *files, const struct latency_plan *plan, bool begins)
{
	for (size_t i = 0; i < probed_files_count(files); i++) {
		const struct probed_file file = probed_files_at(files, i);

		if (begins || file.state == PROBED_FILE_CHANGED)
			say_file(&file);
	}
	return begins ? say_begin(files, plan) : say_end(files);
}
