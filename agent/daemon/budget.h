/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the agent within its share of one CPU: compares the CPU time used since the previous look
 * (its own and the BPF program's) with the budget and returns the sampling frequency to use next.
 * Halves it when over budget, raises it by a quarter after three looks well below, never above what
 * the user asked for. Measuring functions may cost what sampling leaves of the budget, so that it
 * is thinned out before sampling is. Works on numbers only, so that it can be tested.
 */
#include <stdint.h>

struct budget {
	double share; /* of one CPU: 0.01 = 1 %; 0 = no budget */
	uint64_t wanted_hz; /* as the user set it */
	uint64_t current_hz;
	unsigned int calm; /* consecutive looks well below the budget */
	/* Share of one CPU between the last two looks; -1 = not known yet. */
	double used; /* without what measuring functions cost */
	double probes_used; /* what that cost; 0 if USED is not known */
	/* At the last look; last_time_ns 0 = no look yet. */
	uint64_t last_cpu_ns, last_probes_ns, last_time_ns;
};

struct budget_cost {
	uint64_t cpu_ns; /* own and BPF CPU time so far, but for that of measuring functions */
	uint64_t probes_ns; /* what measuring functions has cost */
};

void budget_init(struct budget *b, double share, uint64_t wanted_hz);
/*
 * NOW_NS: CLOCK_MONOTONIC. Returns the frequency to use from now on. The first look only sets the
 * baseline: start-up is not the steady state.
 */
uint64_t budget_look(struct budget *b, const struct budget_cost *cost, uint64_t now_ns);
/* What is used from now until the next look does not count, which only sets the baseline again. */
void budget_restart(struct budget *b);
/* The share of one CPU that measuring functions may cost; -1 = there is no limit. */
double budget_for_probes(const struct budget *b);
