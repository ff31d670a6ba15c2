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

int exposition_write(struct buffer *out, const struct metrics *metrics,
	const struct exposition_figure *figures, size_t figure_count);
