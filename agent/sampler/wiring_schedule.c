/* SPDX-License-Identifier: Apache-2.0 */
/* Wires what is done when: drains, the upkeep of each second, waits for builds. */
#include "agent/sampler/sampler_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* ---- drains --------------------------------------------------------------------------------- */

static int64_t on_drain(void *context)
{
	struct sampler *sampler = context;

	return collect_drain(sampler->collect, 0);
}

/*
 * Reads the kernel symbols once a sample has a kernel stack: nobody needs them earlier. Later would
 * be too late, because a module's names are gone once it is unloaded.
 */
static void sampler_begin_kernel_symbols(struct sampler *sampler)
{
	struct abi_kernel_tables tables;

	if (!stack_resolver_saw_kernel(&sampler->resolver) ||
		!kernel_symbols_begin(sampler->kernel_symbols))
		return;
	if (kernel_symbols_unwind_tables(sampler->kernel_symbols, &tables))
		collect_set_kernel_tables(sampler->collect, &tables);
	memory_guard_release(&sampler->memory_guard);
	sampler_want_kernel_lines(sampler);
}

static void on_drained(void *context)
{
	struct sampler *sampler = context;

	pending_walks_retry(&sampler->walks, PENDING_WALKS_AT_ONCE);
	loop_step(sampler->loop, "unwind tables");
	if (sampler->unwind)
		unwind_load_ahead(sampler->unwind);
	loop_step(sampler->loop, "memory");
	memory_guard_check_window(&sampler->memory_guard);
	loop_step(sampler->loop, "kernel symbols");
	sampler_begin_kernel_symbols(sampler);
}

/* Until the first sample, programs are new whether or not a record has told of them. */
static bool on_saw_news(void *context)
{
	struct sampler *sampler = context;
	bool news = sampler->news || !intake_first_sample_ns(&sampler->intake);

	sampler->news = false;
	return news;
}

static bool on_left_much(void *context)
{
	const struct sampler *sampler = context;

	return collect_left_much(sampler->collect);
}

/* ---- upkeep --------------------------------------------------------------------------------- */

static void on_count(void *context)
{
	const struct sampler *sampler = context;

	collect_count(sampler->collect);
}

static void on_check_memory(void *context)
{
	struct sampler *sampler = context;

	memory_guard_check(&sampler->memory_guard);
}

static void on_check_builds(void *context)
{
	struct sampler *sampler = context;

	builds_expire(sampler->builds, clock_monotonic_ns());
	build_wait_progress(&sampler->build_wait);
}

static void on_tend_files(void *context)
{
	struct sampler *sampler = context;

	file_helper_tend(&sampler->file_helper);
}

static void on_log_trouble(void *context)
{
	struct sampler *sampler = context;

	losses_check(&sampler->losses, &sampler->metrics);
	trouble_log_check_servers(&sampler->trouble_log, sampler->debuginfod);
	trouble_log_check_builds(&sampler->trouble_log, sampler->builds);
}

static void on_retry_runtimes(void *context)
{
	struct sampler *sampler = context;

	runtimes_retry(&sampler->runtimes);
}

static void on_unwind_tick(void *context)
{
	struct sampler *sampler = context;

	pending_walks_tick(&sampler->walks);
	if (sampler->unwind)
		unwind_tick(sampler->unwind);
}

static void on_tend_probes(void *context)
{
	sampler_latency_upkeep(context);
	(void)sampler_latency_open_again(context);
}

static void on_sweep_cgroups(void *context)
{
	struct sampler *sampler = context;

	left_out_cgroups_sweep(&sampler->left_out_cgroups);
}

/* The cache's limit may have been lowered since the last run. From here on commits keep it. */
static void on_trim_cache(void *context)
{
	const struct sampler *sampler = context;

	(void)cache_trim(sampler->cache);
}

static void on_check_cpus(void *context)
{
	const struct sampler *sampler = context;

	if (collect_check_cpus(sampler->collect) < 0)
		log_debug("a CPU could not be opened, ignoring", "%s", "");
}

static const struct upkeep_job upkeep_jobs[] = {
	{ on_count, UPKEEP_ALWAYS, "counters" },
	{ on_check_memory, UPKEEP_ALWAYS, "memory" },
	{ on_check_builds, UPKEEP_ALWAYS, "builds" },
	{ on_tend_files, UPKEEP_ALWAYS, "file helper" },
	{ on_log_trouble, UPKEEP_ALWAYS, "log" },
	{ on_retry_runtimes, UPKEEP_ALWAYS, "runtimes" },
	{ on_unwind_tick, UPKEEP_ALWAYS, "unwind tables" },
	{ on_tend_probes, UPKEEP_ALWAYS, "function probes" },
	{ on_sweep_cgroups, UPKEEP_SAMPLING, "control groups" },
	{ on_trim_cache, UPKEEP_ONCE, "index cache" },
	{ on_check_cpus, UPKEEP_SAMPLING, "CPUs" },
};

int sampler_schedule_init(struct sampler *sampler)
{
	int err = drains_init(&sampler->drains, &(struct drains_options){
							.loop = sampler->loop,
							.fd = collect_fd(sampler->collect),
							.drain = on_drain,
							.drained = on_drained,
							.saw_news = on_saw_news,
							.left_much = on_left_much,
							.context = sampler,
						});

	return err ? err
		   : upkeep_init(&sampler->upkeep, &(struct upkeep_options){
							   .loop = sampler->loop,
							   .jobs = upkeep_jobs,
							   .count = ARRAY_SIZE(upkeep_jobs),
							   .context = sampler,
						   });
}

void sampler_schedule_deinit(struct sampler *sampler)
{
	drains_deinit(&sampler->drains);
	upkeep_deinit(&sampler->upkeep);
}

/* ---- waits for builds ----------------------------------------------------------------------- */

static void on_retry(void *context, bool all)
{
	struct sampler *sampler = context;

	pending_walks_retry(&sampler->walks, all ? SIZE_MAX : PENDING_WALKS_AT_ONCE);
}

static bool on_ask_postponed(void *context)
{
	const struct sampler *sampler = context;

	return module_indexes_ask_postponed(sampler->module_indexes);
}

void sampler_build_wait_init(struct sampler *sampler)
{
	build_wait_init(&sampler->build_wait, &(struct build_wait_options){
						      .loop = sampler->loop,
						      .builds = sampler->builds,
						      .retry = on_retry,
						      .ask_postponed = on_ask_postponed,
						      .context = sampler,
					      });
}
