/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a window:
 *
 *     OPEN ──rotate──▶ CLOSING ──drained──▶ COMPLETE ──built, waited, or rotate──▶ sealed
 *
 * The current window is always OPEN; the previous one is ABSENT, CLOSING or COMPLETE, and the grace
 * timer runs as long as it is not ABSENT.
 */
#include "agent/sampler/windows/windows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/loop/loop.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { TAP_SHARE = 4 }; /* a tap's limit is a window's limit / TAP_SHARE */

static const uint64_t GRACE_NS = 20000000;
static const uint64_t BUILDS_LOOK_NS = 100000000;
static const uint64_t LONGEST_WAIT_NS = UINT64_C(5000000000);
/* Less than this is no step of the wall clock, but the uncertainty of reading it. */
static const uint64_t CLOCK_STEP_NS = 1000000;
static const uint64_t QUICK_READING_NS = 20000;

enum window_state {
	WINDOW_ABSENT = 0,
	WINDOW_OPEN, /* samples are added to it */
	WINDOW_CLOSING, /* its last records may still arrive */
	WINDOW_COMPLETE, /* all records are in; it waits for index builds */
};

struct window {
	enum window_state state;
	uint32_t number;
	bool first; /* what ended before it began belongs to it, too */
	uint64_t asked_ns; /* before the kernel side was told to begin it */
	uint64_t began_ns, ended_ns, began_real_ns; /* see struct sealed_window; 0 = not yet */
	uint64_t period;
	struct profile *profile;
};

struct windows_tap {
	struct profile *profile; /* NULL = the tap is closed */
	uint32_t pid; /* 0 = all */
	uint64_t began_ns, began_real_ns;
};

struct windows {
	struct windows_options options;
	struct window current, previous;
	struct windows_tap taps[WINDOWS_MAX_TAPS];
	int grace_timer; /* -1 = none */
	uint64_t real_offset_ns; /* wall time is CLOCK_MONOTONIC plus this; 0 = not known */
	bool sealing; /* the owner's callbacks are running */
};

/* ---- creation ------------------------------------------------------------------------------- */

int windows_create(const struct windows_options *options, struct windows **ret_windows)
{
	autofree struct windows *w = calloc(1, sizeof(*w));
	struct profile *profile;
	int err;

	if (!w)
		return -ENOMEM;
	err = profile_create(options->limit_bytes, &profile);
	if (err)
		return err;
	w->options = *options;
	w->grace_timer = -1;
	w->current = (struct window){
		.state = WINDOW_OPEN,
		.number = options->handlers.next_number(options->handlers.context),
		.first = true,
		.period = options->period,
		.profile = profile,
	};
	*ret_windows = take(w);
	return 0;
}

void windows_destroy(struct windows *w)
{
	if (!w)
		return;
	assert(!w->sealing);
	loop_cancel(w->options.loop, w->grace_timer);
	for (size_t i = 0; i < WINDOWS_MAX_TAPS; i++)
		profile_destroy(w->taps[i].profile);
	profile_destroy(w->current.profile);
	profile_destroy(w->previous.profile);
	free(w);
}

/* ---- times ---------------------------------------------------------------------------------- */

/*
 * The wall time of NOW_NS, which is recent. The two clocks differ by a constant until the wall
 * clock is set, so the wall times of two windows are as far apart as the windows are, however long
 * this thread is kept off the CPU between its readings.
 */
static uint64_t windows_real_ns(struct windows *w, uint64_t now_ns)
{
	enum { READINGS = 8 };
	uint64_t shortest_ns = UINT64_MAX, offset_ns = 0, apart_ns;

	for (int i = 0; i < READINGS && shortest_ns > QUICK_READING_NS; i++) {
		uint64_t before_ns = clock_monotonic_ns(), real_ns = clock_real_ns();
		uint64_t took_ns = clock_monotonic_ns() - before_ns;

		if (took_ns < shortest_ns)
			offset_ns = real_ns - before_ns - took_ns / 2;
		shortest_ns = MIN(shortest_ns, took_ns);
	}
	apart_ns = offset_ns > w->real_offset_ns ? offset_ns - w->real_offset_ns
						 : w->real_offset_ns - offset_ns;
	if (apart_ns > MAX(CLOCK_STEP_NS, shortest_ns))
		w->real_offset_ns = offset_ns;
	return now_ns + w->real_offset_ns;
}

void windows_start(struct windows *w)
{
	w->current.ended_ns = 0;
	if (w->current.began_ns)
		return;
	w->current.began_ns = clock_monotonic_ns();
	w->current.began_real_ns = windows_real_ns(w, w->current.began_ns);
}

void windows_stop(struct windows *w)
{
	w->current.ended_ns = clock_monotonic_ns();
}

void windows_set_period(struct windows *w, uint64_t period)
{
	w->current.period = period;
}

static struct sealed_window window_seal(const struct windows *w, const struct window *window)
{
	return (struct sealed_window){
		.number = window->number,
		.began_ns = window->began_ns,
		.ended_ns = window->ended_ns ? window->ended_ns : clock_monotonic_ns(),
		.began_real_ns = window->began_real_ns,
		.period = window->period,
		.types = w->options.types,
		.profile = window->profile,
	};
}

struct sealed_window windows_current(struct windows *w)
{
	struct sealed_window window = window_seal(w, &w->current);

	if (!window.began_ns) {
		window.began_ns = window.ended_ns;
		window.began_real_ns = windows_real_ns(w, window.began_ns);
	}
	return window;
}

/*
 * The boundary between two windows was read from the clock after the kernel side was told, by a
 * thread that may have been kept off the CPU meanwhile. A sample shows that it is earlier.
 */
void windows_sampled(struct windows *w, uint32_t number, uint64_t time_ns)
{
	struct window *next = &w->current;
	uint64_t early_ns;

	if (w->previous.state != WINDOW_CLOSING || number != next->number ||
		time_ns >= next->began_ns)
		return;
	early_ns = next->began_ns - MAX(time_ns, next->asked_ns);
	next->began_ns -= early_ns;
	next->began_real_ns -= early_ns;
	w->previous.ended_ns = next->began_ns;
}

static uint64_t window_open_ns(const struct window *window)
{
	return window->first ? 0 : window->began_ns;
}

uint64_t windows_oldest_open_ns(const struct windows *w)
{
	uint64_t oldest =
		window_open_ns(w->previous.state == WINDOW_ABSENT ? &w->current : &w->previous);

	for (size_t i = 0; i < WINDOWS_MAX_TAPS; i++) {
		if (w->taps[i].profile && w->taps[i].began_ns < oldest)
			oldest = w->taps[i].began_ns;
	}
	return oldest;
}

/* ---- rotation and sealing ------------------------------------------------------------------- */

void windows_seal_previous(struct windows *w)
{
	const struct windows_handlers *owner = &w->options.handlers;
	struct profile *profile = w->previous.profile;
	struct sealed_window window;

	assert(!w->sealing);
	if (w->previous.state == WINDOW_ABSENT)
		return;
	assert(profile && w->previous.ended_ns);
	loop_cancel(w->options.loop, w->grace_timer);
	w->grace_timer = -1;
	w->sealing = true;
	owner->sealing(owner->context, w->previous.number);
	window = window_seal(w, &w->previous);
	/* From here on, records that name it go into the current window. */
	w->previous = (struct window){ .state = WINDOW_ABSENT };
	owner->sealed(owner->context, &window);
	w->sealing = false;
	profile_destroy(profile);
	owner->released(owner->context);
}

static void windows_grace_over(void *context);

/* What ended before the windows that are left can be forgotten. */
static void windows_seal_and_settle(struct windows *w)
{
	const struct windows_handlers *owner = &w->options.handlers;

	if (w->previous.state == WINDOW_ABSENT)
		return;
	windows_seal_previous(w);
	owner->settled(owner->context, windows_oldest_open_ns(w));
}

/* Returns true if the previous window keeps waiting for builds. */
static bool windows_wait_for_builds(struct windows *w)
{
	const struct windows_handlers *owner = &w->options.handlers;
	uint64_t waited_ns = clock_monotonic_ns() - w->previous.ended_ns;

	return owner->is_building(owner->context) && waited_ns < LONGEST_WAIT_NS &&
	       !loop_timer(
		       w->options.loop, BUILDS_LOOK_NS, 0, windows_grace_over, w, &w->grace_timer);
}

static void windows_grace_over(void *context)
{
	struct windows *w = context;
	const struct windows_handlers *owner = &w->options.handlers;

	assert(w->previous.state == WINDOW_CLOSING || w->previous.state == WINDOW_COMPLETE);
	w->grace_timer = -1;
	loop_step(w->options.loop, "windows");
	if (w->previous.state == WINDOW_CLOSING)
		owner->drain(owner->context);
	w->previous.state = WINDOW_COMPLETE;
	owner->completed(owner->context);
	if (!windows_wait_for_builds(w))
		windows_seal_and_settle(w);
}

bool windows_are_busy(const struct windows *w)
{
	return w->previous.state == WINDOW_CLOSING;
}

int windows_rotate(struct windows *w)
{
	const struct windows_handlers *owner = &w->options.handlers;
	struct window next = { .state = WINDOW_OPEN, .period = w->current.period };
	int err;

	assert(!w->sealing && w->current.state == WINDOW_OPEN);
	if (windows_are_busy(w))
		return -EBUSY;
	/* It may still wait for builds, again and again while there are always some. */
	windows_seal_and_settle(w);
	err = profile_create(w->options.limit_bytes, &next.profile);
	if (err)
		return err;
	err = loop_timer(w->options.loop, GRACE_NS, 0, windows_grace_over, w, &w->grace_timer);
	if (err) {
		profile_destroy(next.profile);
		return err;
	}
	/* Not before sealing, which takes time: until there is another number, samples go on. */
	next.asked_ns = clock_monotonic_ns();
	next.number = owner->next_number(owner->context);
	next.began_ns = clock_monotonic_ns();
	next.began_real_ns = windows_real_ns(w, next.began_ns);
	w->previous = w->current;
	w->previous.state = WINDOW_CLOSING;
	w->previous.ended_ns = next.began_ns;
	w->current = next;
	assert(w->current.number > w->previous.number);
	return 0;
}

/* ---- where records go ----------------------------------------------------------------------- */

static const struct window *windows_find(const struct windows *w, uint32_t number)
{
	bool late = w->previous.state != WINDOW_ABSENT && number == w->previous.number;

	return late ? &w->previous : &w->current;
}

struct profile *windows_profile(const struct windows *w, uint32_t number)
{
	return windows_find(w, number)->profile;
}

uint32_t windows_number(const struct windows *w, uint32_t number)
{
	return windows_find(w, number)->number;
}

int windows_put_raw(const struct windows *w, const struct abi_stack *stack)
{
	return profile_put_raw(windows_profile(w, stack->window), stack);
}

const struct abi_stack *windows_get_raw(const struct windows *w, uint32_t window, uint64_t id)
{
	return profile_get_raw(windows_profile(w, window), window, id);
}

const struct abi_fiber_facts *windows_get_raw_facts(
	const struct windows *w, uint32_t window, uint64_t id)
{
	return profile_get_raw_facts(windows_profile(w, window), window, id);
}

/* ---- profiles on demand --------------------------------------------------------------------- */

int windows_tap_open(struct windows *w, uint32_t pid, struct windows_tap **ret_tap)
{
	const struct windows_handlers *owner = &w->options.handlers;
	const uint64_t now_ns = clock_monotonic_ns();
	struct windows_tap *tap = w->taps;
	int err;

	/* Earlier samples are still in the rings and do not belong to the tap. */
	owner->drain(owner->context);
	while (tap < w->taps + WINDOWS_MAX_TAPS && tap->profile)
		tap++;
	if (tap == w->taps + WINDOWS_MAX_TAPS)
		return -EAGAIN;
	err = profile_create(w->options.limit_bytes / TAP_SHARE, &tap->profile);
	if (err)
		return err;
	tap->pid = pid;
	tap->began_ns = now_ns;
	tap->began_real_ns = windows_real_ns(w, now_ns);
	*ret_tap = tap;
	return 0;
}

size_t windows_tap_number(const struct windows *w, const struct windows_tap *tap)
{
	assert(tap >= w->taps && tap < w->taps + WINDOWS_MAX_TAPS);
	return (size_t)(tap - w->taps);
}

void windows_tap_close(struct windows_tap *tap)
{
	assert(tap->profile);
	profile_destroy(tap->profile);
	*tap = (struct windows_tap){ 0 };
}

struct sealed_window windows_tap_read(struct windows *w, const struct windows_tap *tap)
{
	const struct windows_handlers *owner = &w->options.handlers;

	assert(tap->profile);
	/* Samples up to now are still in the rings; more arrive during the draining. */
	owner->drain(owner->context);
	return (struct sealed_window){
		.began_ns = tap->began_ns,
		.ended_ns = clock_monotonic_ns(),
		.began_real_ns = tap->began_real_ns,
		.period = w->current.period,
		.types = w->options.types,
		.profile = tap->profile,
	};
}

struct profile *windows_tap_profile(const struct windows_tap *tap)
{
	return tap->profile;
}

struct profile *windows_next_tap(const struct windows *w, uint32_t pid, size_t *iterator)
{
	while (*iterator < WINDOWS_MAX_TAPS) {
		const struct windows_tap *tap = &w->taps[(*iterator)++];

		if (tap->profile && (!tap->pid || tap->pid == pid))
			return tap->profile;
	}
	return NULL;
}
