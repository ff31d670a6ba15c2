/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the kernel side counted, added to the metrics. */
#include <stdint.h>

#include "base/metrics.h"
#include "bpf/abi/sampler.h"

/* Zero it at first. */
struct counters {
	uint64_t counted[ABI_COUNTERS]; /* already added to the metrics */
};

/*
 * Adds what was counted since the last call, and returns it for the probes' own counters. NOW: sums
 * over all probes and CPUs.
 */
void counters_add(struct counters *c, const uint64_t now[ABI_COUNTERS], struct metrics *metrics,
	uint64_t ret_since[ABI_COUNTERS]);
