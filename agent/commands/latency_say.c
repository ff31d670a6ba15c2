/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency_say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void say_file(const struct probed_file *file, const struct latency_plan *plan)
{
	if (file->state == PROBED_FILE_READY)
		return;
	if (file->err == -E2BIG)
		fprintf(stderr,
			"fathom %s: %s: the patterns name %zu functions, %d are possible at "
			"once; a narrower pattern or --exclude helps\n",
			plan->name, file->path, file->probeable, LATENCY_MAX_FUNCTIONS);
	else
		fprintf(stderr, "fathom %s: %s: %s%s%s\n", plan->name, file->path,
			file->state == PROBED_FILE_NOT_ATTACHED ? file->step : "",
			file->state == PROBED_FILE_NOT_ATTACHED ? ": " : "", reason_of(file));
}

static struct latency_tally tally_of_kernel(const struct kernel_functions *kernel)
{
	struct latency_tally tally = { 0 };

	for (size_t i = 0; kernel && i < kernel_functions_count(kernel); i++) {
		if (kernel_functions_at(kernel, i)->refusal || kernel_functions_problem(kernel))
			tally.refused++;
		else
			tally.measured++;
	}
	return tally;
}

static struct latency_tally tally_of(
	const struct probed_files *files, const struct kernel_functions *kernel)
{
	struct latency_tally tally = tally_of_kernel(kernel);

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

	for (size_t i = 0; i < plan->wanted.count - plan->optional; i++) {
		const struct function_pattern *pattern = &plan->wanted.items[i];
		bool seen = was_seen(files, pattern);

		may_come |= !seen;
		if (!probed_files_matches(files, i))
			fprintf(stderr, "fathom %s: -u '%s': %s\n", plan->name, pattern->text,
				seen ? "there is no such function"
				     : "no process maps such a file so far");
	}
	return may_come;
}

/* Attaching can take seconds, so a person is told when it has ended. CMD's output is left alone. */
static void say_probed(const struct latency_plan *plan, size_t count)
{
	if (!plan->command && !plan->dry_run && !plan->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "fathom %s: %zu function%s probed; Ctrl-C ends\n", plan->name,
			count, count == 1 ? " is" : "s are");
}

/* Why nothing is left of what the patterns name. */
static void say_excluded(const struct probed_files *files, const struct kernel_functions *kernel,
	const struct latency_plan *plan)
{
	size_t count = kernel ? kernel_functions_excluded(kernel) : 0;

	for (size_t i = 0; i < probed_files_count(files); i++) {
		const struct probed_file file = probed_files_at(files, i);

		count += file.excluded + file.vendored;
	}
	if (count)
		fprintf(stderr, "fathom %s: excluded: %zu function%s\n", plan->name, count,
			count == 1 ? "" : "s");
}

static int say_begin(const struct probed_files *files, const struct kernel_functions *kernel,
	const struct latency_plan *plan)
{
	const struct latency_tally tally = tally_of(files, kernel);
	bool may_come = say_patterns(files, plan);

	if (tally.refused && !plan->dry_run)
		fprintf(stderr,
			"fathom %s: %zu of the functions cannot be %s; --dry-run says why\n",
			plan->name, tally.refused, plan->calls ? "traced" : "measured");
	if (tally.measured)
		say_probed(plan, tally.measured);
	if (tally.measured || (plan->dry_run && tally.refused))
		return 0;
	if (!may_come || plan->dry_run) {
		say_excluded(files, kernel, plan);
		fprintf(stderr, "fathom %s: there is nothing to %s%s\n", plan->name,
			plan->calls ? "trace" : "measure",
			plan->command && plan->wanted.count
				? "; if CMD starts another program, name that: -u "
				  "/path/of/program:PATTERN"
				: "");
		return -ENOENT;
	}
	fprintf(stderr, "fathom %s: waiting for a process with such functions\n", plan->name);
	return 0;
}

static int say_end(const struct probed_files *files, const struct kernel_functions *kernel,
	const struct latency_plan *plan)
{
	if (tally_of(files, kernel).measured)
		return 0;
	fprintf(stderr, "fathom %s: no process had such functions\n", plan->name);
	return -ENOENT;
}

int latency_say_kernel(const struct kernel_functions *kernel, const struct latency_plan *plan)
{
	const char *problem = kernel ? kernel_functions_problem(kernel) : NULL;

	if (problem)
		fprintf(stderr, "fathom %s: kernel functions cannot be probed: %s\n", plan->name,
			problem);
	if (problem && plan->wanted.count && !plan->dry_run)
		fprintf(stderr,
			"fathom %s: nothing is %s; leave out -k to %s the functions of -u\n",
			plan->name, plan->calls ? "traced" : "measured",
			plan->calls ? "trace" : "measure");
	for (size_t i = 0; kernel && i < plan->kernel_wanted.count - plan->kernel_optional; i++)
		if (kernel_functions_were_chosen(kernel) && !kernel_functions_matches(kernel, i))
			fprintf(stderr, "fathom %s: -k '%s': the kernel has no such function\n",
				plan->name, plan->kernel_wanted.items[i].text);
	return problem && !plan->dry_run ? -EOPNOTSUPP : 0;
}

int latency_say_files(const struct probed_files *files, const struct kernel_functions *kernel,
	const struct latency_plan *plan, bool begins)
{
	for (size_t i = 0; i < probed_files_count(files); i++) {
		const struct probed_file file = probed_files_at(files, i);

		if (begins || file.state == PROBED_FILE_CHANGED)
			say_file(&file, plan);
	}
	return begins ? say_begin(files, kernel, plan) : say_end(files, kernel, plan);
}
