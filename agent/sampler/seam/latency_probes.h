/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions whose latency a running sampler measures, as named probes: which functions of which
 * processes, and how their calls are told apart. What was measured comes with each sealed window
 * (window_latency.h).
 *
 * A sampler that was made without probes has nothing loaded for them, and pays nothing; the first
 * call with a probe loads what is needed.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/latency.h"

struct sampler;

enum {
	LATENCY_PROBES_MAX = 64,
	LATENCY_PROBE_NAME_BYTES = 64, /* of a name, without its NUL */
	LATENCY_PROBE_PROBLEM_BYTES = 512,
};

/* All text is copied by whoever takes it. */
struct latency_probe {
	const char *name; /* not empty; each one once */
	/*
	 * Comma-separated selectors, as --include takes them (process/selection.h). NULL or "": all
	 * processes; then each pattern of `functions` must have a BIN.
	 */
	const char *processes;
	/*
	 * `[BIN:]PATTERN` each, as `fathom latency -u` takes them (functions/patterns.h). PATTERN
	 * alone names functions of the process's program. Of a kernel probe, without BIN.
	 */
	const char *const *functions;
	size_t function_count; /* at least 1 */
	const char *const *unwanted; /* functions that are left out: `[BIN:]PATTERN` */
	size_t unwanted_count;
	bool exclude_vendor; /* leaves out Go functions of vendored packages and the module cache */
	bool kernel; /* functions of the kernel, called by these processes, of which "" is all */
	enum abi_latency_by by; /* within each process: BY_FUNCTION and BY_PROCESS are the same */
};

/* Why probes are refused, for a message about them. */
struct latency_probes_problem {
	size_t number; /* of the probe; the count if it is not one probe's */
	char text[LATENCY_PROBE_PROBLEM_BYTES]; /* the end of a sentence; may quote foreign bytes */
};

/*
 * Whether PROBES are well-formed; nothing is looked up on this machine. Returns -EINVAL or -E2BIG
 * (more than LATENCY_PROBES_MAX, or too many patterns) and sets *RET_PROBLEM, or -ENOMEM.
 */
int latency_probes_check(const struct latency_probe *probes, size_t count,
	struct latency_probes_problem *ret_problem);

/*
 * Makes PROBES those that are measured, COUNT = 0: none. Probes are compared by name and content:
 * unchanged ones stay attached and keep measuring without a gap, whatever their place in the list
 * is; the others are detached, or attached as soon as their files are found and indexed. What a
 * removed probe measured since the last window is in the next one.
 *
 * Nothing changes on an error: those of latency_probes_check(); -ENOMEM; and, of the first probe,
 * those of loading what is needed: -EOPNOTSUPP, -EPERM, -EACCES. *RET_PROBLEM says what failed.
 */
int sampler_latency_set_probes(struct sampler *sampler, const struct latency_probe *probes,
	size_t count, struct latency_probes_problem *ret_problem);

/* What measuring functions has cost this machine so far. */
struct sampler_latency_cost {
	uint64_t bpf_ns; /* run time of the BPF program; included in sampler_bpf_time() */
	uint64_t trap_ns; /* of the traps that lead to it, which programs pay; not included there */
};
struct sampler_latency_cost sampler_latency_cost(const struct sampler *sampler);
/*
 * SHARE of one CPU is what measuring functions may cost from now on; below 0: as much as it takes.
 * Above it fewer calls are measured, which saves BPF run time; and if the traps alone cost too
 * much, the probe that costs most is detached for a while.
 */
void sampler_latency_allow(struct sampler *sampler, double share);
