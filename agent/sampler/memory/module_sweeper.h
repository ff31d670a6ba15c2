/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Forgets modules that no process maps any more. They are kept for a while, because their programs
 * may run again: for five minutes after their last sample, or until very many have piled up. An
 * open window names modules by number, so those that may be in one stay in any case. One thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"

struct module_sweeper_options {
	struct modules *modules; /* borrowed, as is the next */
	struct processes *processes;
	/* Sets `used_ns` of the modules that are needed although no process may map them. */
	void (*keep)(void *context);
	/* MODULE is about to be freed: drop what belongs to it. */
	void (*forget)(void *context, struct module *module);
	void *context;
};

struct module_sweeper {
	struct module_sweeper_options options;
	uint64_t swept_ns; /* CLOCK_MONOTONIC; 0 = never */
	size_t kept; /* modules that were left when there were too many; 0 = never */
};

void module_sweeper_init(
	struct module_sweeper *sweeper, const struct module_sweeper_options *options);
/*
 * Between two windows: forgets what was not used for long, each half minute, or all that is unused
 * if there is too much of it. OPEN_NS: since when samples are still to be reported. All times are
 * CLOCK_MONOTONIC.
 */
void module_sweeper_idle(struct module_sweeper *sweeper, uint64_t open_ns, uint64_t now_ns);
/* Memory is short: forgets all that is unused. */
void module_sweeper_all(struct module_sweeper *sweeper, uint64_t open_ns, uint64_t now_ns);
