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
#include "base/clock.h"

static const uint64_t GRACE_NS = 20000000;
enum { TAP_SHARE = 4 }; /* of a window's limit; there may be eight */

static const uint64_t BUILDS_LOOK_NS = 100000000;
static const uint64_t LONGEST_WAIT_NS = UINT64_C(5000000000);

uint64_t agent_oldest_open_ns(const struct agent *agent)
{
	uint64_t oldest =
		agent->previous.profile ? agent->previous.opened_ns : agent->current.opened_ns;

	for (size_t i = 0; i < AGENT_MAX_TAPS; i++) {
		if (agent->taps[i].profile && agent->taps[i].opened_ns < oldest)
			oldest = agent->taps[i].opened_ns;
	}
	return oldest;
}

static void on_grace_over(void *context);

void agent_seal_previous(struct agent *agent)
{
	struct profile *sealed = agent->previous.profile;

	if (!sealed)
		return;
	loop_cancel(agent->loop, agent->grace_timer);
	agent->grace_timer = -1;
	agent_unwind_flush(agent, agent->previous.number);
	agent_waits_move(agent, agent->previous.number);
	agent->previous = (struct agent_window){ 0 };
	agent->previous_complete = false;
	if (agent->sealed)
		agent->sealed(agent->sealed_context, sealed);
	profile_destroy(sealed);
	agent_give_back_memory(agent);
}

/* The window waits on, to be looked at again; false: it has waited long enough. */
static bool wait_for_builds(struct agent *agent)
{
	uint64_t waited_ns = clock_monotonic_ns() - agent->current.opened_ns;

	return builds_pending(agent->builds) > 0 && waited_ns < LONGEST_WAIT_NS &&
	       !loop_timer(
		       agent->loop, BUILDS_LOOK_NS, 0, on_grace_over, agent, &agent->grace_timer);
}

static void on_grace_over(void *context)
{
	struct agent *agent = context;
	uint64_t open_ns;

	agent->grace_timer = -1;
	if (!agent->previous_complete)
		(void)collect_drain(agent->collect, 0);
	agent->previous_complete = true;
	agent_identify_modules(agent);
	if (wait_for_builds(agent))
		return;
	agent_seal_previous(agent);
	open_ns = agent_oldest_open_ns(agent);
	processes_sweep(agent->processes, open_ns);
	agent_forget_modules(agent);
	kernel_symbols_forget(agent->kernel_symbols, open_ns);
}

int agent_turn_window(struct agent *agent)
{
	struct profile *next;
	int err;

	if (agent->previous.profile && !agent->previous_complete)
		return -EBUSY;
	agent_seal_previous(agent);
	err = profile_create(agent->profile_limit_bytes, &next);
	if (err)
		return err;
	err = loop_timer(agent->loop, GRACE_NS, 0, on_grace_over, agent, &agent->grace_timer);
	if (err) {
		profile_destroy(next);
		return err;
	}
	agent->previous = agent->current;
	agent->current = (struct agent_window){
		.number = collect_next_window(agent->collect),
		.opened_ns = clock_monotonic_ns(),
		.profile = next,
	};
	return 0;
}

int agent_tap_open(struct agent *agent, uint32_t pid, struct agent_tap **ret_tap)
{
	/* What was sampled before is in the rings, and not the tap's. */
	(void)collect_drain(agent->collect, 0);
	for (size_t i = 0; i < AGENT_MAX_TAPS; i++) {
		struct agent_tap *tap = &agent->taps[i];
		int err;

		if (tap->profile)
			continue;
		err = profile_create(agent->profile_limit_bytes / TAP_SHARE, &tap->profile);
		if (err)
			return err;
		tap->pid = pid;
		tap->opened_ns = clock_monotonic_ns();
		*ret_tap = tap;
		return 0;
	}
	return -EAGAIN;
}

const struct profile *agent_tap_profile(struct agent *agent, const struct agent_tap *tap)
{
	/* What was sampled until this moment is in the rings. */
	(void)collect_drain(agent->collect, 0);
	return tap->profile;
}

void agent_tap_close(struct agent *agent, struct agent_tap *tap)
{
	(void)agent;
	profile_destroy(tap->profile);
	*tap = (struct agent_tap){ 0 };
}

void agent_windows_deinit(struct agent *agent)
{
	loop_cancel(agent->loop, agent->grace_timer);
	for (size_t i = 0; i < AGENT_MAX_TAPS; i++)
		profile_destroy(agent->taps[i].profile);
	profile_destroy(agent->current.profile);
	profile_destroy(agent->previous.profile);
}
