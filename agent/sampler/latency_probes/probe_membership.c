/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes each probe selects. */
#include "agent/sampler/latency_probes/latency_probes_internal.h"

/*
 * Processes that are looked at again in a second: the name and the container of a process may
 * change at any time, and nobody says so.
 */
enum { LOOKED_AT_AGAIN = 512 };

static uint64_t membership_of(const struct latency_probes *lp, const struct process *p)
{
	uint64_t sets = 0;

	if (p->kernel_thread || p->ended)
		return 0;
	for (size_t i = 0; i < lp->count; i++) {
		const struct named_probe *np = lp->items[i];

		if (!np->removed && (!np->spec.selection || selection_wants(np->spec.selection, p)))
			sets |= UINT64_C(1) << np->set;
	}
	return sets;
}

/* Offers all that P maps to those probes whose set is among SETS. */
static void membership_offer(struct latency_probes *lp, const struct process *p, uint64_t sets)
{
	for (size_t i = 0; i < lp->count; i++) {
		struct named_probe *np = lp->items[i];

		if (!(sets >> np->set & 1) || np->removed || np->spec.of.kernel)
			continue;
		for (size_t m = 0; m < mappings_count(p->mappings); m++)
			probe_runs_mapped(lp, np, p, mappings_at(p->mappings, m));
	}
}

/*
 * After records were lost, a generation may begin of which nothing but the pid is certain: neither
 * its name nor its program. What was true of the pid stays until /proc has told these.
 */
static bool membership_is_known(const struct process *p, uint64_t sets)
{
	return sets || p->kernel_thread || p->ended || process_is_settled(p);
}

void probe_membership_look(struct latency_probes *lp, struct process *p, bool again)
{
	uint64_t sets = membership_of(lp, p), added;

	if (!membership_is_known(p, sets))
		return;
	added = process_sets_put(&lp->processes, p->pid, p->number, sets, again);
	/* The window in which it ends still has its calls. */
	p->sampled |= process_sets_get(&lp->processes, p->number) != 0;
	if (added)
		membership_offer(lp, p, added);
}

void probe_membership_offer_again(struct latency_probes *lp, uint64_t sets)
{
	size_t iterator = 0;
	const struct process *p;

	while ((p = processes_next(lp->options.processes, &iterator)) != NULL) {
		uint64_t those = process_sets_get(&lp->processes, p->number) & sets;

		if (those)
			membership_offer(lp, p, those);
	}
}

void probe_membership_look_at_all(struct latency_probes *lp)
{
	size_t iterator = 0;
	struct process *p;

	while ((p = processes_next(lp->options.processes, &iterator)) != NULL)
		probe_membership_look(lp, p, false);
}

static bool membership_lives(void *context, uint32_t pid)
{
	const struct latency_probes *lp = context;
	const struct process *p = processes_of_pid(lp->options.processes, pid);

	return p && !p->ended;
}

void probe_membership_look_at_some(struct latency_probes *lp)
{
	process_sets_sweep(&lp->processes, membership_lives, lp);
	for (unsigned int i = 0; i < LOOKED_AT_AGAIN; i++) {
		struct process *p = processes_next(lp->options.processes, &lp->process_place);

		if (!p) {
			lp->process_place = 0;
			return;
		}
		probe_membership_look(lp, p, true);
	}
}
