/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Trace Event Format that Perfetto and Chrome read: a complete event ("X") for each call, and
 * metadata events ("M") that name processes and tracks.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/trace/trace_json.h"
#include "base/cleanup.h"
#include "base/json.h"

enum {
	/* Above all thread ids (PID_MAX_LIMIT): goroutines have tracks of their own. */
	GOROUTINE_TRACKS = 1 << 22,
	TRACK_MASK = (1 << 30) - 1,
	MAX_VALUES_BYTES = 1 << 16, /* of the arguments of one call */
};

static const double US = 1000;

static uint64_t trace_events_track(const struct trace_tree *tree)
{
	return tree->goid ? GOROUTINE_TRACKS + (tree->goid & TRACK_MASK) : tree->tid;
}

/* Begins an object in a line of its own. */
static void trace_events_object(struct json *j, struct buffer *out, bool first)
{
	buffer_string(out, first ? "\n" : ",\n");
	json_init(j, out, JSON_COMPACT);
	json_object(j, NULL);
}

static void trace_events_close(struct json *j)
{
	json_close(j);
	(void)json_finish(j);
}

static void trace_events_name(const struct trace_tree *tree, const char *kind, const char *name,
	bool first, struct buffer *out)
{
	struct json j;

	trace_events_object(&j, out, first);
	json_text(&j, "ph", "M");
	json_text(&j, "name", kind);
	json_number(&j, "pid", tree->pid);
	json_number(&j, "tid", trace_events_track(tree));
	json_object(&j, "args");
	json_text(&j, "name", name);
	json_close(&j);
	trace_events_close(&j);
}

/* Each as one text, which is what is readable beside an event. */
static void trace_events_values(struct json *j, const struct trace_tree *tree,
	const struct trace_call *call, const struct trace_names *names)
{
	static const char *const keys[] = { "arguments", "results" };
	const uint32_t places[] = { call->payload, call->return_payload };

	if (!call->payload && names->has_values &&
		names->has_values(names->context, call->function))
		json_text(j, keys[0], "?");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		autocall(buffer_deinit) struct buffer text = { 0 };
		size_t size = 0;
		const void *payload = trace_tree_payload(tree, places[i], &size);

		if (!payload || !names->values_text)
			continue;
		buffer_init(&text, MAX_VALUES_BYTES);
		names->values_text(names->context, call->function, i > 0, payload, size, &text);
		if (text.size && !text.error)
			json_text_bytes(j, keys[i], (const char *)text.bytes, text.size);
	}
}

static void trace_events_call(const struct trace_tree *tree, const struct trace_call *call,
	const struct trace_names *names, struct buffer *out)
{
	static const char *const ends[] = {
		[TRACE_CALL_OPEN] = "has not returned yet",
		[TRACE_CALL_ABANDONED] = "did not return",
		[TRACE_CALL_UNKNOWN] = "its return was lost, or it did not return",
	};
	struct json j;

	trace_events_object(&j, out, false);
	json_text(&j, "ph", "X");
	json_text(&j, "name", names->function(names->context, call->function));
	json_number(&j, "pid", tree->pid);
	json_number(&j, "tid", trace_events_track(tree));
	json_decimal(&j, "ts", (double)call->time_ns / US, 3);
	json_decimal(&j, "dur", (double)call->duration_ns / US, 3);
	json_object(&j, "args");
	trace_events_values(&j, tree, call, names);
	json_text(&j, "caller", names->place(names->context, call->place));
	if (call->end != TRACE_CALL_RETURNED)
		json_text(&j, "end", ends[call->end]);
	if (call->interrupt)
		json_bool(&j, "interrupt", true);
	if (call->lost_before || call->lost_inside)
		json_number(&j, "lost events", call->lost_before + call->lost_inside);
	if (call->left_out)
		json_number(&j, "calls left out", call->left_out);
	json_close(&j);
	trace_events_close(&j);
}

int trace_events_begin(struct buffer *out)
{
	return buffer_string(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

int trace_events_end(struct buffer *out)
{
	return buffer_string(out, "\n]}\n");
}

int trace_events_tree(const struct trace_tree *tree, const struct trace_names *names, bool first,
	struct buffer *out)
{
	char track[48];

	snprintf(track, sizeof(track), "%s %" PRIu64, tree->goid ? "goroutine" : "thread",
		tree->goid ? tree->goid : (uint64_t)tree->tid);
	trace_events_name(
		tree, "process_name", names->process(names->context, tree->pid), first, out);
	trace_events_name(tree, "thread_name", track, false, out);
	for (size_t i = 0; i < tree->count && !out->error; i++) {
		/* How long a call lasts that is open is known in a later part. */
		if (tree->end != TRACE_TREE_OPEN || tree->calls[i].end != TRACE_CALL_OPEN)
			trace_events_call(tree, &tree->calls[i], names, out);
	}
	return out->error;
}
