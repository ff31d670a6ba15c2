/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wires the rooms that a sample passes through: intake, pending walks, resolver, aggregator, unwind
 * tables. Their callbacks are forwarded to the room in question; nothing is decided here.
 */
#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/collect/tables.h"
#include "agent/sampler/probes/probes.h"
#include "base/cgroup_path.h"

int sampler_unwind_create(struct sampler *sampler, uint32_t without)
{
	struct tables *tables = collect_tables(sampler->collect);
	struct unwind_options options = {
		.target = {
			.write_ranges = tables_write_ranges,
			.write_pool = tables_write_pool,
			.set_process = tables_set_process,
			.remove_process = tables_remove_process,
			.set_epoch = tables_set_epoch,
			.set_rules_epoch = tables_set_rules_epoch,
			.set_full = tables_set_full,
			.context = tables,
		},
		.metrics = &sampler->metrics,
		.wide_rules = without & MECHANISM_PACKED_RULES,
		.module = sampler_module_state,
		.context = sampler,
	};

	if (!tables)
		return 0;
	options.target.slots = tables_slots(tables);
	if (tables_by_file(tables)) {
		options.target.set_file = tables_set_file;
		options.target.remove_file = tables_remove_file;
		options.target.set_files_epoch = tables_set_files_epoch;
	}
	return unwind_create(&options, &sampler->unwind);
}

static const struct abi_stack *on_raw_stack(void *context, uint32_t window, uint64_t id)
{
	const struct sampler *sampler = context;

	return windows_get_raw(sampler->windows, window, id);
}

static const struct abi_fiber_facts *on_raw_facts(void *context, uint32_t window, uint64_t id)
{
	const struct sampler *sampler = context;

	return windows_get_raw_facts(sampler->windows, window, id);
}

static void on_sampled(void *context, uint32_t window, uint64_t time_ns)
{
	const struct sampler *sampler = context;

	windows_sampled(sampler->windows, window, time_ns);
	module_indexes_set_time(sampler->module_indexes, time_ns);
}

static void on_taken(void *context, struct process *p, const struct abi_sample *sample)
{
	struct sampler *sampler = context;

	module_indexes_set_cgroup(sampler->module_indexes, sample->cgroup_id);
	aggregator_take(&sampler->aggregator, sample);
	runtimes_bind(&sampler->runtimes, p->number, process_exec_id(p));
}

static void on_add(void *context, const struct attributed_sample *sample)
{
	struct sampler *sampler = context;

	aggregator_add(&sampler->aggregator, sample);
}

static void on_sample_lost(void *context, const struct abi_sample *s)
{
	struct sampler *sampler = context;

	aggregator_lose(&sampler->aggregator, s);
}

static void on_leave_out(void *context, uint32_t tgid, bool out)
{
	struct sampler *sampler = context;
	struct tables *tables = sampler->collect ? collect_tables(sampler->collect) : NULL;

	if (tables)
		tables_leave_out(tables, tgid, out);
	if (sampler->intake.options.follow_pid)
		sampler_latency_follow(sampler, tgid, !out);
}

static int on_leave_out_cgroup(void *context, uint64_t id, bool out)
{
	struct sampler *sampler = context;

	return sampler->collect ? collect_leave_out_cgroup(sampler->collect, id, out) : 0;
}

static void on_unwanted(void *context, const struct process *p, const struct abi_sample *sample)
{
	struct sampler *sampler = context;

	left_out_cgroups_consider(&sampler->left_out_cgroups, p, sample->cgroup_id);
}

static void on_module_hit(void *context, struct process *p, const struct mapping *mapping)
{
	const struct sampler *sampler = context;

	module_indexes_hit(sampler->module_indexes, p, mapping);
}

static void on_resolver_stack_hit(
	void *context, struct process *p, const struct profile_stack *stack)
{
	sampler_stack_hit(context, p, stack);
}

static void on_jit_hit(void *context, struct process *p)
{
	const struct sampler *sampler = context;

	jit_maps_hit(sampler->jit_maps, p, intake_newest_sample_ns(&sampler->intake));
}

static bool on_request_module(void *context, struct process *p, const struct mapping *mapping)
{
	const struct sampler *sampler = context;

	module_indexes_hit(sampler->module_indexes, p, mapping);
	return module_indexes_is_awaited(sampler->module_indexes, mapping->module) ||
	       module_indexes_may_come(sampler->module_indexes, mapping->module);
}

static void on_want_module(void *context, const struct module *module)
{
	struct sampler *sampler = context;

	builds_want(sampler->builds, module->number);
}

static void on_walked(void *context)
{
	struct sampler *sampler = context;

	memory_guard_count_lookup(&sampler->memory_guard);
}

static void on_runtime_hit(void *context, const struct process *p, const struct abi_frame *frame)
{
	const struct sampler *sampler = context;

	runtimes_sampled(&sampler->runtimes,
		&(struct runtime_frame){ .pid = p->pid, .generation = p->number, .frame = *frame });
}

static struct profile *on_profile(void *context, uint32_t window)
{
	const struct sampler *sampler = context;

	return windows_profile(sampler->windows, window);
}

static struct profile *on_next_tap(void *context, uint32_t pid, size_t *iterator)
{
	const struct sampler *sampler = context;

	return windows_next_tap(sampler->windows, pid, iterator);
}

static void on_left(void *context, const struct abi_switch_out *switch_out)
{
	const struct sampler *sampler = context;

	waits_left(sampler->waits, switch_out);
}

static bool on_wants_switch_out(void *context, const struct abi_switch_out *switch_out)
{
	const struct sampler *sampler = context;

	return waits_wants(sampler->waits, switch_out);
}

static void on_switch_out_resolved(
	void *context, const struct abi_switch_out *switch_out, const struct profile_sample *sample)
{
	const struct sampler *sampler = context;

	waits_resolved(sampler->waits, switch_out, sample);
}

static void on_switch_out_lost(void *context, const struct abi_switch_out *switch_out)
{
	const struct sampler *sampler = context;

	waits_lost(sampler->waits, switch_out);
}

static void sampler_aggregator_init(struct sampler *sampler)
{
	aggregator_init(&sampler->aggregator, &(struct aggregator_options){
						      .resolver = &sampler->resolver,
						      .metrics = &sampler->metrics,
						      .call_type = PROBE_latency_stacks,
						      .raw_facts = on_raw_facts,
						      .profile = on_profile,
						      .next_tap = on_next_tap,
						      .left = on_left,
						      .wants = on_wants_switch_out,
						      .resolved = on_switch_out_resolved,
						      .lost = on_switch_out_lost,
						      .context = sampler,
					      });
}

int sampler_samples_init(struct sampler *sampler, const struct sampler_options *options)
{
	stack_resolver_init(&sampler->resolver, &(struct stack_resolver_options){
							.kernel_symbols = sampler->kernel_symbols,
							.metrics = &sampler->metrics,
							.raw_stack = on_raw_stack,
							.module_hit = on_module_hit,
							.stack_hit = on_resolver_stack_hit,
							.jit_hit = on_jit_hit,
							.runtime_hit = on_runtime_hit,
							.context = sampler,
						});
	sampler_aggregator_init(sampler);
	pending_walks_init(&sampler->walks,
		&(struct pending_walks_options){
			.unwind = sampler->unwind,
			.processes = sampler->processes,
			.metrics = &sampler->metrics,
			.limit_bytes = pending_walks_limit(options->collect.frequency_hz,
				options->collect.call_stacks ? 1 : options->collect.off_cpu_share,
				options->memory_limit_bytes),
			.whole_stacks = options->collect.without & MECHANISM_PACKED_STACKS,
			.module_state = sampler_module_state,
			.request_module = on_request_module,
			.want_module = on_want_module,
			.walked = on_walked,
			.add = on_add,
			.lost = on_sample_lost,
			.context = sampler,
		});
	sampler->sifting = (struct sifting){
		.choosing = &sampler->intake.choosing,
		.processes = sampler->processes,
		.metrics = &sampler->metrics,
	};
	left_out_cgroups_init(
		&sampler->left_out_cgroups, &(struct left_out_cgroups_options){
						    .choosing = &sampler->intake.choosing,
						    .path_of = cgroup_path,
						    .leave_out = on_leave_out_cgroup,
						    .context = sampler,
					    });
	return intake_init(
		&sampler->intake, &(struct intake_options){
					  .processes = sampler->processes,
					  .unwind = sampler->unwind,
					  .walks = &sampler->walks,
					  .metrics = &sampler->metrics,
					  .follow_pid = options->follow ? options->follow_pid : 0,
					  .raw_stack = on_raw_stack,
					  .leave_out = on_leave_out,
					  .unwanted = on_unwanted,
					  .sampled = on_sampled,
					  .taken = on_taken,
					  .add = on_add,
					  .context = sampler,
				  });
}

void sampler_samples_deinit(struct sampler *sampler)
{
	pending_walks_deinit(&sampler->walks);
	left_out_cgroups_deinit(&sampler->left_out_cgroups);
	intake_deinit(&sampler->intake);
}
