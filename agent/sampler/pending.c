/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples whose walk the kernel did not finish, because a module's tables were not loaded. They are
 * finished here, with the registers and the piece of stack that came along. One that needs a module
 * whose index is still being built waits for it, with the mappings of its instant; what waits is
 * bounded, and a window that is sealed waits for nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/collect/tables.h"
#include "agent/sampler/unwind/stack_pack.h"
#include "base/cleanup.h"

enum {
	WAITING_LIMIT_BYTES = 2 << 20,
	WAITING_PART = 8, /* of our own memory, at most one in so many bytes */
	/* Where all waits are sampled: threads leave the CPU more often than it ticks. */
	WAITING_OFF_CPU_BYTES = 32 << 20,
};

/* From here on, walks that have to wait are still taken in, but none is asked for. */
static size_t waiting_enough(const struct agent *agent)
{
	return agent->waiting_limit_bytes / 4 * 3;
}

struct waiting_sample {
	struct waiting_sample *next;
	size_t bytes;
	uint32_t process; /* generation number */
	const struct module *module; /* what it waits for */
	struct mappings *mappings;
	uint32_t frame_count; /* of the frames that the kernel found */
	uint32_t packed_bytes; /* of the stack */
	struct abi_unfinished unfinished; /* the frames follow, then the packed stack */
};

static abi_u64 *frames_of(struct waiting_sample *w)
{
	return (abi_u64 *)(w + 1);
}

static uint8_t *packed_of(struct waiting_sample *w)
{
	return (uint8_t *)(frames_of(w) + w->frame_count);
}

static enum unwind_module state_of(
	void *context, const struct module *m, const struct index **ret_index)
{
	const struct agent_module *data = m->owner_data;

	(void)context;
	if (data && data->index) {
		*ret_index = data->index;
		return UNWIND_MODULE_READY;
	}
	return data && data->retry_ns ? UNWIND_MODULE_NONE : UNWIND_MODULE_WAITING;
}

int agent_unwind_create(struct agent *agent, double off_cpu_share)
{
	struct tables *tables = collect_tables(agent->collect);
	struct unwind_options options = {
		.target = {
			.write_ranges = tables_write_ranges,
			.write_pool = tables_write_pool,
			.set_process = tables_set_process,
			.remove_process = tables_remove_process,
			.set_epoch = tables_set_epoch,
			.set_rules_turn = tables_set_rules_turn,
			.set_full = tables_set_full,
			.context = tables,
		},
		.metrics = &agent->metrics,
		.module = state_of,
		.context = agent,
	};

	agent->waiting_limit_bytes =
		WAITING_LIMIT_BYTES + (size_t)(off_cpu_share * WAITING_OFF_CPU_BYTES);
	if (agent->memory_limit_bytes)
		agent->waiting_limit_bytes = (size_t)MIN((uint64_t)agent->waiting_limit_bytes,
			agent->memory_limit_bytes / WAITING_PART);
	if (!tables)
		return 0;
	options.target.slots = tables_slots(tables);
	if (tables_by_file(tables)) {
		options.target.set_file = tables_set_file;
		options.target.remove_file = tables_remove_file;
		options.target.set_files_turn = tables_set_files_turn;
	}
	return unwind_create(&options, &agent->unwind);
}

static void free_waiting(struct agent *agent, struct waiting_sample *w)
{
	agent->waiting_bytes -= w->bytes;
	if (agent->waiting_bytes < waiting_enough(agent) / 2 && agent->unwind)
		unwind_pause(agent->unwind, false);
	mappings_unref(w->mappings);
	free(w);
}

void agent_unwind_destroy(struct agent *agent)
{
	while (agent->waiting_samples) {
		struct waiting_sample *w = agent->waiting_samples;

		agent->waiting_samples = w->next;
		free_waiting(agent, w);
	}
	unwind_destroy(agent->unwind);
	agent->unwind = NULL;
}

void agent_unwind_sampled(struct agent *agent, const struct process *p, const struct abi_sample *s)
{
	if (!agent->unwind)
		return;
	if (s->unwind_missed)
		unwind_want(agent->unwind, s->unwind_missed - 1);
	if (process_is_settled(p))
		(void)unwind_sync(agent->unwind, p, s->exec_id);
}

void agent_unwind_leave_out(struct agent *agent, uint32_t tgid, bool out)
{
	struct tables *tables = agent->collect ? collect_tables(agent->collect) : NULL;

	if (tables)
		tables_leave_out(tables, tgid, out);
}

/* ---- finishing ------------------------------------------------------------------------------ */

/* A sample to be finished: as it came, or as it waited. */
struct job {
	struct process *process;
	const struct mappings *mappings;
	const struct abi_unfinished *unfinished;
	const abi_u64 *frames; /* that the kernel found */
	uint32_t frame_count;
	bool force;
};

/* Walks on, asking for the modules it meets. The one to wait for, or NULL: STACK is final. */
static const struct module *walk(
	struct agent *agent, const struct job *job, struct unwind_stack *stack)
{
	bool force = job->force;

	for (;;) {
		const struct index *index;
		const struct mapping *waits;

		stack->count = MIN(job->frame_count, (uint32_t)ABI_MAX_FRAMES);
		memcpy(stack->frames, job->frames, stack->count * sizeof(stack->frames[0]));
		waits = unwind_finish(agent->unwind, job->mappings, &job->unfinished->rest,
			job->unfinished->stack, force, stack);
		if (!waits)
			return NULL;
		agent_module_hit(agent, job->process, waits);
		if (state_of(NULL, waits->module, &index) != UNWIND_MODULE_WAITING)
			continue;
		if (waits->module->requested)
			return waits->module;
		/* Its file is not to be had, and so it will not come. */
		force = true;
	}
}

static void add(struct agent *agent, const struct job *job, const struct unwind_stack *stack)
{
	metrics_add(&agent->metrics, METRIC_UNWIND_FINISHED, 1);
	if (stack->end == ABI_UNWIND_UNKNOWN_MAPPING)
		unwind_settle(agent->unwind, job->process);
	agent_add_sample(agent, job->process, &job->unfinished->sample, job->mappings, stack);
}

static struct waiting_sample *copy_job(const struct job *job)
{
	const struct abi_unfinished *u = job->unfinished;
	uint32_t stack_bytes = MIN(u->rest.stack_bytes, (abi_u32)ABI_UNFINISHED_STACK_BYTES);
	size_t frame_bytes = job->frame_count * sizeof(job->frames[0]);
	uint8_t packed[STACK_PACK_BOUND(ABI_UNFINISHED_STACK_BYTES)];
	size_t packed_bytes = stack_pack(u->stack, stack_bytes, packed);
	size_t bytes = sizeof(struct waiting_sample) + frame_bytes + packed_bytes;
	struct waiting_sample *w = malloc(bytes);

	if (!w)
		return NULL;
	w->bytes = bytes;
	w->process = job->process->number;
	w->frame_count = job->frame_count;
	w->packed_bytes = (uint32_t)packed_bytes;
	w->unfinished = *u;
	w->unfinished.rest.stack_bytes = stack_bytes;
	memcpy(frames_of(w), job->frames, frame_bytes);
	memcpy(packed_of(w), packed, packed_bytes);
	return w;
}

/* As it came; NULL for want of memory. */
static struct abi_unfinished *unpack(struct waiting_sample *w)
{
	autofree struct abi_unfinished *u = malloc(sizeof(*u) + w->unfinished.rest.stack_bytes);

	if (!u)
		return NULL;
	*u = w->unfinished;
	if (!stack_unpack(packed_of(w), w->packed_bytes, u->stack, u->rest.stack_bytes))
		return NULL;
	return take(u);
}

/* False: no room to wait. */
static bool wait_for(struct agent *agent, const struct job *job, const struct module *module)
{
	struct waiting_sample *w = NULL;

	if (agent->waiting_bytes < agent->waiting_limit_bytes)
		w = copy_job(job);
	if (!w)
		return false;
	w->module = module;
	w->mappings = mappings_ref((struct mappings *)job->mappings);
	w->next = agent->waiting_samples;
	agent->waiting_samples = w;
	agent->waiting_bytes += w->bytes;
	if (agent->waiting_bytes >= waiting_enough(agent))
		unwind_pause(agent->unwind, true);
	return true;
}

static void finish(struct agent *agent, struct job *job)
{
	struct unwind_stack stack;
	const struct module *module = walk(agent, job, &stack);

	agent_keep_indexes_small(agent);
	if (module)
		builds_want(agent->builds, module->number);
	if (module && wait_for(agent, job, module))
		return;
	if (module) {
		metrics_add(&agent->metrics, METRIC_UNWIND_WAITING_REFUSED, 1);
		job->force = true;
		(void)walk(agent, job, &stack);
	}
	add(agent, job, &stack);
}

void agent_unwind_finish(
	struct agent *agent, struct process *p, const struct abi_unfinished *unfinished)
{
	const struct abi_sample *s = &unfinished->sample;
	const struct abi_stack *raw = agent_raw_stack(agent, s->window, s->user_stack);

	if (!agent->unwind || !raw) {
		agent_add_sample(agent, p, s, NULL, NULL);
		return;
	}
	unwind_learn(agent->unwind, p->mappings, &unfinished->rest);
	finish(agent, &(struct job){
			      .process = p,
			      .mappings = p->mappings,
			      .unfinished = unfinished,
			      .frames = raw->frames,
			      .frame_count = raw->frame_count,
		      });
}

void agent_unwind_keep_modules(const struct agent *agent)
{
	const struct waiting_sample *w;

	for (w = agent->waiting_samples; w; w = w->next)
		for (size_t i = 0; i < mappings_count(w->mappings); i++)
			mappings_at(w->mappings, i)->module->used_ns = agent->newest_sample_ns;
}

/* ---- going on ------------------------------------------------------------------------------- */

static void go_on(struct agent *agent, struct waiting_sample *w, bool force)
{
	autofree struct abi_unfinished *unfinished = unpack(w);
	struct process *p = processes_find(agent->processes, w->process);
	struct job job = {
		.process = p,
		.mappings = w->mappings,
		.unfinished = unfinished,
		.frames = frames_of(w),
		.frame_count = w->frame_count,
		.force = force,
	};

	if (p && unfinished)
		finish(agent, &job);
	else
		metrics_add(&agent->metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	free_waiting(agent, w);
}

/* Who goes on of those that wait. */
struct call {
	bool force; /* also those that would have to wait on, */
	uint32_t window; /* of this one; 0 = of all */
	size_t most;
};

/* Lets them. Returns how many; what is over the most may go on the next time. */
static size_t let_go_on(struct agent *agent, const struct call *call)
{
	struct waiting_sample *all = take(agent->waiting_samples), *w;
	size_t count = 0;

	while ((w = all) != NULL) {
		const struct index *index;
		bool of_window = !call->window || w->unfinished.sample.window == call->window;
		bool forced = call->force && of_window;
		bool may = forced || state_of(NULL, w->module, &index) != UNWIND_MODULE_WAITING;

		all = w->next;
		if (may && count < call->most) {
			go_on(agent, w, forced);
			count++;
			continue;
		}
		agent->more_may_go_on |= may;
		w->next = agent->waiting_samples;
		agent->waiting_samples = w;
	}
	return count;
}

void agent_unwind_retry(struct agent *agent, size_t most)
{
	while (most && (agent->module_came || agent->more_may_go_on)) {
		if (agent->module_came && agent->unwind)
			unwind_modules_changed(agent->unwind);
		agent->module_came = agent->more_may_go_on = false;
		most -= let_go_on(agent, &(struct call){ .most = most });
	}
}

void agent_unwind_waited(struct agent *agent, const struct abi_wake *wake)
{
	struct waiting_sample *w;

	for (w = agent->waiting_samples; w; w = w->next) {
		struct abi_sample *s = &w->unfinished.sample;

		if (s->tid != wake->tid || s->period != wake->began_ns ||
			!(s->flags & ABI_SAMPLE_OFF_CPU) || s->flags & AGENT_SAMPLE_WAITED)
			continue;
		s->flags |= AGENT_SAMPLE_WAITED;
		s->period = wake->wait_ns;
		return;
	}
}

void agent_unwind_flush(struct agent *agent, uint32_t window)
{
	(void)let_go_on(agent, &(struct call){ true, window, SIZE_MAX });
}
