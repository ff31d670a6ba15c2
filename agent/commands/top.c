/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom top`: each interval is a window of its own, which becomes a snapshot and is drawn. An
 * interval ends when its time is over and the terminal has taken the previous screen: on a slow
 * line intervals get longer, and no samples are dropped.
 */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/report/nameless.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/seam/runtime_fibers.h"
#include "agent/settings/cache_directory.h"
#include "agent/commands/commands.h"
#include "agent/loop/turn_stats.h"
#include "agent/settings/explain.h"
#include "agent/settings/log_options.h"
#include "agent/settings/sampling_options.h"
#include "agent/settings/config.h"
#include "agent/top/keys.h"
#include "agent/top/output.h"
#include "agent/top/screen.h"
#include "agent/top/snapshot.h"
#include "agent/top/table_json.h"
#include "agent/top/terminal.h"
#include "agent/top/view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/pid_namespace.h"

enum {
	SCREEN_LIMIT_BYTES = 64 << 20,
	NOTE_BYTES = 768,
	KEY_BYTES = 64, /* read in one call */
	MIN_COLUMNS = 20,
	MAX_COLUMNS = 1024,
};

static const uint64_t MS = 1000000;
static const uint64_t PREPARE_MS = 250;
static const uint64_t ESCAPE_MS = 50;
static const uint64_t MIN_DELAY_MS = 100, MAX_DELAY_MS = 3600000;

struct top {
	struct sampling_options sampling;
	char *cache_directory;
	uint64_t delay_ns;
	uint64_t iterations; /* 0 = unlimited */
	bool batch;
	bool json; /* and batch */

	struct loop *loop;
	struct turn_stats turns;
	struct sampler *sampler;
	struct output *output;
	struct terminal terminal;
	struct keys keys;
	int escape_timer, tick_timer; /* -1 = none */
	struct view view;
	struct snapshot *snapshot; /* NULL until the first interval ends */
	struct screen_facts facts;
	char note[NOTE_BYTES];
	bool contained; /* processes outside of our PID namespace may be meant, too */

	uint64_t began_own_ns; /* CPU time of fathom at the start of the interval */
	uint64_t sealed_own_ns; /* used in the previous interval */
	uint64_t resumed_ns; /* CLOCK_MONOTONIC; earlier intervals were held up */
	uint64_t tables; /* tables shown so far */
	bool dirty; /* redraw when the output is free */
	bool ending; /* end when the output is free */
	int error;
};

/* ---- drawing --------------------------------------------------------------------------------- */

static void top_end(struct top *t, int error)
{
	t->error = error;
	loop_stop(t->loop);
}

/* $COLUMNS, as other programs that print tables use it; 0 without it. */
static size_t batch_columns(void)
{
	const char *text = getenv("COLUMNS");
	char *end;
	unsigned long columns = text ? strtoul(text, &end, 10) : 0;

	return text && !*end && columns >= MIN_COLUMNS && columns <= MAX_COLUMNS ? columns : 0;
}

static void draw(struct top *t)
{
	autocall(buffer_deinit) struct buffer out;
	struct screen_form form = { .ansi = !t->batch && t->terminal.ansi };
	int err;

	loop_step(t->loop, "screen");
	buffer_init(&out, SCREEN_LIMIT_BYTES);
	if (t->json && !t->snapshot)
		return;
	t->dirty = output_is_pending(t->output);
	if (t->dirty)
		return;
	if (t->batch)
		form.columns = batch_columns();
	else
		terminal_size(&t->terminal, &form.columns, &form.lines);
	t->facts.pending_builds = sampler_pending_builds(t->sampler);
	err = t->json ? table_json(&out, &t->view, t->snapshot, &t->facts)
		      : screen_draw(&out, &t->view, t->snapshot, &t->facts, &form);
	if (!err)
		err = output_put(t->output, &out);
	if (err)
		top_end(t, err);
}

static void on_drained(void *context)
{
	struct top *t = context;

	if (t->ending)
		top_end(t, 0);
	else if (t->dirty)
		draw(t);
}

static void on_failed(void *context, int error)
{
	top_end(context, error);
}

/* ---- the note -------------------------------------------------------------------------------- */

/* What keeps the table from saying more: foremost that processes or names are missing. */
static void top_note(struct top *t, const struct report_sources *sources)
{
	struct report_nameless *list = NULL;
	char hint[512];
	size_t count = 0;

	t->facts.note = NULL;
	if (report_nameless(sources, 1, &list, &count))
		count = 0;
	if (t->contained)
		snprintf(t->note, sizeof(t->note), PID_NAMESPACE_TROUBLE "; " PID_NAMESPACE_FIX);
	else if (count) {
		nameless_hint(list, NULL, hint, sizeof(hint));
		snprintf(t->note, sizeof(t->note), "unnamed: %.0f%% of %.64s: %s",
			100.0 * (double)list->count / (double)list->total, list->program, hint);
	}
	if (t->contained || count)
		t->facts.note = t->note;
	report_nameless_free(list, count);
}

/* ---- intervals ------------------------------------------------------------------------------- */

static uint64_t own_cpu_ns(const struct top *t)
{
	uint64_t ns = 0, runs = 0;

	return clock_cpu_ns() + sampler_builds_cpu_ns(t->sampler) +
	       sampler_file_helper_cpu_ns(t->sampler) +
	       (sampler_bpf_time(t->sampler, &ns, &runs) ? ns : 0);
}

static void end_interval(struct top *t)
{
	uint64_t own = own_cpu_ns(t);

	if (output_is_pending(t->output) || sampler_rotate_window(t->sampler))
		return;
	t->sealed_own_ns = own - t->began_own_ns;
	t->began_own_ns = own;
}

static void top_on_tick(void *context)
{
	end_interval(context);
}

static void top_on_sealed(void *context, const struct sealed_window *window)
{
	struct top *t = context;
	struct report_sources sources;
	struct snapshot *snapshot;

	loop_step(t->loop, "windows");
	if (t->view.paused || t->ending || window->began_ns < t->resumed_ns)
		return;
	sources = report_window_sources(
		window, sampler_symbolize(t->sampler), sampler_metrics_to_add(t->sampler));
	if (snapshot_create(&sources, &snapshot)) {
		metrics_add(sources.metrics, METRIC_LOST_MEMORY_LIMIT,
			profile_total_count(window->profile));
		return;
	}
	snapshot_destroy(t->snapshot);
	t->snapshot = snapshot;
	top_note(t, &sources);
	t->facts.interval_ns = window->ended_ns - window->began_ns;
	t->facts.own_ns = t->sealed_own_ns;
	t->facts.time_s = (int64_t)(clock_real_ns() / (1000 * MS));
	draw(t);
	if (t->iterations && ++t->tables >= t->iterations) {
		t->ending = true;
		if (!output_is_pending(t->output))
			loop_stop(t->loop);
	}
}

/* ---- keys and signals ------------------------------------------------------------------------ */

static void take_key(struct top *t, int key)
{
	switch (key ? view_key(&t->view, key) : VIEW_NOTHING) {
	case VIEW_QUIT:
		loop_stop(t->loop);
		break;
	case VIEW_REDRAW:
		draw(t);
		break;
	case VIEW_NOTHING:
		break;
	}
}

static void on_escape_over(void *context)
{
	struct top *t = context;

	t->escape_timer = -1;
	take_key(t, keys_expire(&t->keys));
}

static void on_keys(void *context, int fd, uint32_t events)
{
	struct top *t = context;
	uint8_t bytes[KEY_BYTES];
	ssize_t got = read(fd, bytes, sizeof(bytes));

	(void)events;
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	/* The terminal is gone. */
	if (got <= 0) {
		loop_stop(t->loop);
		return;
	}
	for (ssize_t i = 0; i < got; i++)
		take_key(t, keys_feed(&t->keys, bytes[i]));
	loop_cancel(t->loop, t->escape_timer);
	t->escape_timer = -1;
	if (keys_waiting(&t->keys) &&
		loop_timer(t->loop, ESCAPE_MS * MS, 0, on_escape_over, t, &t->escape_timer))
		t->keys = (struct keys){ 0 };
}

static void top_enter(struct top *t)
{
	int err = terminal_enter(&t->terminal, t->output);

	if (err)
		top_end(t, err);
	else
		draw(t);
}

/*
 * Ctrl-Z: restores the shell's terminal modes and raises the signal again, unblocked, so that the
 * shell sees a job stopped by it. Returns when the job is continued.
 */
static void suspend(struct top *t)
{
	sigset_t stop;

	terminal_leave(&t->terminal, t->output);
	(void)sampler_stop(t->sampler);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	t->resumed_ns = clock_monotonic_ns();
	if (sampler_start(t->sampler))
		log_warn("sampling could not be resumed, ignoring", "%s", "");
	top_enter(t);
	end_interval(t);
}

static void top_on_signal(void *context, int signal)
{
	struct top *t = context;

	switch (signal) {
	case SIGWINCH:
		draw(t);
		break;
	case SIGTSTP:
		suspend(t);
		break;
	case SIGCONT:
		/*
		 * After a SIGSTOP, which cannot be caught: the shell may have changed the terminal.
		 */
		terminal_leave(&t->terminal, t->output);
		top_enter(t);
		break;
	default:
		loop_stop(t->loop);
	}
}

static int top_watch_signals(struct top *t)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static const int screen[] = { SIGWINCH, SIGTSTP, SIGCONT };
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		sigaddset(&signals, ends[i]);
	for (size_t i = 0; i < ARRAY_SIZE(screen) && !t->batch; i++)
		sigaddset(&signals, screen[i]);
	/* A closed reader is handled as a write error. */
	signal(SIGPIPE, SIG_IGN);
	return loop_signals(t->loop, &signals, top_on_signal, t);
}

/* ---- the run --------------------------------------------------------------------------------- */

static int top_make(struct top *t, const struct config *config)
{
	struct sampler_failure failure = { 0 };
	struct sampler_options options = {
		.collect = t->sampling.collect,
		.cache_directory = t->cache_directory,
		.debug_directories = config_text(config, SETTING_debuginfo_directories),
		.debuginfod_urls = config_text(config, SETTING_debuginfod_urls),
		.cache_limit_bytes = config_number(config, SETTING_cache_max_bytes),
		/* Leaves memory for two open windows while one is sealed, and for its snapshot. */
		.profile_limit_bytes = config_number(config, SETTING_memory_limit) / 4,
		.memory_limit_bytes = config_number(config, SETTING_memory_limit),
		.sealed = top_on_sealed,
		.full = top_on_tick,
		.sealed_context = t,
	};
	int err;

	err = loop_create(&t->loop);
	if (err)
		return err;
	turn_stats_watch(&t->turns, t->loop);
	err = top_watch_signals(t);
	if (!err)
		err = output_create(
			&(struct output_options){
				.fd = STDOUT_FILENO,
				.loop = t->loop,
				.drained = on_drained,
				.failed = on_failed,
				.context = t,
			},
			&t->output);
	if (err)
		return err;
	options.loop = t->loop;
	descriptors_raise_limit();
	err = sampler_create(&options, &t->sampler, &failure);
	if (err)
		explain_failure(&failure, err);
	return err;
}

static int begin_screen(struct top *t)
{
	if (t->batch)
		return 0;
	terminal_init(&t->terminal, STDIN_FILENO, STDOUT_FILENO, getenv("TERM"));
	top_enter(t);
	if (t->error || t->terminal.keys_fd < 0)
		return t->error;
	return loop_add(t->loop, t->terminal.keys_fd, EPOLLIN, on_keys, t);
}

static int top_run(struct top *t)
{
	int err = sampler_prepare(t->sampler, PREPARE_MS * MS);

	t->contained = !t->sampling.targeted && pid_namespace_is_contained();
	t->facts.frequency_hz = t->sampling.collect.frequency_hz;
	t->facts.cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	t->facts.metrics = sampler_metrics(t->sampler);
	t->facts.time_s = (int64_t)(clock_real_ns() / (1000 * MS));
	t->began_own_ns = own_cpu_ns(t);
	if (!err)
		err = sampler_start(t->sampler);
	if (err) {
		explain_failure(&(struct sampler_failure){ .step = "start sampling" }, err);
		return err;
	}
	err = begin_screen(t);
	if (!err)
		err = loop_timer(t->loop, t->delay_ns, t->delay_ns, top_on_tick, t, &t->tick_timer);
	if (!err)
		err = loop_run(t->loop);
	if (!t->batch)
		terminal_leave(&t->terminal, t->output);
	err = err ? err : t->error;
	/* A reader that closes early, like head, is no error. */
	if (err == -EPIPE)
		return 0;
	if (err)
		fprintf(stderr, "fathom top: cannot write: %s\n", strerror(-err));
	return err;
}

static void top_unmake(struct top *t)
{
	sampler_destroy(t->sampler);
	snapshot_destroy(t->snapshot);
	output_destroy(t->output);
	loop_destroy(t->loop);
	sampling_options_deinit(&t->sampling);
	free(t->cache_directory);
}

/* ---- the command line ------------------------------------------------------------------------ */

static int top_refuse(const char *message)
{
	fprintf(stderr, "fathom top: %s\n", message);
	return -EINVAL;
}

static int top_refuse_by(void)
{
	fprintf(stderr, "fathom top: --by must be process, function or %s\n",
		runtime_fibers()->one);
	return -EINVAL;
}

static int plan_view(struct top *t, const struct config *config)
{
	const char *filter = config_text(config, SETTING_filter);
	enum rows_by by;

	if (view_by_of_name(config_text(config, SETTING_by), &by))
		return top_refuse_by();
	if (view_key_of_name(config_text(config, SETTING_sort), &t->view.key))
		return top_refuse("--sort must be cpu, total, pid or name");
	view_show(&t->view, by);
	if (filter && strlen(filter) >= sizeof(t->view.filter))
		return top_refuse("--filter is too long: 63 bytes at most");
	snprintf(t->view.filter, sizeof(t->view.filter), "%s", filter ? filter : "");
	return 0;
}

static int plan(struct top *t, const struct config *config)
{
	int err;

	t->delay_ns = config_number(config, SETTING_delay);
	t->iterations = config_number(config, SETTING_iterations);
	t->json = config_flag(config, SETTING_json);
	t->batch = t->json || config_flag(config, SETTING_batch);
	if (t->delay_ns < MIN_DELAY_MS * MS || t->delay_ns > MAX_DELAY_MS * MS)
		return top_refuse("-d must be 0.1 to 3600 seconds");
	if (config_given(config, SETTING_iterations) && !t->iterations)
		return top_refuse("-n must be 1 or more");
	if (!t->batch && !isatty(STDOUT_FILENO))
		return top_refuse("standard output is not a terminal: use -b to print tables one "
				  "after the other, or --json");
	err = plan_view(t, config);
	if (!err)
		err = sampling_options(config, "top", &t->sampling);
	if (!err)
		err = cache_directory(config, &t->cache_directory);
	return err;
}

static int plan_and_run(const struct config *config)
{
	struct top t = { .escape_timer = -1, .tick_timer = -1 };
	int err = plan(&t, config);

	if (err) {
		top_unmake(&t);
		return err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	/* Log lines would disturb the screen, whose second line shows the losses anyway. */
	if (!t.batch && !config_given(config, SETTING_log_level))
		log_configure(LOG_ERROR, false);
	err = top_make(&t, config);
	if (!err)
		err = top_run(&t);
	top_unmake(&t);
	return err ? EXIT_FAILED : EXIT_DONE;
}

int command_top(struct invocation *call)
{
	/* For showing names in the character set of the user's terminal. */
	setlocale(LC_CTYPE, "");
	return plan_and_run(&call->config);
}
