/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is copied from the sampler's tables when a window is sealed (agent/sampler/seam): from then
 * on the window says the same about its processes, whatever becomes of them.
 */
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/seam/window_latency.h"
#include "agent/sampler/seam/window_processes.h"
#include "base/metrics.h"

/*
 * Adds what PROCESSES knows about each generation that has a sample in PROFILE to W, which is
 * empty. A generation that does not fit is left out: its samples stay, and are counted.
 */
void sealing_describe(const struct profile *profile, struct processes *processes,
	struct metrics *metrics, struct window_processes *w);
/* Adds the generations that called functions; those that do not fit are counted in LATENCY. */
void sealing_describe_latency(
	struct window_latency *latency, struct processes *processes, struct window_processes *w);
