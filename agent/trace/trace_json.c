/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trace/trace_json.h"

#include "base/cleanup.h"
#include "base/json.h"

enum { SLOWEST = 100 };

static const char *trace_json_tree_end(const struct trace_tree *tree)
{
	static const char *const ends[] = {
		[TRACE_TREE_RETURNED] = "returned",
		[TRACE_TREE_ABANDONED] = "did not return",
		[TRACE_TREE_TASK_ENDED] = "thread ended",
		[TRACE_TREE_PROCESS_ENDED] = "process ended",
		[TRACE_TREE_CUT] = "trace ended",
		[TRACE_TREE_UNKNOWN] = "unknown",
		[TRACE_TREE_OPEN] = "open",
	};

	return tree->end == TRACE_TREE_TASK_ENDED && tree->goid ? "goroutine ended"
								: ends[tree->end];
}

static const char *trace_json_call_end(const struct trace_call *call)
{
	static const char *const ends[] = {
		[TRACE_CALL_OPEN] = "open",
		[TRACE_CALL_RETURNED] = "returned",
		[TRACE_CALL_ABANDONED] = "did not return",
		[TRACE_CALL_UNKNOWN] = "unknown",
	};

	return ends[call->end];
}

static void trace_json_values(struct json *j, const struct trace_tree *tree,
	const struct trace_call *call, const struct trace_names *names)
{
	const uint32_t places[] = { call->payload, call->return_payload };

	if (!call->payload && names->has_values &&
		names->has_values(names->context, call->function))
		json_null(j, "arguments");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t size = 0;
		const void *payload = trace_tree_payload(tree, places[i], &size);

		if (payload && names->values_json)
			names->values_json(names->context, call->function, i > 0, payload, size, j);
	}
}

static void trace_json_call(struct json *j, const struct trace_tree *tree,
	const struct trace_call *call, const struct trace_names *names)
{
	json_object(j, NULL);
	json_number(j, "level", call->level);
	json_text(j, "function", names->function(names->context, call->function));
	trace_json_values(j, tree, call, names);
	json_text(j, "caller", names->place(names->context, call->place));
	json_number(j, "time_ns", call->time_ns + names->real_ns);
	if (call->end == TRACE_CALL_RETURNED)
		json_number(j, "duration_ns", call->duration_ns);
	else
		json_null(j, "duration_ns");
	json_text(j, "end", trace_json_call_end(call));
	if (call->interrupt)
		json_bool(j, "interrupt", true);
	if (call->shown)
		json_bool(j, "continued", true);
	if (call->lost_before)
		json_number(j, "lost_before", call->lost_before);
	if (call->lost_inside)
		json_number(j, "lost_inside", call->lost_inside);
	if (call->left_out)
		json_number(j, "left_out", call->left_out);
	json_close(j);
}

static bool trace_json_is_complete(const struct trace_tree *tree)
{
	return !tree->lost && !tree->left_out && !tree->beginning_lost && !tree->incomplete &&
	       tree->end != TRACE_TREE_CUT && tree->end != TRACE_TREE_OPEN && !tree->part;
}

int trace_json_tree(
	const struct trace_tree *tree, const struct trace_names *names, struct buffer *out)
{
	struct json j;

	json_init(&j, out, JSON_COMPACT);
	json_object(&j, NULL);
	json_number(&j, "pid", tree->pid);
	json_text(&j, "process", names->process(names->context, tree->pid));
	if (tree->goid)
		json_number(&j, "goid", tree->goid);
	json_number(&j, "tid", tree->tid);
	if (tree->kernel)
		json_bool(&j, "kernel", true);
	json_text(&j, "end", trace_json_tree_end(tree));
	json_bool(&j, "complete", trace_json_is_complete(tree));
	if (tree->part || tree->end == TRACE_TREE_OPEN)
		json_number(&j, "part", tree->part + UINT64_C(1));
	json_number(&j, "lost", tree->lost);
	json_number(&j, "left_out", tree->left_out);
	json_array(&j, "calls");
	for (size_t i = 0; i < tree->count && !out->error; i++)
		trace_json_call(&j, tree, &tree->calls[i], names);
	json_close(&j);
	json_close(&j);
	(void)json_finish(&j);
	return buffer_string(out, "\n");
}

/* ---- the summary ----------------------------------------------------------------------------- */

static void trace_json_slowest(
	struct json *j, const struct trace_summary *summary, const struct trace_names *names)
{
	uint32_t numbers[SLOWEST];
	size_t count = trace_summary_slowest(summary, numbers, SLOWEST);

	json_array(j, "slowest");
	for (size_t i = 0; i < count; i++) {
		const struct trace_function_sums *sums = &summary->functions[numbers[i]];

		json_object(j, NULL);
		json_text(j, "function", names->function(names->context, numbers[i]));
		json_number(j, "calls", sums->calls);
		json_number(j, "returned", sums->returned);
		json_number(j, "total_ns", sums->total_ns);
		json_number(j, "max_ns", sums->max_ns);
		json_close(j);
	}
	json_close(j);
}

int trace_json_summary(
	const struct trace_summary *summary, const struct trace_names *names, struct buffer *out)
{
	struct trace_missing missing;
	struct json j;

	json_init(&j, out, JSON_COMPACT);
	json_object(&j, NULL);
	json_object(&j, "summary");
	json_number(&j, "duration_ns", summary->duration_ns);
	json_number(&j, "trees", summary->trees);
	json_number(&j, "calls", summary->calls);
	json_number(&j, "unfinished_trees", summary->unfinished);
	json_object(&j, "not_shown");
	for (size_t i = 0; trace_summary_missing(summary, i, &missing); i++)
		json_number(&j, missing.key, missing.count);
	json_close(&j);
	trace_json_slowest(&j, summary, names);
	json_close(&j);
	json_close(&j);
	(void)json_finish(&j);
	return buffer_string(out, "\n");
}
