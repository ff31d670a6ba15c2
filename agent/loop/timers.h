/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The loop's timers: a list and one timerfd, armed for the earliest of them. Timers share the
 * descriptor, so that adding one cannot fail when the process has run out of descriptors.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
	uint32_t name;
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	uint64_t interval_ns; /* 0 = one-shot */
	void (*fn)(void *context);
	void *context;
};

struct timers {
	int fd; /* readable when a timer may be due */
	struct timer *all; /* unsorted: there are a few dozen */
	size_t count, capacity;
	uint32_t last_name;
	uint64_t set_ns; /* what the timerfd is armed for; UINT64_MAX = disarmed */
};

/* Allocated at the start: only timers beyond this number can fail with -ENOMEM. */
enum { TIMERS_RESERVED = 64 };

int timers_init(struct timers *t);
void timers_deinit(struct timers *t);
/*
 * Adds a copy of TIMER; sets its name and due time. DELAY_NS may be LOOP_NEXT_MULTIPLE, here and
 * below. Returns -E2BIG or -ENOMEM.
 */
int timers_add(struct timers *t, const struct timer *timer, uint64_t delay_ns, uint32_t *ret_name);
/*
 * Reschedules timer NAME: after DELAY_NS, then every INTERVAL_NS. Returns -ENOENT if it is no
 * periodic timer, -EINVAL if INTERVAL_NS is 0.
 */
int timers_retime(struct timers *t, uint32_t name, uint64_t delay_ns, uint64_t interval_ns);
void timers_cancel(struct timers *t, uint32_t name);
/* Returns when the earliest timer is due, UINT64_MAX if there is none. */
uint64_t timers_due_ns(const struct timers *t);
/*
 * Returns in *RET_TIMER the earliest timer that is due at NOW_NS, with the time it was due, after
 * advancing it by its interval or removing it; false if none is due. Of timers due at one time the
 * oldest comes first. Returns each timer at most once for one NOW_NS, even if callbacks take longer
 * than its interval.
 */
bool timers_take_due(struct timers *t, uint64_t now_ns, struct timer *ret_timer);
/* Arms the descriptor for the next timer. Call when no more timers are due. */
void timers_set(struct timers *t);
