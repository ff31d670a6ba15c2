/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/config_lists.h"
#include "agent/daemon/export_settings.h"
#include "agent/daemon/exposition.h"
#include "agent/daemon/keep_debug.h"
#include "agent/daemon/series.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/server/export/debuginfo/debuginfo.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/log.h"

enum {
	PPROF_LIMIT_BYTES = 256 << 20,
	/*
	 * Per payload. Pyroscope takes 4 MiB, but bursts of 2 MB only: it refuses a larger one as
	 * too fast, no matter how long one waits.
	 */
	PAYLOAD_RAW_BYTES = 1800000,
	PAYLOAD_ENTRIES = 16000, /* Pyroscope's limit */
	PARTS_LIMIT = 256,
	HOST_BYTES = 256,
};

struct daemon_export {
	struct exporter *exporter;
	struct debuginfo *debuginfo; /* NULL = nothing is uploaded */
	struct keep_debug keep_debug;
	struct metadata *metadata; /* NULL = nothing is known of containers */
	struct metrics *metrics;
	struct metrics unused; /* metrics of reports that another report has counted */
	uint64_t settings_hash;
	bool sample_labels;
	bool span_labels; /* some store is Pyroscope, which finds the samples of spans by them */
	bool file_hashes; /* some store is OTLP, which has a field for them */
	/* Replaced at a reload. */
	struct relabel *relabel;
	struct labels external;
	char *environment;
	char node[HOST_BYTES];
	struct series_options series;
};

/* ---- making --------------------------------------------------------------------------------- */

/* Moves labels and rules out of SETTINGS into E. */
static void take_labels(
	struct daemon_export *e, const struct config *config, struct export_settings *settings)
{
	const char *node = config_text(config, SETTING_node);

	relabel_destroy(e->relabel);
	labels_deinit(&e->external);
	free(e->environment);
	e->relabel = take(settings->relabel);
	e->environment = take(settings->environment);
	e->external = settings->external;
	settings->external = (struct labels){ 0 };
	if (node && *node)
		snprintf(e->node, sizeof(e->node), "%s", node);
	else if (gethostname(e->node, sizeof(e->node) - 1))
		snprintf(e->node, sizeof(e->node), "unknown");
	e->series = (struct series_options){
		.node = e->node,
		.external = &e->external,
		.relabel = e->relabel,
		.environment = e->environment,
		.sample_labels = settings->series_labels,
		.fiber_keys = settings->fiber_keys,
		.limit = config_number(config, SETTING_series_max),
		.metrics = e->metrics,
	};
}

static bool any_store_has(const struct export_settings *settings, enum remote_property property)
{
	for (size_t i = 0; i < settings->store_count; i++) {
		if (remote_type_has(settings->stores[i].options.type, property))
			return true;
	}
	return false;
}

static bool all_stores_have(const struct export_settings *settings, enum remote_property property)
{
	for (size_t i = 0; i < settings->store_count; i++) {
		if (!remote_type_has(settings->stores[i].options.type, property))
			return false;
	}
	return true;
}

/* All stores get the same payload, and some make a series of each sample label. */
static bool sends_sample_labels(const struct export_settings *settings)
{
	return all_stores_have(settings, REMOTE_TAKES_SAMPLE_LABELS) &&
	       any_store_has(settings, REMOTE_WANTS_SAMPLE_LABELS);
}

static void take_settings(
	struct daemon_export *e, const struct config *config, struct export_settings *settings)
{
	e->settings_hash = export_settings_hash(config);
	e->sample_labels = sends_sample_labels(settings);
	e->span_labels = any_store_has(settings, REMOTE_WANTS_SPANS);
	e->file_hashes = any_store_has(settings, REMOTE_WANTS_FILE_HASHES);
	take_labels(e, config, settings);
}

/* Storage that exporter_options point to. */
struct store_options {
	struct remote_options remotes[EXPORT_STORES_LIMIT];
	const char *old_names[EXPORT_STORES_LIMIT];
};

static void export_fill_options(const struct config *config, const struct export_settings *settings,
	struct store_options *stores, struct exporter_options *ret_options)
{
	for (size_t i = 0; i < settings->store_count; i++) {
		stores->remotes[i] = settings->stores[i].options;
		stores->old_names[i] = settings->place_names[i];
	}
	*ret_options = (struct exporter_options){
		.spool_directory = config_text(config, SETTING_spool_directory),
		.spool_limit_bytes = config_number(config, SETTING_spool_max_bytes),
		.spool_limit_age_ns = config_number(config, SETTING_spool_max_age),
		.remotes = stores->remotes,
		.old_names = stores->old_names,
		.remote_count = settings->store_count,
	};
}

/* *RET_DEBUGINFO is NULL if SETTINGS want no upload. */
static int make_debuginfo(struct daemon_export *e, const struct export_settings *settings,
	const char *cache_directory, struct debuginfo **ret_debuginfo, char **ret_message)
{
	struct remote_options remotes[EXPORT_STORES_LIMIT];
	struct debuginfo_options options = {
		.remotes = remotes,
		.directory = cache_directory,
		.strip = keep_debug_in_sandbox,
		.context = &e->keep_debug,
		.metrics = e->metrics,
	};

	*ret_debuginfo = NULL;
	if (!settings->debuginfo_upload)
		return 0;
	for (size_t i = 0; i < settings->store_count; i++) {
		if (remote_type_has(settings->stores[i].options.type, REMOTE_TAKES_DEBUGINFO))
			remotes[options.remote_count++] = settings->stores[i].options;
	}
	return debuginfo_create(&options, ret_debuginfo, ret_message);
}

int daemon_export_check(const struct config *config, char **ret_message)
{
	struct store_options stores;
	struct exporter_options options;
	struct export_settings settings;
	int err = export_settings_read(config, &settings, ret_message);

	if (err)
		return err;
	export_fill_options(config, &settings, &stores, &options);
	if (options.remote_count)
		err = exporter_check(&options, ret_message);
	export_settings_deinit(&settings);
	return err;
}

static int create(const struct config *config, struct export_settings *settings,
	struct metrics *metrics, struct daemon_export **ret_export, char **ret_message)
{
	struct store_options stores;
	struct exporter_options options;
	struct daemon_export *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	e->metrics = metrics;
	keep_debug_init(&e->keep_debug);
	export_fill_options(config, settings, &stores, &options);
	options.metrics = metrics;
	err = exporter_create(&options, &e->exporter, ret_message);
	if (err) {
		daemon_export_destroy(e, 0);
		return err;
	}
	take_settings(e, config, settings);
	*ret_export = e;
	return 0;
}

int daemon_export_create(const struct config *config, struct metrics *metrics,
	const char *cache_directory, struct daemon_export **ret_export, char **ret_message)
{
	struct daemon_export *e = NULL;
	struct export_settings settings;
	int err = export_settings_read(config, &settings, ret_message);

	if (err)
		return err;
	*ret_export = NULL;
	if (settings.store_count)
		err = create(config, &settings, metrics, &e, ret_message);
	if (!err && e)
		err = make_debuginfo(e, &settings, cache_directory, &e->debuginfo, ret_message);
	export_settings_deinit(&settings);
	if (err)
		daemon_export_destroy(e, 0);
	else
		*ret_export = e;
	return err;
}

void daemon_export_destroy(struct daemon_export *e, uint64_t grace_ns)
{
	if (!e)
		return;
	debuginfo_destroy(e->debuginfo);
	exporter_destroy(e->exporter, grace_ns);
	keep_debug_deinit(&e->keep_debug);
	relabel_destroy(e->relabel);
	labels_deinit(&e->external);
	free(e->environment);
	free(e);
}

/* On error neither exporter nor debuginfo has changed. */
static int change_stores(struct daemon_export *e, const struct config *config,
	const struct export_settings *settings, const char *cache_directory, char **ret_message)
{
	bool stores_change = e->settings_hash != export_settings_hash(config);
	struct debuginfo *debuginfo = NULL;
	struct store_options stores;
	struct exporter_options options;
	int err = 0;

	if (!stores_change && settings->debuginfo_upload == (e->debuginfo != NULL))
		return 0;
	export_fill_options(config, settings, &stores, &options);
	options.metrics = e->metrics;
	err = make_debuginfo(e, settings, cache_directory, &debuginfo, ret_message);
	if (!err && stores_change)
		err = exporter_change(e->exporter, &options, ret_message);
	if (err) {
		debuginfo_destroy(debuginfo);
		return err;
	}
	debuginfo_destroy(e->debuginfo);
	e->debuginfo = debuginfo;
	return 0;
}

int daemon_export_reload(struct daemon_export **e, const struct config *config,
	struct metrics *metrics, const char *cache_directory, char **ret_message)
{
	struct export_settings settings;
	int err;

	*ret_message = NULL;
	if (!*e)
		return daemon_export_create(config, metrics, cache_directory, e, ret_message);
	err = export_settings_read(config, &settings, ret_message);
	if (err)
		return err;
	if (!settings.store_count)
		daemon_export_destroy(take(*e), 0);
	else
		err = change_stores(*e, config, &settings, cache_directory, ret_message);
	if (!err && *e)
		take_settings(*e, config, &settings);
	export_settings_deinit(&settings);
	return err;
}

/* ---- debug information ---------------------------------------------------------------------- */

bool daemon_export_wants_file(struct daemon_export *e, const struct build_id *id)
{
	return e && e->debuginfo && debuginfo_wants(e->debuginfo, id);
}

void daemon_export_file(struct daemon_export *e, const struct build_id *id, int fd)
{
	debuginfo_offer(e->debuginfo, id, fd);
}

/* ---- windows -------------------------------------------------------------------------------- */

/*
 * One part of one series. Samples of the same profile entry are in the same part, unless they only
 * share a span.
 */
struct slice {
	struct series *series;
	uint32_t number;
	uint32_t part, parts;
	bool sample_labels, span_labels, file_hashes, bare_addresses;
};

static uint64_t entry_hash(const struct slice *slice, const struct profile_sample *sample)
{
	uint64_t hash = sample->stack;

	if (slice->sample_labels)
		hash += 31 * sample_labels_hash(sample);
	if (slice->sample_labels || slice->span_labels)
		hash += 961 * (uint64_t)sample->fiber;
	return hash;
}

static bool in_slice(void *context, const struct profile_sample *sample)
{
	const struct slice *slice = context;

	return entry_hash(slice, sample) % slice->parts == slice->part &&
	       series_of(slice->series, sample) == slice->number;
}

/* The last four bytes of a gzip member are the uncompressed size (RFC 1952, 2.3.1). */
static uint64_t raw_bytes(const struct buffer *gzip)
{
	struct cursor c = cursor_over(gzip->bytes, gzip->size);

	return cursor_skip(&c, gzip->size - MIN(gzip->size, (size_t)4)) ? cursor_u32(&c) : 0;
}

static int export_encode(const struct report_sources *sources, const struct report_options *window,
	struct slice *slice, struct payload *payload)
{
	struct report_options options = *window;
	struct report_summary summary;
	int err;

	options.no_labels = !slice->sample_labels;
	options.span_labels = slice->span_labels;
	options.file_hashes = slice->file_hashes;
	options.bare_addresses = slice->bare_addresses;
	options.include = in_slice;
	options.include_context = slice;
	options.samples = series_samples(slice->series, slice->number, &options.sample_count);
	buffer_init(&payload->pprof, PPROF_LIMIT_BYTES);
	err = report_pprof(sources, &options, &payload->pprof, &summary);
	if (err)
		return err;
	payload->raw_bytes = raw_bytes(&payload->pprof);
	payload->samples = summary.entries;
	payload->time_ns = options.time_ns;
	payload->duration_ns = options.duration_ns;
	return 0;
}

/* By which factor the payload is too large; 1 = it fits. */
static uint32_t times_too_large(const struct payload *p)
{
	uint64_t bytes = (p->raw_bytes + PAYLOAD_RAW_BYTES - 1) / PAYLOAD_RAW_BYTES;
	uint64_t entries = (p->samples + PAYLOAD_ENTRIES - 1) / PAYLOAD_ENTRIES;

	return (uint32_t)MAX(MAX(bytes, entries), UINT64_C(1));
}

static int send_slice(struct daemon_export *e, const struct report_sources *sources,
	const struct report_options *window, struct slice *slice, uint32_t *ret_times)
{
	autocall(payload_deinit) struct payload payload = { 0 };
	int err = export_encode(sources, window, slice, &payload);

	if (err)
		return err;
	*ret_times = times_too_large(&payload);
	if (*ret_times > 1 || !payload.samples)
		return 0;
	err = labels_copy(series_labels(slice->series, slice->number), &payload.labels);
	if (!err)
		exporter_submit(e->exporter, &payload);
	return err;
}

/* Splits parts that are too large into as many parts as needed; each repeats the names. */
static int send_series(struct daemon_export *e, const struct report_sources *sources,
	const struct report_options *window, struct slice *slice)
{
	uint32_t times = 1;
	int err = send_slice(e, sources, window, slice, &times);

	if (err || times == 1)
		return err;
	if (slice->parts * (times + 1) > PARTS_LIMIT) {
		metrics_add(e->metrics, METRIC_EXPORT_TOO_LARGE, 1);
		return 0;
	}
	for (uint32_t i = 0; !err && i <= times; i++) {
		struct slice smaller = *slice;

		smaller.parts = slice->parts * (times + 1);
		smaller.part = slice->part + i * slice->parts;
		err = send_series(e, sources, window, &smaller);
	}
	return err;
}

static int send_all(struct daemon_export *e, const struct report_sources *sources,
	const struct report_options *window, struct series *series)
{
	int err = 0;

	for (uint32_t n = 1; !err && n <= series_count(series); n++) {
		struct slice slice = {
			.series = series,
			.number = n,
			.parts = 1,
			.sample_labels = e->sample_labels,
			.span_labels = e->span_labels,
			.file_hashes = e->file_hashes,
			/* Who gets the debug information can name what we cannot. */
			.bare_addresses = e->debuginfo,
		};

		err = send_series(e, sources, window, &slice);
	}
	return err;
}

void daemon_export_know_containers(struct daemon_export *e, struct metadata *metadata)
{
	e->metadata = metadata;
}

void daemon_export_window(struct daemon_export *e, const struct report_sources *sources,
	const struct report_options *options, bool count)
{
	autocall(metadata_view_deinit) struct metadata_view containers = { .count = 0 };
	struct report_sources from = *sources;
	struct series series;
	int err;

	metadata_view_init(&containers, e->metadata);
	e->series.symbolize = sources->symbolize;
	e->series.containers = &containers;
	err = series_init(
		&series, &e->series, &options->types, sources->profile, sources->processes);

	if (!count)
		from.metrics = &e->unused;
	if (!err) {
		if (series.missed_container)
			metadata_ask(e->metadata);
		err = send_all(e, &from, options, &series);
		series_deinit(&series);
	}
	e->series.containers = NULL;
	if (!err)
		return;
	metrics_add(e->metrics, METRIC_EXPORT_WINDOW_FAILED, 1);
	log_warn("a window was not sent, or only in part", "error=\"%s\"", strerror(-err));
}

void daemon_export_figures(struct daemon_export *e, struct exporter_figures *ret_figures)
{
	exporter_figures(e->exporter, ret_figures);
}
