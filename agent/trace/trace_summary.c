/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trace/trace_summary.h"

#include <inttypes.h>
#include <stdlib.h>

#include "agent/latency/latency_figures.h"
#include "agent/trace/trace_text.h"
#include "base/array.h"
#include "base/cleanup.h"

enum { SLOWEST_SHOWN = 10 };

static const double SECOND_NS = 1e9;

void trace_summary_deinit(struct trace_summary *summary)
{
	free(summary->functions);
	*summary = (struct trace_summary){ 0 };
}

static int trace_summary_reserve(struct trace_summary *summary, uint32_t function)
{
	size_t before = summary->capacity;
	int err = array_reserve(summary->functions, summary->capacity, (size_t)function + 1,
		TRACE_SUMMARY_FUNCTIONS);

	for (size_t i = before; !err && i < summary->capacity; i++)
		summary->functions[i] = (struct trace_function_sums){ 0 };
	return err;
}

int trace_summary_add(struct trace_summary *summary, const struct trace_tree *tree)
{
	summary->trees += !tree->part;
	summary->unfinished += tree->end != TRACE_TREE_RETURNED && tree->end != TRACE_TREE_OPEN;
	summary->hidden += tree->hidden;
	summary->left_out += tree->left_out;
	for (size_t i = 0; i < tree->count; i++) {
		const struct trace_call *call = &tree->calls[i];
		int err = trace_summary_reserve(summary, call->function);
		struct trace_function_sums *sums;

		if (err)
			return err;
		sums = &summary->functions[call->function];
		summary->calls += !call->shown;
		sums->calls += !call->shown;
		if (call->end != TRACE_CALL_RETURNED)
			continue;
		sums->returned++;
		sums->total_ns += call->duration_ns;
		sums->max_ns = MAX(sums->max_ns, call->duration_ns);
	}
	return 0;
}

size_t trace_summary_slowest(const struct trace_summary *summary, uint32_t *ret_numbers, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < summary->capacity; i++) {
		size_t place = count;

		if (!summary->functions[i].returned)
			continue;
		while (place && summary->functions[ret_numbers[place - 1]].max_ns <
					summary->functions[i].max_ns)
			place--;
		if (place == max)
			continue;
		count = MIN(count + 1, max);
		for (size_t j = count - 1; j > place; j--)
			ret_numbers[j] = ret_numbers[j - 1];
		ret_numbers[place] = (uint32_t)i;
	}
	return count;
}

bool trace_summary_missing(
	const struct trace_summary *summary, size_t number, struct trace_missing *ret_missing)
{
	const struct trace_missing missing[] = {
		{ summary->events_lost, "events_lost",
			"events were lost: they came faster than they were read" },
		{ summary->trees_left_out, "trees_left_out",
			"trees were left out: there were too many events in a second" },
		{ summary->not_followed, "calls_not_followed",
			"calls could not be followed: too many were open" },
		{ summary->fiber_errors, "goroutine_errors",
			"entries and returns: the goroutine could not be read" },
		{ summary->missed, "kernel_calls_missed",
			"calls of kernel functions were missed, in whatever process: another "
			"probe's program ran, or the kernel could not follow them" },
		{ summary->unmatched, "returns_unmatched",
			"returns of calls that began before the trace" },
		{ summary->left_out, "calls_left_out", "calls did not fit into memory" },
		{ summary->hidden, "calls_hidden", "calls were shorter than --min-duration" },
		{ summary->not_printed, "trees_not_printed",
			"trees were not printed: nobody read the output" },
	};

	if (number >= ARRAY_SIZE(missing))
		return false;
	*ret_missing = missing[number];
	return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void trace_summary_slowest_text(
	const struct trace_summary *summary, const struct trace_names *names, struct buffer *out)
{
	uint32_t numbers[SLOWEST_SHOWN];
	size_t count = trace_summary_slowest(summary, numbers, SLOWEST_SHOWN);

	if (count)
		buffer_printf(out, "%9s %9s %10s  slowest\n", "max", "mean", "calls");
	for (size_t i = 0; i < count; i++) {
		const struct trace_function_sums *sums = &summary->functions[numbers[i]];
		char longest[LATENCY_DURATION_BYTES], mean[LATENCY_DURATION_BYTES];

		latency_duration((double)sums->max_ns, longest);
		latency_duration((double)sums->total_ns / (double)sums->returned, mean);
		buffer_printf(out, "%9s %9s %10" PRIu64 "  ", longest, mean, sums->calls);
		trace_text_foreign(out, names->function(names->context, numbers[i]));
		buffer_string(out, "\n");
	}
}

static void trace_summary_missing_text(const struct trace_summary *summary, struct buffer *out)
{
	struct trace_missing missing;

	for (size_t i = 0; trace_summary_missing(summary, i, &missing); i++)
		if (missing.count)
			buffer_printf(
				out, "not shown: %" PRIu64 " %s\n", missing.count, missing.text);
}

int trace_summary_text(
	const struct trace_summary *summary, const struct trace_names *names, struct buffer *out)
{
	buffer_printf(out, "%.1fs: %" PRIu64 " calls in %" PRIu64 " trees",
		(double)summary->duration_ns / SECOND_NS, summary->calls, summary->trees);
	if (summary->unfinished)
		buffer_printf(out, ", %" PRIu64 " of which have not returned", summary->unfinished);
	buffer_string(out, "\n");
	trace_summary_missing_text(summary, out);
	trace_summary_slowest_text(summary, names, out);
	return out->error;
}
