/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Traced kernel functions. Their programs are attached as those that measure kernel functions
 * (agent/sampler/probes/kernel_latency/kernel_latency.h); events are those of
 * agent/sampler/probes/trace/trace.h.
 */
#include <stdint.h>

#include "bpf/abi/trace.h"

struct collect;

/* The name of the probe that has the BPF object. */
const char *kernel_trace_probe_name(void);
/*
 * Calls are traced from now on. TRAMPOLINES: where calls return to whose return the kernel traces;
 * 0 = not known.
 */
int kernel_trace_begin(
	const struct collect *collect, const uint64_t trampolines[ABI_TRACE_TRAMPOLINES]);
