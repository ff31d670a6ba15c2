/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/exposition.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* In OpenMetrics a counter's family name lacks `_total`. */
static int family_length(const char *name, enum exposition_type type)
{
	size_t length = strlen(name), suffix = strlen("_total");

	if (type == EXPOSITION_COUNTER && length > suffix &&
		!strcmp(name + length - suffix, "_total"))
		length -= suffix;
	return (int)length;
}

static const char *const type_names[] = {
	[EXPOSITION_GAUGE] = "gauge",
	[EXPOSITION_COUNTER] = "counter",
	[EXPOSITION_HISTOGRAM] = "histogram",
};

static void write_head(
	struct buffer *out, const char *name, enum exposition_type type, const char *help)
{
	int length = family_length(name, type);

	buffer_printf(out, "# TYPE %.*s %s\n# HELP %.*s %s.\n", length, name, type_names[type],
		length, name, help);
}

static void write_value(struct buffer *out, const char *name, const char *label, double value)
{
	buffer_printf(out, "%s", name);
	if (*label)
		buffer_printf(out, "{%s}", label);
	if (value == floor(value) && fabs(value) < 1e15)
		buffer_printf(out, " %.0f\n", value);
	else
		buffer_printf(out, " %.15g\n", value);
}

void exposition_counters(struct buffer *out, const struct metrics *metrics)
{
	const char *last = "";

	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		const struct metric_text *text = &metric_texts[id];

		if (strcmp(last, text->name))
			write_head(out, text->name, EXPOSITION_COUNTER, text->help);
		last = text->name;
		write_value(out, text->name, text->label, (double)metrics_get(metrics, id));
	}
}

void exposition_figures(
	struct buffer *out, const struct exposition_figure *figures, size_t figure_count)
{
	const char *last = "";

	for (size_t i = 0; i < figure_count; i++) {
		const struct exposition_figure *f = &figures[i];

		if (strcmp(last, f->name))
			write_head(out, f->name, f->type, f->help);
		last = f->name;
		write_value(out, f->name, f->label, f->value);
	}
}

void exposition_family(
	struct buffer *out, const char *name, enum exposition_type type, const char *help)
{
	write_head(out, name, type, help);
}

void exposition_value(struct buffer *out, const char *name, double value, const char *label, ...)
{
	char text[EXPOSITION_LABEL_BYTES];
	va_list args;

	va_start(args, label);
	vsnprintf(text, sizeof(text), label, args);
	va_end(args);
	write_value(out, name, text, value);
}

/* OpenMetrics 1.0: buckets are cumulative, and a bound always has a decimal point. */
static void write_bucket(struct buffer *out, const char *name, double bound, uint64_t count)
{
	buffer_printf(out, "%s_bucket{le=\"%g%s\"} %llu\n", name, bound,
		bound == floor(bound) ? ".0" : "", (unsigned long long)count);
}

void exposition_histogram(struct buffer *out, const struct exposition_histogram *h)
{
	uint64_t count = 0;

	write_head(out, h->name, EXPOSITION_HISTOGRAM, h->help);
	for (size_t i = 0; i < h->bound_count; i++) {
		count += h->counts[i];
		write_bucket(out, h->name, h->bounds[i], count);
	}
	count += h->counts[h->bound_count];
	buffer_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n", h->name, (unsigned long long)count);
	buffer_printf(out, "%s_sum %.15g\n", h->name, h->sum);
	buffer_printf(out, "%s_count %llu\n", h->name, (unsigned long long)count);
}

int exposition_end(struct buffer *out)
{
	return buffer_string(out, "# EOF\n");
}
