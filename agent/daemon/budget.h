/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps the agent within its share of one CPU: compares the CPU time used since the previous look
 * (its own and the BPF program's) with the budget and returns the sampling frequency to use next.
 * Halves it when over budget, raises it by a quarter after three looks well below, never above what
 * the user asked for. Works on numbers only, so that it can be tested.
 */
#include <stdint.h>

struct budget {
	double share; /* of one CPU: 0.01 = 1 %; 0 = no budget */
	uint64_t wanted_hz; /* as the user set it */
	uint64_t current_hz;
	unsigned int calm; /* consecutive looks well below the budget */
	double used; /* share of one CPU between the last two looks; -1 = not known yet */
	uint64_t last_cpu_ns, last_time_ns; /* at the last look; last_time_ns 0 = no look yet */
};

void budget_init(struct budget *b, double share, uint64_t wanted_hz);
/*
 * CPU_NS: own and BPF CPU time so far; NOW_NS: CLOCK_MONOTONIC. Returns the frequency to use from
 * now on. The first look only sets the baseline: start-up is not the steady state.
 */
uint64_t budget_look(struct budget *b, uint64_t cpu_ns, uint64_t now_ns);
