/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows and profiles on demand. A window ends when the sampler is told a new number; programs
 * that run on another CPU at that moment may still write records with the old one, so the old
 * window stays open for a moment. It is sealed after one more draining, and after the indexes that
 * are being built: they may be those of its own new programs. What it does not wait for is the end
 * of the window after it.
 */
#include <errno.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/recording/notes.h"
#include "base/clock.h"

static const uint64_t GRACE_NS = 20000000;
enum { TAP_SHARE = 4 }; /* of a window's limit; there may be eight */

static const uint64_t BUILDS_LOOK_NS = 100000000;
static const uint64_t LONGEST_WAIT_NS = UINT64_C(5000000000);

uint64_t sampler_oldest_open_ns(const struct sampler *sampler)
{
	uint64_t oldest = sampler->previous.profile ? sampler->previous.opened_ns
						    : sampler->current.opened_ns;

	for (size_t i = 0; i < SAMPLER_MAX_TAPS; i++) {
		if (sampler->taps[i].profile && sampler->taps[i].opened_ns < oldest)
			oldest = sampler->taps[i].opened_ns;
	}
	return oldest;
}

static void on_grace_over(void *context);

void sampler_seal_previous(struct sampler *sampler)
{
	struct profile *sealed = sampler->previous.profile;

	if (!sealed)
		return;
	loop_cancel(sampler->loop, sampler->grace_timer);
	sampler->grace_timer = -1;
	sampler_unwind_flush(sampler, sampler->previous.number);
	sampler_waits_move(sampler, sampler->previous.number);
	sampler->previous = (struct sampler_window){ 0 };
	sampler->previous_complete = false;
	if (sampler->sealed)
		sampler->sealed(sampler->sealed_context, sealed);
	profile_destroy(sealed);
	sampler_give_back_memory(sampler);
}

/* The window waits on, to be looked at again; false: it has waited long enough. */
static bool wait_for_builds(struct sampler *sampler)
{
	uint64_t waited_ns = clock_monotonic_ns() - sampler->current.opened_ns;

	return builds_pending(sampler->builds) > 0 && waited_ns < LONGEST_WAIT_NS &&
	       !loop_timer(sampler->loop, BUILDS_LOOK_NS, 0, on_grace_over, sampler,
		       &sampler->grace_timer);
}

static void on_grace_over(void *context)
{
	struct sampler *sampler = context;
	uint64_t open_ns;

	sampler->grace_timer = -1;
	if (!sampler->previous_complete)
		(void)collect_drain(sampler->collect, 0);
	sampler->previous_complete = true;
	sampler_identify_modules(sampler);
	if (wait_for_builds(sampler))
		return;
	sampler_seal_previous(sampler);
	open_ns = sampler_oldest_open_ns(sampler);
	processes_sweep(sampler->processes, open_ns);
	sampler_forget_modules(sampler);
	kernel_symbols_forget(sampler->kernel_symbols, open_ns);
}

int sampler_turn_window(struct sampler *sampler)
{
	struct profile *next;
	int err;

	note_call(SAMPLER_CALL_TURN_WINDOW, 0);
	if (sampler->previous.profile && !sampler->previous_complete)
		return -EBUSY;
	sampler_seal_previous(sampler);
	err = profile_create(sampler->profile_limit_bytes, &next);
	if (err)
		return err;
	err = loop_timer(sampler->loop, GRACE_NS, 0, on_grace_over, sampler, &sampler->grace_timer);
	if (err) {
		profile_destroy(next);
		return err;
	}
	sampler->previous = sampler->current;
	sampler->current = (struct sampler_window){
		.number = collect_next_window(sampler->collect),
		.opened_ns = clock_monotonic_ns(),
		.profile = next,
	};
	return 0;
}

int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct sampler_tap **ret_tap)
{
	note_call(SAMPLER_CALL_TAP_OPEN, pid);
	/* What was sampled before is in the rings, and not the tap's. */
	(void)collect_drain(sampler->collect, 0);
	for (size_t i = 0; i < SAMPLER_MAX_TAPS; i++) {
		struct sampler_tap *tap = &sampler->taps[i];
		int err;

		if (tap->profile)
			continue;
		err = profile_create(sampler->profile_limit_bytes / TAP_SHARE, &tap->profile);
		if (err)
			return err;
		tap->pid = pid;
		tap->opened_ns = clock_monotonic_ns();
		*ret_tap = tap;
		return 0;
	}
	return -EAGAIN;
}

const struct profile *sampler_tap_profile(struct sampler *sampler, const struct sampler_tap *tap)
{
	note_call(SAMPLER_CALL_TAP_PROFILE, (uint64_t)(tap - sampler->taps));
	/* What was sampled until this moment is in the rings. */
	(void)collect_drain(sampler->collect, 0);
	return tap->profile;
}

void sampler_tap_close(struct sampler *sampler, struct sampler_tap *tap)
{
	note_call(SAMPLER_CALL_TAP_CLOSE, (uint64_t)(tap - sampler->taps));
	profile_destroy(tap->profile);
	*tap = (struct sampler_tap){ 0 };
}

void sampler_windows_deinit(struct sampler *sampler)
{
	loop_cancel(sampler->loop, sampler->grace_timer);
	for (size_t i = 0; i < SAMPLER_MAX_TAPS; i++)
		profile_destroy(sampler->taps[i].profile);
	profile_destroy(sampler->current.profile);
	profile_destroy(sampler->previous.profile);
}
