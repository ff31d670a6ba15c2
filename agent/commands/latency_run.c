/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom latency`: fork CMD, if given, and hold it back → create the sampler, which reads /proc →
 * find the files → wait for their indexes, whereupon functions are probed → run until a signal, the
 * end of the duration, of CMD or of the processes → detach → print.
 */
#include "agent/commands/latency_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <unistd.h>

#include "agent/commands/held_command.h"
#include "agent/commands/latency_candidates_of.h"
#include "agent/commands/latency_hints.h"
#include "agent/commands/latency_measured.h"
#include "agent/commands/latency_profile.h"
#include "agent/commands/latency_say.h"
#include "agent/commands/output_file.h"
#include "agent/commands/program_path.h"
#include "agent/commands/watched_targets.h"
#include "agent/latency/latency_candidates.h"
#include "agent/latency/latency_json.h"
#include "agent/latency/latency_openmetrics.h"
#include "agent/latency/latency_text.h"
#include "agent/sampler/collect/mechanisms.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/sampler_latency.h"
#include "agent/settings/explain.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/failure.h"
#include "base/interrupted.h"

enum { OUTPUT_LIMIT = 256 << 20 };

static const uint64_t INDEX_WAIT_NS = UINT64_C(120000000000);
/* For files that do not answer; they are asked again after each pause. */
static const uint64_t FILES_WAIT_NS = UINT64_C(10000000000);
static const uint64_t FILES_PAUSE_NS = UINT64_C(100000000);
/* Calls in a second, of all functions, from which on only a share is measured. */
static const uint64_t MAX_CALLS_PER_SECOND = 200000;

struct latency_run {
	const struct latency_plan *plan;
	struct sampler_latency_options latency;
	struct loop *loop;
	struct sampler *sampler;
	struct held_command command;
	uint32_t command_pid;
	struct watched_targets targets;
	struct latency_report before; /* what was known when the last interval ended */
	bool has_before;
	uint64_t started_ns, interval_began_ns; /* CLOCK_MONOTONIC */
	uint64_t files_until_ns; /* 0 = every file has answered so far */
	unsigned int interrupts;
	bool over; /* measuring has ended, but not by CMD's end */
	int duration_timer, interval_timer; /* -1 = none */
};

/* ---- the loop's callbacks ------------------------------------------------------------------- */

static void latency_on_signal(void *context, int signal)
{
	struct latency_run *r = context;

	if (signal == SIGCHLD) {
		/* It also comes for index builders. */
		if (!r->over && !r->command.ended && held_command_reap(&r->command))
			loop_stop(r->loop);
		return;
	}
	r->interrupts++;
	r->over = true;
	loop_stop(r->loop);
}

static void latency_on_end(void *context)
{
	struct latency_run *r = context;

	loop_stop(r->loop);
}

static int latency_watch_signals(struct latency_run *r)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (r->command.pid > 0)
		sigaddset(&signals, SIGCHLD);
	return loop_signals(r->loop, &signals, latency_on_signal, r);
}

/* ---- output --------------------------------------------------------------------------------- */

static int latency_fail(const struct latency_run *r, const char *what, int err)
{
	fprintf(stderr, "fathom %s: %s: %s\n", r->plan->name, what, strerror(-err));
	return err;
}

static int print_report(
	const struct latency_run *r, const struct latency_report *report, bool is_interval)
{
	autocall(buffer_deinit) struct buffer out;
	int err;

	buffer_init(&out, OUTPUT_LIMIT);
	err = r->plan->json ? latency_json(report, is_interval, &out) : latency_text(report, &out);
	if (!err)
		err = output_file_write("-", &out);
	return err ? latency_fail(r, "cannot print the report", err) : 0;
}

static int write_openmetrics(const struct latency_run *r, const struct latency_report *report)
{
	autocall(buffer_deinit) struct buffer out;
	int err;

	buffer_init(&out, OUTPUT_LIMIT);
	err = latency_openmetrics(report, &out);
	if (!err)
		err = output_file_write(r->plan->openmetrics, &out);
	return err ? latency_fail(r, r->plan->openmetrics, err) : 0;
}

/* What was measured since the start. */
static int take_report(const struct latency_run *r, struct latency_report *ret_report)
{
	int err = latency_report_init(ret_report, r->plan->by);

	ret_report->has_stacks = r->plan->profile != NULL;
	if (!err)
		err = latency_measured(r->sampler, ret_report);
	ret_report->duration_ns = clock_monotonic_ns() - r->started_ns;
	return err ? latency_fail(r, "cannot read what was measured", err) : 0;
}

static int print_interval(struct latency_run *r)
{
	struct latency_report now = { 0 }, interval = { 0 };
	uint64_t now_ns = clock_monotonic_ns();
	int err = take_report(r, &now);

	if (!err)
		err = latency_report_since(&now, &r->before, &interval);
	if (!err) {
		interval.duration_ns = now_ns - r->interval_began_ns;
		err = print_report(r, &interval, true);
	}
	if (!err && r->plan->openmetrics)
		err = write_openmetrics(r, &now);
	latency_report_deinit(&interval);
	latency_report_deinit(&r->before);
	r->before = now;
	r->interval_began_ns = now_ns;
	return err;
}

static void on_interval(void *context)
{
	struct latency_run *r = context;

	if (print_interval(r))
		loop_stop(r->loop);
}

static int print_whole(const struct latency_run *r)
{
	struct latency_report report = { 0 };
	int err = take_report(r, &report);

	if (!err)
		err = print_report(r, &report, false);
	if (!err && r->plan->openmetrics)
		err = write_openmetrics(r, &report);
	latency_report_deinit(&report);
	return err;
}

static int print_dry_run(const struct latency_run *r)
{
	autocall(latency_candidates_of_free) struct latency_candidates candidates = { 0 };
	autocall(buffer_deinit) struct buffer out;
	int err;

	buffer_init(&out, OUTPUT_LIMIT);
	err = latency_candidates_of(sampler_probed_files(r->sampler),
		sampler_kernel_functions(r->sampler), &candidates);
	if (!err)
		err = r->plan->json ? latency_candidates_json(&candidates, &out)
				    : latency_candidates_text(&candidates, &out);
	if (!err)
		err = output_file_write("-", &out);
	return err ? latency_fail(r, "cannot print the list", err) : 0;
}

/* ---- the run -------------------------------------------------------------------------------- */

/*
 * The kernel puts the program's path behind the environment. 0 if addresses are not random:
 * then other programs may have the same one.
 */
static uint64_t latency_own_env_end(void)
{
	autofclose FILE *file = fopen("/proc/sys/kernel/randomize_va_space", "re");
	int random = 0;

	if (!file || fscanf(file, "%d", &random) != 1 || !random ||
		personality(0xffffffff) & ADDR_NO_RANDOMIZE)
		return 0;
	return getauxval(AT_EXECFN);
}

static int create_sampler(struct latency_run *r)
{
	const struct latency_plan *plan = r->plan;
	struct sampler_failure failure = { 0 };
	struct sampler_options options = plan->sampler;
	int err;

	r->latency = (struct sampler_latency_options){
		.probe = { .by = plan->by,
			.kernel = plan->kernel_wanted.count != 0,
			.kernel_only = !plan->wanted.count,
			.max_functions = LATENCY_MAX_FUNCTIONS,
			.max_calls_per_second = MAX_CALLS_PER_SECOND },
		.wanted = plan->wanted,
		.unwanted = plan->unwanted,
		.kernel_wanted = plan->kernel_wanted,
		.exclude_vendor = plan->exclude_vendor,
		.dry_run = plan->dry_run,
		.max_functions = LATENCY_MAX_FUNCTIONS,
	};
	options.loop = r->loop;
	options.latency = &r->latency;
	options.collect.no_ticks = true;
	if (!plan->dry_run)
		options.collect.latency = &r->latency.probe;
	if (r->command.pid > 0) {
		r->command_pid = (uint32_t)r->command.pid;
		options.follow = true;
		options.follow_pid = r->command_pid;
		options.collect.tgids = &r->command_pid;
		options.collect.tgid_count = 1;
		options.collect.filter.filter_tgids = 1;
		options.collect.follow = true;
	} else if (options.collect.tgid_count == 1 &&
		   !(options.collect.without & MECHANISM_PROCESS_UPROBES))
		r->latency.probe.only_tgid = options.collect.tgids[0];
	if (!options.collect.filter.filter_tgids)
		r->latency.probe.own_env_end = latency_own_env_end();
	if (plan->profile)
		latency_profile_options(&options, &r->latency.probe);
	if (plan->calls)
		plan->calls->options(plan->calls->context, &options, &r->latency);
	err = sampler_create(&options, &r->sampler, &failure);
	if (err)
		explain_failure(&failure, err);
	return err;
}

/* Returns false once the time for files that do not answer is over. */
static bool latency_wait_for_files(struct latency_run *r)
{
	uint64_t now_ns = clock_monotonic_ns();
	int timer;

	if (!r->files_until_ns)
		r->files_until_ns = now_ns + FILES_WAIT_NS;
	if (r->interrupts || now_ns >= r->files_until_ns ||
		loop_timer(r->loop, FILES_PAUSE_NS, 0, latency_on_end, r, &timer))
		return false;
	if (loop_run(r->loop))
		return false;
	loop_cancel(r->loop, timer);
	return true;
}

static int add_path(struct latency_run *r, const char *path, bool program)
{
	int err;

	do
		err = sampler_latency_add_path(r->sampler, path, program);
	while (failure_is_transient(err) && latency_wait_for_files(r));
	return err ? latency_fail(r, path, err) : 0;
}

/* Files that need not be mapped to be found, so that no first call is missed. */
static int add_files(struct latency_run *r)
{
	const struct latency_plan *plan = r->plan;
	autofree char *program = NULL;
	int err = 0;

	for (size_t i = 0; i < plan->wanted.count && !err; i++)
		if (plan->wanted.items[i].resolved)
			err = add_path(r, plan->wanted.items[i].resolved, false);
	if (err || !plan->command || !plan->wanted.count)
		return err;
	err = program_path(plan->command[0], &program);
	if (err) {
		r->command.exec_error = err;
		return latency_fail(r, plan->command[0], err);
	}
	return add_path(r, program, true);
}

/* A busy machine may have kept some files from being opened in time. */
static int wait_for_indexes(struct latency_run *r)
{
	size_t unopened;
	int err;

	do {
		unopened = sampler_latency_read_again(r->sampler);
		unopened += sampler_latency_open_again(r->sampler);
		err = unopened ? add_files(r) : 0;
		if (!err)
			err = sampler_finish_builds(r->sampler, INDEX_WAIT_NS);
	} while (!err && unopened && latency_wait_for_files(r));
	return err ? latency_fail(r, "cannot read the files", err) : 0;
}

static int latency_start(struct latency_run *r)
{
	const struct latency_plan *plan = r->plan;
	int err = latency_report_init(&r->before, plan->by);

	if (!err)
		err = sampler_start(r->sampler);
	r->started_ns = r->interval_began_ns = clock_monotonic_ns();
	if (!err && plan->duration_ns)
		err = loop_timer(
			r->loop, plan->duration_ns, 0, latency_on_end, r, &r->duration_timer);
	if (!err && plan->interval_ns)
		err = loop_timer(r->loop, plan->interval_ns, plan->interval_ns, on_interval, r,
			&r->interval_timer);
	if (!err)
		err = watched_targets_watch(
			&r->targets, &plan->sampling.collect, r->loop, latency_on_end, r);
	return err ? latency_fail(r, "cannot start", err) : 0;
}

static int say_files(const struct latency_run *r, bool begins)
{
	return latency_say_files(sampler_probed_files(r->sampler),
		sampler_kernel_functions(r->sampler), r->plan, begins);
}

static int latency_finish_calls(const struct latency_run *r, int err)
{
	const struct latency_calls *calls = r->plan->calls;
	int finished = calls->finish(calls->context, clock_monotonic_ns() - r->started_ns);

	return err ? err : finished;
}

static int measure(struct latency_run *r)
{
	int err = latency_start(r);

	if (!err && r->command.pid > 0) {
		err = held_command_go(&r->command);
		if (err)
			return latency_fail(r, r->command.name, err);
	}
	if (!err && !watched_targets_ended(&r->targets))
		err = loop_run(r->loop);
	r->over = true;
	/* Those who wait for the probes to go come first. */
	sampler_latency_detach(r->sampler);
	loop_cancel(r->loop, r->duration_timer);
	loop_cancel(r->loop, r->interval_timer);
	(void)sampler_stop(r->sampler);
	if (!err)
		err = say_files(r, false);
	if (!err && r->plan->profile)
		latency_profile_finish(r->sampler);
	if (r->plan->calls)
		return latency_finish_calls(r, err);
	if (!err)
		err = print_whole(r);
	if (!err && r->plan->profile)
		err = latency_profile_write(r->sampler, r->plan->profile, r->plan->quiet);
	return err;
}

static int say_begin(const struct latency_run *r)
{
	int err = say_files(r, true);

	latency_say_hints(r->sampler, r->plan, err != 0);
	if (!err && r->plan->calls)
		err = r->plan->calls->probed(r->plan->calls->context);
	return err;
}

static int latency_run_all(struct latency_run *r)
{
	int err = loop_create(&r->loop);

	if (!err)
		err = latency_watch_signals(r);
	if (err)
		return latency_fail(r, "cannot start", err);
	descriptors_raise_limit();
	err = create_sampler(r);
	if (!err && r->plan->calls)
		err = r->plan->calls->begin(r->plan->calls->context, r->sampler, r->loop);
	if (!err)
		err = latency_say_kernel(sampler_kernel_functions(r->sampler), r->plan);
	if (!err)
		err = add_files(r);
	if (err)
		return err;
	err = wait_for_indexes(r);
	if (err || r->interrupts || interrupted())
		return err;
	err = say_begin(r);
	if (!err && r->plan->dry_run)
		return print_dry_run(r);
	if (!err && r->plan->profile)
		err = latency_profile_prepare(r->sampler);
	if (err || r->interrupts)
		return err;
	return measure(r);
}

int latency_run(const struct latency_plan *plan, int *ret_command_status)
{
	struct latency_run r = {
		.plan = plan,
		.command = { .pid = -1, .go_fd = -1, .exec_fd = -1 },
		.duration_timer = -1,
		.interval_timer = -1,
	};
	int err = 0;

	if (plan->command) {
		err = held_command_spawn(plan->command, &r.command);
		if (err)
			latency_fail(&r, plan->command[0], err);
	}
	if (!err)
		err = latency_run_all(&r);
	held_command_say_end(&r.command, plan->name);
	*ret_command_status = held_command_exit_status(&r.command);
	latency_report_deinit(&r.before);
	sampler_destroy(r.sampler);
	watched_targets_deinit(&r.targets);
	loop_destroy(r.loop);
	held_command_deinit(&r.command);
	return err;
}
