/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the waits to windows, processes and module indexes. Nothing is decided here. */
#include "agent/sampler/sampler_internal.h"

static struct profile *on_profile(void *context, uint32_t number, uint32_t *ret_number)
{
	const struct sampler *sampler = context;

	*ret_number = windows_number(sampler->windows, number);
	return windows_profile(sampler->windows, number);
}

static struct profile *on_next_tap(void *context, uint32_t pid, size_t *iterator)
{
	const struct sampler *sampler = context;

	return windows_next_tap(sampler->windows, pid, iterator);
}

static void on_waits_stack_hit(void *context, uint32_t process, const struct profile_stack *stack)
{
	struct sampler *sampler = context;
	struct process *p = processes_find(sampler->processes, process);

	if (p)
		sampler_stack_hit(sampler, p, stack);
}

int sampler_waits_create(struct sampler *sampler, double off_cpu_share)
{
	return waits_create(
		&(struct waits_options){
			.share = off_cpu_share > 0 ? off_cpu_share : 1,
			.metrics = &sampler->metrics,
			.handlers = {
				.profile = on_profile,
				.next_tap = on_next_tap,
				.stack_hit = on_waits_stack_hit,
				.context = sampler,
			},
		},
		&sampler->waits);
}
