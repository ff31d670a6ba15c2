/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Merges stored profiles (stored_merge.h) in a child process, so that the loop goes on and what a
 * merge takes is given back with it. The result is a file without a name, from which it can be
 * sent. Knows nothing of HTTP; runs on the loop's thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/loop/loop.h"
#include "base/buffer.h"

struct merge;

struct merge_options {
	struct loop *loop;
	int directory_fd; /* the store; borrowed during merge_start() */
	const struct buffer *paths; /* below it, one a line; borrowed likewise */
	bool by_file; /* stored_merge.h, as the next two */
	const char *comm, *container; /* NULL = all */
	/*
	 * Called once, unless the merge is cancelled. FD: the profile, which the callee closes, if
	 * ERR is 0. -E2BIG: it is larger than the limits. CPU_NS: what the child has cost.
	 */
	void (*done)(void *context, int err, int fd, uint64_t cpu_ns);
	void *context;
};

int merge_start(const struct merge_options *options, struct merge **ret_merge);
/* Ends a merge that is not done; `done` is not called. NULL: nothing happens. */
void merge_cancel(struct merge *m);
