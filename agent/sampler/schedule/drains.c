/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/schedule/drains.h"

#include <sys/epoll.h>

#include "agent/loop/loop.h"
#include "base/host.h"
#include "base/log.h"

static const uint64_t ACTIVE_NS = 100000000;
/* Saves wake-ups on an idle machine, where there is nothing to notice. */
static const uint64_t IDLE_NS = 500000000;

static void drains_set_idle(struct drains *d, bool idle)
{
	uint64_t interval_ns = idle ? IDLE_NS : ACTIVE_NS;

	if (idle == d->idle)
		return;
	if (!loop_retime(d->options.loop, d->timer, interval_ns, interval_ns))
		d->idle = idle;
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
	drains_set_idle(d, got == 0 && owner->was_sampled(owner->context));
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
	err = loop_timer(options->loop, ACTIVE_NS, ACTIVE_NS, drains_timer, d, &d->timer);
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
