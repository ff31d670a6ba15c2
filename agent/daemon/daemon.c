/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/collect/admin.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/sampler.h"
#include "agent/settings/cache_directory.h"
#include "agent/settings/exit_status.h"
#include "agent/settings/explain.h"
#include "agent/settings/log_options.h"
#include "agent/settings/sampling_options.h"
#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/metadata_settings.h"
#include "agent/daemon/notify.h"
#include "agent/daemon/token.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/secret_file.h"

/* For sending at shutdown; what remains is left for the next start. */
static const uint64_t EXPORT_GRACE_NS = UINT64_C(2000000000);
static const uint64_t BUDGET_LOOK_NS = UINT64_C(15000000000);
static const uint64_t PODS_LOOK_NS = UINT64_C(1000000000);

static const char FALLBACK_SOCKET[] = "/run/fathom/http.sock";

/* Thousands of nodes may ask the same server. */
enum { DEBUGINFOD_PER_MINUTE = 30 };

/* ---- callbacks ------------------------------------------------------------------------------ */

static void daemon_on_signal(void *context, int signal)
{
	struct daemon *d = context;
	autofree char *message = NULL;

	if (signal != SIGHUP) {
		d->stopping = true;
		notify_send("STOPPING=1");
		loop_stop(d->loop);
		return;
	}
	(void)daemon_reload(d, &message);
}

void daemon_share_budget(struct daemon *d)
{
	sampler_set_builds_share(d->sampler, d->settings.cpu_share / 2);
}

void daemon_share_with_probes(struct daemon *d)
{
	sampler_latency_allow(d->sampler, budget_for_probes(&d->budget));
}

static void on_budget(void *context)
{
	struct daemon *d = context;
	const struct budget_cost cost = { daemon_sampling_cpu_ns(d), daemon_probes_cpu_ns(d) };
	uint64_t before = d->budget.current_hz, hz;

	loop_step(d->loop, "frequency");
	/* Somebody has asked for what that costs, and it ends soon. */
	if (daemon_is_hurried(d)) {
		budget_restart(&d->budget);
		return;
	}
	hz = budget_look(&d->budget, &cost, clock_monotonic_ns());
	daemon_share_with_probes(d);
	if (hz == before)
		return;
	log_info("the sampling frequency changed to keep the CPU budget", "hz=%llu",
		(unsigned long long)hz);
	daemon_set_frequency(d);
}

int daemon_schedule_budget(struct daemon *d)
{
	loop_cancel(d->loop, d->budget_timer);
	d->budget_timer = -1;
	if (d->settings.cpu_share <= 0)
		return 0;
	return loop_timer(
		d->loop, LOOP_NEXT_MULTIPLE, BUDGET_LOOK_NS, on_budget, d, &d->budget_timer);
}

int daemon_choose_pods(struct daemon *d, bool changed)
{
	const struct pod_choices_options options = { d->settings.selection,
		d->settings.pod_annotations };

	return pod_choices_tell(&d->pod_choices, &options, d->metadata, d->sampler, changed);
}

static void on_pods(void *context)
{
	struct daemon *d = context;

	loop_step(d->loop, "choosing pods");
	(void)daemon_choose_pods(d, false);
}

static void on_watchdog(void *context)
{
	(void)context;
	notify_send("WATCHDOG=1");
}

/* ---- making --------------------------------------------------------------------------------- */

static int daemon_watch_signals(struct daemon *d)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	return loop_signals(d->loop, &signals, daemon_on_signal, d);
}

static int make_token(struct daemon *d)
{
	autofree char *message = NULL;
	int err = token_get(&d->config, d->cache_directory, &d->token, &message);

	if (err)
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
	return err;
}

static int make_store(struct daemon *d)
{
	const char *directory = config_text(&d->config, SETTING_local_store_directory);
	int err;

	if (!directory || !*directory)
		return 0;
	err = store_create(
		&(struct store_options){
			.directory = directory,
			.limit_bytes = d->settings.store_bytes,
			.limit_age_ns = d->settings.store_age_ns,
			.now = { (int64_t)clock_real_ns(), clock_boot_ns() },
			.metrics = sampler_metrics_to_add(d->sampler),
		},
		&d->store);
	if (err)
		fprintf(stderr, "fathom agent: --local-store-directory %s: %s\n", directory,
			err == -EPERM   ? "it must belong to you and be writable by nobody else"
			: err == -EBUSY ? "another agent uses it"
					: strerror(-err));
	return err;
}

static int make_export(struct daemon *d)
{
	autofree char *message = NULL;
	int err = daemon_export_create(&d->config, sampler_metrics_to_add(d->sampler),
		d->cache_directory, &d->export, &message);

	if (err)
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
	return err;
}

static int make_metadata(struct daemon *d)
{
	autofree char *message = NULL;
	int err = metadata_settings_create(
		&d->config, sampler_metrics_to_add(d->sampler), &d->metadata, &message);

	if (err)
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
	return err;
}

/* NULL = none. By default the socket belongs to HTTP, and to root's agent. */
static const char *socket_path(const struct daemon *d, const char *address)
{
	const char *path = config_text(&d->config, SETTING_http_socket);

	if (!path && address && !geteuid())
		path = FALLBACK_SOCKET;
	return path && *path ? path : NULL;
}

static const char *explain_socket(int err)
{
	return err == -EBUSY        ? "another agent has it"
	       : err == -EPERM      ? "its directory must be ours and writable by nobody else"
	       : err == -EADDRINUSE ? "another program has it, or it is not a socket"
	       : err == -EINVAL     ? "it must be an absolute path of less than 108 bytes"
				    : strerror(-err);
}

static int make_probes(struct daemon *d)
{
	autofree char *message = NULL;
	int err = daemon_probes_create(
		&d->config, sampler_metrics_to_add(d->sampler), &d->probes, &message);

	if (err)
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
	return err;
}

/* Without the socket that nobody asked for, the agent does its work. */
static int make_socket(struct daemon *d, const char *path)
{
	int err = path ? serve_add_socket(d->serve, path) : 0;

	if (!err) {
		d->http_socket = path;
		return 0;
	}
	if (config_given(&d->config, SETTING_http_socket)) {
		fprintf(stderr, "fathom agent: --http-socket %s: %s\n", path, explain_socket(err));
		return err;
	}
	log_warn("no HTTP on a socket file, ignoring", "path=%s error=\"%s\"", path,
		explain_socket(err));
	return 0;
}

static int make_serve(struct daemon *d)
{
	const char *given = config_text(&d->config, SETTING_http_address);
	const char *address = given && *given ? given : NULL, *path = socket_path(d, address);
	struct serve_options options = { .address = address, .token = d->token, .loop = d->loop };
	int err;

	if (!address && !path)
		return 0;
	daemon_http_handlers(d, &options.handlers);
	err = serve_create(&options, &d->serve);
	if (!err)
		return make_socket(d, path);
	fprintf(stderr, "fathom agent: --http-%s %s: %s\n", address ? "address" : "socket",
		address ? address : path,
		err == -EADDRINUSE ? "in use, perhaps by another agent: choose another address"
				   : serve_error(err));
	return err;
}

static bool wants_file(void *context, const struct module_id *id)
{
	struct daemon *d = context;

	return daemon_export_wants_file(d->export, &id->build_id);
}

static void take_file(void *context, const struct module_id *id, int fd)
{
	struct daemon *d = context;

	daemon_export_file(d->export, &id->build_id, fd);
}

static int make_sampler(struct daemon *d)
{
	struct sampler_failure failure = { 0 };
	struct sampler_options options = {
		.cache_directory = d->cache_directory,
		.debug_directories = config_text(&d->config, SETTING_debuginfo_directories),
		.kernel_debuginfo = config_flag(&d->config, SETTING_kernel_debuginfo),
		.debuginfod_urls = config_text(&d->config, SETTING_debuginfod_urls),
		.debuginfod_per_minute = DEBUGINFOD_PER_MINUTE,
		.cache_limit_bytes = config_number(&d->config, SETTING_cache_max_bytes),
		.profile_limit_bytes = config_number(&d->config, SETTING_memory_limit) / 4,
		.memory_limit_bytes = config_number(&d->config, SETTING_memory_limit),
		.loop = d->loop,
		.sealed = daemon_sealed,
		.full = daemon_full,
		.wants_file = wants_file,
		.take_file = take_file,
		.sealed_context = d,
		.collect = { .event = COLLECT_CPU_CLOCK, .user = true, .kernel = true },
	};
	int err;

	options.collect.frequency_hz = d->settings.frequency_hz;
	options.collect.without = d->settings.without;
	options.collect.filter.choose_cgroups = 1;
	options.collect.off_cpu_share = d->settings.off_cpu_share;
	sampling_options_common(&options.collect.filter);
	err = sampler_create(&options, &d->sampler, &failure);
	if (err)
		explain_failure(&failure, err);
	else
		sampler_select(d->sampler, d->settings.selection);
	return err;
}

static int daemon_make(struct daemon *d)
{
	int err;

	/* Files stay open until they are indexed, and perf maps until the report. */
	descriptors_raise_limit();
	err = cache_directory(&d->config, &d->cache_directory);
	if (!err)
		err = loop_create(&d->loop);
	if (!err)
		turn_stats_watch(&d->turns, d->loop);
	if (!err)
		err = daemon_watch_signals(d);
	if (!err)
		err = make_token(d);
	if (!err)
		err = make_sampler(d);
	if (!err)
		err = make_store(d);
	if (!err)
		err = make_export(d);
	if (!err)
		err = make_metadata(d);
	if (!err)
		err = daemon_choose_pods(d, true);
	if (!err)
		err = make_probes(d);
	return err ? err : make_serve(d);
}

static void daemon_unmake(struct daemon *d)
{
	daemon_on_demand_deinit(d);
	daemon_nameless_deinit(d);
	daemon_merges_deinit(d);
	daemon_store_merges_deinit(d);
	serve_destroy(d->serve);
	/* Both use the sampler's metrics until they end. */
	daemon_export_destroy(d->export, EXPORT_GRACE_NS);
	pod_choices_deinit(&d->pod_choices);
	metadata_destroy(d->metadata);
	sampler_destroy(d->sampler);
	daemon_probes_destroy(d->probes);
	store_destroy(d->store);
	loop_destroy(d->loop);
	if (d->clock_fd >= 0)
		close(d->clock_fd);
	selection_destroy(d->settings.selection);
	secret_free(&d->token);
	free(d->cache_directory);
}

/* ---- running -------------------------------------------------------------------------------- */

static int start_timers(struct daemon *d)
{
	uint64_t watchdog = notify_watchdog_ns();
	int err = daemon_start_windows(d);

	if (!err && daemon_watch_clock(d))
		log_warn("changes of the system clock cannot be watched, ignoring", "%s", "");
	if (!err)
		err = daemon_schedule_budget(d);
	if (!err)
		err = loop_timer(
			d->loop, LOOP_NEXT_MULTIPLE, PODS_LOOK_NS, on_pods, d, &d->pods_timer);
	if (!err && watchdog)
		err = loop_timer(
			d->loop, watchdog / 2, watchdog / 2, on_watchdog, d, &d->watchdog_timer);
	return err;
}

/* A machine that cannot measure functions is sampled all the same. */
static void start_probes(struct daemon *d)
{
	autofree char *message = NULL;
	int err = daemon_probes_set(d->sampler, &d->config, &message);
	const char *why = message ? message : strerror(-err);

	if (!err)
		return;
	log_error("functions cannot be measured, ignoring `probes`", "error=\"%s\"", why);
	daemon_probes_refused(d->probes, why);
}

static int daemon_serve(struct daemon *d)
{
	int err;

	d->started_ns = clock_monotonic_ns();
	d->started_real_ns = clock_real_ns();
	daemon_share_budget(d);
	budget_init(&d->budget, d->settings.cpu_share, d->settings.frequency_hz);
	daemon_share_with_probes(d);
	err = sampler_start(d->sampler);
	if (!err)
		err = start_timers(d);
	if (err) {
		fprintf(stderr, "fathom agent: cannot start sampling: %s\n", strerror(-err));
		return err;
	}
	start_probes(d);
	d->ready = true;
	daemon_announce(d);
	notify_send("READY=1");
	err = loop_run(d->loop);
	(void)sampler_stop(d->sampler);
	daemon_seal_last(d);
	daemon_announce_end(d);
	return err;
}

int daemon_run(struct config *config, int argc, char **argv)
{
	struct daemon d = {
		.config = *config,
		.argc = argc,
		.argv = argv,
		.window_timer = -1,
		.frequency_timer = -1,
		.budget_timer = -1,
		.watchdog_timer = -1,
		.pods_timer = -1,
		.clock_fd = -1,
	};
	autofree char *message = NULL;
	int err;

	*config = (struct config){ 0 };
	err = daemon_settings_read(&d.config, &d.settings, &message);
	if (err) {
		fprintf(stderr, "fathom agent: %s\n", message ? message : strerror(-err));
		config_deinit(&d.config);
		return EXIT_USAGE;
	}
	admin_lay_down();
	err = log_options(&d.config);
	if (!err)
		err = daemon_make(&d);
	if (!err)
		err = daemon_serve(&d);
	daemon_unmake(&d);
	config_deinit(&d.config);
	return err ? EXIT_FAILED : EXIT_DONE;
}
