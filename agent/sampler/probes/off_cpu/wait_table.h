/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that left the CPU: for each wait, what was sampled when it began and how long it lasted.
 * A wait is counted when two things have come, in either order: its stack, whose walk may be
 * unfinished, and its end. At most one wait of a thread has not ended; if its end was lost, the
 * thread's next wait replaces it.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "base/map.h"

enum wait_state {
	WAIT_FREE = 0,
	WAIT_BEGUN, /* neither stack nor end */
	WAIT_RESOLVED, /* has the stack: `window` and `sample` are set */
	WAIT_ENDED, /* has the end: `wait_ns` is set */
};

struct wait {
	enum wait_state state;
	uint32_t tid;
	uint32_t older; /* 1 + the number of the thread's previous wait; 0 = none */
	uint64_t left_ns; /* CLOCK_MONOTONIC; with the thread it identifies the wait */
	uint64_t wait_ns;
	uint32_t window; /* its profile has sample.stack */
	struct profile_sample sample; /* without count and weight */
};

struct wait_table {
	struct map by_tid; /* tid → number in `items` of the thread's newest wait */
	struct wait *items;
	uint32_t *free; /* numbers of items that were used before */
	size_t count, capacity, free_count, free_capacity;
	double scale; /* how many waits one stands for: 1 / the sampled share */
	double counted_rest; /* below 1: fraction that the counts so far have left out */
};

/* SHARE is the share of waits that is sampled: above 0, at most 1. */
void wait_table_init(struct wait_table *t, double share);
void wait_table_deinit(struct wait_table *t);
/* TID left the CPU. Returns -E2BIG over the limit, or -ENOMEM. */
int wait_table_begin(struct wait_table *t, uint32_t tid, uint64_t left_ns);
/* Returns NULL if it is not known or was forgotten. Valid until the next wait_table_begin(). */
struct wait *wait_table_find(struct wait_table *t, uint32_t tid, uint64_t left_ns);
/* Removes WAIT, which was counted or cannot be. */
void wait_table_forget(struct wait_table *t, struct wait *wait);
/* The thread has ended, and with it the wait whose end was lost. */
void wait_table_forget_thread(struct wait_table *t, uint32_t tid);
/* Iterates over all: start with *ITERATOR = 0, ends with NULL. The current one may be forgotten. */
struct wait *wait_table_next(struct wait_table *t, size_t *iterator);
/*
 * Count and weight of a sample for a wait of WAIT_NS, scaled for the waits that were not sampled.
 * Counts are whole numbers; the fractions left over are carried to the next waits.
 */
void wait_table_weigh(
	struct wait_table *t, uint64_t wait_ns, uint64_t *ret_count, uint64_t *ret_weight);
