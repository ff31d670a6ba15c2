/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/schedule/drains.h"

#include <sys/epoll.h>

#include "agent/loop/loop.h"
#include "base/host.h"
#include "base/log.h"

/* If the last drain left much: by then it is old enough to be read. */
static const uint64_t SETTLED_NS = 1000000;
static const uint64_t ACTIVE_NS = 100000000;
/*
 * While there are only samples of programs that are known. The sampler's own rings hold twice as
 * much (ring_sizes.c).
 */
static const uint64_t CALM_NS = 250000000;
/* While there are so few that waking up costs more than they do. */
static const uint64_t SLOW_NS = 500000000;
static const int64_t FEW_RECORDS = 32;

static void drains_set_interval(struct drains *d, uint64_t interval_ns)
{
	if (interval_ns == d->interval_ns)
		return;
	if (!loop_retime(d->options.loop, d->timer, LOOP_NEXT_MULTIPLE, interval_ns))
		d->interval_ns = interval_ns;
}

static uint64_t drains_interval_after(const struct drains *d, int64_t got)
{
	bool news = d->options.saw_news(d->options.context);

	if (d->options.left_much(d->options.context))
		return SETTLED_NS;
	if (got < 0 || news)
		return ACTIVE_NS;
	return got > FEW_RECORDS ? CALM_NS : SLOW_NS;
}

void drains_now(struct drains *d)
{
	const struct drains_options *owner = &d->options;
	int64_t got;

	loop_step(owner->loop, "rings");
	got = owner->drain(owner->context);

	if (got < 0)
		log_warn("reading the ring buffers failed, ignoring", "error=%d", (int)got);
	loop_step(owner->loop, "pending walks");
	owner->drained(owner->context);
	drains_set_interval(d, drains_interval_after(d, got));
}

static void drains_ready(void *context, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	host_note(HOST_NOTE_RINGS_READY, NULL);
	drains_now(context);
}

static void drains_timer(void *context)
{
	drains_now(context);
}

int drains_init(struct drains *d, const struct drains_options *options)
{
	int err;

	*d = (struct drains){ .timer = -1 };
	err = loop_add(options->loop, options->fd, EPOLLIN, drains_ready, d);
	if (err)
		return err;
	d->options = *options;
	d->interval_ns = ACTIVE_NS;
	err = loop_timer(options->loop, LOOP_NEXT_MULTIPLE, ACTIVE_NS, drains_timer, d, &d->timer);
	if (err)
		drains_deinit(d);
	return err;
}

void drains_deinit(struct drains *d)
{
	if (!d->options.loop)
		return;
	loop_remove(d->options.loop, d->options.fd);
	loop_cancel(d->options.loop, d->timer);
	*d = (struct drains){ .timer = -1 };
}
