/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Threads that left the CPU and do not run again yet, by their number: what was sampled of each
 * when it left, and where its stack is. A thread waits for one thing at a time; what is known of a
 * wait whose end was lost gives way to the thread's next one.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "base/map.h"

struct wait {
	uint64_t began_ns; /* CLOCK_MONOTONIC; with the thread it names the wait. 0 = free */
	uint32_t window; /* whose profile has sample.stack; 0 = it is not resolved yet */
	struct profile_sample sample; /* but for count and weight */
};

struct waits {
	struct map by_tid; /* tid → number in `items` */
	struct wait *items;
	uint32_t *free; /* numbers of items that were used before */
	size_t count, capacity, free_count, free_capacity;
	double scale; /* what one wait stands for: 1 / the share that is taken */
	double counted_rest; /* below 1: what was not yet told of the counts */
};

/* SHARE of all waits are taken: above 0, at most 1. */
void waits_init(struct waits *w, double share);
void waits_deinit(struct waits *w);
/* Unresolved. -E2BIG over the limit, -ENOMEM. */
int waits_begin(struct waits *w, uint32_t tid, uint64_t began_ns);
/* NULL: not known, or forgotten. Valid until the next waits_begin(). */
struct wait *waits_find(struct waits *w, uint32_t tid, uint64_t began_ns);
/* The thread runs, or has ended. */
void waits_forget(struct waits *w, uint32_t tid);
/* Walks all: start with *ITERATOR = 0, ends with NULL. The current one may be forgotten. */
struct wait *waits_next(struct waits *w, size_t *iterator);
/*
 * Count and weight of a sample for a wait of WAIT_NS: what it stands for. Counts are whole numbers;
 * they add up to what the waits stand for.
 */
void waits_weigh(struct waits *w, uint64_t wait_ns, uint64_t *ret_count, uint64_t *ret_weight);
