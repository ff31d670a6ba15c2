/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Keeps our own resident memory below its limit. Near the limit, its owner shrinks all caches; if
 * that is not enough and the open window holds a good part of the memory, the owner ends the window
 * early, so that its samples are written instead of lost. While neither helps, the guard pauses for
 * longer each time. It also returns to the system what is not needed between two windows, and index
 * pages before many of them are resident.
 *
 * It measures and decides; what a cache, an index or a window is, only its owner knows. One thread.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"

struct memory_guard_options {
	/* An open /proc/self/statm, borrowed. -1: memory cannot be measured, so the limit is not
	 * kept. */
	int statm_fd;
	uint64_t limit_bytes; /* of resident memory, mapped files included; 0 = none */
	uint64_t window_limit_bytes; /* of one window's samples */
	struct metrics *metrics; /* borrowed */
	/* Frees everything that can be read or computed again. */
	void (*shrink_caches)(void *context);
	/* Gives the resident pages of mapped indexes back to the system. */
	void (*forget_index_pages)(void *context);
	/* Memory that the open window's samples take. */
	uint64_t (*window_bytes)(void *context);
	/* Ends the open window early; false if it cannot end now. */
	bool (*end_window)(void *context);
	void *context;
};

struct memory_guard {
	struct memory_guard_options options;
	/* Checks to skip: those left, and in total after caches were last shrunk in vain. */
	unsigned int skip, pause;
	unsigned int lookups; /* in indexes so far */
	uint64_t file_bytes; /* resident file bytes when no index page was resident */
};

void memory_guard_init(struct memory_guard *guard, const struct memory_guard_options *options);
/* To be called about once a second. */
void memory_guard_check(struct memory_guard *guard);
/* To be called after records were read: a window that is nearly full ends early. */
void memory_guard_check_window(struct memory_guard *guard);
/* After the start and after each window: returns free heap and, if they are many, index pages. */
void memory_guard_release(struct memory_guard *guard);
/* To be called at each look-up in an index: forgets index pages once many are resident. */
void memory_guard_count_lookup(struct memory_guard *guard);
