/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/latency_probes/probe_cost.h"

#include "base/cleanup.h"

enum {
	OVER_LOOKS = 3, /* before something is done: a start is no steady state */
	CALM_LOOKS = 5,
	FAR_OVER = 4, /* times what is allowed: nothing waits for another look */
	LEAST_CALLS = 16, /* measured in a second: with fewer a probe is worth nothing */
	ALL_CALLS = 1 << 24, /* in a second: no limit */
};

/* What is below this share of what is allowed may become twice as much. */
static const double CALM_SHARE = 0.45;
/* What is allowed may be nothing for a moment, as when indexes are built. */
static const double FLOOR = 0.01;
/* What is aimed at if it is too much. */
static const double AIM = 0.8;

void probe_cost_init(struct probe_cost *c, uint64_t trap_ns)
{
	*c = (struct probe_cost){ .share = -1, .trap_ns = trap_ns };
}

static enum probe_cost_verdict cost_unlimit(struct probe_cost *c)
{
	c->over = c->calm = 0;
	if (!c->calls_per_second)
		return PROBE_COST_KEEP;
	c->calls_per_second = 0;
	return PROBE_COST_LIMIT;
}

static enum probe_cost_verdict cost_relax(struct probe_cost *c)
{
	c->over = 0;
	if (!c->calls_per_second || c->used > c->share * CALM_SHARE) {
		c->calm = 0;
		return PROBE_COST_KEEP;
	}
	if (++c->calm < CALM_LOOKS)
		return PROBE_COST_KEEP;
	if (c->calls_per_second >= ALL_CALLS / 2)
		return cost_unlimit(c);
	c->calm = 0;
	c->calls_per_second *= 2;
	return PROBE_COST_LIMIT;
}

/* TRAPS and BPF are shares of one CPU, CALLS were measured in a second. */
static enum probe_cost_verdict cost_reduce(
	struct probe_cost *c, double traps, double bpf, double calls)
{
	double room = c->share * AIM - traps, limit;

	c->calm = 0;
	if (++c->over < OVER_LOOKS && c->used < MAX(c->share, FLOOR) * FAR_OVER)
		return PROBE_COST_KEEP;
	c->over = 0;
	/* Calls that are not measured cost something, too: it may take several steps. */
	limit = room > 0 && bpf > 0 ? calls * MIN(room / bpf, 0.5) : 0;
	if (limit < LEAST_CALLS)
		return PROBE_COST_SUSPEND;
	c->calls_per_second = (uint64_t)limit;
	return PROBE_COST_LIMIT;
}

enum probe_cost_verdict probe_cost_look(struct probe_cost *c, const struct probe_cost_now *now)
{
	struct probe_cost_now last = c->last;
	double passed_ns, traps, bpf;

	c->last = *now;
	if (!last.time_ns || now->time_ns <= last.time_ns || now->traps < last.traps)
		return PROBE_COST_KEEP;
	passed_ns = (double)(now->time_ns - last.time_ns);
	traps = (double)(now->traps - last.traps) * (double)c->trap_ns / passed_ns;
	bpf = (double)(now->bpf_ns - MIN(last.bpf_ns, now->bpf_ns)) / passed_ns;
	c->used = traps + bpf;
	if (c->share < 0)
		return cost_unlimit(c);
	if (c->used <= c->share)
		return cost_relax(c);
	return cost_reduce(c, traps, bpf,
		(double)(now->calls - MIN(last.calls, now->calls)) * 1e9 / passed_ns);
}
