/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What one hit of a probe costs the program on this machine, besides the run time of BPF: the trap
 * into the kernel and the way back. A process of its own finds out, by calling an empty function
 * with and without a probe for some milliseconds; nobody waits for it, nor for detaching the probe.
 */
#include <stdint.h>

#include "agent/sampler/probes/latency/sites.h"

struct trap_cost {
	int answer; /* end of the process's pipe; -1 = there is none, or it has answered */
	uint64_t ns; /* 0 = not known */
};

/* COOKIE is one with which PROGRAM does nothing. Without a process the cost stays unknown. */
void trap_cost_begin(struct trap_cost *c, const struct sites_program *program, uint64_t cookie);
void trap_cost_deinit(struct trap_cost *c);
/* Never waits. Returns 0 while it is not known. */
uint64_t trap_cost_ns(struct trap_cost *c);
