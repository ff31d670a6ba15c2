/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Watches the processes of -p and the threads of -t, to stop once all of them
 * have ended. Watches nothing where the kernel has no support for it.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/loop/loop.h"
#include "agent/sampler/collect/collect.h"

struct watched_targets {
	struct loop *loop; /* borrowed; NULL = nothing is watched */
	int *fds; /* pidfds; -1 = ended */
	size_t count, left;
	void (*ended)(void *context);
	void *context;
};

/*
 * Calls ENDED from the loop when the last target ends. Returns -ENOMEM; 0 as well if nothing can be
 * watched.
 */
int watched_targets_watch(struct watched_targets *targets, const struct collect_options *who,
	struct loop *loop, void (*ended)(void *context), void *context);
bool watched_targets_ended(const struct watched_targets *targets);
void watched_targets_deinit(struct watched_targets *targets);
