/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom record`: one window for the whole run, one output file.
 *
 * plan → fork CMD, if given, and hold it back → create the agent, read /proc → wait briefly for
 * what goroutine ids need → sample until a signal, the end of the duration or of CMD → drain the
 * rings → wait for indexes → symbolize, write, print the result.
 *
 * CMD is the target, unless -a, -p, -t or -G selects targets: then CMD only sets the duration.
 */
#include "agent/commands/record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/held_command.h"
#include "agent/loop/turn_stats.h"
#include "agent/sampler/probes/probes.h"
#include "agent/settings/explain.h"
#include "agent/settings/log_options.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/pid_namespace.h"

enum {
	HOTTEST = 10,
	NAMELESS = 5, /* programs */
	OUTPUT_LIMIT = RECORD_OUTPUT_BYTES,
	MS = 1000000,
};

static const uint64_t PREPARE_ALL_MS = 250;
static const uint64_t PREPARE_TARGET_MS = 10000;
static const uint64_t FINISH_BUILDS_MS = 120000;
static const uint64_t PROGRESS_MS = 500;

struct record {
	struct record_plan plan;
	struct loop *loop;
	struct turn_stats turns;
	struct sampler *sampler;
	struct held_command command;
	struct watched_targets targets;
	bool sampled; /* sampling began: no interruption before */
	bool over; /* sampling has ended, but not by CMD's end */
	uint64_t started_ns; /* CLOCK_MONOTONIC */
	uint64_t start_cpu_ns; /* own CPU time until sampling began */
	struct sealed_window window; /* valid after sampling has stopped */
	unsigned int interrupts;
	int duration_timer, progress_timer; /* -1 = none */
	bool progress; /* stderr is a terminal */
};

/* ---- the loop's callbacks ------------------------------------------------------------------- */

static void record_on_signal(void *context, int signal)
{
	struct record *r = context;

	if (signal == SIGCHLD) {
		/* SIGCHLD also comes for index builders; act only once, when CMD has ended. */
		if (!r->over && !r->command.ended && held_command_reap(&r->command))
			loop_stop(r->loop);
		return;
	}
	/* The first signal stops sampling, the second one the wait for names. */
	r->interrupts++;
	r->over = true;
	loop_stop(r->loop);
}

static void on_duration(void *context)
{
	struct record *r = context;

	loop_stop(r->loop);
}

static void on_targets_ended(void *context)
{
	struct record *r = context;

	loop_stop(r->loop);
}

static void on_progress(void *context)
{
	struct record *r = context;
	double elapsed = (double)(clock_monotonic_ns() - r->started_ns) / 1e9;

	fprintf(stderr, "\rrecording: %.0f", elapsed);
	if (r->plan.duration_ns)
		fprintf(stderr, " of %.0f", (double)r->plan.duration_ns / 1e9);
	fprintf(stderr, " s, %llu samples ", (unsigned long long)sampler_samples(r->sampler));
}

static void on_debug_progress(void *context)
{
	struct record *r = context;
	struct builds_improving now = sampler_pending_debug(r->sampler);

	if (!now.modules)
		return;
	fprintf(stderr, "\rdebug files from debuginfod: %u modules, %.1f MB (Ctrl-C ends it)\033[K",
		now.modules, (double)now.bytes / 1e6);
}

static const int endings[] = { SIGINT, SIGTERM, SIGHUP };

static int record_watch_signals(struct record *r)
{
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		sigaddset(&signals, endings[i]);
	if (r->command.pid > 0)
		sigaddset(&signals, SIGCHLD);
	return loop_signals(r->loop, &signals, record_on_signal, r);
}

/* ---- the run -------------------------------------------------------------------------------- */

static uint64_t own_cpu_ns(const struct record *r)
{
	return clock_cpu_ns() + sampler_file_helper_cpu_ns(r->sampler);
}

static int start_sampling(struct record *r)
{
	int err = 0;

	r->started_ns = clock_monotonic_ns();
	r->sampled = true;
	if (r->plan.duration_ns)
		err = loop_timer(
			r->loop, r->plan.duration_ns, 0, on_duration, r, &r->duration_timer);
	if (!err)
		err = sampler_start(r->sampler);
	r->start_cpu_ns = own_cpu_ns(r);
	if (!err && r->progress)
		err = loop_timer(r->loop, PROGRESS_MS * MS, PROGRESS_MS * MS, on_progress, r,
			&r->progress_timer);
	if (!err)
		err = watched_targets_watch(
			&r->targets, &r->plan.sampling.collect, r->loop, on_targets_ended, r);
	if (err) {
		explain_failure(&(struct sampler_failure){ .step = "start sampling" }, err);
		return err;
	}
	return 0;
}

static int run_command(struct record *r)
{
	int err = r->command.pid > 0 ? held_command_go(&r->command) : 0;

	if (err)
		fprintf(stderr, "fathom record: cannot run %s: %s\n", r->command.name,
			strerror(-err));
	return err;
}

/* The loop has not run since: a signal may still be pending. */
static bool is_interrupted(const struct record *r)
{
	sigset_t pending;

	sigemptyset(&pending);
	(void)sigpending(&pending);
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++)
		if (sigismember(&pending, endings[i]) == 1)
			return true;
	return r->interrupts > 0;
}

/* Returns 0, so that an empty profile is written. */
static int end_before_sampling(struct record *r)
{
	fprintf(stderr, "fathom record: interrupted before sampling began: the profile is empty\n");
	if (r->command.pid > 0)
		fprintf(stderr, "fathom record: %s was not run\n", r->command.name);
	return 0;
}

static int sample(struct record *r)
{
	uint64_t wait_ms = r->plan.sampling.targeted ? PREPARE_TARGET_MS : PREPARE_ALL_MS;
	int err;

	err = sampler_prepare(r->sampler, wait_ms * MS);
	if (err)
		return err;
	if (is_interrupted(r))
		return end_before_sampling(r);
	err = start_sampling(r);
	if (!err)
		err = run_command(r);
	/* CMD may have ended already: its SIGCHLD is then pending, and the loop ends at once. */
	if (!err && !watched_targets_ended(&r->targets))
		err = loop_run(r->loop);
	r->over = true;
	loop_cancel(r->loop, r->duration_timer);
	loop_cancel(r->loop, r->progress_timer);
	if (!err)
		err = sampler_stop(r->sampler);
	if (r->progress)
		fputs("\r\033[K", stderr);
	return err;
}

static void wait_for_names(struct record *r)
{
	unsigned int pending = sampler_pending_builds(r->sampler);

	if (pending && r->progress)
		fprintf(stderr, "indexing %u new modules (done once)…\n", pending);
	if (r->progress && r->plan.sampler.debuginfod_urls)
		(void)loop_timer(r->loop, PROGRESS_MS * MS, PROGRESS_MS * MS, on_debug_progress, r,
			&r->progress_timer);
	(void)sampler_finish_debug(r->sampler, FINISH_BUILDS_MS * MS);
	loop_cancel(r->loop, r->progress_timer);
	if (r->progress)
		fputs("\r\033[K", stderr);
	pending = sampler_pending_builds(r->sampler);
	if (pending)
		fprintf(stderr,
			"fathom record: %u modules are not indexed yet: their frames have no "
			"names\n",
			pending);
	pending = sampler_pending_debug(r->sampler).modules;
	if (pending)
		fprintf(stderr,
			"fathom record: debug files of %u modules did not arrive in time: their "
			"frames have names but no lines or inlined functions\n",
			pending);
}

/* ---- the output ----------------------------------------------------------------------------- */

/* Folded text has no room for both: waits, if they were asked for. */
static uint32_t record_folded_type(const struct record *r)
{
	return sample_types_have(&r->window.types, PROBE_off_cpu) ? (uint32_t)PROBE_off_cpu
								  : SAMPLE_TYPE_TICKS;
}

static int write_report(struct record *r, struct report_summary *ret_summary)
{
	struct report_options options;
	struct report_sources sources;
	autocall(buffer_deinit) struct buffer out;
	int err;

	buffer_init(&out, OUTPUT_LIMIT);
	r->window = sampler_last_window(r->sampler);
	options = report_window_options(&r->window);
	options.created_by = r->plan.created_by;
	sources = report_window_sources(
		&r->window, sampler_symbolize(r->sampler), sampler_metrics_to_add(r->sampler));
	if (r->plan.folded)
		err = report_folded(&sources, &options, record_folded_type(r), &out, ret_summary);
	else
		err = report_pprof(&sources, &options, &out, ret_summary);
	if (err) {
		fprintf(stderr, "fathom record: cannot make the profile: %s\n", strerror(-err));
		return err;
	}
	return record_files_write(&r->plan, &out);
}

static void tell(struct record *r, const struct report_summary *summary)
{
	const char *output = r->plan.output, *html = r->plan.html;
	struct report_sources sources;
	struct report_hot *hot = NULL;
	struct report_nameless *nameless = NULL;
	struct record_result result = {
		.metrics = sampler_metrics(r->sampler),
		.summary = *summary,
		.builds_cpu_ns = sampler_builds_cpu_ns(r->sampler),
		.elapsed_ns = r->window.ended_ns - r->window.began_ns,
		.output = output && strcmp(output, "-") && !r->plan.folded ? output : NULL,
		.html = html && strcmp(html, "-") ? html : NULL,
		.off_cpu = sample_types_have(&r->window.types, PROBE_off_cpu),
		.targets_ended = watched_targets_ended(&r->targets),
		.everything = !r->plan.sampling.targeted && !r->plan.sampler.follow &&
			      !r->plan.sampling.collect.filter.filter_comm &&
			      !r->plan.sampling.collect.filter.fiber_id,
	};

	result.contained = !r->plan.sampling.targeted && !r->plan.sampler.follow &&
			   pid_namespace_is_contained();
	sources = report_window_sources(
		&r->window, sampler_symbolize(r->sampler), sampler_metrics_to_add(r->sampler));
	if (report_hottest(&sources, &hot, HOTTEST, &result.hot_count))
		result.hot_count = 0;
	result.hot = hot;
	if (report_nameless(&sources, NAMELESS, &nameless, &result.nameless_count))
		result.nameless_count = 0;
	result.nameless = nameless;
	(void)sampler_bpf_time(r->sampler, &result.bpf_ns, &result.bpf_runs);
	result.start_cpu_ns = r->start_cpu_ns;
	result.cpu_ns = own_cpu_ns(r);
	record_print_result(&result);
	report_hottest_free(hot, result.hot_count);
	report_nameless_free(nameless, result.nameless_count);
}

static int record(struct record *r)
{
	struct sampler_failure failure = { 0 };
	struct report_summary summary = { 0 };
	int err;

	err = loop_create(&r->loop);
	if (err)
		return err;
	turn_stats_watch(&r->turns, r->loop);
	err = record_watch_signals(r);
	if (err)
		return err;
	r->plan.sampler.loop = r->loop;
	descriptors_raise_limit();
	err = sampler_create(&r->plan.sampler, &r->sampler, &failure);
	if (err) {
		explain_failure(&failure, err);
		return err;
	}
	err = sample(r);
	if (err)
		return err;
	if (r->sampled)
		wait_for_names(r);
	err = write_report(r, &summary);
	if (!err && !r->plan.quiet)
		tell(r, &summary);
	return err;
}

static int record_spawn(struct record *r, char **argv)
{
	int err = held_command_spawn(argv, &r->command);

	if (err) {
		fprintf(stderr, "fathom record: cannot run %s: %s\n", argv[0], strerror(-err));
		return err;
	}
	r->plan.sampler.follow = !r->plan.others;
	r->plan.sampler.follow_pid = (uint32_t)r->command.pid;
	return 0;
}

static int plan_and_record(const struct config *config)
{
	struct record r = {
		.command = { .pid = -1, .go_fd = -1, .exec_fd = -1 },
		.duration_timer = -1,
		.progress_timer = -1,
		.progress = isatty(STDERR_FILENO) && !config_flag(config, SETTING_quiet),
	};
	int command_status, err;

	err = record_plan(config, &r.plan);
	if (err)
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	err = record_files_check(&r.plan);
	if (err) {
		record_plan_deinit(&r.plan);
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	err = config->rest_count ? record_spawn(&r, config->rest) : 0;
	if (!err)
		err = record(&r);
	sampler_destroy(r.sampler);
	watched_targets_deinit(&r.targets);
	loop_destroy(r.loop);
	if (!r.plan.quiet)
		held_command_say_end(&r.command, "record");
	command_status = held_command_exit_status(&r.command);
	held_command_deinit(&r.command);
	record_plan_deinit(&r.plan);
	return command_status ?: err ? EXIT_FAILED : EXIT_DONE;
}

int command_record(struct invocation *call)
{
	const struct config *config = &call->config;

	if (!config->rest_count && !strcmp(config->rest[-1], "--")) {
		fputs("fathom record: -- must be followed by a command\n", stderr);
		return EXIT_USAGE;
	}
	if (config->rest_count && strcmp(config->rest[-1], "--")) {
		fprintf(stderr,
			"fathom record: unexpected argument '%s'; a command to run goes after --\n",
			config->rest[0]);
		return EXIT_USAGE;
	}
	return plan_and_record(config);
}
