/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Measures a program's run time. The kernel can do so as well, but only for all BPF programs at
 * once and with more privileges than a profiler should hold; reading the clock twice takes 50 ns of
 * some microseconds.
 */
#include "bpf/stack.bpf.h"

struct run {
	struct counters *counters;
	__u64 began_ns;
};

static __always_inline void run_end(const struct run *run)
{
	run->counters->of[ABI_COUNT_RUN_NS] += bpf_ktime_get_ns() - run->began_ns;
	run->counters->of[ABI_COUNT_RUNS]++;
}

/* Counts the time from here to wherever the function returns. */
#define COUNT_RUN(counters_)                                         \
	struct run run __attribute__((cleanup(run_end), unused)) = { \
		.counters = (counters_),                             \
		.began_ns = bpf_ktime_get_ns(),                      \
	}
