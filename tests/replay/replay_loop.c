/* SPDX-License-Identifier: Apache-2.0 */
/* Implements agent/loop/loop.h without waiting: the recording has the next event. */
#include "agent/loop/loop.h"

#include <stdlib.h>

#include "agent/loop/timers.h"
#include "base/clock.h"
#include "tests/replay/replay_internal.h"

enum { MAX_SOURCES = 64 };

struct source {
	int fd; /* -1 = free */
	loop_fd_fn *fn;
	void *context;
};

struct loop {
	struct timers timers;
	struct source sources[MAX_SOURCES];
	uint64_t timers_ns; /* time of the last RECORDING_TICK of the timers */
	bool stopped;
};

int loop_create(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int err = loop ? timers_init(&loop->timers) : -ENOMEM;

	if (err) {
		free(loop);
		return err;
	}
	for (size_t i = 0; i < MAX_SOURCES; i++)
		loop->sources[i].fd = -1;
	*ret_loop = loop;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	timers_deinit(&loop->timers);
	free(loop);
}

static struct source *loop_source(struct loop *loop, int fd)
{
	for (size_t i = 0; i < MAX_SOURCES; i++)
		if (loop->sources[i].fd == fd)
			return &loop->sources[i];
	return NULL;
}

int loop_add(struct loop *loop, int fd, uint32_t epoll_events, loop_fd_fn *fn, void *context)
{
	struct source *source = loop_source(loop, -1);

	(void)epoll_events;
	if (!source)
		return -E2BIG;
	*source = (struct source){ .fd = fd, .fn = fn, .context = context };
	return 0;
}

void loop_remove(struct loop *loop, int fd)
{
	struct source *source = loop_source(loop, fd);

	if (source)
		source->fd = -1;
}

void loop_set_events(struct loop *loop, int fd, uint32_t epoll_events)
{
	(void)loop;
	(void)fd;
	(void)epoll_events;
}

int loop_timer(struct loop *loop, uint64_t delay_ns, uint64_t interval_ns, loop_timer_fn *fn,
	void *context, int *ret_timer)
{
	struct timer timer = { .interval_ns = interval_ns, .fn = fn, .context = context };
	uint32_t name;
	int err = timers_add(&loop->timers, &timer, delay_ns, &name);

	if (!err)
		*ret_timer = (int)name;
	return err;
}

int loop_retime(struct loop *loop, int timer, uint64_t delay_ns, uint64_t interval_ns)
{
	return timers_retime(&loop->timers, (uint32_t)timer, delay_ns, interval_ns);
}

void loop_cancel(struct loop *loop, int timer)
{
	timers_cancel(&loop->timers, (uint32_t)timer);
}

int loop_signals(struct loop *loop, const sigset_t *signals, loop_signal_fn *fn, void *context)
{
	(void)loop;
	(void)signals;
	(void)fn;
	(void)context;
	return 0;
}

void loop_step(struct loop *loop, const char *step)
{
	(void)loop;
	(void)step;
}

/* Calls the earliest timer if it is due until UNTIL_NS; returns whether it was. */
static bool loop_call_next_timer(struct loop *loop, uint64_t until_ns)
{
	struct timer timer;

	if (loop->stopped || timers_due_ns(&loop->timers) > until_ns ||
		!timers_take_due(&loop->timers, loop->timers_ns, &timer))
		return false;
	timer.fn(timer.context);
	return true;
}

/*
 * Calls the timers that are due until UNTIL_NS. The recorded run also had other timers, whose calls
 * of the sampler come in between.
 */
static void loop_call_timers(struct loop *loop, uint64_t until_ns)
{
	while (loop_call_next_timer(loop, until_ns)) {
	}
}

/* One timer was called that was due at DUE_NS; each other that was due then has its own record. */
static void loop_call_timer(struct loop *loop, uint64_t due_ns)
{
	loop_call_timers(loop, due_ns - 1);
	(void)loop_call_next_timer(loop, due_ns);
}

static void loop_call_source(struct loop *loop, int fd)
{
	const struct source *source = loop_source(loop, fd);

	if (source)
		source->fn(source->context, fd, 0);
}

/* One callback of the recorded loop. Callbacks outside the replayed code are skipped. */
static void loop_call(struct loop *loop, struct replay *r, const struct record *tick)
{
	const struct record *whom = replay_next_event(r);
	struct recording_tick body = { 0 };

	(void)recording_body(tick, &body, sizeof(body));
	if (whom && whom->type == RECORDING_RINGS_READY) {
		replay_take_event(r);
		loop_call_source(loop, REPLAY_RINGS_FD);
	} else if (whom && whom->type == RECORDING_BUILDS_READY) {
		replay_take_event(r);
		loop_call_source(loop, REPLAY_BUILDS_FD);
	} else if (body.timers) {
		loop->timers_ns = clock_monotonic_ns();
		if (!r->recording->names_timers)
			loop_call_timers(loop, loop->timers_ns);
	}
}

static bool loop_is_event(const struct record *event)
{
	return event->type < RECORDING_CALL || event->type == RECORDING_TIMER;
}

int loop_run(struct loop *loop)
{
	struct replay *r = replay_current();
	const struct record *next;

	loop->stopped = false;
	while (!loop->stopped && (next = replay_next_event(r)) && loop_is_event(next)) {
		uint64_t due_ns = 0;

		replay_take_event(r);
		if (next->type == RECORDING_TICK)
			loop_call(loop, r, next);
		else if (next->type == RECORDING_TIMER &&
			 recording_body(next, &due_ns, sizeof(due_ns)))
			loop_call_timer(loop, due_ns);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
