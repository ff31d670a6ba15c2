/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a probe, from the first selected process that maps one until it is detached. */
#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/latency_probes/latency_probes_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/log.h"

static const uint64_t ATTACH_AGAIN_NS = UINT64_C(60000000000);

enum { MAX_RUNS = 4 * PROBE_FILES_MAX /* those that have ended included */ };

/* ---- beginning ------------------------------------------------------------------------------ */

/* Only mappings of selected processes are offered. */
static bool on_selects(void *context, const struct process *p)
{
	(void)context;
	(void)p;
	return true;
}

static struct probed_files_options run_options(
	const struct latency_probes *lp, const struct named_probe *np)
{
	const struct latency_probe *of = &np->spec.of;

	return (struct probed_files_options){
		.wanted = &np->spec.wanted,
		.unwanted = &np->spec.unwanted,
		.exclude_vendor = of->exclude_vendor,
		.in_background = true,
		/* Cells are by process already. */
		.by = of->by == ABI_LATENCY_BY_PROCESS ? ABI_LATENCY_BY_FUNCTION : of->by,
		.set = np->set,
		.max_functions = LATENCY_PROBES_FUNCTIONS,
		.latency = lp->latency,
		.selects = on_selects,
		.open = lp->options.open,
		.want = lp->options.want,
		.check_file = lp->options.check_file,
		.fibers = lp->options.fibers,
		.context = lp->options.context,
	};
}

static struct probe_run *run_find(const struct named_probe *np, uint32_t module)
{
	for (size_t i = 0; i < np->run_count; i++)
		if (np->runs[i]->module == module && !np->runs[i]->ended)
			return np->runs[i];
	return NULL;
}

static size_t runs_live(const struct named_probe *np)
{
	size_t live = 0;

	for (size_t i = 0; i < np->run_count; i++)
		live += !np->runs[i]->ended;
	return live;
}

static int run_create(struct latency_probes *lp, struct named_probe *np, uint32_t module,
	struct probe_run **ret_run)
{
	const struct probed_files_options options = run_options(lp, np);
	autofree struct probe_run *run = calloc(1, sizeof(*run));
	int err;

	if (!run)
		return -ENOMEM;
	if (runs_live(np) == PROBE_FILES_MAX)
		return -E2BIG;
	run->module = module;
	err = array_reserve(np->runs, np->run_capacity, np->run_count + 1, MAX_RUNS);
	if (!err)
		err = probed_files_create(&options, &run->files);
	if (err)
		return err;
	*ret_run = run;
	np->runs[np->run_count++] = take(run);
	return 0;
}

void probe_runs_mapped(struct latency_probes *lp, struct named_probe *np, const struct process *p,
	const struct mapping *mapping)
{
	const struct module *module = mapping->module;
	struct probe_run *run;
	int err = 0;

	if (module->kind != MODULE_FILE || np->spec.of.kernel || np->suspended_until_ns ||
		!choose_concerns(&np->spec.wanted, module->path ? module->path : "",
			p->executable == module))
		return;
	run = run_find(np, module->number);
	if (!run)
		err = run_create(lp, np, module->number, &run);
	if (!err) {
		probed_files_mapped(run->files, p, mapping);
		return;
	}
	if (!np->files_refused)
		log_warn("the functions of a file are not measured",
			"probe=\"%s\" path=\"%s\" error=\"%s\"", np->spec.of.name,
			module->path ? module->path : "",
			err == -E2BIG ? "too many files" : "out of memory");
	np->files_refused = true;
}

/* ---- ending --------------------------------------------------------------------------------- */

void probe_runs_end(struct probe_run *run)
{
	if (run->ended)
		return;
	if (run->kernel)
		kernel_functions_end(run->kernel);
	else
		probed_files_end(run->files);
	run->ended = true;
}

void probe_runs_end_all(struct named_probe *np)
{
	for (size_t i = 0; i < np->run_count; i++)
		probe_runs_end(np->runs[i]);
}

static bool run_may_recover(const struct probed_file *file)
{
	return failure_is_transient(file->err) || file->err == -ETIMEDOUT;
}

bool probe_runs_end_failed(struct named_probe *np, uint64_t now_ns)
{
	bool again = false;

	for (size_t r = 0; r < np->run_count; r++) {
		struct probe_run *run = np->runs[r];
		struct probed_file file;

		if (run->ended || run->kernel || !probed_files_count(run->files))
			continue;
		file = probed_files_at(run->files, 0);
		again |= file.state == PROBED_FILE_NOT_OPENED && run_may_recover(&file);
		if (file.state != PROBED_FILE_NOT_ATTACHED || !run_may_recover(&file))
			continue;
		run->failed_ns = run->failed_ns ? run->failed_ns : now_ns;
		if (now_ns - run->failed_ns < ATTACH_AGAIN_NS)
			continue;
		probe_runs_end(run);
		again = true;
	}
	return again;
}

static void run_destroy(struct probe_run *run)
{
	probed_files_destroy(run->files);
	kernel_functions_destroy(run->kernel);
	nearest_name_deinit(&run->nearest);
	free(run);
}

bool probe_run_is_busy(const struct probe_run *run)
{
	return run->kernel ? kernel_functions_is_busy(run->kernel)
			   : probed_files_is_busy(run->files);
}

void probe_run_tend(struct probe_run *run)
{
	if (run->files)
		probed_files_tend(run->files);
}

void probe_runs_sweep(struct named_probe *np)
{
	size_t kept = 0;

	for (size_t i = 0; i < np->run_count; i++) {
		struct probe_run *run = np->runs[i];

		if (run->ended && run->sealed && !probe_run_is_busy(run))
			run_destroy(run);
		else
			np->runs[kept++] = run;
	}
	np->run_count = kept;
}

void probe_runs_destroy(struct named_probe *np)
{
	probe_runs_end_all(np);
	for (size_t i = 0; i < np->run_count; i++)
		run_destroy(np->runs[i]);
	free(np->runs);
	np->runs = NULL;
	np->run_count = np->run_capacity = 0;
}

/* ---- hits ----------------------------------------------------------------------------------- */

static uint64_t run_read_hits(struct latency_probes *lp, const struct probe_run *run)
{
	uint64_t since = 0;

	for (size_t i = 0; i < run_function_count(run); i++) {
		const struct run_function f = run_function_at(run, i);
		uint64_t hits;

		if (!f.numbered)
			continue;
		hits = latency_function_hits(lp->latency, f.number);
		since += hits - MIN(hits, lp->hits_seen[f.number]);
		lp->hits_seen[f.number] = MAX(hits, lp->hits_seen[f.number]);
	}
	return since;
}

void probe_runs_read_hits(struct latency_probes *lp)
{
	for (size_t i = 0; i < lp->count; i++) {
		struct named_probe *np = lp->items[i];

		np->recent_hits = 0;
		for (size_t r = 0; r < np->run_count; r++)
			np->recent_hits += run_read_hits(lp, np->runs[r]);
		np->hits += np->recent_hits;
	}
}
