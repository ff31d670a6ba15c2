/* SPDX-License-Identifier: Apache-2.0 */
/* Probes on functions of the kernel: each has one run, whose functions are chosen when it begins.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/latency_probes/latency_probes_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"

/* A module with such a function may be loaded, or the kernel show its addresses. */
static const uint64_t LOOK_AGAIN_NS = UINT64_C(600000000000);

enum { MAX_RUNS = 64 /* those that have ended included */ };

/* Loads the programs, for the first probe that needs them. */
static int kernel_runs_load(struct latency_probes *lp)
{
	const char *step = "";
	int err;

	if (lp->kernel)
		return 0;
	err = lp->options.load_kernel(lp->options.context, &lp->kernel, &step);
	if (err)
		snprintf(lp->kernel_problem, sizeof(lp->kernel_problem), "cannot %s: %s", step,
			strerror(-err));
	return err;
}

static int kernel_run_create(
	struct latency_probes *lp, struct named_probe *np, struct probe_run **ret_run)
{
	const struct latency_probe *of = &np->spec.of;
	const struct kernel_functions_options options = {
		.wanted = &np->spec.wanted,
		.unwanted = &np->spec.unwanted,
		.max_functions = LATENCY_PROBES_FUNCTIONS,
		.latency = lp->latency,
		.kernel_latency = lp->kernel,
		.shares = true,
		/* Cells are by process already. */
		.by = of->by == ABI_LATENCY_BY_PROCESS ? ABI_LATENCY_BY_FUNCTION : of->by,
		.set = np->set,
	};
	struct probe_run *run = calloc(1, sizeof(*run));
	int err = run ? array_reserve(np->runs, np->run_capacity, np->run_count + 1, MAX_RUNS)
		      : -ENOMEM;

	if (!err)
		err = kernel_functions_create(&options, &run->kernel);
	if (err) {
		free(run);
		return err;
	}
	np->runs[np->run_count++] = run;
	*ret_run = run;
	return 0;
}

static size_t kernel_run_measured(const struct probe_run *run)
{
	size_t measured = 0;

	for (size_t i = 0; i < run_function_count(run); i++)
		measured += run_function_at(run, i).measured;
	return measured;
}

static void kernel_run_log(const struct named_probe *np, const struct probe_run *run)
{
	size_t measured = kernel_run_measured(run);

	/* Whoever takes the next window says why there are none. */
	if (measured)
		log_info("kernel functions are measured", "probe=\"%s\" functions=%zu by=\"%s\"",
			np->spec.of.name, measured, kernel_functions_way(run->kernel));
}

static void kernel_run_begin(struct latency_probes *lp, struct named_probe *np, uint64_t now_ns)
{
	struct probe_run *run;
	int err = kernel_runs_load(lp);

	np->kernel_tried_ns = now_ns;
	if (err)
		return;
	err = kernel_run_create(lp, np, &run);
	if (!err) {
		kernel_run_log(np, run);
		return;
	}
	log_warn("kernel functions cannot be measured", "probe=\"%s\" error=\"%s\"",
		np->spec.of.name, strerror(-err));
}

static struct probe_run *kernel_run_live(const struct named_probe *np)
{
	for (size_t i = 0; i < np->run_count; i++)
		if (!np->runs[i]->ended)
			return np->runs[i];
	return NULL;
}

void kernel_runs_tend(struct latency_probes *lp, uint64_t now_ns)
{
	for (size_t i = 0; i < lp->count; i++) {
		struct named_probe *np = lp->items[i];
		struct probe_run *run;

		if (!np->spec.of.kernel || np->removed || np->suspended_until_ns)
			continue;
		run = kernel_run_live(np);
		if (run && kernel_run_measured(run))
			continue;
		if (np->kernel_tried_ns && now_ns - np->kernel_tried_ns < LOOK_AGAIN_NS)
			continue;
		if (run)
			probe_runs_end(run);
		kernel_run_begin(lp, np, now_ns);
	}
}

uint64_t kernel_runs_read_missed(struct latency_probes *lp)
{
	uint64_t shared, since;

	if (!lp->kernel)
		return 0;
	shared = kernel_latency_missed_by_shared(lp->kernel);
	since = shared - MIN(shared, lp->kernel_missed);
	lp->kernel_missed = shared;
	for (size_t i = 0; i < lp->count; i++)
		for (size_t r = 0; r < lp->items[i]->run_count; r++) {
			struct probe_run *run = lp->items[i]->runs[r];
			uint64_t missed = run->kernel ? kernel_functions_missed(run->kernel) : 0;

			since += missed - MIN(missed, run->missed);
			run->missed = missed;
		}
	return since;
}
