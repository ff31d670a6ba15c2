/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /status: what somebody wants to see who asks at night why the agent does what it does. JSON, a
 * subject a line, so that curl alone shows it. The page reads it too.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "agent/daemon/daemon_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

enum { MAX_TEXT_BYTES = 4096 };

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double percent(uint64_t part_ns, uint64_t whole_ns)
{
	return whole_ns ? 100.0 * (double)part_ns / (double)whole_ns : 0;
}

/* ---- values --------------------------------------------------------------------------------- */

void daemon_json_string(struct buffer *out, const char *text)
{
	char clean[MAX_TEXT_BYTES];

	snprintf(clean, sizeof(clean), "%s", text);
	utf8_clean(clean, strlen(clean), true);
	buffer_string(out, "\"");
	for (const char *c = clean; *c; c++)
		buffer_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	buffer_string(out, "\"");
}

/* A line of its own: `"KEY": "TEXT",`, or null for what is not set. */
static void write_text(struct buffer *out, const char *key, const char *text)
{
	buffer_printf(out, "  \"%s\": ", key);
	if (text && *text)
		daemon_json_string(out, text);
	else
		buffer_string(out, "null");
	buffer_string(out, ",\n");
}

/* As in RFC 3339, UTC. TEXT is at least 21 bytes. */
static const char *format_time(char *text, size_t size, uint64_t real_ns)
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

/* `{"ring_full": 0, …}` of the counters that share FIRST's name; they stand together. */
static enum metric write_labelled(struct buffer *out, const struct metrics *m, enum metric first)
{
	enum metric id = first;

	buffer_string(out, "{");
	for (; id < METRIC_COUNT && same_name(id, first); id++) {
		const char *value = strchr(metric_texts[id].label, '"');

		/* The label's value brings its quotes. */
		buffer_printf(out, "%s%s: %llu", id == first ? "" : ", ", value ? value : "\"\"",
			(unsigned long long)metrics_get(m, id));
	}
	buffer_string(out, "}");
	return id;
}

static void write_counters(struct buffer *out, const struct metrics *m)
{
	enum metric id = 0;

	buffer_string(out, "  \"counters\": {");
	while (id < METRIC_COUNT) {
		buffer_printf(out, "%s\n    \"%s\": ", id ? "," : "", metric_texts[id].name);
		if (*metric_texts[id].label) {
			id = write_labelled(out, m, id);
		} else {
			buffer_printf(out, "%llu", (unsigned long long)metrics_get(m, id));
			id++;
		}
	}
	buffer_string(out, "\n  }\n");
}

static void write_samples(struct buffer *out, const struct daemon *d)
{
	const struct metrics *m = sampler_metrics(d->sampler);
	enum metric first = 0;
	uint64_t lost = 0;

	while (strcmp(metric_texts[first].name, "fathom_samples_lost_total") != 0)
		first++;
	for (enum metric id = first; id < METRIC_COUNT && same_name(id, first); id++)
		lost += metrics_get(m, id);
	buffer_printf(out, "  \"samples\": {\"taken\": %llu, \"lost\": %llu, \"lost_by_reason\": ",
		(unsigned long long)sampler_samples(d->sampler), (unsigned long long)lost);
	write_labelled(out, m, first);
	buffer_string(out, "},\n");
}

/* ---- subjects ------------------------------------------------------------------------------- */

static void write_who(struct buffer *out, const struct daemon *d)
{
	const char *node = config_text(&d->config, SETTING_node);
	char host[256] = "", kernel[256] = "", time[32];
	struct utsname name;

	gethostname(host, sizeof(host) - 1);
	if (!uname(&name))
		snprintf(kernel, sizeof(kernel), "%.64s %.64s", name.release, name.machine);
	write_text(out, "version", FATHOM_VERSION);
	write_text(out, "node", node ? node : host);
	write_text(out, "kernel", kernel);
	write_text(out, "config_path", config_text(&d->config, SETTING_config_path));
	write_text(out, "started", format_time(time, sizeof(time), d->started_real_ns));
	buffer_printf(out, "  \"pid\": %d,\n  \"ready\": %s,\n  \"uptime_seconds\": %.0f,\n",
		getpid(), daemon_not_ready(d) ? "false" : "true",
		seconds(clock_monotonic_ns() - d->started_ns));
}

static void write_windows(struct buffer *out, const struct daemon *d)
{
	buffer_printf(out,
		"  \"window_seconds\": %.3f,\n  \"windows\": %llu,\n"
		"  \"last_window_cpu_seconds\": %.6f,\n"
		"  \"frequency_hertz\": {\"configured\": %llu, \"effective\": %llu},\n",
		seconds(d->settings.window_ns), (unsigned long long)d->windows,
		seconds(d->last_seal_ns), (unsigned long long)d->settings.frequency_hz,
		(unsigned long long)d->budget.current_hz);
}

/* All in percent of one CPU: since the start, and between the budget's last two looks. */
static void write_cpu(struct buffer *out, const struct daemon *d)
{
	const uint64_t elapsed = clock_monotonic_ns() - d->started_ns;
	const uint64_t own = clock_cpu_ns(), bpf = daemon_bpf_ns(d);

	buffer_printf(out,
		"  \"cpu\": {\"budget_percent\": %.3f, \"used_percent\": %.3f, "
		"\"recent_percent\": ",
		d->settings.cpu_share * 100, percent(own + bpf, elapsed));
	if (d->budget.used < 0)
		buffer_string(out, "null");
	else
		buffer_printf(out, "%.3f", d->budget.used * 100);
	buffer_printf(out,
		", \"own_seconds\": %.3f, \"bpf_seconds\": %.3f, \"index_builds_seconds\": "
		"%.3f},\n",
		seconds(own), seconds(bpf), seconds(sampler_builds_cpu_ns(d->sampler)));
}

static void write_memory(struct buffer *out, const struct daemon *d)
{
	const struct metrics *m = sampler_metrics(d->sampler);
	const struct sampler_sizes sizes = sampler_sizes(d->sampler);

	buffer_printf(out,
		"  \"memory\": {\"limit_bytes\": %llu, \"resident_bytes\": %llu, "
		"\"caches_let_go\": %llu, \"windows_ended_early\": %llu},\n",
		(unsigned long long)config_number(&d->config, SETTING_memory_limit),
		(unsigned long long)daemon_resident_bytes(),
		(unsigned long long)metrics_get(m, METRIC_MEMORY_CACHES),
		(unsigned long long)metrics_get(m, METRIC_MEMORY_WINDOW));
	buffer_printf(out,
		"  \"caches\": {\"index_bytes\": %llu, \"kallsyms_bytes\": %llu, "
		"\"profile_bytes\": %llu, \"bpf_map_bytes\": %llu},\n",
		(unsigned long long)sizes.index_bytes, (unsigned long long)sizes.kallsyms_bytes,
		(unsigned long long)sizes.profile_bytes, (unsigned long long)sizes.bpf_map_bytes);
	buffer_printf(out,
		"  \"processes\": %zu,\n  \"modules\": %zu,\n  \"index_builds_pending\": %u,\n"
		"  \"open_fds\": %u,\n",
		sizes.processes, sizes.modules, sampler_pending_builds(d->sampler),
		daemon_open_fds());
}

/* What was lost of the kernel's records of processes, and what became of it. */
static void write_side_band(struct buffer *out, const struct daemon *d)
{
	const struct metrics *m = sampler_metrics(d->sampler);

	buffer_printf(out,
		"  \"side_band\": {\"gaps\": %llu, \"records_lost\": %llu, "
		"\"processes_read_again\": %llu, \"samples_unnamed\": ",
		(unsigned long long)metrics_get(m, METRIC_SIDEBAND_GAPS),
		(unsigned long long)metrics_get(m, METRIC_LOST_SIDEBAND),
		(unsigned long long)metrics_get(m, METRIC_PROCESS_RESYNCS));
	write_labelled(out, m, METRIC_UNNAMED_GONE);
	buffer_string(out, "},\n");
}

static void write_store(struct buffer *out, const struct daemon *d)
{
	struct store_file oldest;
	size_t iterator = 0;
	char time[32] = "";

	if (!d->store) {
		buffer_string(out, "  \"store\": null,\n");
		return;
	}
	if (store_next(d->store, &iterator, INT64_MIN, INT64_MAX, &oldest))
		format_time(time, sizeof(time), (uint64_t)oldest.time_ns);
	buffer_string(out, "  \"store\": {\"directory\": ");
	daemon_json_string(out, config_text(&d->config, SETTING_local_store_directory));
	buffer_printf(out,
		", \"files\": %zu, \"bytes\": %llu, \"limit_bytes\": %llu, "
		"\"limit_age_seconds\": %.0f, \"oldest\": ",
		store_count(d->store), (unsigned long long)store_bytes(d->store),
		(unsigned long long)d->settings.store_bytes, seconds(d->settings.store_age_ns));
	buffer_printf(out, *time ? "\"%s\"},\n" : "null%s},\n", time);
}

static void write_export(struct buffer *out, const struct daemon *d)
{
	buffer_string(out, "  \"export\": ");
	if (d->export)
		daemon_export_write_status(d->export, out);
	else
		buffer_string(out, "null");
	buffer_string(out, ",\n");
}

int daemon_write_status(void *context, struct buffer *out)
{
	const struct daemon *d = context;

	buffer_string(out, "{\n");
	write_who(out, d);
	write_windows(out, d);
	write_cpu(out, d);
	write_memory(out, d);
	write_samples(out, d);
	write_side_band(out, d);
	write_store(out, d);
	write_export(out, d);
	write_counters(out, sampler_metrics(d->sampler));
	return buffer_string(out, "}\n");
}
