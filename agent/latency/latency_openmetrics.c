/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_openmetrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_exposition.h"
#include "agent/latency/latency_figures.h"
#include "base/cleanup.h"

enum {
	/* Shorter calls than 64 ns are one bucket: reading the clock twice takes as long. */
	FIRST_ROW = 5,
	MAX_LABEL_BYTES = 8 << 20,
	MAX_LABELS = 1 << 21,
};

/* Labels of functions, so that no two functions have the same. */
struct openmetrics {
	const struct latency_report *report;
	struct buffer *out;
	struct buffer labels; /* of the function being written */
	struct intern known; /* texts of labels */
	uint32_t *text_of; /* by function: its short labels, in `known` */
	uint32_t *uses; /* by number in `known` */
};

/* ---- labels ---------------------------------------------------------------------------------- */

static int openmetrics_put_short(struct openmetrics *o, const struct latency_identity *identity)
{
	o->labels.size = 0;
	latency_exposition_label(&o->labels, "function", identity->name);
	buffer_string(&o->labels, ",");
	latency_exposition_label(&o->labels, "binary", identity->binary);
	return o->labels.error;
}

/* Adds what else tells the function apart, and for names that are equal once repaired a number. */
static int openmetrics_put_long(
	struct openmetrics *o, const struct latency_identity *identity, uint32_t number)
{
	size_t known = o->known.count;
	uint32_t ignored;
	int err;

	openmetrics_put_short(o, identity);
	buffer_string(&o->labels, ",");
	latency_exposition_label(&o->labels, "build_id", identity->build_id);
	buffer_printf(&o->labels, ",address=\"0x%" PRIx64 "\"", identity->address);
	err = o->labels.error;
	if (!err)
		err = intern_bytes(&o->known, o->labels.bytes, o->labels.size, &ignored);
	if (!err && o->known.count == known)
		buffer_printf(&o->labels, ",number=\"%" PRIu32 "\"", number);
	return err ? err : o->labels.error;
}

static int openmetrics_put_labels(struct openmetrics *o, uint32_t function)
{
	const struct latency_identity *identity = &o->report->functions[function].identity;

	if (o->uses[o->text_of[function]] > 1)
		return openmetrics_put_long(o, identity, function);
	return openmetrics_put_short(o, identity);
}

/* Counts how many functions have each text of short labels. */
static int openmetrics_count_labels(struct openmetrics *o)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < o->report->function_count; i++) {
		if (!o->report->functions[i].calls)
			continue;
		err = openmetrics_put_short(o, &o->report->functions[i].identity);
		if (!err)
			err = intern_bytes(
				&o->known, o->labels.bytes, o->labels.size, &o->text_of[i]);
		if (!err)
			o->uses[o->text_of[i]]++;
	}
	return err;
}

/* ---- histograms ------------------------------------------------------------------------------ */

static int openmetrics_put_histogram(struct openmetrics *o, const struct latency_sums *sums)
{
	struct latency_rows rows;
	const struct latency_exposition exposition = {
		.labels = o->labels.bytes,
		.labels_size = o->labels.size,
		.rows = &rows,
		.total_ns = sums->total_ns,
		.first_row = FIRST_ROW,
		.last_row = LATENCY_ROW_ABOVE - 2,
	};

	latency_rows_of(sums, &rows);
	latency_exposition_histogram(o->out, &exposition);
	return o->out->error ? o->out->error : o->labels.error;
}

static int openmetrics_put_key(struct openmetrics *o, const struct latency_histogram *histogram)
{
	const char *name = latency_report_key_name(o->report, histogram->key);
	struct latency_sums sums = { 0 };
	size_t size = o->labels.size;
	int err;

	buffer_printf(
		&o->labels, ",%s=\"%" PRIu64 "\"", latency_by_name(o->report->by), histogram->key);
	if (*name) {
		buffer_string(&o->labels, ",");
		latency_exposition_label(&o->labels,
			o->report->by == ABI_LATENCY_BY_PROCESS ? "comm" : "name", name);
	}
	latency_sums_add(&sums, histogram);
	err = openmetrics_put_histogram(o, &sums);
	o->labels.size = size;
	return err;
}

static int openmetrics_put_function(struct openmetrics *o, uint32_t number)
{
	const struct latency_function *function = &o->report->functions[number];
	struct latency_sums sums;
	int err = openmetrics_put_labels(o, number);

	if (o->report->by == ABI_LATENCY_BY_FUNCTION && !err) {
		latency_sums_of_function(function, &sums);
		return openmetrics_put_histogram(o, &sums);
	}
	for (size_t i = 0; !err && i < function->histogram_count; i++)
		err = openmetrics_put_key(o, &function->histograms[i]);
	return err;
}

static int openmetrics_put_functions(struct openmetrics *o)
{
	autofree uint32_t *order = NULL;
	int err = latency_report_order(o->report, &order);

	latency_exposition_head(o->out);
	for (size_t i = 0; !err && i < o->report->function_count; i++) {
		if (!o->report->functions[order[i]].calls)
			break;
		err = openmetrics_put_function(o, order[i]);
	}
	return err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void openmetrics_put_losses(struct buffer *out, const struct latency_report *report)
{
	buffer_string(out, "# TYPE fathom_function_calls_not_counted counter\n"
			   "# HELP fathom_function_calls_not_counted Calls of the functions that "
			   "are in no histogram.\n");
	for (enum latency_loss loss = 0; loss < LATENCY_LOSSES; loss++)
		buffer_printf(out,
			"fathom_function_calls_not_counted_total{reason=\"%s\"} %" PRIu64 "\n",
			latency_loss_name(loss), report->lost[loss]);
	buffer_printf(out,
		"# TYPE fathom_function_calls_estimated counter\n"
		"# HELP fathom_function_calls_estimated Calls in the histograms that were not "
		"measured, to limit the cost.\n"
		"fathom_function_calls_estimated_total %" PRIu64 "\n",
		report->estimated);
}

static void openmetrics_deinit(struct openmetrics *o)
{
	buffer_deinit(&o->labels);
	intern_deinit(&o->known);
	free(o->text_of);
	free(o->uses);
}

static int openmetrics_init(struct openmetrics *o)
{
	size_t count = o->report->function_count;

	buffer_init(&o->labels, MAX_LABEL_BYTES);
	o->text_of = calloc(count + 1, sizeof(*o->text_of));
	o->uses = calloc(count + 1, sizeof(*o->uses));
	if (!o->text_of || !o->uses)
		return -ENOMEM;
	return intern_init(&o->known, MAX_LABELS, (size_t)MAX_LABEL_BYTES * 32);
}

int latency_openmetrics(const struct latency_report *report, struct buffer *out)
{
	autocall(openmetrics_deinit) struct openmetrics o = { .report = report, .out = out };
	int err = openmetrics_init(&o);

	if (!err)
		err = openmetrics_count_labels(&o);
	if (!err)
		err = openmetrics_put_functions(&o);
	if (err)
		return err;
	openmetrics_put_losses(out, report);
	return buffer_string(out, "# EOF\n");
}
