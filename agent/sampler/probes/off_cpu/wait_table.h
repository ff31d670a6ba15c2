/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that left the CPU: of each wait what was sampled when it began, and how long it lasted.
 * Two things have to come before it can be counted, in either order: its stack, whose walk may have
 * to be finished, and its end. Of the waits of one thread at most one has not ended; if the end of
 * it was lost, the thread's next wait replaces it.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "base/map.h"

enum wait_state {
	WAIT_FREE = 0,
	WAIT_BEGUN, /* neither is there */
	WAIT_RESOLVED, /* the stack is: `window` and `sample` */
	WAIT_ENDED, /* the end is: `wait_ns` */
};

struct wait {
	enum wait_state state;
	uint32_t tid;
	uint32_t older; /* 1 + the number of the thread's wait before it; 0 = none */
	uint64_t left_ns; /* CLOCK_MONOTONIC; with the thread it identifies the wait */
	uint64_t wait_ns;
	uint32_t window; /* whose profile has sample.stack */
	struct profile_sample sample; /* but for count and weight */
};

struct wait_table {
	struct map by_tid; /* tid → number in `items` of the thread's newest wait */
	struct wait *items;
	uint32_t *free; /* numbers of items that were used before */
	size_t count, capacity, free_count, free_capacity;
	double scale; /* what one wait stands for: 1 / the share that is taken */
	double counted_rest; /* below 1: what was not yet told of the counts */
};

/* SHARE of all waits are taken: above 0, at most 1. */
void wait_table_init(struct wait_table *t, double share);
void wait_table_deinit(struct wait_table *t);
/* TID left the CPU. -E2BIG over the limit, -ENOMEM. */
int wait_table_begin(struct wait_table *t, uint32_t tid, uint64_t left_ns);
/* NULL: not known, or forgotten. Valid until the next wait_table_begin(). */
struct wait *wait_table_find(struct wait_table *t, uint32_t tid, uint64_t left_ns);
/* It was counted, or cannot be. */
void wait_table_forget(struct wait_table *t, struct wait *wait);
/* The thread has ended, and with it the wait whose end was lost. */
void wait_table_forget_thread(struct wait_table *t, uint32_t tid);
/* Walks all: start with *ITERATOR = 0, ends with NULL. The current one may be forgotten. */
struct wait *wait_table_next(struct wait_table *t, size_t *iterator);
/*
 * Count and weight of a sample for a wait of WAIT_NS: what it stands for. Counts are whole numbers;
 * they add up to what the waits stand for.
 */
void wait_table_weigh(
	struct wait_table *t, uint64_t wait_ns, uint64_t *ret_count, uint64_t *ret_weight);
