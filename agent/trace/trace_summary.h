/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a trace amounts to: calls by function, the slowest ones, and what is missing. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/trace/trace_names.h"
#include "agent/trace/trace_trees.h"
#include "base/buffer.h"

enum { TRACE_SUMMARY_FUNCTIONS = 16384 };

struct trace_function_sums {
	uint64_t calls; /* shown */
	uint64_t returned;
	uint64_t total_ns, max_ns; /* of those that returned */
};

struct trace_summary {
	struct trace_function_sums *functions; /* by number */
	size_t capacity;
	uint64_t trees, calls; /* shown */
	uint64_t unfinished; /* trees whose root did not return */
	uint64_t hidden; /* calls shorter than --min-duration */
	uint64_t left_out; /* calls that did not fit into memory */
	uint64_t duration_ns;
	/* What BPF and the rings lost. */
	uint64_t events_lost, trees_left_out, not_followed, unmatched, fiber_errors, missed;
	uint64_t not_printed; /* trees: nobody read the output */
};

void trace_summary_deinit(struct trace_summary *summary);
/* Counts TREE, which is shown. Returns -ENOMEM. */
int trace_summary_add(struct trace_summary *summary, const struct trace_tree *tree);
/* What is missing, by reason. Returns false behind the last one. */
struct trace_missing {
	uint64_t count;
	const char *key; /* in JSON */
	const char *text;
};
bool trace_summary_missing(
	const struct trace_summary *summary, size_t number, struct trace_missing *ret_missing);
/* The functions with the longest calls, at most MAX. Returns how many. */
size_t trace_summary_slowest(
	const struct trace_summary *summary, uint32_t *ret_numbers, size_t max);
/* Appends it as text. Returns the buffer's error. */
int trace_summary_text(
	const struct trace_summary *summary, const struct trace_names *names, struct buffer *out);
