/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A finished window or an on-demand profile, as the sampler passes it to whoever reports, stores or
 * sends it. Plain data, owned by the sampler: the profile is valid as long as whoever passes the
 * window says, the processes until the sampler passes the next window.
 */
#include <stdint.h>

#include "agent/sampler/profile/sample_type.h"

struct profile;
struct window_latency;
struct window_processes;

struct sealed_window {
	uint32_t number; /* from 1; 0: a profile on demand */
	uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
	uint64_t began_real_ns; /* began_ns as CLOCK_REALTIME */
	uint64_t period; /* between two ticks: ns, or CPU cycles */
	struct sample_types types; /* what its samples count; of ticks also the unit of `period` */
	const struct profile *profile;
	uint32_t anon_module; /* number of the module that stands for memory without a file */
	/* Those that the profile's samples, and the cells of `latency`, are of. */
	const struct window_processes *processes;
	/* NULL: no functions are measured, or the profile is on demand. Valid as long as these. */
	const struct window_latency *latency;
};
