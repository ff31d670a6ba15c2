/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wires the process table to the rooms that follow processes: JIT maps, runtimes, unwind tables.
 * Nothing is decided here.
 */
#include "agent/sampler/sampler_internal.h"

enum {
	PROCESSES_LIMIT = 262144,
	JIT_MAPS_LIMIT = 4 * PROCESSES_LIMIT, /* process generations, ended ones included */
};

static void on_program(void *context, struct process *p)
{
	struct sampler *sampler = context;

	sampler->news = true;
	sampler_program_known(context, p);
	sampler_trace_program(context, p);
	if (sampler->latency_probes)
		latency_probes_process(sampler->latency_probes, p);
}

static void on_ended(void *context, struct process *p)
{
	const struct sampler *sampler = context;

	if (sampler->latency_probes)
		latency_probes_ended(sampler->latency_probes, p);
	sampler_process_ended(context, p);
	if (!p->superseded) {
		sampler_trace_ended(context, p);
		sampler_latency_process_ends(context, p->pid);
	}
}

static void on_mapped(void *context, struct process *p, const struct mapping *mapping)
{
	struct sampler *sampler = context;

	sampler->news = true;
	sampler_runtime_mapped(context, p, mapping);
	sampler_latency_mapped(context, p, mapping);
}

static void on_forked(void *context, struct process *parent, struct process *child)
{
	struct sampler *sampler = context;

	sampler_runtime_forked(sampler, parent, child);
	sampler_latency_process_begins(sampler, child->pid);
	sampler_trace_program(sampler, child);
	jit_maps_forked(
		sampler->jit_maps, parent, child, intake_newest_sample_ns(&sampler->intake));
	if (sampler->latency_probes)
		latency_probes_process(sampler->latency_probes, child);
}

static void on_forget(void *context, struct process *p)
{
	const struct sampler *sampler = context;

	jit_maps_forget(sampler->jit_maps, p);
}

int sampler_processes_create(struct sampler *sampler)
{
	int err = processes_create(
		&(struct processes_options){
			.proc_fd = sampler->proc_fd,
			.modules = sampler->modules,
			.build_ids = &sampler->build_ids.reader,
			.metrics = &sampler->metrics,
			.limit = PROCESSES_LIMIT,
			.program = on_program,
			.ended = on_ended,
			.mapped = on_mapped,
			.forked = on_forked,
			.forget = on_forget,
			.context = sampler,
		},
		&sampler->processes);

	return err ? err
		   : jit_maps_create(
			     &(struct jit_maps_options){
				     .proc_fd = sampler->proc_fd,
				     .processes = sampler->processes,
				     .metrics = &sampler->metrics,
				     .limit = JIT_MAPS_LIMIT,
			     },
			     &sampler->jit_maps);
}
