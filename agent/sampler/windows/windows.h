/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Windows: the profiles that samples are added to, one after the other, and those on demand (taps)
 * beside them. Each knows its own times and the period of its ticks.
 *
 * A window ends when the kernel side is given a new number. Programs that run on another CPU at
 * that moment may still write records with the old number, so the window before the current one
 * stays open until the rings have been drained once more. Then it waits, for a limited time, for
 * the index builds that are under way, as they may be those of its own new programs; then it is
 * sealed. Sampling never stops meanwhile.
 *
 * Does not know where samples come from, who resolves them, or what becomes of a sealed window.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "agent/sampler/profile/sealed_window.h"

struct loop;
struct windows;
struct windows_tap;

enum { WINDOWS_MAX_TAPS = 8 };

/* All are called with `context`. None may call windows_rotate() or windows_seal_previous(). */
struct windows_handlers {
	/* Takes in what was sampled until now. */
	void (*drain)(void *context);
	/* Makes the kernel side begin a window; returns its number, which is above those before. */
	uint32_t (*next_number)(void *context);
	/* Whether index builds are under way. */
	bool (*is_building)(void *context);
	/* The last records of the previous window have been read. */
	void (*completed)(void *context);
	/* Window NUMBER is about to be sealed: the last moment to add to it. */
	void (*sealing)(void *context, uint32_t number);
	/* It is sealed. WINDOW and its profile live for the call. */
	void (*sealed)(void *context, const struct sealed_window *window);
	/* The memory of its profile has been freed. */
	void (*released)(void *context);
	/* It was sealed in its own time: nothing older than OPEN_NS (CLOCK_MONOTONIC) is needed. */
	void (*settled)(void *context, uint64_t open_ns);
	void *context;
};

struct windows_options {
	struct loop *loop; /* borrowed */
	size_t limit_bytes; /* of a window's profile; a tap has a fourth of it */
	uint64_t period; /* of the first window; see struct sealed_window */
	bool cycles, off_cpu; /* likewise, of all */
	struct windows_handlers handlers;
};

/* With a first window, which begins at windows_start(). -ENOMEM. */
int windows_create(const struct windows_options *options, struct windows **ret_windows);
/* What is not sealed is dropped. */
void windows_destroy(struct windows *w);

/* Sampling starts, or goes on. */
void windows_start(struct windows *w);
/* Sampling stops: the current window is over, and stays the current one. */
void windows_stop(struct windows *w);
/* The period has changed; it is that of the whole current window. */
void windows_set_period(struct windows *w, uint64_t period);

/*
 * The current window ends and becomes the previous one, which is sealed a moment later. -EBUSY: the
 * previous one is not complete yet; -ENOMEM. After an error the current window goes on.
 */
int windows_rotate(struct windows *w);
/* Whether windows_rotate() would say -EBUSY. */
bool windows_are_busy(const struct windows *w);
/* Seals the previous window now, if there is one. */
void windows_seal_previous(struct windows *w);

/*
 * Where records of window NUMBER go, and the number of that window: the current one (as for 0)
 * unless NUMBER is the previous one, which is still open.
 */
struct profile *windows_profile(const struct windows *w, uint32_t number);
uint32_t windows_number(const struct windows *w, uint32_t number);
/* The current window as if it were sealed now, or when sampling stopped; empty if it never began.
 */
struct sealed_window windows_current(const struct windows *w);
/* What ended before has no sample in an open window or tap. CLOCK_MONOTONIC; 0: all is needed. */
uint64_t windows_oldest_open_ns(const struct windows *w);

/* ---- profiles on demand --------------------------------------------------------------------- */

/* What is sampled of PID (0 = all) from now on. -EAGAIN: too many are open; -ENOMEM. */
int windows_tap_open(struct windows *w, uint32_t pid, struct windows_tap **ret_tap);
/* Its place: a tap gets the lowest one that is free. */
size_t windows_tap_number(const struct windows *w, const struct windows_tap *tap);
void windows_tap_close(struct windows_tap *tap);
/* What it has until now. The profile lives until the tap is closed. */
struct sealed_window windows_tap_read(struct windows *w, const struct windows_tap *tap);
/*
 * The profiles of the taps that samples of PID go to: start with *ITERATOR = 0, ends with NULL.
 */
struct profile *windows_next_tap(const struct windows *w, uint32_t pid, size_t *iterator);
