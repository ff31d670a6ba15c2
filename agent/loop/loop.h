/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The event loop: descriptors, timers and signals on one epoll, one thread. Sleeps when idle. */
#include <stdbool.h>
#include <stdint.h>
#include <signal.h>

struct loop;

typedef void loop_fd_fn(void *context, int fd, uint32_t epoll_events);
typedef void loop_timer_fn(void *context);
typedef void loop_signal_fn(void *context, int signal);

/* From one wait for events to the next. */
struct loop_turn {
	uint64_t duration_ns;
	const char *step; /* the longest one; a static string */
	uint64_t step_ns;
};

typedef void loop_turn_fn(void *context, const struct loop_turn *turn);

int loop_create(struct loop **ret_loop);
void loop_destroy(struct loop *loop);
/* FD is borrowed; EPOLL_EVENTS as in epoll_ctl(2). One callback per descriptor. */
int loop_add(struct loop *loop, int fd, uint32_t epoll_events, loop_fd_fn *fn, void *context);
void loop_remove(struct loop *loop, int fd);
/*
 * Changes the events that FD is watched for; 0 = only errors. For pausing and resuming a
 * descriptor: unlike loop_remove() and loop_add(), it cannot fail.
 */
void loop_set_events(struct loop *loop, int fd, uint32_t epoll_events);
/*
 * Instead of the delay of a periodic timer: it is first due when CLOCK_MONOTONIC is a multiple of
 * its interval. Timers that need not start at a certain time then wake the process together.
 */
#define LOOP_NEXT_MULTIPLE UINT64_MAX
/*
 * Calls FN after DELAY_NS and, unless INTERVAL_NS is 0, every INTERVAL_NS from then on
 * (CLOCK_MONOTONIC; missed expirations are skipped). *RET_TIMER is for loop_cancel() and
 * loop_retime(). Uses no descriptor; fails only beyond TIMERS_RESERVED timers, if memory is short.
 */
int loop_timer(struct loop *loop, uint64_t delay_ns, uint64_t interval_ns, loop_timer_fn *fn,
	void *context, int *ret_timer);
/*
 * Reschedules a periodic timer: after DELAY_NS, then every INTERVAL_NS. Returns -ENOENT if TIMER is
 * no periodic timer, -EINVAL if INTERVAL_NS is 0; otherwise it cannot fail.
 */
int loop_retime(struct loop *loop, int timer, uint64_t delay_ns, uint64_t interval_ns);
void loop_cancel(struct loop *loop, int timer);
/* Blocks SIGNALS and delivers them to FN on the loop. Once per loop. */
int loop_signals(struct loop *loop, const sigset_t *signals, loop_signal_fn *fn, void *context);
/* Calls FN after each turn from now on; NULL = no longer. */
void loop_watch_turns(struct loop *loop, loop_turn_fn *fn, void *context);
/*
 * Called by a callback: names what it does from here on, until it returns or names its next step.
 * STEP is a static string.
 */
void loop_step(struct loop *loop, const char *step);
/* Runs until loop_stop(); returns 0 or a negative errno. May be run again afterwards. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
