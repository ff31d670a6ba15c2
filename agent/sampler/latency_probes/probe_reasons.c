/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe waits for, when nothing is wrong with what there is of it so far. */
#include <stdio.h>

#include "agent/sampler/functions/glob.h"
#include "agent/sampler/latency_probes/latency_probes_internal.h"

/* What is known of one pattern in the files that its processes map. */
struct pattern_search {
	const struct probe_run *unnamed; /* a run of a file that it names no function of */
	bool concerned; /* there is a file that it may name functions of */
	bool pending; /* such a file is not indexed yet */
	bool named;
};

static bool pattern_concerns(const struct function_pattern *pattern, const struct probed_file *file)
{
	return pattern->binary ? function_pattern_names_file(pattern, file->path) : file->program;
}

static bool file_was_searched(const struct probed_file *file)
{
	return file->state == PROBED_FILE_READY || file->state == PROBED_FILE_ATTACHING;
}

static void pattern_search_in(
	struct pattern_search *s, const struct probe_run *run, size_t pattern, bool concerned)
{
	const struct probed_file file = probed_files_at(run->files, 0);

	if (!concerned)
		return;
	s->concerned = true;
	if (file.state == PROBED_FILE_WAITING)
		s->pending = true;
	if (!file_was_searched(&file))
		return;
	if (probed_files_matches(run->files, pattern))
		s->named = true;
	else
		s->unnamed = run;
}

static struct pattern_search pattern_search(const struct named_probe *np, size_t pattern)
{
	struct pattern_search s = { 0 };

	for (size_t r = 0; r < np->run_count; r++) {
		const struct probe_run *run = np->runs[r];
		struct probed_file file;

		if (run->ended || !run->files || !probed_files_count(run->files))
			continue;
		file = probed_files_at(run->files, 0);
		pattern_search_in(
			&s, run, pattern, pattern_concerns(&np->spec.wanted.items[pattern], &file));
	}
	return s;
}

static void reason_of_unnamed(const struct function_pattern *pattern, const struct probe_run *run,
	char text[PROBE_REASON_BYTES])
{
	const struct probed_file file = probed_files_at(run->files, 0);

	snprintf(text, PROBE_REASON_BYTES, "%s has no function %s%s%s%s", file.path, pattern->glob,
		run->nearest.text ? " (did you mean " : "",
		run->nearest.text ? run->nearest.text : "", run->nearest.text ? "?)" : "");
}

/* Of a file that none of the processes maps, as far as that is known. */
static void reason_of_file(const struct function_pattern *pattern, char text[PROBE_REASON_BYTES])
{
	if (pattern->binary)
		snprintf(text, PROBE_REASON_BYTES, "none of the selected processes maps %s",
			pattern->binary);
	else
		snprintf(text, PROBE_REASON_BYTES,
			"the program of the selected processes is not known yet");
}

static void reason_of_pattern(const struct named_probe *np, size_t number, bool is_measured,
	char text[PROBE_REASON_BYTES])
{
	const struct function_pattern *pattern = &np->spec.wanted.items[number];
	const struct pattern_search s = pattern_search(np, number);

	if (s.named || (is_measured && (s.pending || !s.concerned)))
		return;
	if (s.pending)
		snprintf(text, PROBE_REASON_BYTES, "a file is being indexed");
	else if (s.unnamed)
		reason_of_unnamed(pattern, s.unnamed, text);
	else if (!s.concerned)
		reason_of_file(pattern, text);
}

static void reason_of_kernel(const struct named_probe *np, char text[PROBE_REASON_BYTES])
{
	const struct kernel_functions *kernel = NULL;

	for (size_t r = 0; r < np->run_count; r++)
		if (!np->runs[r]->ended)
			kernel = np->runs[r]->kernel;
	if (!kernel || !kernel_functions_were_chosen(kernel))
		return;
	for (size_t i = 0; i < np->spec.wanted.count && !*text; i++)
		if (!kernel_functions_matches(kernel, i))
			snprintf(text, PROBE_REASON_BYTES, "the kernel has no function %s",
				np->spec.wanted.items[i].text);
}

void probe_reason(const struct latency_probes *lp, const struct named_probe *np, bool is_measured,
	char text[PROBE_REASON_BYTES])
{
	text[0] = 0;
	if (np->spec.of.kernel) {
		reason_of_kernel(np, text);
		return;
	}
	if (!process_sets_count(&lp->processes, np->set)) {
		snprintf(text, PROBE_REASON_BYTES, "no process is selected");
		return;
	}
	for (size_t i = 0; i < np->spec.wanted.count && !*text; i++)
		reason_of_pattern(np, i, is_measured, text);
}

/* Only of the first such pattern: the names of a large file take some hundredths of a second. */
void probe_reason_look(
	const struct named_probe *np, struct probe_run *run, const struct index *index)
{
	const struct probed_file file = probed_files_at(run->files, 0);

	if (run->nearest.text || !index_has_functions(index) || !file_was_searched(&file))
		return;
	for (size_t i = 0; i < np->spec.wanted.count; i++) {
		const struct function_pattern *pattern = &np->spec.wanted.items[i];

		if (!pattern_concerns(pattern, &file) || probed_files_matches(run->files, i))
			continue;
		/* Without memory there is no hint. */
		if (!glob_has_wildcards(pattern->glob))
			(void)nearest_name_find(index, pattern->glob, &run->nearest);
		return;
	}
}
