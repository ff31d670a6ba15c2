/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_figures.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	MAX_KEYS_SHOWN = 20, /* of one function */
	MAX_UNCALLED_SHOWN = 10,
	BAR_COLUMNS = 40,
	RANGE_COLUMNS = 18,
};

/* Names are foreign: control characters could drive the terminal. */
static void latency_text_put_name(struct buffer *out, const char *name)
{
	size_t begin = out->size;

	if (!buffer_string(out, name))
		utf8_clean((char *)out->bytes + begin, out->size - begin);
}

/* Whether names of one function differ more than by mangling: `run` and `run.part.0`. */
static bool latency_linkage_tells_more(const struct latency_identity *identity)
{
	return strcmp(identity->name, identity->linkage) && strncmp(identity->linkage, "_Z", 2) &&
	       strncmp(identity->linkage, "_R", 2);
}

static void latency_text_put_function(struct buffer *out, const struct latency_identity *identity)
{
	latency_text_put_name(out, identity->name);
	if (latency_linkage_tells_more(identity)) {
		buffer_string(out, " (");
		latency_text_put_name(out, identity->linkage);
		buffer_string(out, ")");
	}
	buffer_string(out, "  ");
	latency_text_put_name(out, identity->binary);
}

/* ---- one histogram --------------------------------------------------------------------------- */

static void latency_text_put_time(struct buffer *out, const char *name, double ns)
{
	char text[LATENCY_DURATION_BYTES];

	latency_duration(ns, text);
	buffer_printf(out, "  %s %s", name, text);
}

static void latency_text_put_figures(
	struct buffer *out, const struct latency_sums *sums, const char *indent)
{
	struct latency_figures figures = latency_figures(sums);

	buffer_printf(out, "%scount %" PRIu64, indent, sums->calls);
	latency_text_put_time(out, "mean", figures.mean_ns);
	latency_text_put_time(out, "p50", (double)figures.p50_ns);
	latency_text_put_time(out, "p90", (double)figures.p90_ns);
	latency_text_put_time(out, "p99", (double)figures.p99_ns);
	latency_text_put_time(out, "max", (double)sums->max_ns);
	latency_text_put_time(out, "total", (double)sums->total_ns);
	buffer_string(out, "\n");
}

/* `[1.02us, 2.05us)`, padded. */
static void latency_text_put_range(struct buffer *out, unsigned int row)
{
	uint64_t above = abi_latency_bucket_start(ABI_LATENCY_BUCKETS - 1);
	uint64_t begin = row ? UINT64_C(1) << row : 0, end = UINT64_C(2) << row;
	char from[LATENCY_DURATION_BYTES], to[LATENCY_DURATION_BYTES] = "...";
	char range[2 * LATENCY_DURATION_BYTES + 8];

	latency_duration((double)MIN(begin, above), from);
	if (row != LATENCY_ROW_ABOVE)
		latency_duration((double)MIN(end, above), to);
	snprintf(range, sizeof(range), "[%s, %s)", from, to);
	buffer_printf(out, "%-*s", RANGE_COLUMNS, range);
}

static void latency_text_put_bar(struct buffer *out, uint64_t calls, uint64_t most)
{
	unsigned int marks = (unsigned int)((unsigned __int128)calls * BAR_COLUMNS / most);

	/* A single outlier among millions has a mark, too. */
	marks = calls ? MAX(marks, 1) : 0;
	buffer_printf(out, " %10" PRIu64 " |", calls);
	for (unsigned int i = 0; i < BAR_COLUMNS; i++)
		buffer_string(out, i < marks ? "@" : " ");
	buffer_string(out, "|\n");
}

/* From the first to the last row with calls. */
static void latency_text_put_bars(
	struct buffer *out, const struct latency_sums *sums, const char *indent)
{
	unsigned int first = LATENCY_ROW_ABOVE, last = 0;
	struct latency_rows rows;
	uint64_t most = 1;

	latency_rows_of(sums, &rows);
	for (unsigned int i = 0; i < LATENCY_ROWS; i++) {
		if (!rows.calls[i])
			continue;
		first = MIN(first, i);
		last = i;
		most = MAX(most, rows.calls[i]);
	}
	for (unsigned int i = first; i <= last; i++) {
		buffer_string(out, indent);
		latency_text_put_range(out, i);
		latency_text_put_bar(out, rows.calls[i], most);
	}
}

/* ---- functions ------------------------------------------------------------------------------- */

static void latency_text_put_key(
	struct buffer *out, const struct latency_report *report, uint64_t key)
{
	const char *name = latency_report_key_name(report, key);

	buffer_printf(out, "    %s %" PRIu64, latency_by_name(report->by), key);
	if (*name) {
		buffer_string(out, " ");
		latency_text_put_name(out, name);
	}
	buffer_string(out, "\n");
}

static int latency_text_put_keys(struct buffer *out, const struct latency_report *report,
	const struct latency_function *function)
{
	size_t shown = MIN(function->histogram_count, (size_t)MAX_KEYS_SHOWN);
	autofree uint32_t *order = NULL;
	int err = latency_function_order(function, &order);

	if (err)
		return err;
	for (size_t i = 0; i < shown; i++) {
		const struct latency_histogram *h = &function->histograms[order[i]];
		struct latency_sums sums = { 0 };

		latency_sums_add(&sums, h);
		latency_text_put_key(out, report, h->key);
		latency_text_put_figures(out, &sums, "      ");
		latency_text_put_bars(out, &sums, "      ");
	}
	if (shown < function->histogram_count)
		buffer_printf(out, "    and %zu more of these; --json has them all\n",
			function->histogram_count - shown);
	return 0;
}

static int latency_text_put_block(struct buffer *out, const struct latency_report *report,
	const struct latency_function *function)
{
	struct latency_sums sums;
	int err = 0;

	latency_sums_of_function(function, &sums);
	latency_text_put_function(out, &function->identity);
	buffer_string(out, "\n");
	latency_text_put_figures(out, &sums, "  ");
	if (function->factor > 1)
		buffer_printf(out,
			"  at most one call in %u was measured; the others are estimated\n",
			function->factor);
	if (report->by == ABI_LATENCY_BY_FUNCTION)
		latency_text_put_bars(out, &sums, "  ");
	else
		err = latency_text_put_keys(out, report, function);
	buffer_string(out, "\n");
	return err;
}

static void latency_text_put_uncalled(struct buffer *out, const struct latency_report *report,
	const uint32_t *order, size_t first)
{
	size_t count = report->function_count - first;

	if (!count)
		return;
	buffer_string(out, "not called: ");
	for (size_t i = 0; i < MIN(count, (size_t)MAX_UNCALLED_SHOWN); i++) {
		buffer_string(out, i ? ", " : "");
		latency_text_put_name(out, report->functions[order[first + i]].identity.name);
	}
	if (count > MAX_UNCALLED_SHOWN)
		buffer_printf(out, " and %zu more", count - MAX_UNCALLED_SHOWN);
	buffer_string(out, "\n");
}

static int latency_text_put_functions(struct buffer *out, const struct latency_report *report)
{
	autofree uint32_t *order = NULL;
	size_t at = 0;
	int err = latency_report_order(report, &order);

	for (; !err && at < report->function_count; at++) {
		const struct latency_function *function = &report->functions[order[at]];

		if (!function->calls)
			break;
		err = latency_text_put_block(out, report, function);
	}
	if (!err)
		latency_text_put_uncalled(out, report, order, at);
	return err;
}

/* ---- what is missing, what it costs -----------------------------------------------------------
 */

static void latency_text_put_losses(struct buffer *out, const struct latency_report *report)
{
	if (report->estimated)
		buffer_printf(out,
			"estimated: %" PRIu64
			" calls were not measured, to limit the cost; they are counted as the "
			"measured ones were\n",
			report->estimated);
	for (enum latency_loss loss = 0; loss < LATENCY_LOSSES; loss++) {
		if (report->lost[loss])
			buffer_printf(out, "not counted: %" PRIu64 " %s %s\n", report->lost[loss],
				report->lost[loss] == 1 ? "call" : "calls",
				latency_loss_text(loss));
	}
}

static void latency_text_put_cost(struct buffer *out, const struct latency_report *report)
{
	char each[LATENCY_DURATION_BYTES], all[LATENCY_DURATION_BYTES];
	double cost_ns = (double)report->hits * (double)report->trap_ns;

	if (!report->hits)
		return;
	buffer_printf(out, "cost: %" PRIu64 " hits of probes", report->hits);
	if (report->trap_ns) {
		latency_duration((double)report->trap_ns, each);
		latency_duration(cost_ns, all);
		buffer_printf(
			out, ", about %s each: %s of CPU time in the measured programs", each, all);
	}
	if (!report->trap_ns && !report->kernel_way)
		buffer_string(out, ", each about 12us of the program's time on a virtual machine, "
				   "less on hardware");
	if (report->kernel_way)
		buffer_printf(out, "; those of kernel functions by %s", report->kernel_way);
	if (report->trap_ns && report->duration_ns)
		buffer_printf(
			out, ", %.1f%% of one CPU", 100 * cost_ns / (double)report->duration_ns);
	buffer_string(out, "\n");
}

int latency_text(const struct latency_report *report, struct buffer *out)
{
	char duration[LATENCY_DURATION_BYTES];
	uint64_t calls = latency_report_calls(report);
	int err;

	latency_duration((double)report->duration_ns, duration);
	buffer_printf(out, "%s: %" PRIu64 " %s of %zu %s\n\n", duration, calls,
		calls == 1 ? "call" : "calls", report->function_count,
		report->function_count == 1 ? "function" : "functions");
	err = latency_text_put_functions(out, report);
	if (err)
		return err;
	latency_text_put_losses(out, report);
	latency_text_put_cost(out, report);
	return out->error;
}
