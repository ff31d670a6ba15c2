/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/latency_probes/latency_probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/latency_probes/latency_probes_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum { MAX_ITEMS = 2 * LATENCY_PROBES_MAX /* removed ones included */ };

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t RETRY_NS = UINT64_C(5000000000);
static const uint64_t FIRST_SUSPENSION_NS = UINT64_C(30000000000);
enum { MAX_SUSPENSION_STEPS = 7 /* a little more than an hour */ };

/* ---- life ----------------------------------------------------------------------------------- */

static int on_set_process(void *context, uint32_t tgid, uint64_t sets, uint32_t number)
{
	struct latency_probes *lp = context;

	if (sets)
		return latency_set_process(lp->latency, tgid, sets, number);
	latency_forget_process(lp->latency, tgid);
	return 0;
}

int latency_probes_create(
	const struct latency_probes_options *options, struct latency_probes **ret_probes)
{
	struct latency_probes *lp = calloc(1, sizeof(*lp));

	if (!lp)
		return -ENOMEM;
	lp->options = *options;
	process_sets_init(&lp->processes, LATENCY_PROBES_PROCESSES);
	lp->processes.set = on_set_process;
	lp->processes.context = lp;
	probe_cost_init(&lp->cost, options->trap_ns);
	*ret_probes = lp;
	return 0;
}

static void named_probe_destroy(struct named_probe *np)
{
	if (!np)
		return;
	probe_runs_destroy(np);
	probe_spec_deinit(&np->spec);
	free(np);
}

static void probes_unload(struct latency_probes *lp)
{
	if (!lp->latency)
		return;
	lp->spent = latency_probes_cost(lp);
	lp->latency = NULL;
	lp->kernel = NULL;
	lp->kernel_missed = 0;
	deltas_deinit(&lp->deltas);
	free(take(lp->hits_seen));
	lp->counted = (struct latency_counts){ 0 };
	lp->cost.last = (struct probe_cost_now){ 0 };
	lp->options.unload(lp->options.context);
}

void latency_probes_destroy(struct latency_probes *lp)
{
	if (!lp)
		return;
	for (size_t i = 0; i < lp->count; i++)
		named_probe_destroy(lp->items[i]);
	free(lp->items);
	process_sets_deinit(&lp->processes);
	probes_unload(lp);
	free(lp);
}

/* ---- which probes --------------------------------------------------------------------------- */

static struct named_probe *probes_find(
	const struct latency_probes *lp, const struct latency_probe *probe)
{
	for (size_t i = 0; i < lp->count; i++)
		if (!lp->items[i]->removed && probe_spec_is(&lp->items[i]->spec, probe))
			return lp->items[i];
	return NULL;
}

/* What latency_probes_set() is about to do: for each probe of the owner the one that it will be. */
struct change {
	struct named_probe *of[LATENCY_PROBES_MAX];
	bool is_new[LATENCY_PROBES_MAX];
	size_t count, new_count;
	uint64_t sets_used;
};

static int change_add(struct change *change, const struct latency_probe *probe)
{
	struct named_probe *np;
	int err;

	if (!~change->sets_used)
		return -EBUSY;
	np = calloc(1, sizeof(*np));
	err = np ? probe_spec_init(&np->spec, probe) : -ENOMEM;
	if (err) {
		free(np);
		return err;
	}
	np->set = (uint32_t)__builtin_ctzll(~change->sets_used);
	change->sets_used |= UINT64_C(1) << np->set;
	change->of[change->count] = np;
	change->is_new[change->count] = true;
	change->new_count++;
	return 0;
}

static int change_prepare(const struct latency_probes *lp, const struct latency_probe *probes,
	size_t count, struct change *change)
{
	int err = 0;

	change->sets_used = lp->sets_used;
	for (size_t i = 0; i < count && !err; i++, change->count += !err) {
		change->of[i] = probes_find(lp, &probes[i]);
		if (!change->of[i])
			err = change_add(change, &probes[i]);
	}
	return err;
}

static void change_undo(struct change *change)
{
	for (size_t i = 0; i < change->count; i++)
		if (change->is_new[i])
			named_probe_destroy(change->of[i]);
}

static int probes_load(struct latency_probes *lp, const char **ret_step)
{
	const struct latency_options options = {
		.by_sets = true,
		.max_functions = LATENCY_PROBES_FUNCTIONS,
		.max_processes = LATENCY_PROBES_PROCESSES,
	};
	int err;

	*ret_step = "allocate memory";
	lp->hits_seen = calloc(LATENCY_PROBES_FUNCTIONS, sizeof(*lp->hits_seen));
	if (!lp->hits_seen)
		return -ENOMEM;
	err = lp->options.load(lp->options.context, &options, &lp->latency, ret_step);
	if (err)
		free(take(lp->hits_seen));
	return err;
}

static void probes_remove(struct latency_probes *lp, struct named_probe *np)
{
	np->removed = true;
	probe_runs_end_all(np);
	process_sets_clear(&lp->processes, UINT64_C(1) << np->set);
}

static void change_commit(struct latency_probes *lp, const struct change *change)
{
	for (size_t i = 0; i < lp->count; i++) {
		bool stays = false;

		for (size_t n = 0; n < change->count; n++)
			stays |= change->of[n] == lp->items[i];
		if (!stays && !lp->items[i]->removed)
			probes_remove(lp, lp->items[i]);
	}
	for (size_t n = 0; n < change->count; n++) {
		change->of[n]->place = n;
		if (change->is_new[n])
			lp->items[lp->count++] = change->of[n];
	}
	lp->sets_used = change->sets_used;
}

int latency_probes_set(struct latency_probes *lp, const struct latency_probe *probes, size_t count,
	struct latency_probes_problem *ret_problem)
{
	struct change change = { 0 };
	const char *step = "allocate memory";
	int err = change_prepare(lp, probes, count, &change);

	if (err == -EBUSY)
		step = "detach the probes that were removed before";
	if (!err)
		err = array_reserve(
			lp->items, lp->capacity, lp->count + change.new_count, (size_t)MAX_ITEMS);
	if (!err && change.new_count && !lp->latency)
		err = probes_load(lp, &step);
	if (err) {
		change_undo(&change);
		ret_problem->number = count;
		snprintf(ret_problem->text, sizeof(ret_problem->text), "cannot %s: %s", step,
			strerror(-err));
		return err;
	}
	change_commit(lp, &change);
	if (lp->latency) {
		probe_membership_look_at_all(lp);
		kernel_runs_tend(lp, clock_monotonic_ns());
	}
	return 0;
}

/* ---- processes and files -------------------------------------------------------------------- */

bool latency_probes_exist(const struct latency_probes *lp)
{
	return lp && lp->count;
}

void latency_probes_process(struct latency_probes *lp, struct process *p)
{
	if (lp->latency)
		probe_membership_look(lp, p, false);
}

void latency_probes_mapped(
	struct latency_probes *lp, struct process *p, const struct mapping *mapping)
{
	uint64_t sets;

	if (!lp->latency)
		return;
	probe_membership_look(lp, p, false);
	sets = process_sets_get(&lp->processes, p->number);
	for (size_t i = 0; i < lp->count && sets; i++)
		if (sets >> lp->items[i]->set & 1)
			probe_runs_mapped(lp, lp->items[i], p, mapping);
}

void latency_probes_ended(struct latency_probes *lp, const struct process *p)
{
	/* If another generation has its pid, that one takes its place. */
	if (lp->latency && !p->superseded)
		process_sets_end(&lp->processes, p->pid, p->number);
}

/* The run of MODULE that has not ended; NULL = none. */
static struct probe_run *probe_run_of(const struct named_probe *np, const struct module *module)
{
	for (size_t r = 0; r < np->run_count; r++) {
		struct probe_run *run = np->runs[r];

		if (run->files && run->module == module->number && !run->ended)
			return run;
	}
	return NULL;
}

void latency_probes_index(
	struct latency_probes *lp, const struct module *module, const struct index *index)
{
	for (size_t i = 0; i < lp->count; i++) {
		struct probe_run *run = probe_run_of(lp->items[i], module);

		if (!run)
			continue;
		probed_files_index(run->files, module, index);
		if (index)
			probe_reason_look(lp->items[i], run, index);
	}
}

void latency_probes_forget(struct latency_probes *lp, const struct module *module)
{
	for (size_t i = 0; i < lp->count; i++) {
		struct probe_run *run = probe_run_of(lp->items[i], module);

		if (!run)
			continue;
		probed_files_forget(run->files, module);
		probe_runs_end(run);
	}
}

/* ---- what it costs -------------------------------------------------------------------------- */

/* Twice as long as the last one, unless the probe has measured for longer than that since. */
static void probe_suspend(struct latency_probes *lp, struct named_probe *np, uint64_t now_ns)
{
	unsigned int step;

	if (now_ns - np->resumed_ns > FIRST_SUSPENSION_NS << np->suspensions)
		np->suspensions = 0;
	step = np->suspensions;
	np->suspensions = MIN(np->suspensions + 1, (unsigned int)MAX_SUSPENSION_STEPS);
	np->suspended_until_ns = now_ns + (FIRST_SUSPENSION_NS << step);
	probe_runs_end_all(np);
	log_warn("a probe of functions costs too much, and is suspended",
		"probe=\"%s\" seconds=%llu hits=%llu percent=%.3g allowed=%.3g", np->spec.of.name,
		(unsigned long long)((FIRST_SUSPENSION_NS << step) / SECOND_NS),
		(unsigned long long)np->recent_hits, lp->cost.used * 100, lp->cost.share * 100);
}

/* What the recent hits of NP cost; BPF_NS: the program, of each hit of any probe. */
static double probe_recent_cost(
	const struct latency_probes *lp, const struct named_probe *np, double bpf_ns)
{
	double trap_ns = np->spec.of.kernel ? 0 : (double)lp->cost.trap_ns;

	return (double)np->recent_hits * (trap_ns + bpf_ns);
}

static void probes_suspend_costliest(
	struct latency_probes *lp, const struct latency_counts *counts, uint64_t now_ns)
{
	double bpf_ns = (double)counts->bpf_ns / (double)MAX(counts->hits, UINT64_C(1));
	struct named_probe *costliest = NULL;
	double most = 0;

	probe_runs_read_hits(lp);
	for (size_t i = 0; i < lp->count; i++) {
		struct named_probe *np = lp->items[i];

		double cost = probe_recent_cost(lp, np, bpf_ns);

		if (np->removed || np->suspended_until_ns || !np->recent_hits || cost < most)
			continue;
		most = cost;
		costliest = np;
	}
	if (costliest)
		probe_suspend(lp, costliest, now_ns);
}

/* Files are found again by those processes that are selected now. */
static void probes_resume(struct latency_probes *lp, uint64_t now_ns)
{
	for (size_t i = 0; i < lp->count; i++) {
		struct named_probe *np = lp->items[i];

		if (np->removed || !np->suspended_until_ns || now_ns < np->suspended_until_ns)
			continue;
		np->suspended_until_ns = 0;
		np->resumed_ns = now_ns;
		np->kernel_tried_ns = 0;
		process_sets_clear(&lp->processes, UINT64_C(1) << np->set);
		probe_membership_look_at_all(lp);
	}
}

/* Programs pay for those at their own functions. What is at the kernel's is cheap beside them. */
static uint64_t probes_traps(const struct latency_counts *counts)
{
	return counts->hits - MIN(counts->kernel_hits, counts->hits);
}

static void probes_check_cost(struct latency_probes *lp, uint64_t now_ns)
{
	uint64_t trap_ns = latency_trap_ns(lp->latency);
	struct latency_counts counts;

	if (trap_ns)
		lp->cost.trap_ns = trap_ns;
	if (latency_read_counts(lp->latency, &counts))
		return;
	switch (probe_cost_look(&lp->cost, &(struct probe_cost_now){
						   .time_ns = now_ns,
						   .traps = probes_traps(&counts),
						   .calls = counts.calls,
						   .bpf_ns = counts.bpf_ns,
					   })) {
	case PROBE_COST_LIMIT:
		latency_limit_calls(lp->latency, lp->cost.calls_per_second);
		break;
	case PROBE_COST_SUSPEND:
		probes_suspend_costliest(lp, &counts, now_ns);
		break;
	default:
		break;
	}
}

struct sampler_latency_cost latency_probes_cost(const struct latency_probes *lp)
{
	struct sampler_latency_cost cost = lp->spent;
	struct latency_counts counts;

	if (!lp->latency || latency_read_counts(lp->latency, &counts))
		return cost;
	cost.bpf_ns += counts.bpf_ns;
	cost.trap_ns += probes_traps(&counts) * lp->cost.trap_ns;
	return cost;
}

void latency_probes_allow(struct latency_probes *lp, double share)
{
	lp->cost.share = share;
}

/* ---- every second --------------------------------------------------------------------------- */

static void probes_check_files(struct named_probe *np)
{
	for (size_t r = 0; r < np->run_count; r++) {
		struct probe_run *run = np->runs[r];

		if (run->ended || !run->files || !probed_files_count(run->files))
			continue;
		probed_files_check(run->files);
		if (probed_files_at(run->files, 0).state == PROBED_FILE_CHANGED)
			probe_runs_end(run);
	}
	probe_runs_sweep(np);
}

/* Files that did not answer, or could not be attached for a while, may do so now. */
static void probes_retry(struct latency_probes *lp, uint64_t now_ns)
{
	uint64_t sets = 0;

	if (now_ns - lp->retried_ns < RETRY_NS)
		return;
	lp->retried_ns = now_ns;
	for (size_t i = 0; i < lp->count; i++)
		if (probe_runs_end_failed(lp->items[i], now_ns))
			sets |= UINT64_C(1) << lp->items[i]->set;
	if (sets)
		probe_membership_offer_again(lp, sets);
}

/* Removed probes whose runs are gone. */
static void probes_sweep(struct latency_probes *lp)
{
	size_t kept = 0;

	for (size_t i = 0; i < lp->count; i++) {
		struct named_probe *np = lp->items[i];

		if (np->removed && !np->run_count) {
			lp->sets_used &= ~(UINT64_C(1) << np->set);
			named_probe_destroy(np);
		} else {
			lp->items[kept++] = np;
		}
	}
	lp->count = kept;
}

void latency_probes_tick(struct latency_probes *lp, uint64_t now_ns)
{
	if (!lp->latency && !lp->count)
		return;
	latency_probes_tend(lp);
	for (size_t i = 0; i < lp->count; i++)
		probes_check_files(lp->items[i]);
	probes_sweep(lp);
	if (!lp->latency)
		return;
	if (!lp->count) {
		probes_unload(lp);
		return;
	}
	latency_tick(lp->latency, now_ns);
	probes_check_cost(lp, now_ns);
	probes_resume(lp, now_ns);
	probes_retry(lp, now_ns);
	kernel_runs_tend(lp, now_ns);
	probe_membership_look_at_some(lp);
}

void latency_probes_tend(struct latency_probes *lp)
{
	for (size_t i = 0; i < lp->count; i++)
		for (size_t r = 0; r < lp->items[i]->run_count; r++)
			probe_run_tend(lp->items[i]->runs[r]);
}

bool latency_probes_are_busy(const struct latency_probes *lp)
{
	for (size_t i = 0; i < lp->count; i++)
		for (size_t r = 0; r < lp->items[i]->run_count; r++)
			if (probe_run_is_busy(lp->items[i]->runs[r]))
				return true;
	return false;
}
