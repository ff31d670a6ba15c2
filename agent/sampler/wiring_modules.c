/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wires module indexes, runtimes and JIT maps: tells them of indexes that arrived, programs that
 * were executed and processes that ended. Nothing else is decided here.
 */
#include "agent/sampler/sampler_internal.h"
#include "symbolizer/index/functions.h"

/* ---- runtimes ------------------------------------------------------------------------------- */

/*
 * The load bias of MAPPING, which has code of INDEX's file. Its first page may begin before the
 * segment does.
 */
static bool load_bias_of(
	const struct mapping *mapping, const struct index *index, uint64_t *ret_bias)
{
	for (size_t i = 0; i < index_segment_count(index); i++) {
		struct index_segment s = index_segment(index, i);

		if (s.file_off - mapping->file_off >= mapping->end - mapping->start &&
			mapping->file_off - s.file_off >= s.size)
			continue;
		*ret_bias = mapping->start + s.file_off - mapping->file_off - s.address;
		return true;
	}
	return false;
}

/* Where P has M, whose index is INDEX. Returns false if it does not map its code. */
static bool load_bias_in(const struct process *p, const struct module *m, const struct index *index,
	uint64_t *ret_bias)
{
	for (size_t i = 0; i < mappings_count(p->mappings); i++) {
		const struct mapping *mapping = mappings_at(p->mappings, i);

		if (mapping->module == m && load_bias_of(mapping, index, ret_bias))
			return true;
	}
	return false;
}

/* Configures the runtime that M brings to P, if its index has arrived: its program or a library. */
static void runtime_of_module(
	struct sampler *sampler, const struct process *p, const struct module *m)
{
	const struct index *index = m ? module_indexes_get(sampler->module_indexes, m) : NULL;
	uint64_t bias;
	bool is_mapped;

	if (!index || p->ended || !runtimes_has(&sampler->runtimes, index))
		return;
	is_mapped = load_bias_in(p, m, index, &bias);
	if (!is_mapped && m != p->executable)
		return;
	runtimes_program(&sampler->runtimes, &(struct runtime_program){
						     .pid = p->pid,
						     .generation = p->number,
						     .exec_id = process_exec_id(p),
						     .index = index,
						     .is_library = m != p->executable,
						     .load_bias = is_mapped ? &bias : NULL,
					     });
}

void sampler_runtime_mapped(
	struct sampler *sampler, const struct process *p, const struct mapping *mapping)
{
	runtime_of_module(sampler, p, mapping->module);
}

void sampler_runtime_forked(
	struct sampler *sampler, const struct process *parent, const struct process *child)
{
	runtimes_forked(&sampler->runtimes, parent->number, child->pid, child->number);
}

static int on_runtime(void *context, uint32_t tgid, const struct abi_runtime_process *how)
{
	const struct sampler *sampler = context;

	return collect_set_runtime(sampler->collect, tgid, how);
}

static void on_runtime_gone(void *context, uint32_t tgid)
{
	const struct sampler *sampler = context;

	if (sampler->collect)
		collect_remove_runtime(sampler->collect, tgid);
}

int sampler_runtimes_init(struct sampler *sampler)
{
	return runtimes_init(&sampler->runtimes, &(struct runtimes_options){
							 .set = on_runtime,
							 .remove = on_runtime_gone,
							 .context = sampler,
							 .metrics = &sampler->metrics,
						 });
}

void sampler_process_ended(struct sampler *sampler, struct process *p)
{
	runtimes_ended(&sampler->runtimes, p->number);
	if (sampler->unwind)
		unwind_forget(sampler->unwind, p);
	jit_maps_ended(sampler->jit_maps, p);
}

/* ---- indexes -------------------------------------------------------------------------------- */

enum unwind_module sampler_module_state(
	void *context, const struct module *m, const struct index **ret_index)
{
	const struct sampler *sampler = context;
	const struct index *index = module_indexes_get(sampler->module_indexes, m);

	if (index) {
		*ret_index = index;
		return UNWIND_MODULE_READY;
	}
	return module_indexes_is_absent(sampler->module_indexes, m) ? UNWIND_MODULE_NONE
								    : UNWIND_MODULE_WAITING;
}

static void on_index_answered(void *context, struct module *m, const struct index *index)
{
	struct sampler *sampler = context;
	struct process *p;
	size_t iterator = 0;

	pending_walks_module_known(&sampler->walks);
	if (!index || !runtimes_has(&sampler->runtimes, index))
		return;
	while ((p = processes_next(sampler->processes, &iterator)) != NULL)
		runtime_of_module(sampler, p, m);
}

static void on_index_replaced(void *context, const struct module *m, const struct index *index)
{
	struct sampler *sampler = context;

	symbolize_index_replaced(sampler->symbolize);
	/* One that was asked for without functions may have them. */
	if (index_has_functions(index))
		sampler_latency_index(sampler, m, index);
	if (sampler->unwind)
		unwind_replace_index(sampler->unwind, m, index);
}

static void on_functions(void *context, struct module *m, const struct index *index)
{
	sampler_latency_index(context, m, index);
}

static bool on_wants_file(void *context, const struct module *m)
{
	const struct sampler *sampler = context;

	return sampler->wants_file(sampler->sealed_context, &m->id);
}

static void on_take_file(void *context, const struct module *m, int fd)
{
	const struct sampler *sampler = context;

	sampler->take_file(sampler->sealed_context, &m->id, fd);
}

int sampler_module_indexes_create(struct sampler *sampler)
{
	return module_indexes_create(
		&(struct module_indexes_options){
			.requests = {
				.opener = { .proc_fd = sampler->proc_fd,
					.build_ids = &sampler->build_ids.reader },
				.processes = sampler->processes,
				.builds = sampler->builds,
				.debug_directories = sampler->debug_directories,
				.metrics = &sampler->metrics,
			},
			.cache = sampler->cache,
			.servers_asked = sampler->debuginfod != NULL,
			.limit = SAMPLER_MODULES_LIMIT,
			.answered = on_index_answered,
			.replaced = on_index_replaced,
			.functions = on_functions,
			.wants_file = sampler->wants_file ? on_wants_file : NULL,
			.take_file = sampler->wants_file ? on_take_file : NULL,
			.context = sampler,
		},
		&sampler->module_indexes);
}

void sampler_offer_files_again(struct sampler *sampler)
{
	module_indexes_offer_files_again(sampler->module_indexes);
}

void sampler_stack_hit(
	struct sampler *sampler, struct process *p, const struct profile_stack *stack)
{
	if (!module_indexes_wants_known_stacks(sampler->module_indexes))
		return;
	for (uint32_t i = stack->kernel_count; i < stack->frame_count; i++)
		module_indexes_hit_again(sampler->module_indexes, p, stack->frames[i].module);
}

void sampler_request_program(struct sampler *sampler, struct process *p)
{
	module_indexes_hit_program(sampler->module_indexes, p);
	runtime_of_module(sampler, p, p->executable);
}

/*
 * A program that was indexed before has its index in the cache, so its runtime can be read at once.
 * Otherwise the index is built at the program's first sample.
 */
void sampler_program_known(struct sampler *sampler, struct process *p)
{
	module_indexes_executed(sampler->module_indexes, p->executable);
	runtime_of_module(sampler, p, p->executable);
}
