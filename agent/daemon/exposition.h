/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * /metrics: OpenMetrics 1.0 text of the counters (metrics.def) and of the figures measured on
 * request. The samples of a family are contiguous, after its type and help; the text ends with `#
 * EOF`.
 */
#include <stddef.h>

#include "base/buffer.h"
#include "base/metrics.h"

enum exposition_type { EXPOSITION_GAUGE, EXPOSITION_COUNTER, EXPOSITION_HISTOGRAM };

struct exposition_figure {
	const char *name; /* including _total for counters */
	const char *label; /* `part="user"`, or "" */
	const char *help;
	enum exposition_type type;
	double value;
};

struct exposition_histogram {
	const char *name, *help;
	const double *bounds; /* upper bounds of the buckets, ascending */
	size_t bound_count;
	const uint64_t *counts; /* of each bucket alone; one more than bounds, for what is above */
	double sum;
};

#define EXPOSITION_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

enum { EXPOSITION_LABEL_BYTES = 256 };

/* Call them in this order. The first failure is kept in OUT. */
void exposition_counters(struct buffer *out, const struct metrics *metrics);
void exposition_figures(
	struct buffer *out, const struct exposition_figure *figures, size_t figure_count);
/* For a family whose labels are only known at run time: the head, then one call per value. LABEL is
 * a format; untrusted text in it must not contain quotes, backslashes or newlines. */
void exposition_family(
	struct buffer *out, const char *name, enum exposition_type type, const char *help);
void exposition_value(struct buffer *out, const char *name, double value, const char *label, ...)
	__attribute__((format(printf, 4, 5)));
/* Writes a histogram without labels of its own. */
void exposition_histogram(struct buffer *out, const struct exposition_histogram *h);
int exposition_end(struct buffer *out);
