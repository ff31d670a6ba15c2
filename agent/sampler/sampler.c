/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's life cycle: creates the rooms in their order, runs the timers, starts and stops. */
#include "agent/sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/recording/notes.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/io.h"
#include "base/log.h"
#include "bpf/abi/kernel_walk.h"
#include "symbolizer/debuginfod/debuginfod.h"

enum {
	PROCESSES_LIMIT = 262144,
	JIT_MAPS_LIMIT = 4 * PROCESSES_LIMIT, /* process generations, ended ones included */
	BUILD_CHILDREN = 2,
	RETRIED_AT_ONCE = 128, /* pending samples; takes about 10 ms */
	BUILDS_WAITING = 1024, /* each has its file open; more are requested again later */
	PREPARED_PROGRAMS = 32,
};

static const uint64_t MS = 1000000;
/*
 * Rings wake the loop when they are half full; this timer bounds how late a new process, module or
 * Go program is noticed on a quiet machine.
 */
static const uint64_t DRAIN_MS = 100;
/* Saves wake-ups on an idle machine, where there is nothing to notice. */
static const uint64_t IDLE_DRAIN_MS = 500;
static const uint64_t UPKEEP_MS = 1000;

/* What an indexer needs for a big module, and no more (budgets: 256 MB resident). */
static const struct sandbox_limits index_limits = {
	.memory_bytes = 4UL << 30,
	.cpu_seconds = 60,
	.output_bytes = 2UL << 30,
};

/* ---- timers and descriptors ----------------------------------------------------------------- */

static void set_pace(struct sampler *sampler, bool idle)
{
	uint64_t interval_ns = (idle ? IDLE_DRAIN_MS : DRAIN_MS) * MS;

	if (idle == sampler->idle)
		return;
	if (!loop_retime(sampler->loop, sampler->drain_timer, interval_ns, interval_ns))
		sampler->idle = idle;
}

/*
 * Reads the kernel symbols once a sample has a kernel stack: nobody needs them earlier. Later would
 * be too late, because a module's names are gone once it is unloaded.
 */
static void after_first_sample(struct sampler *sampler)
{
	struct abi_kernel_tables tables;

	if (!stack_resolver_saw_kernel(&sampler->resolver) || sampler->kernel_symbols_used)
		return;
	(void)kernel_symbols_table(sampler->kernel_symbols);
	if (!kernel_symbols_are_read(sampler->kernel_symbols))
		return;
	sampler->kernel_symbols_used = true;
	if (kernel_symbols_unwind_tables(sampler->kernel_symbols, &tables))
		collect_set_kernel_tables(sampler->collect, &tables);
	memory_guard_release(&sampler->memory_guard);
}

static void drain(struct sampler *sampler)
{
	int64_t got = collect_drain(sampler->collect, 0);

	if (got < 0)
		log_warn("reading the rings failed, ignoring", "error=%d", (int)got);
	pending_walks_retry(&sampler->walks, RETRIED_AT_ONCE);
	memory_guard_check_window(&sampler->memory_guard);
	after_first_sample(sampler);
	set_pace(sampler, got == 0 && intake_first_sample_ns(&sampler->intake));
}

static void on_rings(void *context, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	host_note(HOST_NOTE_RINGS_READY, NULL);
	drain(context);
}

static void on_drain_timer(void *context)
{
	drain(context);
}

static bool is_building(const struct sampler *sampler)
{
	return builds_pending(sampler->builds) > 0 ||
	       (sampler->waiting_debug && builds_improving(sampler->builds).modules > 0);
}

/* Samples that waited for one index may need others. */
static void after_builds(struct sampler *sampler)
{
	pending_walks_retry(&sampler->walks, sampler->waiting ? SIZE_MAX : RETRIED_AT_ONCE);
	if (!sampler->waiting)
		return;
	if (is_building(sampler))
		builds_hurry(sampler->builds);
	else
		loop_stop(sampler->loop);
}

/*
 * Trims the cache once, in case its limit was lowered since the last run. From then on commits keep
 * the limit.
 */
static void trim_cache(struct sampler *sampler)
{
	if (sampler->started && !sampler->cache_trimmed)
		(void)cache_trim(sampler->cache);
	sampler->cache_trimmed |= sampler->started;
}

static void on_upkeep_timer(void *context)
{
	struct sampler *sampler = context;

	collect_count(sampler->collect);
	memory_guard_check(&sampler->memory_guard);
	builds_expire(sampler->builds, clock_monotonic_ns());
	after_builds(sampler);
	trouble_log_check_servers(&sampler->trouble_log, sampler->debuginfod);
	trouble_log_check_builds(&sampler->trouble_log, sampler->builds);
	runtimes_retry(&sampler->runtimes);
	if (sampler->unwind)
		unwind_tick(sampler->unwind);
	trim_cache(sampler);
	if (sampler->started && collect_check_cpus(sampler->collect) < 0)
		log_debug("a CPU could not be opened, ignoring", "%s", "");
}

static void on_build_fd(void *context, int fd, uint32_t events)
{
	struct sampler *sampler = context;

	(void)events;
	host_note(HOST_NOTE_BUILDS_READY, NULL);
	builds_ready(sampler->builds, fd);
	after_builds(sampler);
}

static void watch_build(void *context, int fd, bool watch)
{
	struct sampler *sampler = context;

	if (!watch)
		loop_remove(sampler->loop, fd);
	else if (loop_add(sampler->loop, fd, EPOLLIN, on_build_fd, sampler))
		log_warn("an index build cannot be watched, ignoring", "fd=%d", fd);
}

static void on_program(void *context, struct process *p)
{
	sampler_program_known(context, p);
}

static void on_ended(void *context, struct process *p)
{
	sampler_process_ended(context, p);
}

static void on_forked(void *context, struct process *parent, struct process *child)
{
	const struct sampler *sampler = context;

	jit_maps_forked(
		sampler->jit_maps, parent, child, intake_newest_sample_ns(&sampler->intake));
}

static int on_runtime(void *context, uint32_t tgid, const struct abi_runtime_process *how)
{
	struct sampler *sampler = context;

	return collect_set_runtime(sampler->collect, tgid, how);
}

static void on_runtime_gone(void *context, uint32_t tgid)
{
	struct sampler *sampler = context;

	if (sampler->collect)
		collect_remove_runtime(sampler->collect, tgid);
}

static void on_runtime_names(void *context, struct process *p, const struct abi_frame *frame,
	struct runtime_names *names)
{
	const struct sampler *sampler = context;

	runtimes_names(&sampler->runtimes,
		&(struct runtime_frame){ .pid = p->pid, .generation = p->number, .frame = *frame },
		names);
}

static void on_forget(void *context, struct process *p)
{
	const struct sampler *sampler = context;

	jit_maps_forget(sampler->jit_maps, p);
}

/* ---- creation ------------------------------------------------------------------------------- */

static int sampler_fail(
	struct sampler_failure *failure, const char *step, const char *detail, int err)
{
	failure->step = step;
	snprintf(failure->detail, sizeof(failure->detail), "%s", detail);
	return err;
}

/* Debug files that are open at the same time may together take as much space as the cache. */
static int create_debuginfod(struct sampler *sampler, const struct sampler_options *options)
{
	const char *urls = options->debuginfod_urls;
	int err = debuginfod_create(
		&(struct debuginfod_options){
			.urls = urls ? urls : "",
			.cache = sampler->cache,
			.metrics = &sampler->metrics,
			.limit_bytes = options->cache_limit_bytes / BUILDS_OPEN_DEBUG + 1,
			.per_minute = options->debuginfod_per_minute,
		},
		&sampler->debuginfod);

	return err == -ENOENT ? 0 : err;
}

static int create_symbol_sources(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	int err;

	sampler->debug_directories =
		strdup(options->debug_directories ? options->debug_directories : "");
	if (!sampler->debug_directories)
		return sampler_fail(failure, "allocate memory", "", -ENOMEM);
	err = cache_create(options->cache_directory, options->cache_limit_bytes, &sampler->cache);
	if (err)
		return sampler_fail(failure, "open the index cache", options->cache_directory, err);
	err = create_debuginfod(sampler, options);
	if (err)
		return sampler_fail(failure, "prepare to ask debuginfod", "", err);
	err = builds_create(
		&(struct builds_options){
			.cache = sampler->cache,
			.metrics = &sampler->metrics,
			.debuginfod = sampler->debuginfod,
			.limits = index_limits,
			.max_children = BUILD_CHILDREN,
			.max_waiting = BUILDS_WAITING,
			.watch = watch_build,
			.done = sampler_index_done,
			.context = sampler,
		},
		&sampler->builds);
	if (!err)
		err = sampler_module_indexes_create(sampler);
	if (err)
		return sampler_fail(failure, "prepare the index builder", "", err);
	err = kernel_symbols_create(sampler->proc_fd, &sampler->metrics, &sampler->kernel_symbols);
	return err ? sampler_fail(failure, "allocate memory", "", err) : 0;
}

static int sampler_create_tables(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	int err;

	sampler->proc_fd = host_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sampler->proc_fd < 0)
		return sampler_fail(failure, "open", "/proc", -errno);
	sampler_memory_guard_init(sampler, options);
	build_ids_init(&sampler->build_ids);
	err = modules_create(SAMPLER_MODULES_LIMIT, &sampler->modules);
	if (!err)
		err = processes_create(
			&(struct processes_options){
				.proc_fd = sampler->proc_fd,
				.modules = sampler->modules,
				.build_ids = &sampler->build_ids.reader,
				.metrics = &sampler->metrics,
				.limit = PROCESSES_LIMIT,
				.program = on_program,
				.ended = on_ended,
				.forked = on_forked,
				.forget = on_forget,
				.context = sampler,
			},
			&sampler->processes);
	if (!err)
		err = jit_maps_create(
			&(struct jit_maps_options){
				.proc_fd = sampler->proc_fd,
				.processes = sampler->processes,
				.metrics = &sampler->metrics,
				.limit = JIT_MAPS_LIMIT,
			},
			&sampler->jit_maps);
	if (err)
		return sampler_fail(failure, "make the tables", "", err);
	sampler_module_sweeper_init(sampler);
	return 0;
}

static int create_collect(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	struct collect_options collect = options->collect;
	const char *step = "";
	int err;

	collect.probes = probes_all;
	collect.metrics = &sampler->metrics;
	sampler_handlers(sampler, &collect.handlers);
	err = collect_create(&collect, &sampler->collect, &step);
	if (err)
		return sampler_fail(failure, step, "", err);
	err = sampler_windows_create(sampler, options);
	if (err)
		return sampler_fail(failure, "allocate memory", "", err);
	err = sampler_unwind_create(sampler);
	if (err)
		return sampler_fail(failure, "prepare the unwind tables", "", err);
	err = loop_add(sampler->loop, collect_fd(sampler->collect), EPOLLIN, on_rings, sampler);
	if (!err)
		err = loop_timer(sampler->loop, DRAIN_MS * MS, DRAIN_MS * MS, on_drain_timer,
			sampler, &sampler->drain_timer);
	if (!err)
		err = loop_timer(sampler->loop, UPKEEP_MS * MS, UPKEEP_MS * MS, on_upkeep_timer,
			sampler, &sampler->upkeep_timer);
	return err ? sampler_fail(failure, "watch the rings", "", err) : 0;
}

static int create_samples(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	int err = sampler_samples_init(sampler, options);

	return err ? sampler_fail(failure, "allocate memory", "", err) : 0;
}

/*
 * The rings are open already: /proc gives the processes that run now, the rings everything later.
 */
static int read_processes(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	const uint32_t *pids = options->collect.filter.filter_tgids ? options->collect.tgids : NULL;
	size_t count = pids ? options->collect.tgid_count : 0;
	int err;

	if (options->follow) {
		pids = &options->follow_pid;
		count = 1;
	}
	err = processes_scan(sampler->processes, pids, count);
	return err ? sampler_fail(failure, "read the processes in", "/proc", err) : 0;
}

int sampler_create(const struct sampler_options *options, struct sampler **ret_sampler,
	struct sampler_failure *ret_failure)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int err;

	if (!sampler)
		return sampler_fail(ret_failure, "allocate memory", "", -ENOMEM);
	host_note(HOST_NOTE_CALL,
		&(struct note_call){ .call = SAMPLER_CALL_CREATE, .options = options });
	sampler->loop = options->loop;
	sampler->proc_fd = sampler->statm_fd = sampler->drain_timer = sampler->upkeep_timer = -1;
	sampler->sealed = options->sealed;
	sampler->full = options->full;
	sampler->wants_file = options->wants_file;
	sampler->take_file = options->take_file;
	sampler->sealed_context = options->sealed_context;
	err = runtimes_init(&sampler->runtimes, &(struct runtimes_options){
							.set = on_runtime,
							.remove = on_runtime_gone,
							.context = sampler,
							.metrics = &sampler->metrics,
						});
	if (!err)
		err = sampler_waits_create(sampler, options->collect.off_cpu_share);
	if (err)
		sampler_fail(ret_failure, "allocate memory", "", err);
	else
		err = sampler_create_tables(sampler, options, ret_failure);
	/* What needs privileges goes first: without them no other error matters. */
	if (!err)
		err = create_collect(sampler, options, ret_failure);
	if (!err)
		err = create_symbol_sources(sampler, options, ret_failure);
	if (!err)
		err = create_samples(sampler, options, ret_failure);
	if (!err)
		err = read_processes(sampler, options, ret_failure);
	if (err) {
		sampler_destroy(sampler);
		return err;
	}
	*ret_sampler = sampler;
	return 0;
}

void sampler_destroy(struct sampler *sampler)
{
	if (!sampler)
		return;
	if (sampler->collect) {
		loop_remove(sampler->loop, collect_fd(sampler->collect));
		loop_cancel(sampler->loop, sampler->drain_timer);
		loop_cancel(sampler->loop, sampler->upkeep_timer);
	}
	builds_destroy(sampler->builds);
	debuginfod_destroy(sampler->debuginfod);
	sampler_samples_deinit(sampler);
	unwind_destroy(take(sampler->unwind));
	collect_destroy(sampler->collect);
	sampler->collect = NULL;
	processes_destroy(sampler->processes);
	jit_maps_destroy(sampler->jit_maps);
	runtimes_deinit(&sampler->runtimes);
	module_indexes_destroy(sampler->module_indexes);
	modules_destroy(sampler->modules);
	windows_destroy(sampler->windows);
	cache_destroy(sampler->cache);
	free(sampler->debug_directories);
	kernel_symbols_destroy(sampler->kernel_symbols);
	waits_destroy(sampler->waits);
	if (sampler->statm_fd >= 0)
		close(sampler->statm_fd);
	if (sampler->proc_fd >= 0)
		close(sampler->proc_fd);
	free(sampler);
}

/* ---- running -------------------------------------------------------------------------------- */

static void on_wait_over(void *context)
{
	struct sampler *sampler = context;

	sampler->wait_expired = true;
	loop_stop(sampler->loop);
}

int sampler_finish_builds(struct sampler *sampler, uint64_t wait_ns)
{
	int timer, err;

	pending_walks_retry(&sampler->walks, SIZE_MAX);
	if (!is_building(sampler))
		return 0;
	sampler->wait_expired = false;
	err = loop_timer(sampler->loop, wait_ns, 0, on_wait_over, sampler, &timer);
	if (err)
		return err;
	sampler->waiting = true;
	builds_hurry(sampler->builds);
	err = loop_run(sampler->loop);
	sampler->waiting = false;
	if (!sampler->wait_expired)
		loop_cancel(sampler->loop, timer);
	return err;
}

int sampler_finish_debug(struct sampler *sampler, uint64_t wait_ns)
{
	int err;

	note_call(SAMPLER_CALL_FINISH_DEBUG, wait_ns);
	sampler->waiting_debug = true;
	err = sampler_finish_builds(sampler, wait_ns);
	sampler->waiting_debug = false;
	trouble_log_check_servers(&sampler->trouble_log, sampler->debuginfod);
	return err;
}

/* CPU time that PID has used, in clock ticks; 0 if unknown. */
static uint64_t used_ticks(const struct sampler *sampler, uint32_t pid)
{
	char path[32], line[512];
	unsigned long long user = 0, system = 0;
	const char *after_comm;

	snprintf(path, sizeof(path), "%u/stat", pid);
	if (io_read_line(sampler->proc_fd, path, line, sizeof(line)) < 0)
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

/* Requests the indexes of the busiest processes' programs, which will get most samples. */
static int request_busiest(struct sampler *sampler)
{
	autofree struct candidate *candidates = NULL;
	size_t count = 0, capacity = 0, iterator = 0;
	struct process *p;
	int err;

	while ((p = processes_next(sampler->processes, &iterator)) != NULL) {
		if (p->kernel_thread || !p->executable)
			continue;
		err = array_reserve(candidates, capacity, count + 1, PROCESSES_LIMIT);
		if (err)
			return err;
		candidates[count++] = (struct candidate){ p, used_ticks(sampler, p->pid) };
	}
	if (count)
		qsort(candidates, count, sizeof(*candidates), by_ticks);
	for (size_t i = 0; i < count && i < PREPARED_PROGRAMS; i++)
		sampler_request_program(sampler, candidates[i].process);
	return 0;
}

int sampler_prepare(struct sampler *sampler, uint64_t wait_ns)
{
	int err;

	note_call(SAMPLER_CALL_PREPARE, wait_ns);
	drain(sampler);
	err = request_busiest(sampler);
	if (err)
		return err;
	return sampler_finish_builds(sampler, wait_ns);
}

int sampler_start(struct sampler *sampler)
{
	int err;

	note_call(SAMPLER_CALL_START, 0);
	windows_start(sampler->windows);
	err = collect_start(sampler->collect);
	sampler->started = !err;
	/* Reading the kernel's types and all processes left holes in the heap. */
	memory_guard_release(&sampler->memory_guard);
	return err;
}

int sampler_stop(struct sampler *sampler)
{
	int err;

	note_call(SAMPLER_CALL_STOP, 0);
	windows_stop(sampler->windows);
	err = collect_stop(sampler->collect);
	sampler->started = false;
	(void)collect_drain(sampler->collect, 0);
	module_indexes_identify(sampler->module_indexes);
	windows_seal_previous(sampler->windows);
	collect_count(sampler->collect);
	return err;
}

/* ---- results -------------------------------------------------------------------------------- */

void sampler_sources(
	struct sampler *sampler, const struct profile *profile, struct report_sources *ret_sources)
{
	(void)kernel_symbols_renew(sampler->kernel_symbols, clock_monotonic_ns());
	*ret_sources = (struct report_sources){
		.profile = profile,
		.processes = sampler->processes,
		.modules = sampler->modules,
		.kallsyms = kernel_symbols_table(sampler->kernel_symbols),
		.index = sampler_index_of,
		.perf_map = sampler_perf_map_of,
		.runtime_names = on_runtime_names,
		.context = sampler,
		.metrics = &sampler->metrics,
	};
}

unsigned int sampler_pending_builds(const struct sampler *sampler)
{
	return builds_pending(sampler->builds);
}

struct builds_improving sampler_pending_debug(const struct sampler *sampler)
{
	return builds_improving(sampler->builds);
}

const struct metrics *sampler_metrics(const struct sampler *sampler)
{
	return &sampler->metrics;
}

uint64_t sampler_samples(const struct sampler *sampler)
{
	return sampler->samples;
}

uint64_t sampler_first_sample_ns(const struct sampler *sampler)
{
	return intake_first_sample_ns(&sampler->intake);
}

uint64_t sampler_builds_cpu_ns(const struct sampler *sampler)
{
	return builds_cpu_ns(sampler->builds);
}

uint64_t sampler_builds_peak_bytes(const struct sampler *sampler)
{
	return builds_peak_bytes(sampler->builds);
}

bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs)
{
	return collect_bpf_stats(sampler->collect, ret_ns, ret_runs) == 0 && *ret_runs > 0;
}

struct metrics *sampler_metrics_to_add(struct sampler *sampler)
{
	return &sampler->metrics;
}

void sampler_select(struct sampler *sampler, const struct selection *selection)
{
	host_note(HOST_NOTE_CALL,
		&(struct note_call){ .call = SAMPLER_CALL_SELECT, .selection = selection });
	intake_select(&sampler->intake, selection);
}

int sampler_pause(struct sampler *sampler, bool pause)
{
	return collect_pause(sampler->collect, pause);
}

int sampler_set_frequency(struct sampler *sampler, uint64_t hz)
{
	windows_set_period(sampler->windows, UINT64_C(1000000000) / hz);
	return collect_set_frequency(sampler->collect, hz);
}

struct sampler_sizes sampler_sizes(const struct sampler *sampler)
{
	return (struct sampler_sizes){
		.index_bytes = module_indexes_bytes(sampler->module_indexes),
		.kallsyms_bytes = kernel_symbols_bytes(sampler->kernel_symbols),
		.profile_bytes = profile_bytes(windows_profile(sampler->windows, 0)),
		.bpf_map_bytes = collect_map_bytes(sampler->collect),
		.processes = processes_count(sampler->processes),
		.modules = modules_count(sampler->modules),
	};
}
