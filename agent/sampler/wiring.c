/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wires the rooms that a sample passes through. What they ask for is forwarded to the room that has
 * it; nothing is decided here.
 */
#include "agent/sampler/sampler_internal.h"

static const struct abi_stack *on_raw_stack(void *context, uint32_t window, uint64_t id)
{
	return sampler_raw_stack(context, window, id);
}

static void on_module_hit(void *context, struct process *p, const struct mapping *mapping)
{
	const struct sampler *sampler = context;

	module_indexes_hit(sampler->module_indexes, p, mapping);
}

static void on_stack_hit(void *context, struct process *p, const struct profile_stack *stack)
{
	sampler_stack_hit(context, p, stack);
}

static void on_jit_hit(void *context, struct process *p)
{
	const struct sampler *sampler = context;

	jit_maps_hit(sampler->jit_maps, p, sampler->newest_sample_ns);
}

void sampler_samples_init(struct sampler *sampler)
{
	stack_resolver_init(&sampler->resolver, &(struct stack_resolver_options){
							.kernel_symbols = sampler->kernel_symbols,
							.metrics = &sampler->metrics,
							.raw_stack = on_raw_stack,
							.module_hit = on_module_hit,
							.stack_hit = on_stack_hit,
							.jit_hit = on_jit_hit,
							.context = sampler,
						});
}
