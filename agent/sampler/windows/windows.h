/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Windows: consecutive profiles that samples are added to, and on-demand profiles (taps) next to
 * them. Each knows its own times and the period of its ticks.
 *
 * A window ends when the kernel side gets a new number. BPF programs that run on other CPUs at that
 * moment may still write records with the old number, so the previous window stays open until the
 * rings have been drained once more. It then waits, for a limited time, for pending index builds,
 * which may be those of its new programs, and is sealed. Sampling never stops meanwhile.
 *
 * Does not know where samples come from, who resolves them, or what becomes of a sealed window.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "agent/sampler/seam/sealed_window.h"

struct loop;
struct windows;
struct windows_tap;

enum { WINDOWS_MAX_TAPS = 8 };

/* All are called with `context`. None may call windows_rotate() or windows_seal_previous(). */
struct windows_handlers {
	/* Processes what is in the rings. */
	void (*drain)(void *context);
	/*
	 * Makes the kernel side begin a window; returns its number, which is greater than all
	 * before.
	 */
	uint32_t (*next_number)(void *context);
	/* Whether index builds are under way. */
	bool (*is_building)(void *context);
	/* The last records of the previous window have been read. */
	void (*completed)(void *context);
	/* Window NUMBER is about to be sealed: last chance to add to it. */
	void (*sealing)(void *context, uint32_t number);
	/* A window was sealed. WINDOW and its profile are valid during the call. */
	void (*sealed)(void *context, const struct sealed_window *window);
	/* The memory of the sealed window's profile has been freed. */
	void (*released)(void *context);
	/*
	 * A window was sealed by its timer, or because the next one ends: nothing older than
	 * OPEN_NS (CLOCK_MONOTONIC) is needed.
	 */
	void (*settled)(void *context, uint64_t open_ns);
	void *context;
};

struct windows_options {
	struct loop *loop; /* borrowed */
	size_t limit_bytes; /* of a window's profile; a tap has a quarter of it */
	uint64_t period; /* of the first window; see struct sealed_window */
	struct sample_types types; /* of all windows */
	struct windows_handlers handlers;
};

/* Creates the first window, too, which begins at windows_start(). Returns -ENOMEM. */
int windows_create(const struct windows_options *options, struct windows **ret_windows);
/* Drops windows that are not sealed. */
void windows_destroy(struct windows *w);

/* Sampling starts or resumes. */
void windows_start(struct windows *w);
/* Sampling stops: the current window ends, and stays the current one. */
void windows_stop(struct windows *w);
/* Sets the period, which then applies to the whole current window. */
void windows_set_period(struct windows *w, uint64_t period);

/*
 * Ends the current window, which becomes the previous one and is sealed a moment later, and begins
 * a new one. Returns -EBUSY if the last records of the previous window have not been read yet, or
 * -ENOMEM; on error the current window continues.
 */
int windows_rotate(struct windows *w);
/* Whether windows_rotate() would return -EBUSY. */
bool windows_are_busy(const struct windows *w);
/* Seals the previous window now, if there is one. */
void windows_seal_previous(struct windows *w);

/*
 * The profile that records of window NUMBER go to, and the number of its window: the previous
 * window if that is NUMBER and still open, else the current one.
 */
struct profile *windows_profile(const struct windows *w, uint32_t number);
uint32_t windows_number(const struct windows *w, uint32_t number);
/* Raw stacks and facts, as profile_put_raw() and so on of the profile of their window. */
int windows_put_raw(const struct windows *w, const struct abi_stack *stack);
const struct abi_stack *windows_get_raw(const struct windows *w, uint32_t window, uint64_t id);
const struct abi_fiber_facts *windows_get_raw_facts(
	const struct windows *w, uint32_t window, uint64_t id);
/* The current window as if sealed now, or when sampling stopped; empty if it never began. */
struct sealed_window windows_current(struct windows *w);
/*
 * A sample of window NUMBER was taken at TIME_NS (CLOCK_MONOTONIC). Windows end where the next one
 * begins, and that is never after the first sample that the next one has: what a window counts
 * was sampled between its times.
 */
void windows_sampled(struct windows *w, uint32_t number, uint64_t time_ns);
/*
 * When the oldest open window or tap began, CLOCK_MONOTONIC: what ended before has no sample in any
 * of them. 0: everything is needed.
 */
uint64_t windows_oldest_open_ns(const struct windows *w);

/* ---- profiles on demand --------------------------------------------------------------------- */

/*
 * Opens a profile of PID (0 = all) that begins now. Returns -EAGAIN if too many are open, or
 * -ENOMEM.
 */
int windows_tap_open(struct windows *w, uint32_t pid, struct windows_tap **ret_tap);
/* The tap's slot; a new tap gets the lowest free one. */
size_t windows_tap_number(const struct windows *w, const struct windows_tap *tap);
void windows_tap_close(struct windows_tap *tap);
/* What the tap has collected so far. The profile is valid until the tap is closed. */
struct sealed_window windows_tap_read(struct windows *w, const struct windows_tap *tap);
/* The profile that it collects. */
struct profile *windows_tap_profile(const struct windows_tap *tap);
/*
 * Iterates over the profiles of the taps that take samples of PID, starting with *ITERATOR = 0;
 * NULL at the end.
 */
struct profile *windows_next_tap(const struct windows *w, uint32_t pid, size_t *iterator);
