/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One function per clock, so that call sites name the clock they mean. All in nanoseconds. */
#include <stdint.h>
#include <time.h>

#include "base/host.h"

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	if (host_current)
		return host_current->clock_ns(host_current->context, clock);
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC: used by the perf rings and bpf_ktime_get_ns(). */
static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* CLOCK_BOOTTIME: like CLOCK_MONOTONIC, but also advances while the machine is suspended. */
static inline uint64_t clock_boot_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

/* CLOCK_REALTIME: time since 1970, for profiles and logs; it may jump. */
static inline uint64_t clock_real_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* CPU time of this process, user and system. */
static inline uint64_t clock_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* CPU time of the calling thread, user and system. */
static inline uint64_t clock_thread_cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}
