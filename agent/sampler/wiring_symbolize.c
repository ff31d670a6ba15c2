/* SPDX-License-Identifier: Apache-2.0 */
/* Wires what names frames to the rooms that know the names. Nothing is decided here. */
#include "agent/sampler/sampler_internal.h"
#include "symbolizer/kallsyms/link_address.h"

static const struct index *on_index(void *context, const struct module *m)
{
	const struct sampler *sampler = context;

	return module_indexes_get(sampler->module_indexes, m);
}

static struct module *kernel_module(const struct sampler *sampler)
{
	const struct module_id none = { 0 };
	struct module *module;

	return modules_get(sampler->modules, MODULE_KERNEL, &none, "[kernel.kallsyms]", &module)
		       ? NULL
		       : module;
}

static const struct index *on_kernel_index(void *context)
{
	const struct sampler *sampler = context;
	const struct module *module = sampler->kernel_debuginfo ? kernel_module(sampler) : NULL;

	return module ? module_indexes_get(sampler->module_indexes, module) : NULL;
}

void sampler_want_kernel_lines(struct sampler *sampler)
{
	struct module *module;
	const struct kallsyms *symbols;
	uint64_t start, end;

	if (!sampler->kernel_debuginfo || !kernel_symbols_are_read(sampler->kernel_symbols))
		return;
	symbols = kernel_symbols_table(sampler->kernel_symbols);
	module = kernel_module(sampler);
	if (symbols && module && link_address_text(symbols, &start, &end))
		module_indexes_hit_kernel(sampler->module_indexes, module, start, end);
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
			.kernel_index = on_kernel_index,
			.looks_up = on_looks_up,
			.perf_map = on_perf_map,
			.runtime_names = on_runtime_names,
			.context = sampler,
		},
		&sampler->symbolize);
}
