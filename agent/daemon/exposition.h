/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * /metrics: OpenMetrics 1.0 text of the counters (metrics.def) and of the figures that are measured
 * when asked for. Families stand together, each with its type and help; ends with `# EOF`.
 */
#include <stddef.h>

#include "base/buffer.h"
#include "base/metrics.h"

enum exposition_type { EXPOSITION_GAUGE, EXPOSITION_COUNTER };

struct exposition_figure {
	const char *name; /* counters with their _total */
	const char *label; /* `part="user"`, or "" */
	const char *help;
	enum exposition_type type;
	double value;
};

/* The content type to serve it with. */
#define EXPOSITION_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

enum { EXPOSITION_LABEL_BYTES = 256 };

/* In this order; the first failure stays in OUT. */
void exposition_counters(struct buffer *out, const struct metrics *metrics);
void exposition_figures(
	struct buffer *out, const struct exposition_figure *figures, size_t figure_count);
/* A family whose labels are known at run time only: its head, then its values. LABEL is a format;
 * what is foreign in it must have no quote, backslash or newline. */
void exposition_family(
	struct buffer *out, const char *name, enum exposition_type type, const char *help);
void exposition_value(struct buffer *out, const char *name, double value, const char *label, ...)
	__attribute__((format(printf, 4, 5)));
int exposition_end(struct buffer *out);
