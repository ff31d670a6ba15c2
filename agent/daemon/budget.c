/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/budget.h"

#include "base/cleanup.h"

enum { CALM_LOOKS = 3 };

/* A higher frequency costs proportionally more: step up only if that would still fit. */
static const double CALM_SHARE = 0.6;

void budget_init(struct budget *b, double share, uint64_t wanted_hz)
{
	*b = (struct budget){
		.share = share, .wanted_hz = wanted_hz, .current_hz = wanted_hz, .used = -1
	};
}

static uint64_t budget_step(struct budget *b, double used)
{
	if (used > b->share) {
		b->calm = 0;
		return MAX(b->current_hz / 2, 1);
	}
	if (used > b->share * CALM_SHARE || b->current_hz >= b->wanted_hz) {
		b->calm = 0;
		return b->current_hz;
	}
	if (++b->calm < CALM_LOOKS)
		return b->current_hz;
	b->calm = 0;
	return MIN(b->current_hz + MAX(b->current_hz / 4, 1), b->wanted_hz);
}

uint64_t budget_look(struct budget *b, const struct budget_cost *cost, uint64_t now_ns)
{
	const struct budget last = *b;
	double elapsed_ns = (double)(now_ns - last.last_time_ns);

	b->last_time_ns = now_ns;
	b->last_cpu_ns = cost->cpu_ns;
	b->last_probes_ns = cost->probes_ns;
	if (!last.last_time_ns || now_ns <= last.last_time_ns || cost->cpu_ns < last.last_cpu_ns ||
		cost->probes_ns < last.last_probes_ns || b->share <= 0)
		return b->current_hz;
	b->used = (double)(cost->cpu_ns - last.last_cpu_ns) / elapsed_ns;
	b->probes_used = (double)(cost->probes_ns - last.last_probes_ns) / elapsed_ns;
	b->current_hz = budget_step(b, b->used);
	return b->current_hz;
}

void budget_restart(struct budget *b)
{
	b->last_time_ns = 0;
}

double budget_for_probes(const struct budget *b)
{
	if (b->share <= 0)
		return -1;
	return b->used < 0 ? b->share : MAX(b->share - b->used, 0.0);
}
