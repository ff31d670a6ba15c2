/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's life cycle: creates the rooms in their order, runs the timers, starts and stops. */
#include "agent/sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/probes/probes.h"
#include "agent/sampler/process/busiest.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/recording/notes.h"
#include "agent/sampler/sampler_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host.h"

enum { PREPARED_PROGRAMS = 32 };

/* ---- creation ------------------------------------------------------------------------------- */

static int sampler_fail(
	struct sampler_failure *failure, const char *step, const char *detail, int err)
{
	failure->step = step;
	snprintf(failure->detail, sizeof(failure->detail), "%s", detail);
	return err;
}

static int create_symbol_sources(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	int err;

	sampler->kernel_debuginfo = options->kernel_debuginfo;
	sampler->debug_directories =
		strdup(options->debug_directories ? options->debug_directories : "");
	if (!sampler->debug_directories)
		return sampler_fail(failure, "allocate memory", "", -ENOMEM);
	err = cache_create(options->cache_directory, options->cache_limit_bytes, &sampler->cache);
	if (err)
		return sampler_fail(failure, "open the index cache", options->cache_directory, err);
	err = sampler_debuginfod_create(sampler, options);
	if (err)
		return sampler_fail(failure, "prepare debuginfod", "", err);
	err = sampler_builds_create(sampler);
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
	err = modules_create(SAMPLER_MODULES_LIMIT, &sampler->modules);
	if (!err)
		err = sampler_processes_create(sampler);
	if (!err)
		err = sampler_symbolize_create(sampler);
	if (err)
		return sampler_fail(failure, "create the tables", "", err);
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
	err = sampler_unwind_create(sampler, options->collect.without);
	if (err)
		return sampler_fail(failure, "prepare the unwind tables", "", err);
	err = sampler_schedule_init(sampler);
	return err ? sampler_fail(failure, "watch the ring buffers", "", err) : 0;
}

static int create_samples(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	int err;

	sampler_build_wait_init(sampler);
	err = sampler_samples_init(sampler, options);
	return err ? sampler_fail(failure, "allocate memory", "", err) : 0;
}

static int create_latency(struct sampler *sampler, const struct sampler_options *options,
	struct sampler_failure *failure)
{
	const char *step = "";
	int err = sampler_latency_create(sampler, options, &step);

	if (!err)
		err = sampler_probes_create(sampler);
	return err ? sampler_fail(failure, step, "", err) : 0;
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
	return err ? sampler_fail(failure, "read the running processes", "/proc", err) : 0;
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
	window_processes_init(&sampler->sealed_processes);
	sampler->loop = options->loop;
	sampler->proc_fd = sampler->statm_fd = sampler->probes_timer = -1;
	build_ids_init(&sampler->build_ids, &sampler->metrics);
	sampler->sealed = options->sealed;
	sampler->full = options->full;
	sampler->wants_file = options->wants_file;
	sampler->take_file = options->take_file;
	sampler->sealed_context = options->sealed_context;
	if (options->trace)
		sampler->trace = *options->trace;
	err = file_helper_start(&sampler->file_helper, &sampler->metrics);
	if (!err)
		err = sampler_runtimes_init(sampler);
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
		err = create_latency(sampler, options, ret_failure);
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
	sampler_schedule_deinit(sampler);
	builds_destroy(sampler->builds);
	debuginfod_destroy(sampler->debuginfod);
	sampler_samples_deinit(sampler);
	unwind_destroy(take(sampler->unwind));
	sampler_probes_destroy(sampler);
	sampler_latency_destroy(sampler);
	collect_destroy(sampler->collect);
	sampler->collect = NULL;
	symbolize_destroy(sampler->symbolize);
	processes_destroy(sampler->processes);
	jit_maps_destroy(sampler->jit_maps);
	runtimes_deinit(&sampler->runtimes);
	module_indexes_destroy(sampler->module_indexes);
	modules_destroy(sampler->modules);
	build_ids_deinit(&sampler->build_ids);
	file_helper_stop(&sampler->file_helper);
	windows_destroy(sampler->windows);
	window_processes_deinit(&sampler->sealed_processes);
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

int sampler_finish_builds(struct sampler *sampler, uint64_t wait_ns)
{
	return build_wait_run(&sampler->build_wait, wait_ns);
}

int sampler_finish_debug(struct sampler *sampler, uint64_t wait_ns)
{
	int err;

	note_call(SAMPLER_CALL_FINISH_DEBUG, wait_ns);
	err = build_wait_run_debug(&sampler->build_wait, wait_ns);
	trouble_log_check_servers(&sampler->trouble_log, sampler->debuginfod);
	return err;
}

static void on_busiest(void *context, struct process *p)
{
	sampler_request_program(context, p);
}

int sampler_prepare(struct sampler *sampler, uint64_t wait_ns)
{
	int err;

	note_call(SAMPLER_CALL_PREPARE, wait_ns);
	drains_now(&sampler->drains);
	/* Most samples will be of these. */
	err = busiest_for_each(
		sampler->processes, sampler->proc_fd, PREPARED_PROGRAMS, on_busiest, sampler);
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
	upkeep_set_sampling(&sampler->upkeep, !err);
	/* Reading the kernel's types and all processes left holes in the heap. */
	memory_guard_release(&sampler->memory_guard);
	return err;
}

int sampler_stop(struct sampler *sampler)
{
	int err;

	note_call(SAMPLER_CALL_STOP, 0);
	err = collect_stop(sampler->collect);
	windows_stop(sampler->windows);
	upkeep_set_sampling(&sampler->upkeep, false);
	(void)collect_drain(sampler->collect, 0);
	module_indexes_identify(sampler->module_indexes);
	windows_seal_previous(sampler->windows);
	collect_count(sampler->collect);
	return err;
}

void sampler_select(struct sampler *sampler, const struct selection *selection)
{
	host_note(HOST_NOTE_CALL,
		&(struct note_call){ .call = SAMPLER_CALL_SELECT, .selection = selection });
	intake_select(&sampler->intake, selection);
	left_out_cgroups_clear(&sampler->left_out_cgroups);
}

void sampler_choose(struct sampler *sampler, struct container_choices *choices)
{
	if (intake_choose(&sampler->intake, choices))
		left_out_cgroups_clear(&sampler->left_out_cgroups);
}

uint64_t sampler_containers_missed(const struct sampler *sampler)
{
	return sampler->intake.choosing.missed;
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

/* ---- results -------------------------------------------------------------------------------- */

struct symbolize *sampler_symbolize(struct sampler *sampler)
{
	(void)kernel_symbols_renew(sampler->kernel_symbols, clock_monotonic_ns());
	symbolize_begin(sampler->symbolize, kernel_symbols_table(sampler->kernel_symbols));
	sampler_want_kernel_lines(sampler);
	return sampler->symbolize;
}
