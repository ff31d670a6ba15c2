/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /status: explains the daemon's behaviour to somebody who debugs a machine at night. JSON with one
 * subject per line, readable with curl alone. The page uses it, too.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "agent/daemon/container_figures.h"
#include "agent/daemon/daemon_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/pid_namespace.h"
#include "base/utf8.h"
#include "base/version.h"

enum { MAX_TEXT_BYTES = 4096, LABEL_BYTES = 64 };

static double status_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double status_percent(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? 100.0 * (double)part_ns / (double)whole_ns : 0;
}

/* ---- values --------------------------------------------------------------------------------- */

void daemon_json_text(struct json *j, const char *key, const char *text)
{
	char clean[MAX_TEXT_BYTES];

	snprintf(clean, sizeof(clean), "%s", text);
	utf8_clean(clean, strlen(clean));
	json_text(j, key, clean);
}

/* Writes null if TEXT is NULL or empty. */
static void status_write_text(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		daemon_json_text(j, key, text);
	else
		json_null(j, key);
}

/* RFC 3339, UTC. TEXT has at least 21 bytes. */
static const char *status_format_time(char *text, size_t size, uint64_t real_ns)
{
	const time_t at = (time_t)(real_ns / UINT64_C(1000000000));
	struct tm utc;

	if (!gmtime_r(&at, &utc) || !strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc))
		*text = 0;
	return text;
}

/* ---- counters ------------------------------------------------------------------------------- */

static bool same_name(enum metric a, enum metric b)
{
	return !strcmp(metric_texts[a].name, metric_texts[b].name);
}

/* The value of LABEL (`reason="…"`) without quotes; "" without a label. */
static void label_value(const char *label, char *value, size_t size)
{
	const char *quote = strchr(label, '"');

	snprintf(value, size, "%s", quote ? quote + 1 : "");
	value[strcspn(value, "\"")] = 0;
}

/*
 * Writes `{"ring_full": 0, …}` for the counters with FIRST's name, which are adjacent. Returns the
 * counter after them.
 */
static enum metric write_labelled(
	struct json *j, const char *key, const struct metrics *m, enum metric first)
{
	enum metric id = first;
	char value[LABEL_BYTES];

	json_object(j, key);
	for (; id < METRIC_COUNT && same_name(id, first); id++) {
		label_value(metric_texts[id].label, value, sizeof(value));
		json_number(j, value, metrics_get(m, id));
	}
	json_close(j);
	return id;
}

static void write_counters(struct json *j, const struct metrics *m)
{
	enum metric id = 0;

	json_object_by_line(j, "counters");
	while (id < METRIC_COUNT) {
		const char *name = metric_texts[id].name;

		if (*metric_texts[id].label)
			id = write_labelled(j, name, m, id);
		else
			json_number(j, name, metrics_get(m, id++));
	}
	json_close(j);
}

/* Samples lost for any reason; the first of these reasons' counters. */
static uint64_t samples_lost(const struct metrics *m, enum metric *ret_first)
{
	enum metric first = 0;
	uint64_t lost = 0;

	while (strcmp(metric_texts[first].name, "fathom_samples_lost_total") != 0)
		first++;
	for (enum metric id = first; id < METRIC_COUNT && same_name(id, first); id++)
		lost += metrics_get(m, id);
	*ret_first = first;
	return lost;
}

uint64_t daemon_samples_lost(const struct daemon *d)
{
	enum metric first;

	return samples_lost(sampler_metrics(d->sampler), &first);
}

static void write_samples(struct json *j, const struct daemon *d)
{
	const struct metrics *m = sampler_metrics(d->sampler);
	enum metric first;
	uint64_t lost = samples_lost(m, &first);

	json_object(j, "samples");
	json_number(j, "taken", sampler_samples(d->sampler));
	json_number(j, "lost", lost);
	write_labelled(j, "lost_by_reason", m, first);
	json_close(j);
}

/* ---- subjects ------------------------------------------------------------------------------- */

static void write_identity(struct json *j, const struct daemon *d)
{
	const char *node = config_text(&d->config, SETTING_node);
	char host[256] = "", kernel[256] = "", time[32];
	struct utsname name;

	gethostname(host, sizeof(host) - 1);
	if (!uname(&name))
		snprintf(kernel, sizeof(kernel), "%.64s %.64s", name.release, name.machine);
	status_write_text(j, "version", FATHOM_VERSION);
	status_write_text(j, "node", node ? node : host);
	status_write_text(j, "kernel", kernel);
	status_write_text(j, "config_path", config_text(&d->config, SETTING_config_path));
	status_write_text(j, "started", status_format_time(time, sizeof(time), d->started_real_ns));
	status_write_text(j, "trouble",
		pid_namespace_is_contained() ? PID_NAMESPACE_TROUBLE ": " PID_NAMESPACE_FIX : NULL);
	json_signed(j, "pid", getpid());
	json_bool(j, "ready", !daemon_not_ready(d));
	json_decimal(j, "uptime_seconds", status_seconds(clock_monotonic_ns() - d->started_ns), 0);
}

static void write_windows(struct json *j, const struct daemon *d)
{
	json_decimal(j, "window_seconds", status_seconds(d->settings.window_ns), 3);
	json_number(j, "windows", d->windows);
	json_decimal(j, "last_window_cpu_seconds", status_seconds(d->last_seal_ns), 6);
	json_object(j, "frequency_hertz");
	json_number(j, "configured", d->settings.frequency_hz);
	json_number(j, "effective", daemon_frequency(d));
	json_close(j);
}

/*
 * In percent of one CPU: since the start, and what the budget saw between its last two looks, to
 * which index builds are charged little by little.
 */
static void write_cpu(struct json *j, const struct daemon *d)
{
	const uint64_t elapsed = clock_monotonic_ns() - d->started_ns;
	const uint64_t own = clock_cpu_ns(), bpf = daemon_bpf_ns(d);
	const uint64_t builds = sampler_builds_cpu_ns(d->sampler);
	const uint64_t files = sampler_file_helper_cpu_ns(d->sampler);
	const uint64_t traps = daemon_probe_traps_ns(d), merges = d->store_merges_cpu_ns;

	json_object(j, "cpu");
	json_decimal(j, "budget_percent", d->settings.cpu_share * 100, 3);
	json_decimal(j, "used_percent",
		status_percent(own + bpf + builds + files + traps + merges, elapsed), 3);
	if (d->budget.used < 0)
		json_null(j, "recent_percent");
	else
		json_decimal(
			j, "recent_percent", (d->budget.used + d->budget.probes_used) * 100, 3);
	json_decimal(j, "own_seconds", status_seconds(own), 3);
	json_decimal(j, "bpf_seconds", status_seconds(bpf), 3);
	json_decimal(j, "http_seconds", status_seconds(daemon_clients_cpu_ns(d)), 3);
	json_decimal(j, "index_builds_seconds", status_seconds(builds), 3);
	json_decimal(j, "file_helper_seconds", status_seconds(files), 3);
	json_decimal(j, "probe_traps_seconds", status_seconds(traps), 3);
	json_decimal(j, "store_merges_seconds", status_seconds(merges), 3);
	json_close(j);
}

static void write_memory(struct json *j, const struct daemon *d)
{
	const struct metrics *m = sampler_metrics(d->sampler);
	const struct sampler_sizes sizes = sampler_sizes(d->sampler);

	json_object(j, "memory");
	json_number(j, "limit_bytes", config_number(&d->config, SETTING_memory_limit));
	json_number(j, "resident_bytes", daemon_resident_bytes());
	json_number(j, "caches_evicted", metrics_get(m, METRIC_MEMORY_CACHES));
	json_number(j, "windows_ended_early", metrics_get(m, METRIC_MEMORY_WINDOW));
	json_close(j);
	json_object(j, "caches");
	json_number(j, "index_bytes", sizes.index_bytes);
	json_number(j, "kallsyms_bytes", sizes.kallsyms_bytes);
	json_number(j, "profile_bytes", sizes.profile_bytes);
	json_number(j, "bpf_map_bytes", sizes.bpf_map_bytes);
	json_close(j);
	json_number(j, "processes", sizes.processes);
	json_number(j, "modules", sizes.modules);
	json_number(j, "index_builds_pending", sampler_pending_builds(d->sampler));
	json_number(j, "open_fds", daemon_open_fds());
	json_number(j, "max_fds", descriptors_limit());
	json_number(j, "max_waiting_builds", sampler_max_waiting_builds(d->sampler));
}

/* Lost kernel records about processes, and the consequences. */
static void write_side_band(struct json *j, const struct daemon *d)
{
	const struct metrics *m = sampler_metrics(d->sampler);

	json_object(j, "side_band");
	json_number(j, "gaps", metrics_get(m, METRIC_SIDEBAND_GAPS));
	json_number(j, "records_lost", metrics_get(m, METRIC_LOST_SIDEBAND));
	json_number(j, "processes_read_again", metrics_get(m, METRIC_PROCESS_RESYNCS));
	write_labelled(j, "samples_unnamed", m, METRIC_UNNAMED_GONE);
	json_close(j);
}

/* ---- what last went wrong ------------------------------------------------------------------- */

static void status_write_at(struct json *j, uint64_t real_ns)
{
	char time[32];

	json_text(j, "time", status_format_time(time, sizeof(time), real_ns));
}

static void write_loss(struct json *j, const struct trouble_loss *loss)
{
	if (!loss->real_ns) {
		json_null(j, "last_loss");
		return;
	}
	json_object(j, "last_loss");
	status_write_at(j, loss->real_ns);
	json_number(j, "samples", loss->samples);
	json_number(j, "records", loss->records);
	status_write_text(j, "reason", loss->reason);
	json_close(j);
}

static void write_failed_builds(
	struct json *j, const char *key, const struct trouble_builds *trouble)
{
	if (!trouble->real_ns) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	status_write_at(j, trouble->real_ns);
	json_number(j, "builds", trouble->builds);
	daemon_json_text(j, "error", strerror(-trouble->error));
	json_close(j);
}

static void write_turn(struct json *j, const char *key, const struct observed_turn *t)
{
	if (!t->real_ns) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	status_write_at(j, t->real_ns);
	json_decimal(j, "seconds", status_seconds(t->turn.duration_ns), 3);
	json_text(j, "step", t->turn.step);
	json_decimal(j, "step_seconds", status_seconds(t->turn.step_ns), 3);
	json_close(j);
}

static void write_trouble(struct json *j, const struct daemon *d)
{
	const struct sampler_trouble trouble = sampler_trouble(d->sampler);

	write_loss(j, &trouble.lost);
	write_failed_builds(j, "last_builds_not_started", &trouble.not_started);
	write_failed_builds(j, "last_builds_no_space", &trouble.no_space);
	write_turn(j, "last_long_turn", &d->turns.last_long);
	write_turn(j, "longest_turn", &d->turns.longest);
}

static void write_store(struct json *j, const struct daemon *d)
{
	struct store_file oldest;
	size_t iterator = 0;
	char time[32] = "";

	if (!d->store) {
		json_null(j, "store");
		return;
	}
	if (store_next(d->store, &iterator, INT64_MIN, INT64_MAX, &oldest))
		status_format_time(time, sizeof(time), (uint64_t)oldest.time_ns);
	json_object(j, "store");
	daemon_json_text(j, "directory", config_text(&d->config, SETTING_local_store_directory));
	json_number(j, "files", store_count(d->store));
	json_number(j, "bytes", store_bytes(d->store));
	json_number(j, "limit_bytes", d->settings.store_bytes);
	json_decimal(j, "limit_age_seconds", status_seconds(d->settings.store_age_ns), 0);
	status_write_text(j, "oldest", time);
	json_close(j);
}

static void write_export(struct json *j, const struct daemon *d)
{
	if (d->export)
		daemon_export_write_status(d->export, j, "export");
	else
		json_null(j, "export");
}

int daemon_write_status(void *context, struct buffer *out)
{
	const struct daemon *d = context;
	struct json j;

	json_init(&j, out, JSON_SPACED);
	json_object_by_line(&j, NULL);
	write_identity(&j, d);
	write_windows(&j, d);
	write_cpu(&j, d);
	write_memory(&j, d);
	write_samples(&j, d);
	write_side_band(&j, d);
	daemon_nameless_write(d, &j);
	write_trouble(&j, d);
	write_store(&j, d);
	write_export(&j, d);
	container_figures_write_status(d->metadata, &j, "container_runtimes");
	container_figures_write_api(d->metadata, &j, "kubernetes_api");
	daemon_probes_write_status(d->probes, &j);
	write_counters(&j, sampler_metrics(d->sampler));
	json_close(&j);
	json_finish(&j);
	return buffer_string(out, "\n");
}
