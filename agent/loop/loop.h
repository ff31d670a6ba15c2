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

int loop_create(struct loop **ret_loop);
void loop_destroy(struct loop *loop);
/* FD is borrowed; EPOLL_EVENTS as in epoll_ctl(2). One callback per fd. */
int loop_add(struct loop *loop, int fd, uint32_t epoll_events, loop_fd_fn *fn, void *context);
void loop_remove(struct loop *loop, int fd);
/*
 * Watches FD for other events from now on; 0 = none but errors. To pause and go on watching without
 * removing and adding, which can fail.
 */
void loop_set_events(struct loop *loop, int fd, uint32_t epoll_events);
/*
 * Calls FN after DELAY_NS and, with INTERVAL_NS not 0, every INTERVAL_NS from then on (CLOCK_
 * MONOTONIC; missed turns are not made up). *RET_TIMER names it for loop_cancel(). Takes no
 * descriptor; fails, for want of memory, only beyond some dozens.
 */
int loop_timer(struct loop *loop, uint64_t delay_ns, uint64_t interval_ns, loop_timer_fn *fn,
	void *context, int *ret_timer);
/*
 * A periodic timer fires after DELAY_NS and every INTERVAL_NS from then on. Cannot fail for a timer
 * that is there. -ENOENT: no periodic one has this name; -EINVAL: no interval.
 */
int loop_retime(struct loop *loop, int timer, uint64_t delay_ns, uint64_t interval_ns);
void loop_cancel(struct loop *loop, int timer);
/* Blocks SIGNALS and delivers them to FN on the loop. Once per loop. */
int loop_signals(struct loop *loop, const sigset_t *signals, loop_signal_fn *fn, void *context);
/* Runs until loop_stop(); returns 0 or a negative errno. May be run again afterwards. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
