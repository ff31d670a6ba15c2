/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads waited for. A thread that leaves the CPU sends a sample, one that runs again only
 * for how long it was away (bpf/off_cpu.bpf.h); here the two become one sample. Its stack is
 * resolved when it comes, with the mappings of that instant, into the window of that time. A wait
 * counts in the window in which it ends: when a window is sealed, the stacks of those who still
 * wait move on to the next one. What is still waited for at the very end is in no profile, since
 * nobody knows for how long.
 */
#include "agent/sampler/sampler_internal.h"

static struct agent_window *window_of(struct agent *agent, uint32_t number)
{
	bool late = agent->previous.profile && number == agent->previous.number;

	return late ? &agent->previous : &agent->current;
}

void agent_wait_begins(struct agent *agent, const struct abi_sample *s)
{
	if (waits_begin(&agent->waits, s->tid, s->period))
		metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
}

struct wait *agent_wait_of(struct agent *agent, const struct abi_sample *s)
{
	return waits_find(&agent->waits, s->tid, s->period);
}

void agent_wait_resolved(
	struct agent *agent, const struct abi_sample *s, const struct profile_sample *sample)
{
	struct wait *wait = agent_wait_of(agent, s);

	if (!wait)
		return;
	wait->sample = *sample;
	wait->window = window_of(agent, s->window)->number;
}

/* WAIT's stack in TO, another profile than the one that it was resolved into. */
static int copy_stack(
	struct agent *agent, const struct wait *wait, struct profile *to, uint32_t *ret_stack)
{
	const struct profile *from = window_of(agent, wait->window)->profile;
	struct process *p = processes_find(agent->processes, wait->sample.process);
	struct profile_stack stack;

	if (from == to) {
		*ret_stack = wait->sample.stack;
		return 0;
	}
	stack = profile_stack_at(from, wait->sample.stack);
	if (p)
		agent_stack_hit(agent, p, &stack);
	return profile_stack(to, &stack, ret_stack);
}

static int add_to(struct agent *agent, const struct wait *wait, struct profile *to)
{
	struct profile_sample sample = wait->sample;
	int err = copy_stack(agent, wait, to, &sample.stack);

	return err ? err : profile_add(to, &sample);
}

static void add_wait(struct agent *agent, const struct wait *wait, uint32_t window)
{
	if (add_to(agent, wait, window_of(agent, window)->profile)) {
		metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
		return;
	}
	metrics_add(&agent->metrics, METRIC_SAMPLES_OFF_CPU, 1);
	for (size_t i = 0; i < AGENT_MAX_TAPS; i++) {
		const struct agent_tap *tap = &agent->taps[i];

		if (!tap->profile || (tap->pid && tap->pid != wait->sample.pid))
			continue;
		if (add_to(agent, wait, tap->profile))
			metrics_add(&agent->metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

void agent_wait_ends(struct agent *agent, const struct abi_wake *wake)
{
	struct wait *wait = waits_find(&agent->waits, wake->tid, wake->began_ns);

	/* Its process is not wanted, or its beginning was lost, and is counted. */
	if (!wait)
		return;
	if (wait->window) {
		waits_weigh(
			&agent->waits, wake->wait_ns, &wait->sample.count, &wait->sample.weight);
		add_wait(agent, wait, wake->window);
	} else {
		agent_unwind_waited(agent, wake);
	}
	waits_forget(&agent->waits, wake->tid);
}

void agent_waits_move(struct agent *agent, uint32_t window)
{
	struct wait *wait;
	size_t i = 0;

	while ((wait = waits_next(&agent->waits, &i))) {
		if (wait->window != window)
			continue;
		if (copy_stack(agent, wait, agent->current.profile, &wait->sample.stack)) {
			metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
			waits_forget(&agent->waits, wait->sample.tid);
			continue;
		}
		wait->window = agent->current.number;
	}
}
