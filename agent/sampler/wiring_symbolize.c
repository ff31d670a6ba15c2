/* SPDX-License-Identifier: Apache-2.0 */
/* Wires what names frames to the rooms that know the names. Nothing is decided here. */
#include "agent/sampler/sampler_internal.h"

static const struct index *on_index(void *context, const struct module *m)
{
	const struct sampler *sampler = context;

	return module_indexes_get(sampler->module_indexes, m);
}

static void on_looks_up(void *context)
{
	struct sampler *sampler = context;

	memory_guard_count_lookup(&sampler->memory_guard);
}

static const struct perf_map *on_perf_map(void *context, uint32_t process)
{
	const struct sampler *sampler = context;
	struct process *p = processes_find(sampler->processes, process);

	return p ? jit_maps_get(sampler->jit_maps, p) : NULL;
}

static void on_runtime_names(
	void *context, uint32_t process, const struct abi_frame *frame, struct runtime_names *names)
{
	const struct sampler *sampler = context;
	const struct process *p = processes_find(sampler->processes, process);

	if (p)
		runtimes_names(&sampler->runtimes,
			&(struct runtime_frame){
				.pid = p->pid, .generation = p->number, .frame = *frame },
			names);
}

int sampler_symbolize_create(struct sampler *sampler)
{
	return symbolize_create(
		&(struct symbolize_options){
			.modules = sampler->modules,
			.index = on_index,
			.looks_up = on_looks_up,
			.perf_map = on_perf_map,
			.runtime_names = on_runtime_names,
			.context = sampler,
		},
		&sampler->symbolize);
}
