/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Waits for index builds before a start and before a report: the loop runs until none is pending or
 * a time has passed. Meanwhile builds have this process's priority. Finished walks may request more
 * indexes, which are waited for, too, and files that did not answer are asked again for a while.
 * One thread, the loop's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct builds;
struct loop;

struct build_wait_options {
	struct loop *loop; /* borrowed */
	struct builds *builds; /* borrowed */
	/* Finishes samples that waited for an index: all that can be (ALL), or some. */
	void (*retry)(void *context, bool all);
	/* Requests what was postponed; returns whether some of it is postponed again. */
	bool (*ask_postponed)(void *context);
	void *context;
};

struct build_wait {
	struct build_wait_options options;
	bool waiting; /* the loop runs only until the builds are done */
	bool with_debug; /* and until no server is being queried */
	unsigned int asks_left; /* of files that did not answer; 0 = all did, or it is over */
	bool expired;
};

void build_wait_init(struct build_wait *w, const struct build_wait_options *options);
/* Runs the loop until no index build is pending, for at most WAIT_NS. Returns a negative errno. */
int build_wait_run(struct build_wait *w, uint64_t wait_ns);
/* As build_wait_run(), but also waits for debug files from debuginfod servers. */
int build_wait_run_debug(struct build_wait *w, uint64_t wait_ns);
/* Builds may have ended. */
void build_wait_progress(struct build_wait *w);
