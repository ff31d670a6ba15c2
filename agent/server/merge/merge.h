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
#include "agent/server/merge/stored_merge.h"
#include "base/buffer.h"

struct merge;

struct merge_result {
	int err; /* -E2BIG: it is larger than the limits; -ENOENT: none of that group */
	int fd; /* the profile, which the callee closes, if ERR is 0; else -1 */
	uint64_t cpu_ns; /* what the child has cost */
	unsigned int
		unread; /* files that are damaged; MERGE_WIRE_MOST_UNREAD and more are that many */
};

struct merge_options {
	struct loop *loop;
	int directory_fd; /* the store; borrowed during merge_start() */
	const struct buffer *files; /* merge_add_file(); borrowed likewise */
	enum stored_merge_form form; /* stored_merge.h, as the next three */
	const char *comm, *container, *group; /* NULL = all */
	int output_fd; /* an empty file for the profile, taken; 0 = one without a name is made */
	/* Called once, unless the merge is cancelled. */
	void (*done)(void *context, const struct merge_result *result);
	void *context;
};

/* Appends FILE to those that are to be merged. */
int merge_add_file(struct buffer *files, const struct stored_merge_source *file);
int merge_start(const struct merge_options *options, struct merge **ret_merge);
/* Ends a merge that is not done; `done` is not called. NULL: nothing happens. */
void merge_cancel(struct merge *m);
