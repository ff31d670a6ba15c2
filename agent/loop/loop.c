/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_SOURCES = 1 << 16,
	EVENTS_PER_TURN = 32,
};

enum source_kind { SOURCE_FREE, SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNALS };

/*
 * What one descriptor calls. A source's place in the array is half of its epoll key, its serial
 * number the other: an event that was already fetched when its source was removed, and the place
 * given to another, finds that the numbers differ and is dropped.
 */
struct source {
	enum source_kind kind;
	uint32_t serial;
	int fd; /* borrowed for SOURCE_FD, else ours */
	union {
		loop_fd_fn *fd_fn;
		loop_timer_fn *timer_fn;
		loop_signal_fn *signal_fn;
	};
	void *context;
	bool periodic;
};

struct loop {
	int epoll_fd;
	struct source *sources;
	size_t source_count, source_capacity;
	uint32_t next_serial;
	bool stopped;
};

int loop_create(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int err = -errno;

		free(loop);
		return err;
	}
	*ret_loop = loop;
	return 0;
}

void loop_destroy(struct loop *loop)
{
	if (!loop)
		return;
	for (size_t i = 0; i < loop->source_count; i++)
		if (loop->sources[i].kind == SOURCE_TIMER ||
			loop->sources[i].kind == SOURCE_SIGNALS)
			close(loop->sources[i].fd);
	free(loop->sources);
	close(loop->epoll_fd);
	free(loop);
}

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

/* Takes SOURCE in under a new serial number. */
static int add_source(
	struct loop *loop, const struct source *source, uint32_t epoll_events, size_t *ret_place)
{
	struct epoll_event event = { .events = epoll_events };
	size_t place;
	int err = free_place(loop, &place);

	if (err)
		return err;
	event.data.u64 = ((uint64_t)++loop->next_serial << 32) | place;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0)
		return -errno;
	loop->sources[place] = *source;
	loop->sources[place].serial = loop->next_serial;
	*ret_place = place;
	return 0;
}

static void remove_source(struct loop *loop, size_t place)
{
	struct source *source = &loop->sources[place];

	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	if (source->kind != SOURCE_FD)
		close(source->fd);
	*source = (struct source){ .kind = SOURCE_FREE };
}

int loop_add(struct loop *loop, int fd, uint32_t epoll_events, loop_fd_fn *fn, void *context)
{
	struct source source = { .kind = SOURCE_FD, .fd = fd, .fd_fn = fn, .context = context };
	size_t place;

	return add_source(loop, &source, epoll_events, &place);
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

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000) };
}

static int set_timer(int fd, uint64_t delay_ns, uint64_t interval_ns)
{
	/* A delay of 0 would disarm it. */
	struct itimerspec when = { .it_value = timespec_of(delay_ns ? delay_ns : 1),
		.it_interval = timespec_of(interval_ns) };

	return timerfd_settime(fd, 0, &when, NULL) < 0 ? -errno : 0;
}

int loop_timer(struct loop *loop, uint64_t delay_ns, uint64_t interval_ns, loop_timer_fn *fn,
	void *context, int *ret_timer)
{
	autoclose int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct source source = { .kind = SOURCE_TIMER,
		.fd = fd,
		.timer_fn = fn,
		.context = context,
		.periodic = interval_ns != 0 };
	size_t place;
	int err;

	if (fd < 0)
		return -errno;
	err = set_timer(fd, delay_ns, interval_ns);
	if (err)
		return err;
	err = add_source(loop, &source, EPOLLIN, &place);
	if (err)
		return err;
	(void)take_fd(&fd);
	*ret_timer = (int)loop->sources[place].serial;
	return 0;
}

static bool find_timer(const struct loop *loop, int timer, size_t *ret_place)
{
	for (size_t i = 0; i < loop->source_count; i++) {
		if (loop->sources[i].kind == SOURCE_TIMER &&
			loop->sources[i].serial == (uint32_t)timer) {
			*ret_place = i;
			return true;
		}
	}
	return false;
}

void loop_cancel(struct loop *loop, int timer)
{
	size_t place;

	if (find_timer(loop, timer, &place))
		remove_source(loop, place);
}

int loop_retime(struct loop *loop, int timer, uint64_t interval_ns)
{
	size_t place;

	if (!interval_ns)
		return -EINVAL;
	if (!find_timer(loop, timer, &place) || !loop->sources[place].periodic)
		return -ENOENT;
	return set_timer(loop->sources[place].fd, interval_ns, interval_ns);
}

int loop_signals(struct loop *loop, const sigset_t *signals, loop_signal_fn *fn, void *context)
{
	autoclose int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	struct source source = {
		.kind = SOURCE_SIGNALS, .fd = fd, .signal_fn = fn, .context = context
	};
	size_t place;
	int err;

	if (fd < 0)
		return -errno;
	err = -pthread_sigmask(SIG_BLOCK, signals, NULL);
	if (!err)
		err = add_source(loop, &source, EPOLLIN, &place);
	if (err)
		return err;
	(void)take_fd(&fd);
	return 0;
}

static void call_timer(struct loop *loop, size_t place)
{
	struct source source = loop->sources[place];
	uint64_t turns;

	if (read(source.fd, &turns, sizeof(turns)) != sizeof(turns))
		return;
	if (!source.periodic)
		remove_source(loop, place);
	source.timer_fn(source.context);
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

static void call_source(struct loop *loop, const struct epoll_event *event)
{
	size_t place = (uint32_t)event->data.u64;
	const struct source *source;

	if (place >= loop->source_count)
		return;
	source = &loop->sources[place];
	if (source->kind == SOURCE_FREE || source->serial != event->data.u64 >> 32)
		return;
	if (source->kind == SOURCE_FD)
		source->fd_fn(source->context, source->fd, event->events);
	else if (source->kind == SOURCE_TIMER)
		call_timer(loop, place);
	else
		call_signals(source);
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[EVENTS_PER_TURN];

	loop->stopped = false;
	while (!loop->stopped) {
		int count = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, -1);

		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count && !loop->stopped; i++)
			call_source(loop, &events[i]);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
