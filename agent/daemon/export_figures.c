/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's part of /metrics and /status. Names of targets and codes need no escaping. */
#include "agent/daemon/export.h"
#include "agent/daemon/exposition.h"
#include "base/cleanup.h"

struct drop_reason {
	const char *name;
	uint64_t (*count)(const struct exporter_target_figures *t);
};

static uint64_t dropped_limit(const struct exporter_target_figures *t)
{
	return t->dropped[SPOOL_DROP_LIMIT];
}

static uint64_t dropped_age(const struct exporter_target_figures *t)
{
	return t->dropped[SPOOL_DROP_AGE];
}

static uint64_t dropped_corrupt(const struct exporter_target_figures *t)
{
	return t->dropped[SPOOL_DROP_CORRUPT];
}

static uint64_t dropped_removed(const struct exporter_target_figures *t)
{
	return t->dropped[SPOOL_DROP_REMOVED];
}

static uint64_t dropped_refused(const struct exporter_target_figures *t)
{
	return t->queue.refused;
}

static uint64_t dropped_poisonous(const struct exporter_target_figures *t)
{
	return t->queue.poisonous;
}

static const struct drop_reason reasons[] = {
	{ "spool_full", dropped_limit },
	{ "too_old", dropped_age },
	{ "corrupt", dropped_corrupt },
	{ "removed", dropped_removed },
	{ "refused", dropped_refused },
	{ "always_fails", dropped_poisonous },
};

static void write_codes(struct buffer *out, const struct exporter_figures *f)
{
	static const char name[] = "fathom_remote_write_requests_total";

	exposition_family(out, name, EXPOSITION_COUNTER,
		"Requests to a remote store, by result: an HTTP or gRPC status, or the failure");
	for (size_t i = 0; i < f->target_count; i++) {
		const struct queue_figures *q = &f->targets[i].queue;

		for (size_t k = 0; k < q->code_count; k++)
			exposition_value(out, name, (double)q->codes[k].count,
				"target=\"%s\",code=\"%s\"", f->targets[i].name, q->codes[k].code);
	}
}

static void write_drops(struct buffer *out, const struct exporter_figures *f)
{
	static const char name[] = "fathom_remote_write_dropped_total";

	exposition_family(out, name, EXPOSITION_COUNTER,
		"Profiles never delivered to a remote store, by reason");
	for (size_t i = 0; i < f->target_count; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(reasons); k++)
			exposition_value(out, name, (double)reasons[k].count(&f->targets[i]),
				"target=\"%s\",reason=\"%s\"", f->targets[i].name, reasons[k].name);
	}
}

static void write_bytes(struct buffer *out, const struct exporter_figures *f)
{
	static const char name[] = "fathom_remote_write_sent_bytes_total";

	exposition_family(out, name, EXPOSITION_COUNTER,
		"Bytes sent to a remote store, including headers and failed attempts");
	for (size_t i = 0; i < f->target_count; i++)
		exposition_value(out, name, (double)f->targets[i].queue.sent_bytes, "target=\"%s\"",
			f->targets[i].name);
}

static void write_repeated(struct buffer *out, const struct exporter_figures *f)
{
	static const char name[] = "fathom_remote_write_possibly_repeated_total";

	exposition_family(out, name, EXPOSITION_COUNTER,
		"Profiles sent again after an attempt without an answer, which may have arrived");
	for (size_t i = 0; i < f->target_count; i++)
		exposition_value(out, name, (double)f->targets[i].queue.repeated, "target=\"%s\"",
			f->targets[i].name);
}

static void write_pending(struct buffer *out, const struct exporter_figures *f)
{
	static const char name[] = "fathom_remote_write_pending";

	exposition_family(out, name, EXPOSITION_GAUGE, "Profiles in the spool for a remote store");
	for (size_t i = 0; i < f->target_count; i++)
		exposition_value(out, name, (double)f->targets[i].queue.pending, "target=\"%s\"",
			f->targets[i].name);
}

void daemon_export_write_metrics(struct daemon_export *e, struct buffer *out)
{
	struct exporter_figures f;

	daemon_export_figures(e, &f);
	write_codes(out, &f);
	write_bytes(out, &f);
	write_drops(out, &f);
	write_repeated(out, &f);
	write_pending(out, &f);
	exposition_family(out, "fathom_spool_bytes", EXPOSITION_GAUGE,
		"Bytes of profiles in the spool, on disk and in memory");
	exposition_value(out, "fathom_spool_bytes", (double)f.spool_bytes, "%s", "");
	exposition_family(out, "fathom_spool_oldest_seconds", EXPOSITION_GAUGE,
		"Age of the oldest profile in the spool; 0 if it is empty");
	exposition_value(
		out, "fathom_spool_oldest_seconds", (double)f.spool_oldest_ns / 1e9, "%s", "");
}

void daemon_export_write_status(struct daemon_export *e, struct json *j, const char *key)
{
	struct exporter_figures f;

	daemon_export_figures(e, &f);
	json_object_compact(j, key);
	json_number(j, "spool_bytes", f.spool_bytes);
	json_decimal(j, "spool_oldest_seconds", (double)f.spool_oldest_ns / 1e9, 0);
	json_array(j, "targets");
	for (size_t i = 0; i < f.target_count; i++) {
		const struct queue_figures *q = &f.targets[i].queue;

		json_object(j, NULL);
		json_text(j, "name", f.targets[i].name);
		json_bool(j, "ok", !q->failing);
		json_number(j, "sent", q->sent_payloads);
		json_number(j, "pending", q->pending);
		json_text(j, "error", q->trouble);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}
