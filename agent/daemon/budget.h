/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the agent under its share of one CPU: looks at what it used since the last look (own time
 * and the BPF program's) and says which frequency to sample with from now on. Steps down by half
 * when over the budget, up by a quarter after three looks well below it, never above what the user
 * asked for. Knows only numbers, so that it can be tested.
 */
#include <stdint.h>

struct budget {
	double share; /* of one CPU: 0.01 = 1 %; 0 = no budget */
	uint64_t wanted_hz; /* the user's */
	uint64_t current_hz;
	unsigned int calm; /* looks in a row that were well below */
	double used; /* share of one CPU between the last two looks; -1 = not yet known */
	uint64_t last_cpu_ns, last_time_ns; /* at the last look; time 0 = none yet */
};

void budget_init(struct budget *b, double share, uint64_t wanted_hz);
/*
 * CPU_NS: own CPU time and BPF time so far; NOW_NS: CLOCK_MONOTONIC. Returns the frequency from now
 * on. The first look only takes the measure: start-up is not the steady state.
 */
uint64_t budget_look(struct budget *b, uint64_t cpu_ns, uint64_t now_ns);
