/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/loop/timers.h"
#include "agent/loop/turns.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host.h"

enum {
	MAX_SOURCES = 1 << 16,
	EVENTS_PER_TURN = 32,
};

enum source_kind { SOURCE_FREE, SOURCE_FD, SOURCE_TIMERS, SOURCE_SIGNALS };

/*
 * The callback of one descriptor. The epoll key consists of the source's index and its serial
 * number: if a source is removed and its index reused while one of its events is already fetched,
 * the serial numbers differ and the event is dropped.
 */
struct source {
	enum source_kind kind;
	uint32_t serial;
	int fd; /* SOURCE_FD: borrowed; SOURCE_TIMERS: owned by `timers`; else owned */
	union {
		loop_fd_fn *fd_fn;
		loop_signal_fn *signal_fn;
	};
	void *context;
};

struct loop {
	int epoll_fd;
	struct source *sources;
	size_t source_count, source_capacity;
	uint32_t next_serial;
	struct timers timers;
	struct turns turns;
	bool stopped;
};

static int free_place(struct loop *loop, size_t *ret_place)
{
	int err;

	for (size_t i = 0; i < loop->source_count; i++) {
		if (loop->sources[i].kind == SOURCE_FREE) {
			*ret_place = i;
			return 0;
		}
	}
	err = array_reserve(
		loop->sources, loop->source_capacity, loop->source_count + 1, MAX_SOURCES);
	if (err)
		return err;
	*ret_place = loop->source_count++;
	loop->sources[*ret_place] = (struct source){ .kind = SOURCE_FREE };
	return 0;
}

static uint64_t source_key(uint32_t serial, size_t place)
{
	return (uint64_t)serial << 32 | place;
}

/* Adds SOURCE under a new serial number. */
static int add_source(struct loop *loop, const struct source *source, uint32_t epoll_events)
{
	struct epoll_event event = { .events = epoll_events };
	size_t place;
	int err = free_place(loop, &place);

	if (err)
		return err;
	event.data.u64 = source_key(++loop->next_serial, place);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0)
		return -errno;
	loop->sources[place] = *source;
	loop->sources[place].serial = loop->next_serial;
	return 0;
}

static void remove_source(struct loop *loop, size_t place)
{
	struct source *source = &loop->sources[place];

	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	*source = (struct source){ .kind = SOURCE_FREE };
}

static int loop_init(struct loop *loop)
{
	struct source source = { .kind = SOURCE_TIMERS };
	int err;

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	err = timers_init(&loop->timers);
	if (err)
		return err;
	source.fd = loop->timers.fd;
	return add_source(loop, &source, EPOLLIN);
}

int loop_create(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int err;

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = loop->timers.fd = -1;
	err = loop_init(loop);
	if (err) {
		loop_destroy(loop);
		return err;
	}
	*ret_loop = loop;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	for (size_t i = 0; i < loop->source_count; i++) {
		if (loop->sources[i].kind == SOURCE_SIGNALS)
			close(loop->sources[i].fd);
	}
	free(loop->sources);
	timers_deinit(&loop->timers);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	free(loop);
}

int loop_add(struct loop *loop, int fd, uint32_t epoll_events, loop_fd_fn *fn, void *context)
{
	struct source source = { .kind = SOURCE_FD, .fd = fd, .fd_fn = fn, .context = context };

	return add_source(loop, &source, epoll_events);
}

void loop_remove(struct loop *loop, int fd)
{
	for (size_t i = 0; i < loop->source_count; i++) {
		if (loop->sources[i].kind == SOURCE_FD && loop->sources[i].fd == fd) {
			remove_source(loop, i);
			return;
		}
	}
}

void loop_set_events(struct loop *loop, int fd, uint32_t epoll_events)
{
	struct epoll_event event = { .events = epoll_events };

	for (size_t i = 0; i < loop->source_count; i++) {
		if (loop->sources[i].kind != SOURCE_FD || loop->sources[i].fd != fd)
			continue;
		event.data.u64 = source_key(loop->sources[i].serial, i);
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);
		return;
	}
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

void loop_cancel(struct loop *loop, int timer)
{
	timers_cancel(&loop->timers, (uint32_t)timer);
}

int loop_retime(struct loop *loop, int timer, uint64_t delay_ns, uint64_t interval_ns)
{
	return timers_retime(&loop->timers, (uint32_t)timer, delay_ns, interval_ns);
}

int loop_signals(struct loop *loop, const sigset_t *signals, loop_signal_fn *fn, void *context)
{
	autoclose int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	struct source source = {
		.kind = SOURCE_SIGNALS, .fd = fd, .signal_fn = fn, .context = context
	};
	int err;

	if (fd < 0)
		return -errno;
	err = -pthread_sigmask(SIG_BLOCK, signals, NULL);
	if (!err)
		err = add_source(loop, &source, EPOLLIN);
	if (err)
		return err;
	(void)take_fd(&fd);
	return 0;
}

static void call_timers(struct loop *loop)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct timer timer;

	while (!loop->stopped && timers_take_due(&loop->timers, now_ns, &timer)) {
		host_note(HOST_NOTE_TIMER, &timer.due_ns);
		turns_step(&loop->turns, "timer");
		timer.fn(timer.context);
	}
	timers_set(&loop->timers);
}

static void call_signals(const struct source *source)
{
	loop_signal_fn *fn = source->signal_fn;
	void *context = source->context;
	int fd = source->fd;
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == sizeof(info))
		fn(context, (int)info.ssi_signo);
}

/* What a callback does that does not name its steps. */
static const char *const source_steps[] = {
	[SOURCE_FD] = "descriptor",
	[SOURCE_TIMERS] = "timers",
	[SOURCE_SIGNALS] = "signal",
};

static void call_source(struct loop *loop, const struct epoll_event *event)
{
	size_t place = (uint32_t)event->data.u64;
	const struct source *source;

	if (place >= loop->source_count)
		return;
	source = &loop->sources[place];
	if (source->kind == SOURCE_FREE || source->serial != event->data.u64 >> 32)
		return;
	host_note(HOST_NOTE_TICK, &(bool){ source->kind == SOURCE_TIMERS });
	turns_step(&loop->turns, source_steps[source->kind]);
	if (source->kind == SOURCE_FD)
		source->fd_fn(source->context, source->fd, event->events);
	else if (source->kind == SOURCE_TIMERS)
		call_timers(loop);
	else
		call_signals(source);
}

void loop_watch_turns(struct loop *loop, loop_turn_fn *fn, void *context)
{
	loop->turns = (struct turns){ .fn = fn, .context = context };
}

void loop_step(struct loop *loop, const char *step)
{
	turns_step(&loop->turns, step);
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[EVENTS_PER_TURN];

	loop->stopped = false;
	while (!loop->stopped) {
		int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, -1);

		if (count < 0 && errno != EINTR)
			return -errno;
		turns_begin(&loop->turns);
		for (int i = 0; i < count && !loop->stopped; i++)
			call_source(loop, &events[i]);
		turns_end(&loop->turns);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
