/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows begin and end as window_clock.h says, and early when memory is short. Their timer is
 * created at the start and only rearmed later, which cannot fail. If ending a window fails, it is
 * retried soon; until it succeeds the agent is not ready.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/groups.h"
#include "agent/daemon/window_clock.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum { PROFILE_LIMIT_BYTES = 256 << 20 };

static const uint64_t FREQUENCY_AGAIN_NS = 5000000;
static const uint64_t WINDOW_AGAIN_NS = 1000000000;

/* Logs changes only. */
static void report_window(struct daemon *d, int err)
{
	if (err && !d->window_error)
		log_warn("a window could not be ended and continues", "error=\"%s\"",
			strerror(-err));
	else if (!err && d->window_error)
		log_info("windows end again", "%s", "");
	d->window_error = err;
}

static void end_window(struct daemon *d)
{
	int err;

	loop_step(d->loop, "windows");
	err = sampler_rotate_window(d->sampler);
	report_window(d, err);
	if (err)
		(void)loop_retime(d->loop, d->window_timer, WINDOW_AGAIN_NS, d->settings.window_ns);
	else
		daemon_schedule_window(d);
}

static void on_window_end(void *context)
{
	end_window(context);
}

static void on_frequency_again(void *context)
{
	struct daemon *d = context;

	loop_step(d->loop, "frequency");
	d->frequency_timer = -1;
	daemon_set_frequency(d);
}

/*
 * Pauses sampling while window and frequency change: if this thread lost its CPU in between,
 * samples of one window would have the period of the other.
 */
void daemon_set_frequency(struct daemon *d)
{
	int err;

	loop_cancel(d->loop, d->frequency_timer);
	d->frequency_timer = -1;
	(void)sampler_pause(d->sampler, true);
	err = sampler_rotate_window(d->sampler);
	/* The previous window is still being read: this one cannot end yet. */
	if (err == -EBUSY)
		err = loop_timer(
			d->loop, FREQUENCY_AGAIN_NS, 0, on_frequency_again, d, &d->frequency_timer);
	if (d->frequency_timer < 0 &&
		(sampler_set_frequency(d->sampler, daemon_frequency(d)) || err))
		log_warn("the sampling frequency could not be changed, ignoring", "%s", "");
	if (sampler_pause(d->sampler, false))
		log_warn("a CPU is no longer sampled, ignoring", "%s", "");
}

void daemon_full(void *context)
{
	end_window(context);
}

static void on_clock_set(void *context, int fd, uint32_t events)
{
	struct daemon *d = context;

	(void)events;
	log_info("the clock was set or the machine suspended: the window ends here", "%s", "");
	end_window(d);
	if (window_clock_again(fd))
		log_warn(
			"changes of the system clock can no longer be watched, ignoring", "%s", "");
}

int daemon_watch_clock(struct daemon *d)
{
	int err = window_clock_watch(&d->clock_fd);

	return err ? err : loop_add(d->loop, d->clock_fd, EPOLLIN, on_clock_set, d);
}

void daemon_schedule_window(struct daemon *d)
{
	uint64_t left = window_clock_left_ns(clock_real_ns(), d->settings.window_ns);

	d->window_due_ns = clock_monotonic_ns() + left;
	(void)loop_retime(d->loop, d->window_timer, left, d->settings.window_ns);
}

int daemon_start_windows(struct daemon *d)
{
	uint64_t length = d->settings.window_ns;
	int err = loop_timer(d->loop, length, length, on_window_end, d, &d->window_timer);

	if (!err)
		daemon_schedule_window(d);
	return err;
}

struct report_options daemon_report_options(
	const struct daemon *d, const struct sealed_window *window)
{
	struct report_options options = report_window_options(window);

	options.created_by = config_flag(&d->config, SETTING_go_created_by);
	return options;
}

/* COMMENT: what the profile says besides, NULL = nothing. */
static int store_groups(struct daemon *d, const struct sealed_window *window,
	const struct report_sources *sources, const struct groups *groups, const char *comment)
{
	struct report_options options = daemon_report_options(d, window);
	struct groups_label label = { .groups = groups };
	autocall(buffer_deinit) struct buffer out;
	struct report_summary summary;
	int err;

	options.group = groups_label_of;
	options.group_context = &label;
	options.comment = comment;
	buffer_init(&out, PROFILE_LIMIT_BYTES);
	err = report_pprof(sources, &options, &out, &summary);
	if (err) {
		metrics_add(sampler_metrics_to_add(d->sampler), METRIC_STORE_FAILED, 1);
		return err;
	}
	return store_put(d->store, NULL, options.time_ns, options.duration_ns, out.bytes, out.size);
}

/* Logs changes only. */
static void report_failure(struct daemon *d, int err)
{
	if (err && err != d->store_error)
		log_warn("profiles could not be stored, ignoring", "error=\"%s\"", strerror(-err));
	else if (!err && d->store_error)
		log_info("profiles are stored again", "%s", "");
	d->store_error = err;
}

static void report_full_disk(struct daemon *d, uint64_t dropped)
{
	if (dropped && !d->disk_full)
		log_warn("the disk of the local store is full, removing its oldest profiles",
			"count=%llu", (unsigned long long)dropped);
	else if (!dropped && d->disk_full)
		log_info("the disk of the local store has space again", "%s", "");
	d->disk_full = dropped != 0;
}

static void store_window(
	struct daemon *d, const struct sealed_window *window, const struct report_sources *sources)
{
	const struct metrics *metrics = sampler_metrics(d->sampler);
	uint64_t dropped = metrics_get(metrics, METRIC_STORE_DROPPED_DISK_FULL);
	uint64_t lost = daemon_samples_lost(d);
	char comment[80] = "";
	struct groups groups;

	/* The page reads this: agent/server/serve/page/samples.js. */
	if (lost > d->lost_told)
		snprintf(comment, sizeof(comment), "samples lost since the window before: %" PRIu64,
			lost - d->lost_told);
	if (groups_init(&groups, sources->profile, sources->processes)) {
		metrics_add(sampler_metrics_to_add(d->sampler), METRIC_LOST_MEMORY_LIMIT,
			profile_total_count(sources->profile));
		log_warn("a window is lost: out of memory", "%s", "");
		return;
	}
	report_failure(d, store_groups(d, window, sources, &groups, *comment ? comment : NULL));
	if (!d->store_error)
		d->lost_told = lost;
	groups_deinit(&groups);
	report_full_disk(d, metrics_get(metrics, METRIC_STORE_DROPPED_DISK_FULL) - dropped);
}

void daemon_trim_store(struct daemon *d)
{
	struct store_now now = { (int64_t)clock_real_ns(), clock_boot_ns() };
	int err = d->store ? store_trim(d->store, now) : 0;

	if (err && err != d->store_removal_error)
		log_warn("old profiles of the local store could not be removed, ignoring",
			"error=\"%s\"", strerror(-err));
	d->store_removal_error = err;
}

static void export_window(
	struct daemon *d, const struct sealed_window *window, const struct report_sources *sources)
{
	struct report_options options = daemon_report_options(d, window);

	daemon_export_know_containers(d->export, d->metadata);
	daemon_export_window(d->export, sources, &options, !d->store);
}

void daemon_sealed(void *context, const struct sealed_window *window)
{
	struct daemon *d = context;
	uint64_t cpu = clock_cpu_ns();
	struct report_sources sources;

	d->windows++;
	loop_step(d->loop, "trimming the store");
	daemon_trim_store(d);
	loop_step(d->loop, "merging stored profiles");
	daemon_merge_store(d);
	loop_step(d->loop, "function latency");
	daemon_probes_know_containers(d->probes, d->metadata);
	daemon_probes_window(d->probes, window, sampler_symbolize(d->sampler));
	if (!profile_sample_count(window->profile))
		return;
	sources = report_window_sources(
		window, sampler_symbolize(d->sampler), sampler_metrics_to_add(d->sampler));
	daemon_announce_hottest(d, window, &sources);
	daemon_nameless_look(d, &sources);
	loop_step(d->loop, "storing a window");
	if (d->store)
		store_window(d, window, &sources);
	loop_step(d->loop, "sending a window");
	if (d->export)
		export_window(d, window, &sources);
	d->last_seal_ns = clock_cpu_ns() - cpu;
}

void daemon_seal_last(struct daemon *d)
{
	const struct sealed_window window = sampler_last_window(d->sampler);

	daemon_sealed(d, &window);
}
