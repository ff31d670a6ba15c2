/* SPDX-License-Identifier: Apache-2.0 */
/* Wires traced calls to processes and indexes. Nothing is decided here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/sampler/probes/kernel_trace/kernel_trace.h"
#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/sampler_trace.h"
#include "base/cleanup.h"
#include "base/foreign.h"

void sampler_trace_event(struct sampler *sampler, const struct abi_trace_event *event)
{
	if (sampler->trace.event)
		sampler->trace.event(sampler->trace.context, event);
}

void sampler_trace_exit(struct sampler *sampler, uint32_t pid, uint32_t tid)
{
	if (sampler->trace.exit)
		sampler->trace.exit(sampler->trace.context, pid, tid);
}

void sampler_trace_upkeep(struct sampler *sampler)
{
	const struct trace_sweep_maps user = { trace_probe_name(), "trace_tasks", "trace_levels" };
	const struct trace_sweep_maps kernel = { kernel_trace_probe_name(), "kernel_tasks",
		"kernel_levels" };

	if (!sampler->trace.event || !sampler->latency)
		return;
	trace_sweep(sampler->collect, &user, &sampler->trace_swept);
	trace_sweep(sampler->collect, &kernel, &sampler->kernel_trace_swept);
}

void sampler_trace_chosen(void *context, const struct probed_chosen *file,
	const struct probed_function *functions, size_t count)
{
	struct sampler *sampler = context;
	struct probed_chosen rooted = *file;
	autoclose int root_fd = -1;
	char root[32];

	/* Without it only our own debug files are found. */
	snprintf(root, sizeof(root), "%" PRIu32 "/root", file->pid);
	if (file->pid)
		(void)foreign_open(
			&(struct foreign_path){
				.place = FOREIGN_DIRECTORY,
				.dir_fd = sampler->proc_fd,
				.name = root,
			},
			&root_fd);
	rooted.root_fd = root_fd;
	sampler->trace.chosen(sampler->trace.context, sampler, &rooted, functions, count);
}

int sampler_trace_fetch(struct sampler *sampler, uint32_t number, const struct argument_plan *entry,
	const struct argument_plan *results)
{
	return trace_fetches_add(&sampler->trace_fetches, sampler->collect, number, entry, results);
}

struct cache *sampler_trace_cache(struct sampler *sampler)
{
	return sampler->cache;
}

static void trace_find_line(
	const struct sampler *sampler, const struct module *module, struct sampler_place *place)
{
	const struct index *index = module_indexes_get(sampler->module_indexes, module);
	struct index_frame frames[1];
	uint64_t address;
	size_t segment;

	if (!index || !index_address(index, place->address, &address, &segment) ||
		!index_lookup(index, address, frames, 1) || !*frames[0].file)
		return;
	place->kind = SAMPLER_PLACE_LINE;
	place->file = frames[0].file;
	place->line = frames[0].line;
}

struct sampler_place sampler_trace_place(
	struct sampler *sampler, uint32_t pid, uint64_t return_address)
{
	const struct process *p = processes_of_pid(sampler->processes, pid);
	struct sampler_place place = { .kind = SAMPLER_PLACE_UNKNOWN };
	const struct mapping *mapping;

	if (!p || !return_address)
		return place;
	mapping = mappings_find(p->mappings, return_address - 1);
	if (!mapping || mapping->module->kind != MODULE_FILE)
		return place;
	place.kind = SAMPLER_PLACE_MODULE;
	place.module = mapping->module->path ? mapping->module->path : "";
	place.address = mapping_file_off(mapping, return_address - 1);
	trace_find_line(sampler, mapping->module, &place);
	return place;
}

struct sampler_place sampler_trace_kernel_place(struct sampler *sampler, uint64_t kaddr)
{
	const struct kallsyms *symbols = kernel_symbols_table(sampler->kernel_symbols);
	struct sampler_place place = { .kind = SAMPLER_PLACE_UNKNOWN };
	struct ksymbol symbol;

	/* A BPF program or trampoline has called it, whose names are not those of functions. */
	if (!kaddr || !symbols || !kallsyms_lookup(symbols, kaddr - 1, &symbol) ||
		!strcmp(symbol.module, "bpf"))
		return place;
	return (struct sampler_place){
		.kind = SAMPLER_PLACE_KERNEL,
		.module = symbol.module,
		.symbol = symbol.name,
		.address = kaddr - symbol.start,
	};
}

/* ---- processes that run a file ----------------------------------------------------------------
 */

enum { TRACED_SET = 1 << 0, TRACED_PROCESS = 1 /* any number */ };

void sampler_trace_program(struct sampler *sampler, const struct process *p)
{
	const struct function_pattern *program = sampler->trace.program;
	int err;

	if (!program || !sampler->latency || p->ended)
		return;
	if (!function_pattern_names_file(program, process_program_path(p))) {
		latency_forget_process(sampler->latency, p->pid);
		return;
	}
	err = latency_set_process(sampler->latency, p->pid, TRACED_SET, TRACED_PROCESS);
	if (err)
		log_warn("a process cannot be added to those that are traced", "error=\"%s\"",
			strerror(-err));
}

void sampler_trace_ended(struct sampler *sampler, const struct process *p)
{
	if (sampler->trace.program && sampler->latency)
		latency_forget_process(sampler->latency, p->pid);
}

/* ---- figures -----------------------------------------------------------------------------------
 */

void sampler_trace_counts(const struct sampler *sampler, struct trace_counts *ret_counts)
{
	trace_read_counts(sampler->collect, ret_counts);
	if (sampler->kernel_functions)
		ret_counts->missed += kernel_functions_missed(sampler->kernel_functions);
}
