/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

void latency_exposition_label(struct buffer *out, const char *name, const char *value)
{
	buffer_printf(out, "%s=\"", name);
	for (const char *at = value; *at;) {
		size_t length = utf8_length(at, strlen(at));

		if (*at == '\n')
			buffer_string(out, "\\n");
		else if (*at == '"' || *at == '\\')
			buffer_printf(out, "\\%c", *at);
		else
			buffer_append(out, length ? at : "?", length ? length : 1);
		at += MAX(length, (size_t)1);
	}
	buffer_string(out, "\"");
}

void latency_exposition_head(struct buffer *out)
{
	buffer_string(out, "# TYPE fathom_function_latency_seconds histogram\n"
			   "# UNIT fathom_function_latency_seconds seconds\n"
			   "# HELP fathom_function_latency_seconds Time from entry to return of "
			   "a function.\n");
}

static void latency_exposition_sample(struct buffer *out, const struct latency_exposition *e,
	const char *suffix, const char *le, uint64_t count)
{
	buffer_printf(out, "fathom_function_latency_seconds%s{", suffix);
	buffer_append(out, e->labels, e->labels_size);
	if (le)
		buffer_printf(out, ",le=\"%s\"", le);
	buffer_printf(out, "} %" PRIu64 "\n", count);
}

/*
 * A bound belongs to its bucket and times are whole nanoseconds, so a row that ends below 1024 ns
 * has the bound 1023 ns.
 */
static void latency_exposition_bucket(
	struct buffer *out, const struct latency_exposition *e, unsigned int row, uint64_t count)
{
	char le[32];

	snprintf(le, sizeof(le), "%.13g", (double)((UINT64_C(2) << row) - 1) / 1e9);
	latency_exposition_sample(out, e, "_bucket", le, count);
}

void latency_exposition_histogram(struct buffer *out, const struct latency_exposition *e)
{
	uint64_t count = 0;

	for (unsigned int row = 0; row < LATENCY_ROWS; row++) {
		count += e->rows->calls[row];
		if (row >= e->first_row && row <= e->last_row)
			latency_exposition_bucket(out, e, row, count);
	}
	latency_exposition_sample(out, e, "_bucket", "+Inf", count);
	latency_exposition_sample(out, e, "_count", NULL, count);
	buffer_string(out, "fathom_function_latency_seconds_sum{");
	buffer_append(out, e->labels, e->labels_size);
	buffer_printf(out, "} %" PRIu64 ".%09" PRIu64 "\n", e->total_ns / 1000000000,
		e->total_ns % 1000000000);
}
