/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The loop's timers: a list, and one timerfd that is set to the earliest of them. A timer of its
 * own takes no descriptor, so that making one cannot fail at the moment when none is left.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
	uint32_t name;
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	uint64_t interval_ns; /* 0 = it fires once */
	void (*fn)(void *context);
	void *context;
};

struct timers {
	int fd; /* readable when a timer may be due */
	struct timer *all; /* in no order: there are some dozens */
	size_t count, capacity;
	uint32_t last_name;
	uint64_t set_ns; /* what the timerfd is set to; UINT64_MAX = it is off */
};

/* Has room for so many timers from the start: only further ones can fail for want of memory. */
enum { TIMERS_RESERVED = 64 };

int timers_init(struct timers *t);
void timers_deinit(struct timers *t);
/* TIMER's name and due time are set here. -E2BIG, -ENOMEM. */
int timers_add(struct timers *t, const struct timer *timer, uint64_t delay_ns, uint32_t *ret_name);
/* It fires after DELAY_NS, and every INTERVAL_NS from then on. -ENOENT: no periodic one has it. */
int timers_retime(struct timers *t, uint32_t name, uint64_t delay_ns, uint64_t interval_ns);
void timers_cancel(struct timers *t, uint32_t name);
/*
 * A timer that is due at NOW_NS: it is moved on by its interval, or removed. False: there is none.
 * Each is given once for one NOW_NS, also where calls take longer than its interval.
 */
bool timers_take_due(struct timers *t, uint64_t now_ns, struct timer *ret_timer);
/* After all that were due were taken: sets the descriptor to the next. */
void timers_set(struct timers *t);
