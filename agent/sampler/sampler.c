/* SPDX-License-Identifier: Apache-2.0 */
/* The composition's life: making the rooms in their order, timers, start and stop. */
#include "agent/sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/profile/profile.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "bpf/abi/kernel_walk.h"
#include "symbolizer/debuginfod/debuginfod.h"

enum {
	MODULES_LIMIT = 65536,
	PROCESSES_LIMIT = 262144,
	FOLLOWED_LIMIT = 65536,
	BUILD_CHILDREN = 2,
	RETRIED_AT_ONCE = 128, /* samples that waited: some 10 ms */
	BUILDS_WAITING = 1024, /* each has its file open; more are asked for again */
	PREPARED_PROGRAMS = 32,
};

static const uint64_t MS = 1000000;
/*
 * Rings wake the loop at half full; this timer bounds how late a new process, module or Go program
 * is noticed on a calm machine.
 */
static const uint64_t DRAIN_MS = 100;
/* On a machine where nothing happens there is nothing to notice: few wake-ups. */
static const uint64_t IDLE_DRAIN_MS = 500;
static const uint64_t UPKEEP_MS = 1000;

/* An indexer may take what a big module needs, and no more (budgets: 256 MB resident). */
static const struct sandbox_limits index_limits = {
	.memory_bytes = 4UL << 30,
	.cpu_seconds = 60,
	.output_bytes = 2UL << 30,
};

/* ---- timers and descriptors ----------------------------------------------------------------- */

static void set_pace(struct agent *agent, bool idle)
{
	uint64_t interval_ns = (idle ? IDLE_DRAIN_MS : DRAIN_MS) * MS;

	if (idle == agent->idle)
		return;
	if (!loop_retime(agent->loop, agent->drain_timer, interval_ns, interval_ns))
		agent->idle = idle;
}

/*
 * What can wait until sampling has begun: until then nobody asks for a kernel's name. Later it
 * should not wait, because a module that is unloaded takes its names along.
 */
static void after_first_sample(struct agent *agent)
{
	struct abi_kernel_tables tables;

	if (!agent->kernel_frames || agent->kernel_symbols_used)
		return;
	(void)kernel_symbols_table(agent->kernel_symbols);
	if (!kernel_symbols_are_read(agent->kernel_symbols))
		return;
	agent->kernel_symbols_used = true;
	if (kernel_symbols_unwind_tables(agent->kernel_symbols, &tables))
		collect_set_kernel_tables(agent->collect, &tables);
	agent_give_back_memory(agent);
}

static void drain(struct agent *agent)
{
	int64_t got = collect_drain(agent->collect, 0);

	if (got < 0)
		log_warn("reading the rings failed, ignoring", "error=%d", (int)got);
	agent_unwind_retry(agent, RETRIED_AT_ONCE);
	agent_look_at_profile(agent);
	after_first_sample(agent);
	set_pace(agent, got == 0 && agent->first_sample_ns);
}

static void on_rings(void *context, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	drain(context);
}

static void on_drain_timer(void *context)
{
	drain(context);
}

static bool is_building(const struct agent *agent)
{
	return builds_pending(agent->builds) > 0 ||
	       (agent->waiting_debug && builds_improving(agent->builds).modules > 0);
}

/* Samples that waited for an index may ask for others. */
static void after_builds(struct agent *agent)
{
	agent_unwind_retry(agent, agent->waiting ? SIZE_MAX : RETRIED_AT_ONCE);
	if (!agent->waiting)
		return;
	if (is_building(agent))
		builds_hurry(agent->builds);
	else
		loop_stop(agent->loop);
}

/* Once, for a limit that was lowered since the last run; commits look after it from then on. */
static void trim_cache(struct agent *agent)
{
	if (agent->started && !agent->cache_trimmed)
		(void)cache_trim(agent->cache);
	agent->cache_trimmed |= agent->started;
}

static void on_upkeep_timer(void *context)
{
	struct agent *agent = context;

	collect_count(agent->collect);
	agent_look_at_memory(agent);
	builds_expire(agent->builds, clock_monotonic_ns());
	after_builds(agent);
	agent_look_at_debuginfod(agent);
	agent_look_at_builds(agent);
	agent_configure_refused_goids(agent);
	if (agent->unwind)
		unwind_turn(agent->unwind);
	trim_cache(agent);
	if (agent->started && collect_check_cpus(agent->collect) < 0)
		log_debug("a CPU could not be opened, ignoring", "%s", "");
}

static void on_build_fd(void *context, int fd, uint32_t events)
{
	struct agent *agent = context;

	(void)events;
	builds_ready(agent->builds, fd);
	after_builds(agent);
}

static void watch_build(void *context, int fd, bool watch)
{
	struct agent *agent = context;

	if (!watch)
		loop_remove(agent->loop, fd);
	else if (loop_add(agent->loop, fd, EPOLLIN, on_build_fd, agent))
		log_warn("an index build cannot be watched, ignoring", "fd=%d", fd);
}

static void on_program(void *context, struct process *p)
{
	agent_program_known(context, p);
}

static void on_ended(void *context, struct process *p)
{
	agent_process_ended(context, p);
}

static void on_forked(void *context, struct process *parent, struct process *child)
{
	agent_jit_forked(context, parent, child);
}

static void on_forget(void *context, struct process *p)
{
	(void)context;
	agent_process_data_free(p);
}

/* ---- making --------------------------------------------------------------------------------- */

static int fail(struct agent_failure *failure, const char *step, const char *detail, int err)
{
	failure->step = step;
	snprintf(failure->detail, sizeof(failure->detail), "%s", detail);
	return err;
}

/* All files that are there at once may take as much room as the cache. */
static int create_debuginfod(struct agent *agent, const struct agent_options *options)
{
	const char *urls = options->debuginfod_urls;
	int err = debuginfod_create(
		&(struct debuginfod_options){
			.urls = urls ? urls : "",
			.cache = agent->cache,
			.metrics = &agent->metrics,
			.limit_bytes = options->cache_limit_bytes / BUILDS_OPEN_DEBUG + 1,
			.per_minute = options->debuginfod_per_minute,
		},
		&agent->debuginfod);

	return err == -ENOENT ? 0 : err;
}

static int create_symbol_sources(
	struct agent *agent, const struct agent_options *options, struct agent_failure *failure)
{
	int err;

	agent->debug_directories =
		strdup(options->debug_directories ? options->debug_directories : "");
	if (!agent->debug_directories)
		return fail(failure, "allocate memory", "", -ENOMEM);
	err = cache_create(options->cache_directory, options->cache_limit_bytes, &agent->cache);
	if (err)
		return fail(failure, "open the index cache", options->cache_directory, err);
	err = create_debuginfod(agent, options);
	if (err)
		return fail(failure, "prepare to ask debuginfod", "", err);
	err = builds_create(
		&(struct builds_options){
			.cache = agent->cache,
			.metrics = &agent->metrics,
			.debuginfod = agent->debuginfod,
			.limits = index_limits,
			.max_children = BUILD_CHILDREN,
			.max_waiting = BUILDS_WAITING,
			.watch = watch_build,
			.done = agent_index_done,
			.context = agent,
		},
		&agent->builds);
	if (err)
		return fail(failure, "prepare the index builder", "", err);
	err = kernel_symbols_create(agent->proc_fd, &agent->metrics, &agent->kernel_symbols);
	return err ? fail(failure, "allocate memory", "", err) : 0;
}

static int create_tables(
	struct agent *agent, const struct agent_options *options, struct agent_failure *failure)
{
	int err;

	agent->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (agent->proc_fd < 0)
		return fail(failure, "open", "/proc", -errno);
	agent->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	err = modules_create(MODULES_LIMIT, &agent->modules);
	if (!err)
		err = profile_create(options->profile_limit_bytes, &agent->current.profile);
	if (!err)
		err = processes_create(
			&(struct processes_options){
				.proc_fd = agent->proc_fd,
				.modules = agent->modules,
				.metrics = &agent->metrics,
				.limit = PROCESSES_LIMIT,
				.program = on_program,
				.ended = on_ended,
				.forked = on_forked,
				.forget = on_forget,
				.context = agent,
			},
			&agent->processes);
	return err ? fail(failure, "make the tables", "", err) : 0;
}

static int create_collect(
	struct agent *agent, const struct agent_options *options, struct agent_failure *failure)
{
	struct collect_options collect = options->collect;
	const char *step = "";
	int err;

	collect.metrics = &agent->metrics;
	agent_handlers(agent, &collect.handlers);
	err = collect_create(&collect, &agent->collect, &step);
	if (err)
		return fail(failure, step, "", err);
	agent->current.number = collect_next_window(agent->collect);
	err = agent_unwind_create(agent, collect.off_cpu_share);
	if (err)
		return fail(failure, "prepare the unwind tables", "", err);
	err = loop_add(agent->loop, collect_fd(agent->collect), EPOLLIN, on_rings, agent);
	if (!err)
		err = loop_timer(agent->loop, DRAIN_MS * MS, DRAIN_MS * MS, on_drain_timer, agent,
			&agent->drain_timer);
	if (!err)
		err = loop_timer(agent->loop, UPKEEP_MS * MS, UPKEEP_MS * MS, on_upkeep_timer,
			agent, &agent->upkeep_timer);
	return err ? fail(failure, "watch the rings", "", err) : 0;
}

/* The rings are open; what runs now is read from /proc, what comes from here on is in the rings. */
static int read_processes(
	struct agent *agent, const struct agent_options *options, struct agent_failure *failure)
{
	const uint32_t *pids = options->collect.filter.filter_tgids ? options->collect.tgids : NULL;
	size_t count = pids ? options->collect.tgid_count : 0;
	int err;

	if (options->follow) {
		pids = &options->follow_pid;
		count = 1;
	}
	err = processes_scan(agent->processes, pids, count);
	return err ? fail(failure, "read the processes in", "/proc", err) : 0;
}

int agent_create(const struct agent_options *options, struct agent **ret_agent,
	struct agent_failure *ret_failure)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	int err;

	if (!agent)
		return fail(ret_failure, "allocate memory", "", -ENOMEM);
	agent->loop = options->loop;
	agent->proc_fd = agent->statm_fd = agent->drain_timer = agent->upkeep_timer =
		agent->grace_timer = -1;
	agent->sealed = options->sealed;
	agent->full = options->full;
	agent->wants_file = options->wants_file;
	agent->take_file = options->take_file;
	agent->sealed_context = options->sealed_context;
	agent->memory_limit_bytes = options->memory_limit_bytes;
	agent->profile_limit_bytes = options->profile_limit_bytes;
	agent->follow = options->follow;
	waits_init(&agent->waits,
		options->collect.off_cpu_share > 0 ? options->collect.off_cpu_share : 1);
	map_init(&agent->followed, FOLLOWED_LIMIT);
	err = options->follow ? map_set(&agent->followed, options->follow_pid, 1) : 0;
	if (!err)
		err = create_tables(agent, options, ret_failure);
	/* First what needs rights: without them nothing else is worth a message. */
	if (!err)
		err = create_collect(agent, options, ret_failure);
	if (!err)
		err = create_symbol_sources(agent, options, ret_failure);
	if (!err)
		err = read_processes(agent, options, ret_failure);
	if (err) {
		agent_destroy(agent);
		return err;
	}
	*ret_agent = agent;
	return 0;
}

static void free_module_data(struct agent *agent)
{
	struct module *module;
	size_t i = 0;

	while (agent->modules && (module = modules_next(agent->modules, &i)))
		agent_module_data_free(module);
}

void agent_destroy(struct agent *agent)
{
	if (!agent)
		return;
	if (agent->collect) {
		loop_remove(agent->loop, collect_fd(agent->collect));
		loop_cancel(agent->loop, agent->drain_timer);
		loop_cancel(agent->loop, agent->upkeep_timer);
	}
	builds_destroy(agent->builds);
	debuginfod_destroy(agent->debuginfod);
	agent_unwind_destroy(agent);
	collect_destroy(agent->collect);
	agent->collect = NULL;
	processes_destroy(agent->processes);
	free_module_data(agent);
	modules_destroy(agent->modules);
	agent_windows_deinit(agent);
	cache_destroy(agent->cache);
	free(agent->debug_directories);
	kernel_symbols_destroy(agent->kernel_symbols);
	map_deinit(&agent->followed);
	waits_deinit(&agent->waits);
	if (agent->statm_fd >= 0)
		close(agent->statm_fd);
	if (agent->proc_fd >= 0)
		close(agent->proc_fd);
	free(agent);
}

/* ---- running -------------------------------------------------------------------------------- */

static void on_wait_over(void *context)
{
	struct agent *agent = context;

	agent->wait_expired = true;
	loop_stop(agent->loop);
}

int agent_finish_builds(struct agent *agent, uint64_t wait_ns)
{
	int timer, err;

	agent_unwind_retry(agent, SIZE_MAX);
	if (!is_building(agent))
		return 0;
	agent->wait_expired = false;
	err = loop_timer(agent->loop, wait_ns, 0, on_wait_over, agent, &timer);
	if (err)
		return err;
	agent->waiting = true;
	builds_hurry(agent->builds);
	err = loop_run(agent->loop);
	agent->waiting = false;
	if (!agent->wait_expired)
		loop_cancel(agent->loop, timer);
	return err;
}

int agent_finish_debug(struct agent *agent, uint64_t wait_ns)
{
	int err;

	agent->waiting_debug = true;
	err = agent_finish_builds(agent, wait_ns);
	agent->waiting_debug = false;
	agent_look_at_debuginfod(agent);
	return err;
}

/* CPU time that PID has used, in clock ticks; 0 when it cannot be told. */
static uint64_t used_ticks(const struct agent *agent, uint32_t pid)
{
	char path[32], line[512];
	unsigned long long user = 0, system = 0;
	const char *after_comm;

	snprintf(path, sizeof(path), "%u/stat", pid);
	if (io_read_line(agent->proc_fd, path, line, sizeof(line)) < 0)
		return 0;
	after_comm = strrchr(line, ')');
	if (!after_comm ||
		sscanf(after_comm + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			&user, &system) != 2)
		return 0;
	return user + system;
}

struct candidate {
	struct process *process;
	uint64_t ticks;
};

static int by_ticks(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	return (a->ticks < b->ticks) - (a->ticks > b->ticks);
}

/* The busiest processes' programs: most samples will be theirs. */
static int request_busiest(struct agent *agent)
{
	autofree struct candidate *candidates = NULL;
	size_t count = 0, capacity = 0, iterator = 0;
	struct process *p;
	int err;

	while ((p = processes_next(agent->processes, &iterator)) != NULL) {
		if (p->kernel_thread || !p->executable)
			continue;
		err = array_reserve(candidates, capacity, count + 1, PROCESSES_LIMIT);
		if (err)
			return err;
		candidates[count++] = (struct candidate){ p, used_ticks(agent, p->pid) };
	}
	qsort(candidates, count, sizeof(*candidates), by_ticks);
	for (size_t i = 0; i < count && i < PREPARED_PROGRAMS; i++)
		agent_request_program(agent, candidates[i].process);
	return 0;
}

int agent_prepare(struct agent *agent, uint64_t wait_ns)
{
	int err;

	drain(agent);
	err = request_busiest(agent);
	if (err)
		return err;
	return agent_finish_builds(agent, wait_ns);
}

int agent_start(struct agent *agent)
{
	int err = collect_start(agent->collect);

	agent->started = !err;
	/* Reading the kernel's types and all processes left holes. */
	agent_give_back_memory(agent);
	return err;
}

int agent_stop(struct agent *agent)
{
	int err = collect_stop(agent->collect);

	agent->started = false;
	(void)collect_drain(agent->collect, 0);
	agent_identify_modules(agent);
	agent_seal_previous(agent);
	collect_count(agent->collect);
	return err;
}

/* ---- what came of it ------------------------------------------------------------------------ */

void agent_sources(
	struct agent *agent, const struct profile *profile, struct report_sources *ret_sources)
{
	if (!profile)
		agent_unwind_flush(agent, 0);
	(void)kernel_symbols_renew(agent->kernel_symbols, clock_monotonic_ns());
	*ret_sources = (struct report_sources){
		.profile = profile ? profile : agent->current.profile,
		.processes = agent->processes,
		.modules = agent->modules,
		.kallsyms = kernel_symbols_table(agent->kernel_symbols),
		.index = agent_index_of,
		.perf_map = agent_perf_map_of,
		.context = agent,
		.metrics = &agent->metrics,
	};
}

unsigned int agent_pending_builds(const struct agent *agent)
{
	return builds_pending(agent->builds);
}

struct builds_improving agent_pending_debug(const struct agent *agent)
{
	return builds_improving(agent->builds);
}

const struct metrics *agent_metrics(const struct agent *agent)
{
	return &agent->metrics;
}

uint64_t agent_samples(const struct agent *agent)
{
	return agent->samples;
}

uint64_t agent_first_sample_ns(const struct agent *agent)
{
	return agent->first_sample_ns;
}

uint64_t agent_builds_cpu_ns(const struct agent *agent)
{
	return builds_cpu_ns(agent->builds);
}

uint64_t agent_builds_peak_bytes(const struct agent *agent)
{
	return builds_peak_bytes(agent->builds);
}

bool agent_bpf_time(const struct agent *agent, uint64_t *ret_ns, uint64_t *ret_runs)
{
	return collect_bpf_stats(agent->collect, ret_ns, ret_runs) == 0 && *ret_runs > 0;
}

struct metrics *agent_metrics_to_add(struct agent *agent)
{
	return &agent->metrics;
}

void agent_select(struct agent *agent, const struct selection *selection)
{
	agent->selection = selection;
}

int agent_pause(struct agent *agent, bool pause)
{
	return collect_pause(agent->collect, pause);
}

int agent_set_frequency(struct agent *agent, uint64_t hz)
{
	return collect_set_frequency(agent->collect, hz);
}

struct agent_sizes agent_sizes(const struct agent *agent)
{
	struct agent_sizes sizes = {
		.kallsyms_bytes = kernel_symbols_bytes(agent->kernel_symbols),
		.profile_bytes = profile_bytes(agent->current.profile),
		.bpf_map_bytes = collect_map_bytes(agent->collect),
		.processes = processes_count(agent->processes),
		.modules = modules_count(agent->modules),
	};
	const struct module *module;
	size_t i = 0;

	while ((module = modules_next(agent->modules, &i))) {
		const struct agent_module *data = module->owner_data;

		sizes.index_bytes += data && data->index ? index_bytes(data->index) : 0;
	}
	return sizes;
}
