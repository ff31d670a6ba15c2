/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/latency/latency_figures.h"
#include "base/cleanup.h"
#include "base/json.h"

static void latency_json_put_address(struct json *j, const char *key, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_text(j, key, text);
}

static void latency_json_put_buckets(struct json *j, const struct latency_sums *sums)
{
	json_array(j, "buckets");
	for (uint32_t i = 0; i < ABI_LATENCY_BUCKETS; i++) {
		if (!sums->buckets[i])
			continue;
		json_object(j, NULL);
		json_number(j, "from_ns", abi_latency_bucket_start(i));
		if (latency_bucket_last(i) == UINT64_MAX)
			json_null(j, "to_ns");
		else
			json_number(j, "to_ns", latency_bucket_last(i) + 1);
		json_number(j, "calls", sums->buckets[i]);
		json_close(j);
	}
	json_close(j);
}

static void latency_json_put_sums(struct json *j, const struct latency_sums *sums)
{
	struct latency_figures figures = latency_figures(sums);

	json_number(j, "calls", sums->calls);
	json_number(j, "total_ns", sums->total_ns);
	json_decimal(j, "mean_ns", figures.mean_ns, 1);
	json_number(j, "p50_ns", figures.p50_ns);
	json_number(j, "p90_ns", figures.p90_ns);
	json_number(j, "p99_ns", figures.p99_ns);
	json_number(j, "max_ns", sums->max_ns);
	latency_json_put_buckets(j, sums);
}

static int latency_json_put_keys(struct json *j, const struct latency_report *report,
	const struct latency_function *function)
{
	autofree uint32_t *order = NULL;
	int err = latency_function_order(function, &order);

	if (err)
		return err;
	json_array(j, "keys");
	for (size_t i = 0; i < function->histogram_count; i++) {
		const struct latency_histogram *h = &function->histograms[order[i]];
		const char *name = latency_report_key_name(report, h->key);
		struct latency_sums sums = { 0 };

		latency_sums_add(&sums, h);
		json_object(j, NULL);
		json_number(j, latency_by_name(report->by), h->key);
		if (*name)
			json_text(j, "name", name);
		latency_json_put_sums(j, &sums);
		json_close(j);
	}
	json_close(j);
	return 0;
}

static int latency_json_put_function(struct json *j, const struct latency_report *report,
	const struct latency_function *function)
{
	const struct latency_identity *identity = &function->identity;
	struct latency_sums sums;
	int err = 0;

	json_object(j, NULL);
	json_text(j, "name", identity->name);
	json_text(j, "linkage_name", identity->linkage);
	json_text(j, "binary", identity->binary);
	json_text(j, "build_id", identity->build_id);
	if (identity->address)
		latency_json_put_address(j, "address", identity->address);
	json_number(j, "measured_one_in", function->factor);
	latency_sums_of_function(function, &sums);
	latency_json_put_sums(j, &sums);
	if (report->by != ABI_LATENCY_BY_FUNCTION)
		err = latency_json_put_keys(j, report, function);
	json_close(j);
	return err;
}

static void latency_json_put_losses(struct json *j, const struct latency_report *report)
{
	json_object(j, "not_counted");
	for (enum latency_loss loss = 0; loss < LATENCY_LOSSES; loss++)
		json_number(j, latency_loss_name(loss), report->lost[loss]);
	json_close(j);
}

static void latency_json_put_stacks(struct json *j, const struct latency_report *report)
{
	json_object(j, "stacks");
	json_number(j, "calls", report->stacks);
	json_number(j, "not_taken", report->stackless);
	json_close(j);
}

int latency_json(const struct latency_report *report, bool is_interval, struct buffer *out)
{
	autofree uint32_t *order = NULL;
	struct json j;
	int err = latency_report_order(report, &order);

	if (err)
		return err;
	json_init(&j, out, JSON_COMPACT);
	json_object(&j, NULL);
	json_bool(&j, "interval", is_interval);
	json_number(&j, "duration_ns", report->duration_ns);
	if (report->by == ABI_LATENCY_BY_FUNCTION)
		json_null(&j, "by");
	else
		json_text(&j, "by", latency_by_name(report->by));
	json_number(&j, "calls", latency_report_calls(report));
	json_number(&j, "estimated", report->estimated);
	latency_json_put_losses(&j, report);
	if (report->has_stacks && !is_interval)
		latency_json_put_stacks(&j, report);
	json_number(&j, "hits", report->hits);
	json_number(&j, "trap_ns", report->trap_ns);
	if (report->kernel_way)
		json_text(&j, "kernel_functions_by", report->kernel_way);
	json_array(&j, "functions");
	for (size_t i = 0; !err && i < report->function_count; i++)
		err = latency_json_put_function(&j, report, &report->functions[order[i]]);
	json_close(&j);
	json_close(&j);
	json_finish(&j);
	buffer_string(out, "\n");
	return err ? err : out->error;
}
