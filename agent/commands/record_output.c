/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/commands/debug_package.h"
#include "agent/commands/record.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pid_namespace.h"

static double record_output_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* `reason="ring_full"` → `ring_full`. */
static void print_label_value(const char *label, uint64_t value, bool first)
{
	const char *start = strchr(label, '"');

	if (!start)
		return;
	start++;
	fprintf(stderr, "%s%.*s %llu", first ? " (" : ", ", (int)strcspn(start, "\""), start,
		(unsigned long long)value);
}

static uint64_t total_of(const struct metrics *metrics, const char *name)
{
	uint64_t total = 0;

	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		if (!strcmp(metric_texts[id].name, name))
			total += metrics_get(metrics, id);
	}
	return total;
}

/* Prints ` (no_table 8, depth 1)`, or nothing, then ends the line. */
static void print_reasons(const struct metrics *metrics, const char *name)
{
	bool first = true;

	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		uint64_t value = metrics_get(metrics, id);

		if (value && !strcmp(metric_texts[id].name, name)) {
			print_label_value(metric_texts[id].label, value, first);
			first = false;
		}
	}
	fputs(first ? "\n" : ")\n", stderr);
}

static void print_losses(const struct metrics *metrics)
{
	static const char name[] = "fathom_samples_lost_total";

	fprintf(stderr, "lost:     %llu", (unsigned long long)total_of(metrics, name));
	print_reasons(metrics, name);
}

/* One line for each loss that has several reasons. */
static void print_incomplete(const struct metrics *metrics)
{
	static const struct {
		const char *name, *text;
	} losses[] = {
		{ "fathom_unwind_truncated_total", "user stacks truncated" },
		{ "fathom_samples_unnamed_total",
			"samples without names because the code they ran is not known for "
			"certain" },
		{ "fathom_go_labels_lost_total",
			"samples of Go programs without some of their pprof labels" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		uint64_t total = total_of(metrics, losses[i].name);

		if (!total)
			continue;
		fprintf(stderr, "          %llu %s", (unsigned long long)total, losses[i].text);
		print_reasons(metrics, losses[i].name);
	}
}

/* Prints one line for each other problem; prints nothing if there was none. */
static void print_troubles(const struct metrics *metrics)
{
	static const struct {
		enum metric id;
		const char *text;
	} troubles[] = {
		{ METRIC_STACK_MISSING, "samples without a stack because a ring buffer was full" },
		{ METRIC_SIDEBAND_GAPS,
			"times that records of processes and mappings were lost, or may have "
			"been" },
		{ METRIC_STACKS_GUESSED, "user stacks with a caller that was found by a search" },
		{ METRIC_LOST_SIDEBAND, "records that the kernel dropped" },
		{ METRIC_PROCESS_RESYNCS,
			"processes read again from /proc after records were lost" },
		{ METRIC_MODULE_OPEN_FAILED, "mapped files that could not be opened" },
		{ METRIC_INDEX_BUILDS_BAD_INPUT, "mapped files that are not readable ELF files" },
		{ METRIC_INDEX_BUILDS_LIMIT, "modules too large to index" },
		{ METRIC_INDEX_BUILDS_CRASH, "modules whose index builder crashed" },
		{ METRIC_GO_UNKNOWN_VERSION,
			"Go programs without goroutine IDs (unknown version)" },
		{ METRIC_FIBERS_UNREADABLE,
			"samples of Go programs whose goroutine could not be read" },
		{ METRIC_FIBERS_DROPPED,
			"goroutine IDs dropped because the process had executed another program" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(troubles); i++) {
		uint64_t value = metrics_get(metrics, troubles[i].id);

		if (value)
			fprintf(stderr, "          %llu %s\n", (unsigned long long)value,
				troubles[i].text);
	}
}

/* Of all types. */
static uint64_t record_output_samples(const struct report_summary *summary)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < SAMPLE_TYPES; i++)
		samples += summary->of[i].count;
	return samples;
}

/* One line for each program that stayed without names: how much, and what to do. */
static void print_nameless(const struct record_result *r)
{
	uint64_t all = r->summary.of[SAMPLE_TYPE_TICKS].count;
	char hint[512], package[128];

	for (size_t i = 0; i < r->nameless_count; i++) {
		const struct report_nameless *n = &r->nameless[i];
		bool found =
			n->why == NAMELESS_STRIPPED && !n->contained &&
			!debug_package_find(DEBUG_PACKAGE_LISTS, n->file, package, sizeof(package));

		nameless_hint(n, found ? package : NULL, hint, sizeof(hint));
		fprintf(stderr, "%-9s %s, %.1f%% of all samples: %s\n",
			i ? "" : "unnamed:", n->program, record_output_percent(n->count, all),
			hint);
	}
}

static void print_cost(const struct record_result *r)
{
	uint64_t samples = record_output_samples(&r->summary);

	fprintf(stderr, "own CPU:  %.1f ms", (double)r->cpu_ns / 1e6);
	if (r->start_cpu_ns)
		fprintf(stderr, ", %.1f ms of it to start", (double)r->start_cpu_ns / 1e6);
	if (samples)
		fprintf(stderr, "%s %.1f us per %s", r->start_cpu_ns ? ", then" : ",",
			(double)(r->cpu_ns - r->start_cpu_ns) / 1e3 / (double)samples,
			r->off_cpu ? "sample or wait" : "sample");
	if (r->builds_cpu_ns)
		fprintf(stderr, "; indexing new modules %.1f ms", (double)r->builds_cpu_ns / 1e6);
	if (r->bpf_runs)
		fprintf(stderr, "; in BPF %.2f us per %s",
			(double)r->bpf_ns / 1e3 / (double)r->bpf_runs,
			r->off_cpu ? "sample or context switch" : "sample");
	fputc('\n', stderr);
}

/* Prints what ended the run if it was neither the user nor CMD, and why the profile may be empty.
 */
static void print_ends(const struct record_result *r)
{
	if (r->targets_ended)
		fputs("          all selected processes or threads have ended\n", stderr);
	if (r->contained)
		fputs("          " PID_NAMESPACE_TROUBLE "\n          to do: " PID_NAMESPACE_FIX
		      "\n",
			stderr);
	else if (!record_output_samples(&r->summary) &&
		 !total_of(r->metrics, "fathom_samples_lost_total"))
		fputs("          the selected processes or threads were on no CPU when samples "
		      "were taken\n",
			stderr);
}

void record_print_result(const struct record_result *r)
{
	const struct report_summary *s = &r->summary;
	const struct report_total *ticks = &s->of[SAMPLE_TYPE_TICKS],
				  *waits = &s->of[PROBE_off_cpu];

	if (r->hot_count)
		fputs("\n   self  total  function\n", stderr);
	for (size_t i = 0; i < r->hot_count; i++)
		fprintf(stderr, "%6.1f%% %5.1f%%  %s  %s\n",
			record_output_percent(r->hot[i].self_count, ticks->count),
			record_output_percent(r->hot[i].total_count, ticks->count), r->hot[i].name,
			r->hot[i].module);
	fprintf(stderr, "\nsamples:  %llu in %.1f s\n", (unsigned long long)ticks->count,
		(double)r->elapsed_ns / 1e9);
	if (r->off_cpu)
		fprintf(stderr, "waits:    %llu completed, %.3f s in total\n",
			(unsigned long long)waits->count, (double)waits->weight / 1e9);
	print_ends(r);
	print_losses(r->metrics);
	if (s->user_stacks)
		fprintf(stderr,
			"stacks:   %.1f%% of user stacks complete, %.1f%% of user samples named\n",
			record_output_percent(s->complete_stacks, s->user_stacks),
			record_output_percent(s->named_user_frames, s->user_frames));
	print_incomplete(r->metrics);
	print_nameless(r);
	print_troubles(r->metrics);
	fprintf(stderr, "indexes:  %llu from the cache, %llu built\n",
		(unsigned long long)metrics_get(r->metrics, METRIC_INDEX_CACHE_HITS),
		(unsigned long long)metrics_get(r->metrics, METRIC_INDEX_BUILDS_OK));
	print_cost(r);
	if (r->output)
		fprintf(stderr,
			"\nwrote %s; look at it with: fathom view %s, or go tool pprof "
			"-http=:%s %s\n",
			r->output, r->output, r->everything ? " -tagroot=comm" : "", r->output);
	if (r->html)
		fprintf(stderr, "%swrote %s; open it in a browser\n", r->output ? "" : "\n",
			r->html);
	if (r->output && r->off_cpu)
		fprintf(stderr, "at waiting: go tool pprof -http=:%s -sample_index=off_cpu %s\n",
			r->everything ? " -tagroot=comm" : "", r->output);
}
