/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When the rings are drained: as soon as one of them is rather full, which its descriptor says, and
 * else by a timer, which bounds how late a new process, module or program of a runtime is noticed.
 * The timer slows down while nothing new happens: at low rates, waking up is most of what
 * sampling costs. If what filled a ring is too new to be read yet, the next drain comes
 * within a millisecond.
 * One thread, the loop's.
 */
#include <stdbool.h>
#include <stdint.h>

struct loop;

struct drains_options {
	struct loop *loop; /* borrowed */
	int fd; /* readable when the rings should be drained; borrowed */
	/* Drains them. Returns the number of records, or a negative errno. */
	int64_t (*drain)(void *context);
	/* What is to be done after each drain. */
	void (*drained)(void *context);
	/*
	 * Whether the last drain read something after which the next should come soon. Called once
	 * after each drain.
	 */
	bool (*saw_news)(void *context);
	/* Whether the last drain left so much, too new to be read, that it cannot wait. */
	bool (*left_much)(void *context);
	void *context;
};

struct drains {
	struct drains_options options;
	int timer; /* -1 = none */
	uint64_t interval_ns; /* of the timer */
};

/* Returns a negative errno, and leaves nothing in the loop. */
int drains_init(struct drains *d, const struct drains_options *options);
/* Does nothing to a zeroed one. */
void drains_deinit(struct drains *d);
/* Drains at once. */
void drains_now(struct drains *d);
