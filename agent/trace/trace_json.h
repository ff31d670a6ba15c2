/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Trees as JSON: lines with an object for each tree, or events for Perfetto and Chrome
 * (chrome://tracing), a track for each goroutine and thread. docs/trace.md describes the members.
 */
#include "agent/trace/trace_names.h"
#include "agent/trace/trace_summary.h"
#include "agent/trace/trace_trees.h"
#include "base/buffer.h"

/* Appends TREE as a line. Returns the buffer's error, as all of these do. */
int trace_json_tree(
	const struct trace_tree *tree, const struct trace_names *names, struct buffer *out);
int trace_json_summary(
	const struct trace_summary *summary, const struct trace_names *names, struct buffer *out);

/* What comes before the events of the first tree, and behind those of the last one. */
int trace_events_begin(struct buffer *out);
int trace_events_end(struct buffer *out);
/* Appends the events of TREE. FIRST: none have been written yet. */
int trace_events_tree(const struct trace_tree *tree, const struct trace_names *names, bool first,
	struct buffer *out);
