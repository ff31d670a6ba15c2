/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The histogram fathom_function_latency_seconds as OpenMetrics text. */
#include "agent/latency/latency_figures.h"
#include "base/buffer.h"

/* Appends `NAME="VALUE"`, of which VALUE may be any bytes. */
void latency_exposition_label(struct buffer *out, const char *name, const char *value);

/* The family's type, unit and help, which come before all histograms. */
void latency_exposition_head(struct buffer *out);

struct latency_exposition {
	const void *labels; /* as latency_exposition_label() writes them, with commas between */
	size_t labels_size;
	const struct latency_rows *rows;
	uint64_t total_ns;
	/*
	 * The rows that have a bucket of their own. Shorter calls are in that of the first one,
	 * longer calls in that without a bound.
	 */
	unsigned int first_row, last_row;
};
/* Appends the buckets, the count and the sum of one histogram. */
void latency_exposition_histogram(struct buffer *out, const struct latency_exposition *e);
