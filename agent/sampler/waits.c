/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads waited for. A thread that leaves the CPU sends its stack (abi_switch_out), one that
 * runs again only for how long it was away (abi_wake, bpf/probes/off_cpu.bpf.c); here the two
 * become one sample. The stack is resolved when it comes, with the mappings of that instant, into
 * the window of that time. A wait counts in the window in which it ends: when a window is sealed,
 * the stacks of threads that still wait are copied into the next one. Where the walk of the stack
 * is finished only after the thread runs again, the wait counts in the window in which it began.
 * What is still waited for at the very end is in no profile, since nobody knows for how long.
 */
#include <assert.h>

#include "agent/sampler/sampler_internal.h"

void sampler_wait_begins(struct sampler *sampler, const struct abi_switch_out *switch_out)
{
	if (waits_begin(&sampler->waits, switch_out->sample.tid, switch_out->left_ns))
		metrics_add(&sampler->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
}

bool sampler_wait_is_wanted(struct sampler *sampler, const struct abi_switch_out *switch_out)
{
	return waits_find(&sampler->waits, switch_out->sample.tid, switch_out->left_ns) != NULL;
}

void sampler_wait_lost(struct sampler *sampler, const struct abi_switch_out *switch_out)
{
	struct wait *wait =
		waits_find(&sampler->waits, switch_out->sample.tid, switch_out->left_ns);

	if (wait)
		waits_forget(&sampler->waits, wait);
}

/* WAIT's stack in TO, another profile than the one that it was resolved into. */
static int copy_stack(
	struct sampler *sampler, const struct wait *wait, struct profile *to, uint32_t *ret_stack)
{
	const struct profile *from = windows_profile(sampler->windows, wait->window);
	struct process *p = processes_find(sampler->processes, wait->sample.process);
	struct profile_stack stack;

	if (from == to) {
		*ret_stack = wait->sample.stack;
		return 0;
	}
	stack = profile_stack_at(from, wait->sample.stack);
	if (p)
		sampler_stack_hit(sampler, p, &stack);
	return profile_stack(to, &stack, ret_stack);
}

static int add_to(struct sampler *sampler, const struct wait *wait, struct profile *to)
{
	struct profile_sample sample = wait->sample;
	int err = copy_stack(sampler, wait, to, &sample.stack);

	return err ? err : profile_add(to, &sample);
}

/* WAIT has ended, after WAIT_NS. */
static void add_wait(struct sampler *sampler, struct wait *wait, uint64_t wait_ns, uint32_t window)
{
	struct profile *tap;
	size_t iterator = 0;

	waits_weigh(&sampler->waits, wait_ns, &wait->sample.count, &wait->sample.weight);
	if (add_to(sampler, wait, windows_profile(sampler->windows, window))) {
		metrics_add(&sampler->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
		return;
	}
	metrics_add(&sampler->metrics, METRIC_SAMPLES_OFF_CPU, 1);
	while ((tap = windows_next_tap(sampler->windows, wait->sample.pid, &iterator))) {
		if (add_to(sampler, wait, tap))
			metrics_add(&sampler->metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

void sampler_wait_resolved(struct sampler *sampler, const struct abi_switch_out *switch_out,
	const struct profile_sample *sample)
{
	struct wait *wait =
		waits_find(&sampler->waits, switch_out->sample.tid, switch_out->left_ns);

	if (!wait)
		return;
	wait->sample = *sample;
	wait->window = windows_number(sampler->windows, switch_out->sample.window);
	if (wait->state == WAIT_BEGUN) {
		wait->state = WAIT_RESOLVED;
		return;
	}
	assert(wait->state == WAIT_ENDED);
	add_wait(sampler, wait, wait->wait_ns, wait->window);
	waits_forget(&sampler->waits, wait);
}

void sampler_wait_ends(struct sampler *sampler, const struct abi_wake *wake)
{
	struct wait *wait = waits_find(&sampler->waits, wake->tid, wake->left_ns);

	/* Its process is not wanted, or its beginning was lost, and is counted. */
	if (!wait || wait->state == WAIT_ENDED)
		return;
	if (wait->state == WAIT_BEGUN) {
		wait->state = WAIT_ENDED;
		wait->wait_ns = wake->wait_ns;
		return;
	}
	add_wait(sampler, wait, wake->wait_ns, wake->window);
	waits_forget(&sampler->waits, wait);
}

void sampler_waits_move(struct sampler *sampler, uint32_t window)
{
	struct wait *wait;
	size_t i = 0;

	while ((wait = waits_next(&sampler->waits, &i))) {
		if (wait->state != WAIT_RESOLVED || wait->window != window)
			continue;
		if (copy_stack(sampler, wait, windows_profile(sampler->windows, 0),
			    &wait->sample.stack)) {
			metrics_add(&sampler->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
			waits_forget(&sampler->waits, wait);
			continue;
		}
		wait->window = windows_number(sampler->windows, 0);
	}
}
