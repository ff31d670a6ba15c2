/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When a profile ends: removes the samples of containers of which it is still not known whether
 * they are wanted, or which are not wanted any more (choosing_keeps()). Whoever reports, stores and
 * sends profiles sees them only after that.
 */
#include <stdint.h>

#include "agent/sampler/process/choosing.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "base/log.h"
#include "base/metrics.h"

struct sifting {
	struct choosing *choosing; /* borrowed, as all pointers here */
	struct processes *processes;
	struct metrics *metrics;
	struct log_rate log;
};

/* Removes from PROFILE, and counts, what does not stay at NOW_NS. */
void sifting_run(struct sifting *s, struct profile *profile, uint64_t now_ns);
