/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A finished window or an on-demand profile, as the sampler passes it to whoever reports, stores or
 * sends it. Plain data, owned by the sampler: the profile is valid as long as whoever passes the
 * window says, the processes until the sampler passes the next window.
 */
#include <stdbool.h>
#include <stdint.h>

struct profile;
struct window_processes;

struct sealed_window {
	uint32_t number; /* from 1; 0: a profile on demand */
	uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
	uint64_t began_real_ns; /* began_ns as CLOCK_REALTIME */
	uint64_t period; /* between two ticks: ns, or CPU cycles */
	bool cycles; /* `period` is in CPU cycles, not ns */
	bool off_cpu; /* waits were sampled, too */
	const struct profile *profile;
	uint32_t anon_module; /* number of the module that stands for memory without a file */
	const struct window_processes *processes; /* those that the profile's samples are of */
};
