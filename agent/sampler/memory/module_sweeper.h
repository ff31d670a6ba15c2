/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Frees modules that no process maps any more. They are kept for a while, because their programs
 * may run again: for five minutes after their last sample, or until very many have piled up. Open
 * windows refer to modules by number, so modules that may be in one are always kept. One thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"

struct module_sweeper_options {
	struct modules *modules; /* borrowed, as is the next */
	struct processes *processes;
	/* Sets `used_ns` of modules that are needed even if no process maps them. */
	void (*keep)(void *context);
	/* MODULE is about to be freed: drop what belongs to it. */
	void (*forget)(void *context, struct module *module);
	void *context;
};

struct module_sweeper {
	struct module_sweeper_options options;
	uint64_t swept_ns; /* CLOCK_MONOTONIC; 0 = never */
	size_t kept; /* modules left after a sweep because of too many; 0 = never */
};

void module_sweeper_init(
	struct module_sweeper *sweeper, const struct module_sweeper_options *options);
/*
 * Call between two windows: every half minute, or when there are too many modules, frees those not
 * used for long; if there still are too many, all unused ones. OPEN_NS: samples since then are
 * still to be reported. All times are CLOCK_MONOTONIC.
 */
void module_sweeper_idle(struct module_sweeper *sweeper, uint64_t open_ns, uint64_t now_ns);
/* Memory is short: frees all unused modules. */
void module_sweeper_all(struct module_sweeper *sweeper, uint64_t open_ns, uint64_t now_ns);
