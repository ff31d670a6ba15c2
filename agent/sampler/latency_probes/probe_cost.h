/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps what probes cost within a share of one CPU: compares it once a second with what is allowed.
 * Two things cost: the BPF program, which does less if only a part of the calls is measured; and
 * the traps at user functions, which only detaching saves. Works on numbers only.
 */
#include <stdbool.h>
#include <stdint.h>

/* So far, of all probes. */
struct probe_cost_now {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t traps; /* at user functions */
	uint64_t calls, bpf_ns; /* of these and of kernel functions */
};

enum probe_cost_verdict {
	PROBE_COST_KEEP,
	PROBE_COST_LIMIT, /* `calls_per_second` has changed */
	PROBE_COST_SUSPEND, /* the probe that costs most */
};

struct probe_cost {
	double share; /* allowed; below 0 = any */
	uint64_t trap_ns; /* of one trap */
	uint64_t calls_per_second; /* to be measured; 0 = all */
	struct probe_cost_now last; /* time_ns 0 = none yet */
	unsigned int over, calm; /* looks in a row */
	double used; /* between the last two looks */
};

void probe_cost_init(struct probe_cost *c, uint64_t trap_ns);
enum probe_cost_verdict probe_cost_look(struct probe_cost *c, const struct probe_cost_now *now);
