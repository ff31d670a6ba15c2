/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A finished window or an on-demand profile, as the sampler passes it to whoever reports, stores or
 * sends it. Plain data; the profile is borrowed.
 */
#include <stdbool.h>
#include <stdint.h>

struct profile;

struct sealed_window {
	uint32_t number; /* from 1; 0: a profile on demand */
	uint64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
	uint64_t began_real_ns; /* began_ns as CLOCK_REALTIME */
	uint64_t period; /* between two ticks: ns, or CPU cycles */
	bool cycles; /* `period` is in CPU cycles, not ns */
	bool off_cpu; /* waits were sampled, too */
	const struct profile *profile;
};
