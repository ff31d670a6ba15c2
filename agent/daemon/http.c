/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP handlers: metrics, stored profiles, profiles on demand, reload. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/daemon/container_figures.h"
#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/exposition.h"
#include "agent/daemon/slices.h"
#include "base/thread_group.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/io.h"
#include "base/version.h"

enum { ON_DEMAND_LIMIT_BYTES = 256 << 20 };

/* Longer than writing a window of many processes takes, which blocks the loop. */
static const uint64_t WINDOW_LATE_NS = UINT64_C(10000000000);

/* ---- figures -------------------------------------------------------------------------------- */

uint64_t daemon_resident_bytes(void)
{
	unsigned long long total = 0, resident = 0;
	char line[128];

	if (io_read_line(AT_FDCWD, "/proc/self/statm", line, sizeof(line)) < 0 ||
		sscanf(line, "%llu %llu", &total, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

unsigned int daemon_open_fds(void)
{
	autoclosedir DIR *directory = opendir("/proc/self/fd");
	unsigned int count = 0;
	struct dirent *entry;
	int err;

	if (!directory)
		return 0;
	while (!(err = io_next_entry(directory, &entry)) && entry)
		count++;
	if (err)
		return 0;
	/* Not counting `.`, `..` and the directory's own descriptor. */
	return count > 3 ? count - 3 : 0;
}

static double http_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

uint64_t daemon_bpf_ns(const struct daemon *d)
{
	uint64_t ns = 0, runs = 0;

	return sampler_bpf_time(d->sampler, &ns, &runs) ? ns : 0;
}

uint64_t daemon_clients_cpu_ns(const struct daemon *d)
{
	return d->serve ? serve_figures(d->serve).cpu_ns : 0;
}

uint64_t daemon_sampling_cpu_ns(const struct daemon *d)
{
	uint64_t own_ns = clock_cpu_ns(), clients_ns = daemon_clients_cpu_ns(d);
	uint64_t bpf_ns = daemon_bpf_ns(d), probes_ns = sampler_latency_cost(d->sampler).bpf_ns;

	/* Two clocks: the thread's may be ahead of the process's by a little. */
	return own_ns - MIN(own_ns, clients_ns) + bpf_ns - MIN(bpf_ns, probes_ns) +
	       sampler_builds_charged_ns(d->sampler) + sampler_file_helper_cpu_ns(d->sampler) +
	       d->store_merges_cpu_ns;
}

uint64_t daemon_probes_cpu_ns(const struct daemon *d)
{
	const struct sampler_latency_cost cost = sampler_latency_cost(d->sampler);

	return cost.bpf_ns + cost.trap_ns;
}

uint64_t daemon_probe_traps_ns(const struct daemon *d)
{
	return sampler_latency_cost(d->sampler).trap_ns;
}

static void write_turns(const struct daemon *d, struct buffer *out)
{
	exposition_histogram(
		out, &(struct exposition_histogram){
			     .name = "fathom_loop_turn_seconds",
			     .help = "How long the turns of the event loop took; during a long one "
				     "nobody reads the ring buffers",
			     .bounds = turn_stats_bounds,
			     .bound_count = TURN_STATS_BOUNDS,
			     .counts = d->turns.buckets,
			     .sum = http_seconds(d->turns.sum_ns),
		     });
}

static int write_metrics(void *context, struct buffer *out)
{
	const struct daemon *d = context;
	const struct sampler_sizes sizes = sampler_sizes(d->sampler);
	const struct serve_figures clients =
		d->serve ? serve_figures(d->serve) : (struct serve_figures){ 0 };
	const struct exposition_figure figures[] = {
		{ "fathom_build_info", "version=\"" FATHOM_VERSION "\"",
			"Version of the running agent", EXPOSITION_GAUGE, 1 },
		{ "fathom_index_build_seconds_total", "", "CPU time of index builds",
			EXPOSITION_COUNTER, http_seconds(sampler_builds_cpu_ns(d->sampler)) },
		{ "fathom_cache_bytes", "cache=\"index\"",
			"Memory held, by kind: module indexes (mapped), kernel symbols, the "
			"current profile",
			EXPOSITION_GAUGE, (double)sizes.index_bytes },
		{ "fathom_cache_bytes", "cache=\"kallsyms\"", "", EXPOSITION_GAUGE,
			(double)sizes.kallsyms_bytes },
		{ "fathom_cache_bytes", "cache=\"profile\"", "", EXPOSITION_GAUGE,
			(double)sizes.profile_bytes },
		{ "fathom_bpf_map_memory_bytes", "", "Kernel memory of the BPF maps",
			EXPOSITION_GAUGE, (double)sizes.bpf_map_bytes },
		{ "fathom_memory_limit_bytes", "",
			"The setting memory-limit: close to it caches are evicted and windows end "
			"early",
			EXPOSITION_GAUGE, (double)config_number(&d->config, SETTING_memory_limit) },
		{ "fathom_processes", "", "Live processes known", EXPOSITION_GAUGE,
			(double)sizes.processes },
		{ "fathom_modules", "", "Mapped files known", EXPOSITION_GAUGE,
			(double)sizes.modules },
		{ "fathom_windows_total", "", "Profiling windows completed", EXPOSITION_COUNTER,
			(double)d->windows },
		{ "fathom_local_store_merge_seconds_total", "",
			"CPU time of merging old files of the local store", EXPOSITION_COUNTER,
			http_seconds(d->store_merges_cpu_ns) },
		{ "fathom_local_store_files", "", "Files in the local store", EXPOSITION_GAUGE,
			d->store ? (double)store_count(d->store) : 0 },
		{ "fathom_local_store_bytes", "", "Size of the local store", EXPOSITION_GAUGE,
			d->store ? (double)store_bytes(d->store) : 0 },
		{ "fathom_configured_frequency_hertz", "", "Configured sampling frequency, per CPU",
			EXPOSITION_GAUGE, (double)d->settings.frequency_hz },
		{ "fathom_effective_frequency_hertz", "",
			"Sampling frequency in effect, per CPU, lowered to keep --cpu-budget, "
			"higher while "
			"a profile on demand asks for it",
			EXPOSITION_GAUGE, (double)daemon_frequency(d) },
		{ "fathom_overhead_cpu_seconds_total", "part=\"user\"",
			"CPU time of the agent itself, by part: user (its process), bpf (its BPF "
			"programs), index_builds (its child processes), file_helper (the child "
			"that reads files of other processes), probe_traps (estimated: what "
			"probes of functions cost the programs besides)",
			EXPOSITION_COUNTER, http_seconds(clock_cpu_ns()) },
		{ "fathom_overhead_cpu_seconds_total", "part=\"bpf\"", "", EXPOSITION_COUNTER,
			http_seconds(daemon_bpf_ns(d)) },
		{ "fathom_overhead_cpu_seconds_total", "part=\"index_builds\"", "",
			EXPOSITION_COUNTER, http_seconds(sampler_builds_cpu_ns(d->sampler)) },
		{ "fathom_overhead_cpu_seconds_total", "part=\"file_helper\"", "",
			EXPOSITION_COUNTER, http_seconds(sampler_file_helper_cpu_ns(d->sampler)) },
		{ "fathom_overhead_cpu_seconds_total", "part=\"probe_traps\"", "",
			EXPOSITION_COUNTER, http_seconds(daemon_probe_traps_ns(d)) },
		{ "fathom_http_cpu_seconds_total", "",
			"CPU time of the agent spent on HTTP clients", EXPOSITION_COUNTER,
			http_seconds(clients.cpu_ns) },
		{ "fathom_http_requests_delayed_total", "",
			"HTTP requests delayed because clients of their kind had used up their CPU "
			"time",
			EXPOSITION_COUNTER, (double)clients.delayed },
		{ "fathom_http_connections_refused_total", "",
			"HTTP connections refused because clients of their kind had too many",
			EXPOSITION_COUNTER, (double)clients.refused },
		{ "process_cpu_seconds_total", "", "CPU time of the process, user and system",
			EXPOSITION_COUNTER, http_seconds(clock_cpu_ns()) },
		{ "process_resident_memory_bytes", "", "Resident memory", EXPOSITION_GAUGE,
			(double)daemon_resident_bytes() },
		{ "process_open_fds", "", "Open file descriptors", EXPOSITION_GAUGE,
			daemon_open_fds() },
		{ "process_max_fds", "", "Limit of open file descriptors", EXPOSITION_GAUGE,
			descriptors_limit() },
		{ "process_start_time_seconds", "",
			"Start time of the process, in seconds since 1970", EXPOSITION_GAUGE,
			http_seconds(d->started_real_ns) },
	};

	exposition_counters(out, sampler_metrics(d->sampler));
	exposition_figures(out, figures, ARRAY_SIZE(figures));
	write_turns(d, out);
	daemon_probes_write_metrics(d->probes, out);
	container_figures_write_metrics(d->metadata, out);
	if (d->export)
		daemon_export_write_metrics(d->export, out);
	return exposition_end(out);
}

const char *daemon_not_ready(const struct daemon *d)
{
	if (!d->ready || d->stopping)
		return "not sampling\n";
	if (clock_monotonic_ns() > d->window_due_ns + WINDOW_LATE_NS)
		return "windows cannot be completed: nothing is stored or sent\n";
	return NULL;
}

static const char *not_ready(void *context)
{
	return daemon_not_ready(context);
}

/* ---- stored profiles ------------------------------------------------------------------------ */

static int write_profiles(
	void *context, int64_t from_ns, int64_t to_ns, unsigned int slices, struct buffer *out)
{
	const struct daemon *d = context;
	struct slices chosen;
	struct store_file file;
	size_t iterator = 0;
	struct json j;

	if (slices && d->store && slices_choose(d->store, from_ns, to_ns, slices, &chosen))
		return slices_write(d->store, &chosen, to_ns, out);
	json_init(&j, out, JSON_COMPACT);
	json_array_by_line(&j, NULL);
	while (d->store && store_next(d->store, &iterator, from_ns, to_ns, &file)) {
		json_object(&j, NULL);
		daemon_json_text(&j, "path", file.path);
		daemon_json_text(&j, "name", file.name);
		if (file.minutes)
			json_number(&j, "minute", file.minute + 1);
		json_signed(&j, "time_ms", file.time_ns / 1000000);
		json_signed(&j, "duration_ms", file.duration_ns / 1000000);
		json_number(&j, "bytes", file.size_bytes);
		json_close(&j);
	}
	json_close(&j);
	json_finish(&j);
	return buffer_string(out, "\n");
}

static int open_profile(void *context, const char *path, int *ret_fd)
{
	const struct daemon *d = context;

	return d->store ? store_open(d->store, path, ret_fd) : -ENOENT;
}

/* ---- function latency ----------------------------------------------------------------------- */

static int write_latency(void *context, int64_t from_ms, int64_t to_ms, struct buffer *out)
{
	const struct daemon *d = context;

	return daemon_probes_write_history(d->probes, from_ms, to_ms, out);
}

/* ---- profiles on demand --------------------------------------------------------------------- */

uint64_t daemon_frequency(const struct daemon *d)
{
	uint64_t hz = d->budget.current_hz;

	for (size_t i = 0; i < DAEMON_MAX_ON_DEMAND; i++)
		hz = MAX(hz, (uint64_t)d->on_demand[i].hz);
	return hz;
}

bool daemon_is_hurried(const struct daemon *d)
{
	return daemon_frequency(d) != d->budget.current_hz;
}

static void on_demand_hurry(struct on_demand *o, unsigned int hz)
{
	struct daemon *d = o->daemon;
	uint64_t before = daemon_frequency(d);

	o->hz = hz;
	if (daemon_frequency(d) != before && !d->stopping)
		daemon_set_frequency(d);
}

static void on_demand_end(struct on_demand *o)
{
	loop_cancel(o->daemon->loop, o->timer);
	if (o->tap)
		sampler_tap_close(o->daemon->sampler, o->tap);
	on_demand_hurry(o, 0);
	*o = (struct on_demand){ .timer = -1 };
}

static void send_profile(struct on_demand *o)
{
	const struct sealed_window window = sampler_tap_read(o->daemon->sampler, o->tap);
	const struct report_options options = daemon_report_options(o->daemon, &window);
	struct report_sources sources;
	struct report_summary summary;
	autocall(buffer_deinit) struct buffer out;
	int err;

	buffer_init(&out, ON_DEMAND_LIMIT_BYTES);
	sources = report_window_sources(&window, sampler_symbolize(o->daemon->sampler),
		sampler_metrics_to_add(o->daemon->sampler));
	err = report_pprof(&sources, &options, &out, &summary);
	if (err)
		serve_reply_send(o->reply, 500, "text/plain; charset=utf-8",
			"the profile could not be written\n", 30);
	else
		serve_reply_send(o->reply, 200, "application/octet-stream", out.bytes, out.size);
}

static void on_demand_over(void *context)
{
	struct on_demand *o = context;
	struct daemon *d = o->daemon;
	uint64_t before_ns = clock_thread_cpu_ns(), counted_ns = daemon_clients_cpu_ns(d);

	o->timer = -1;
	loop_step(d->loop, "profile on demand");
	send_profile(o);
	on_demand_end(o);
	counted_ns = daemon_clients_cpu_ns(d) - counted_ns;
	if (d->serve)
		serve_charge(d->serve, clock_thread_cpu_ns() - before_ns - counted_ns);
}

/* -ESRCH unless PID is a process: a thread's id would give an empty profile. */
static int http_check_process(uint32_t pid, struct buffer *why)
{
	uint32_t process = thread_group_of(pid);

	if (process == pid)
		return 0;
	if (process)
		(void)buffer_printf(
			why, "%u is a thread of process %u: use pid=%u\n", pid, process, process);
	else
		(void)buffer_printf(why, "there is no process %u\n", pid);
	return -ESRCH;
}

static int http_begin_profile(void *context, struct serve_reply *reply,
	const struct serve_profile_wish *wish, struct buffer *why)
{
	struct daemon *d = context;
	struct on_demand *o = NULL;
	int err = wish->pid ? http_check_process(wish->pid, why) : 0;

	if (err)
		return err;
	for (size_t i = 0; i < DAEMON_MAX_ON_DEMAND && !o; i++)
		o = d->on_demand[i].reply ? NULL : &d->on_demand[i];
	if (!o || d->stopping)
		return -EAGAIN;
	*o = (struct on_demand){
		.daemon = d,
		.timer = -1,
	};
	on_demand_hurry(o, wish->hz);
	err = sampler_tap_open(d->sampler, wish->pid, &o->tap);
	if (!err)
		err = loop_timer(d->loop, wish->seconds * UINT64_C(1000000000), 0, on_demand_over,
			o, &o->timer);
	if (err) {
		on_demand_end(o);
		return err;
	}
	o->reply = reply;
	return 0;
}

static void cancel_profile(void *context, struct serve_reply *reply)
{
	struct daemon *d = context;

	for (size_t i = 0; i < DAEMON_MAX_ON_DEMAND; i++) {
		if (d->on_demand[i].reply == reply)
			on_demand_end(&d->on_demand[i]);
	}
	daemon_cancel_merge(d, reply);
}

void daemon_on_demand_deinit(struct daemon *d)
{
	for (size_t i = 0; i < DAEMON_MAX_ON_DEMAND; i++) {
		if (d->on_demand[i].reply)
			on_demand_end(&d->on_demand[i]);
	}
}

static int http_reload(void *context, struct buffer *out)
{
	autofree char *message = NULL;
	int err = daemon_reload(context, &message);

	if (err)
		buffer_printf(out, "nothing changed: %s\n", message ? message : strerror(-err));
	else
		buffer_printf(out, "reloaded%s%s\n", message ? "; " : "", message ? message : "");
	return err;
}

void daemon_http_handlers(struct daemon *d, struct serve_handlers *ret_handlers)
{
	*ret_handlers = (struct serve_handlers){
		.metrics = write_metrics,
		.metrics_type = EXPOSITION_CONTENT_TYPE,
		.status = daemon_write_status,
		.not_ready = not_ready,
		.profiles = write_profiles,
		.profile_file = open_profile,
		.latency = write_latency,
		.profile_begin = http_begin_profile,
		.profile_cancel = cancel_profile,
		.merge_begin = daemon_begin_merge,
		.reload = http_reload,
		.context = d,
	};
}
