/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trace/trace_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/latency/latency_figures.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum { INDENT_LEVELS = 64 /* deeper calls have the number of their level instead */ };

static const uint64_t SECOND_NS = 1000000000;

struct trace_text {
	const struct trace_tree *tree;
	const struct trace_names *names;
	struct buffer *out;
	bool color;
};

enum trace_text_color {
	TRACE_TEXT_TIME,
	TRACE_TEXT_FUNCTION,
	TRACE_TEXT_PLACE,
	TRACE_TEXT_MARK,
};

static void trace_text_begin(const struct trace_text *t, enum trace_text_color color)
{
	static const char *const codes[] = {
		[TRACE_TEXT_TIME] = "\033[33m",
		[TRACE_TEXT_FUNCTION] = "\033[1m",
		[TRACE_TEXT_PLACE] = "\033[36m",
		[TRACE_TEXT_MARK] = "\033[31m",
	};

	if (t->color)
		buffer_string(t->out, codes[color]);
}

static void trace_text_end(const struct trace_text *t)
{
	if (t->color)
		buffer_string(t->out, "\033[0m");
}

void trace_text_foreign(struct buffer *out, const char *text)
{
	size_t begin = out->size;

	if (!buffer_string(out, text))
		utf8_clean((char *)out->bytes + begin, out->size - begin);
}

static void trace_text_mark(const struct trace_text *t, const char *mark)
{
	buffer_string(t->out, "  ");
	trace_text_begin(t, TRACE_TEXT_MARK);
	buffer_printf(t->out, "[%s]", mark);
	trace_text_end(t);
}

/* The local time of day. */
static void trace_text_time(const struct trace_text *t, uint64_t time_ns)
{
	uint64_t real_ns = time_ns + t->names->real_ns;
	time_t seconds = (time_t)(real_ns / SECOND_NS);
	struct tm local = { 0 };

	localtime_r(&seconds, &local);
	trace_text_begin(t, TRACE_TEXT_TIME);
	buffer_printf(t->out, "%02d:%02d:%02d.%06" PRIu64, local.tm_hour, local.tm_min,
		local.tm_sec, real_ns % SECOND_NS / 1000);
	trace_text_end(t);
}

static void trace_text_indent(const struct trace_text *t, uint32_t level)
{
	if (level <= INDENT_LEVELS)
		buffer_printf(t->out, "  %*s", (int)level * 2, "");
	else
		buffer_printf(t->out, "  %*s(%" PRIu32 ") ", INDENT_LEVELS * 2, "", level);
}

/* A line about events, between calls. */
static void trace_text_lost(const struct trace_text *t, uint32_t lost, uint32_t level)
{
	if (!lost)
		return;
	buffer_printf(t->out, "%15s  %8s", "", "");
	trace_text_indent(t, level);
	trace_text_begin(t, TRACE_TEXT_MARK);
	buffer_printf(t->out, "[%" PRIu32 " events lost]", lost);
	trace_text_end(t);
	buffer_string(t->out, "\n");
}

static void trace_text_duration(const struct trace_text *t, const struct trace_call *call)
{
	char text[LATENCY_DURATION_BYTES] = "-";

	if (call->end == TRACE_CALL_RETURNED)
		latency_duration((double)call->duration_ns, text);
	buffer_printf(t->out, "  %8s", text);
}

static const char *trace_text_open_mark(const struct trace_tree *tree)
{
	switch (tree->end) {
	case TRACE_TREE_TASK_ENDED:
		return tree->goid ? "did not return: the goroutine ended"
				  : "did not return: the thread ended";
	case TRACE_TREE_PROCESS_ENDED:
		return "did not return: the process ended";
	default:
		return "has not returned yet";
	}
}

static void trace_text_call_marks(const struct trace_text *t, const struct trace_call *call)
{
	char left_out[64];

	if (call->interrupt)
		trace_text_mark(t, "interrupt");
	if (call->end == TRACE_CALL_OPEN)
		trace_text_mark(t, trace_text_open_mark(t->tree));
	else if (call->end == TRACE_CALL_ABANDONED)
		trace_text_mark(t, t->tree->end == TRACE_TREE_TASK_ENDED
					   ? trace_text_open_mark(t->tree)
					   : "did not return");
	else if (call->end == TRACE_CALL_UNKNOWN)
		trace_text_mark(t, "its return was lost, or it did not return");
	if (!call->left_out)
		return;
	snprintf(left_out, sizeof(left_out), "%" PRIu32 " calls left out", call->left_out);
	trace_text_mark(t, left_out);
}

/* What was fetched: the payload at PLACE. */
static void trace_text_values(
	const struct trace_text *t, const struct trace_call *call, bool results, uint32_t place)
{
	size_t size = 0;
	const void *payload = trace_tree_payload(t->tree, place, &size);

	if (payload && t->names->values_text)
		t->names->values_text(
			t->names->context, call->function, results, payload, size, t->out);
}

static bool trace_text_lacks_values(const struct trace_text *t, const struct trace_call *call)
{
	return t->names->has_values && t->names->has_values(t->names->context, call->function);
}

static void trace_text_arguments(const struct trace_text *t, const struct trace_call *call)
{
	if (call->payload) {
		buffer_string(t->out, "(");
		trace_text_values(t, call, false, call->payload);
		buffer_string(t->out, ")");
	} else if (!t->names->has_parameters(t->names->context, call->function)) {
		buffer_string(t->out, trace_text_lacks_values(t, call) ? "(?)" : "()");
	}
	if (!call->return_payload)
		return;
	buffer_string(t->out, " = ");
	trace_text_values(t, call, true, call->return_payload);
}

/* How much of a demangled NAME is before its list of parameters. */
static size_t trace_text_unlisted(const char *name)
{
	const char *at = strrchr(name, ')');
	size_t open = 0;

	for (; at && at > name; at--) {
		open += *at == ')';
		open -= *at == '(';
		if (!open)
			return (size_t)(at - name);
	}
	return strlen(name);
}

/* The values of a call's arguments are in the place of the list of their types. */
static void trace_text_function(const struct trace_text *t, const struct trace_call *call)
{
	const char *name = t->names->function(t->names->context, call->function);
	autofree char *unlisted = NULL;

	if (call->payload && t->names->has_parameters(t->names->context, call->function))
		unlisted = strndup(name, trace_text_unlisted(name));
	trace_text_begin(t, TRACE_TEXT_FUNCTION);
	trace_text_foreign(t->out, unlisted ? unlisted : name);
	trace_text_end(t);
}

static void trace_text_call(const struct trace_text *t, const struct trace_call *call)
{
	const char *place = t->names->place(t->names->context, call->place);

	trace_text_lost(t, call->lost_before, call->level);
	trace_text_time(t, call->time_ns);
	trace_text_duration(t, call);
	trace_text_indent(t, call->level);
	trace_text_function(t, call);
	trace_text_arguments(t, call);
	if (*place) {
		buffer_string(t->out, "  ");
		trace_text_begin(t, TRACE_TEXT_PLACE);
		trace_text_foreign(t->out, place);
		trace_text_end(t);
	}
	trace_text_call_marks(t, call);
	buffer_string(t->out, "\n");
	trace_text_lost(t, call->lost_inside, call->level + 1);
}

static void trace_text_head(const struct trace_text *t)
{
	const struct trace_tree *tree = t->tree;

	buffer_printf(t->out, "# %s%s %" PRIu64 " of ", tree->kernel ? "kernel calls of " : "",
		tree->goid ? "goroutine" : "thread", tree->goid ? tree->goid : (uint64_t)tree->tid);
	trace_text_foreign(t->out, t->names->process(t->names->context, tree->pid));
	buffer_printf(t->out, " (pid %" PRIu32 ")", tree->pid);
	if (tree->part)
		trace_text_mark(t, "continued");
	if (tree->beginning_lost)
		trace_text_mark(t, "the beginning was lost");
	if (tree->incomplete)
		trace_text_mark(t, "incomplete: calls could not be followed");
	buffer_string(t->out, "\n");
}

int trace_text_tree(const struct trace_tree *tree, const struct trace_names *names, bool color,
	struct buffer *out)
{
	const struct trace_text t = { tree, names, out, color };

	trace_text_head(&t);
	for (size_t i = 0; i < tree->count && !out->error; i++)
		trace_text_call(&t, &tree->calls[i]);
	buffer_string(out, "\n");
	return out->error;
}
