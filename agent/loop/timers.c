/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/loop/timers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/loop/loop.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_TIMERS = 1 << 16 };

static const uint64_t SECOND_NS = 1000000000;

int timers_init(struct timers *t)
{
	int err;

	*t = (struct timers){ .fd = -1, .set_ns = UINT64_MAX };
	err = array_reserve(t->all, t->capacity, TIMERS_RESERVED, MAX_TIMERS);
	if (err)
		return err;
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->fd < 0 ? -errno : 0;
}

void timers_deinit(struct timers *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->all);
	*t = (struct timers){ .fd = -1 };
}

/* Arming a timerfd clears its expirations, so that it need not be read. */
static void timers_set_to(struct timers *t, uint64_t due_ns)
{
	struct itimerspec when = { 0 };

	if (due_ns != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(due_ns / SECOND_NS);
		when.it_value.tv_nsec = (long)(due_ns % SECOND_NS);
	}
	/* Only fails for invalid values. */
	(void)timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &when, NULL);
	t->set_ns = due_ns;
}

uint64_t timers_due_ns(const struct timers *t)
{
	uint64_t due_ns = UINT64_MAX;

	for (size_t i = 0; i < t->count; i++)
		due_ns = MIN(due_ns, t->all[i].due_ns);
	return due_ns;
}

void timers_set(struct timers *t)
{
	timers_set_to(t, timers_due_ns(t));
}

/* Never due at once: a callback that adds its timer again would run forever. */
static uint64_t due_in(uint64_t delay_ns, uint64_t interval_ns)
{
	uint64_t now_ns = clock_monotonic_ns(), due_ns;

	if (delay_ns == LOOP_NEXT_MULTIPLE && interval_ns)
		delay_ns = interval_ns - now_ns % interval_ns;
	if (__builtin_add_overflow(now_ns, MAX(delay_ns, UINT64_C(1)), &due_ns))
		return UINT64_MAX - 1;
	return due_ns;
}

static struct timer *timers_find(struct timers *t, uint32_t name)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->all[i].name == name)
			return &t->all[i];
	}
	return NULL;
}

int timers_add(struct timers *t, const struct timer *timer, uint64_t delay_ns, uint32_t *ret_name)
{
	int err = array_reserve(t->all, t->capacity, t->count + 1, MAX_TIMERS);
	struct timer *added;

	if (err)
		return err;
	added = &t->all[t->count++];
	*added = *timer;
	added->name = ++t->last_name;
	added->due_ns = due_in(delay_ns, timer->interval_ns);
	if (added->due_ns < t->set_ns)
		timers_set_to(t, added->due_ns);
	*ret_name = added->name;
	return 0;
}

int timers_retime(struct timers *t, uint32_t name, uint64_t delay_ns, uint64_t interval_ns)
{
	struct timer *timer = timers_find(t, name);

	if (!interval_ns)
		return -EINVAL;
	if (!timer || !timer->interval_ns)
		return -ENOENT;
	timer->due_ns = due_in(delay_ns, interval_ns);
	timer->interval_ns = interval_ns;
	if (timer->due_ns < t->set_ns)
		timers_set_to(t, timer->due_ns);
	return 0;
}

/* The descriptor stays armed: a spurious wake-up costs less than rearming on each cancel. */
void timers_cancel(struct timers *t, uint32_t name)
{
	struct timer *timer = timers_find(t, name);

	if (timer)
		*timer = t->all[--t->count];
}

static bool timer_comes_first(const struct timer *a, const struct timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->name < b->name);
}

static struct timer *timers_earliest(struct timers *t)
{
	struct timer *earliest = NULL;

	for (size_t i = 0; i < t->count; i++) {
		if (!earliest || timer_comes_first(&t->all[i], earliest))
			earliest = &t->all[i];
	}
	return earliest;
}

bool timers_take_due(struct timers *t, uint64_t now_ns, struct timer *ret_timer)
{
	struct timer *timer = timers_earliest(t);

	if (!timer || timer->due_ns > now_ns)
		return false;
	*ret_timer = *timer;
	if (timer->interval_ns)
		/* Missed expirations are skipped. */
		timer->due_ns +=
			(1 + (now_ns - timer->due_ns) / timer->interval_ns) * timer->interval_ns;
	else
		*timer = t->all[--t->count];
	return true;
}
