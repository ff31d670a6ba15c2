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
static size_t waiting_enough(const struct sampler *sampler)
{
	return sampler->waiting_limit_bytes / 4 * 3;
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
	const struct sampler *sampler = context;
	const struct index *index = module_indexes_get(sampler->module_indexes, m);

	if (index) {
		*ret_index = index;
		return UNWIND_MODULE_READY;
	}
	return module_indexes_is_absent(sampler->module_indexes, m) ? UNWIND_MODULE_NONE
								    : UNWIND_MODULE_WAITING;
}

int sampler_unwind_create(struct sampler *sampler, double off_cpu_share)
{
	const uint64_t memory_limit_bytes = sampler->memory_guard.options.limit_bytes;
	struct tables *tables = collect_tables(sampler->collect);
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
		.metrics = &sampler->metrics,
		.module = state_of,
		.context = sampler,
	};

	sampler->waiting_limit_bytes =
		WAITING_LIMIT_BYTES + (size_t)(off_cpu_share * WAITING_OFF_CPU_BYTES);
	if (memory_limit_bytes)
		sampler->waiting_limit_bytes = (size_t)MIN(
			(uint64_t)sampler->waiting_limit_bytes, memory_limit_bytes / WAITING_PART);
	if (!tables)
		return 0;
	options.target.slots = tables_slots(tables);
	if (tables_by_file(tables)) {
		options.target.set_file = tables_set_file;
		options.target.remove_file = tables_remove_file;
		options.target.set_files_turn = tables_set_files_turn;
	}
	return unwind_create(&options, &sampler->unwind);
}

static void free_waiting(struct sampler *sampler, struct waiting_sample *w)
{
	sampler->waiting_bytes -= w->bytes;
	if (sampler->waiting_bytes < waiting_enough(sampler) / 2 && sampler->unwind)
		unwind_pause(sampler->unwind, false);
	mappings_unref(w->mappings);
	free(w);
}

void sampler_unwind_destroy(struct sampler *sampler)
{
	while (sampler->waiting_samples) {
		struct waiting_sample *w = sampler->waiting_samples;

		sampler->waiting_samples = w->next;
		free_waiting(sampler, w);
	}
	unwind_destroy(sampler->unwind);
	sampler->unwind = NULL;
}

void sampler_unwind_sampled(
	struct sampler *sampler, const struct process *p, const struct abi_sample *s)
{
	if (!sampler->unwind)
		return;
	if (s->unwind_missed)
		unwind_want(sampler->unwind, s->unwind_missed - 1);
	if (process_is_settled(p))
		(void)unwind_sync(sampler->unwind, p, s->exec_id);
}

void sampler_unwind_leave_out(struct sampler *sampler, uint32_t tgid, bool out)
{
	struct tables *tables = sampler->collect ? collect_tables(sampler->collect) : NULL;

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
	struct sampler *sampler, const struct job *job, struct unwind_stack *stack)
{
	bool force = job->force;

	for (;;) {
		const struct index *index;
		const struct mapping *waits;

		stack->count = MIN(job->frame_count, (uint32_t)ABI_MAX_FRAMES);
		memcpy(stack->frames, job->frames, stack->count * sizeof(stack->frames[0]));
		waits = unwind_finish(sampler->unwind, job->mappings, &job->unfinished->rest,
			job->unfinished->stack, force, stack);
		if (!waits)
			return NULL;
		module_indexes_hit(sampler->module_indexes, job->process, waits);
		if (state_of(sampler, waits->module, &index) != UNWIND_MODULE_WAITING)
			continue;
		if (module_indexes_is_awaited(sampler->module_indexes, waits->module))
			return waits->module;
		/* Its file is not to be had, and so it will not come. */
		force = true;
	}
}

static void add(struct sampler *sampler, const struct job *job, const struct unwind_stack *stack)
{
	metrics_add(&sampler->metrics, METRIC_UNWIND_FINISHED, 1);
	if (stack->end == ABI_UNWIND_UNKNOWN_MAPPING)
		unwind_settle(sampler->unwind, job->process);
	sampler_add_sample(sampler, job->process, &job->unfinished->sample, job->mappings, stack);
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
static bool wait_for(struct sampler *sampler, const struct job *job, const struct module *module)
{
	struct waiting_sample *w = NULL;

	if (sampler->waiting_bytes < sampler->waiting_limit_bytes)
		w = copy_job(job);
	if (!w)
		return false;
	w->module = module;
	w->mappings = mappings_ref((struct mappings *)job->mappings);
	w->next = sampler->waiting_samples;
	sampler->waiting_samples = w;
	sampler->waiting_bytes += w->bytes;
	if (sampler->waiting_bytes >= waiting_enough(sampler))
		unwind_pause(sampler->unwind, true);
	return true;
}

static void finish(struct sampler *sampler, struct job *job)
{
	struct unwind_stack stack;
	const struct module *module = walk(sampler, job, &stack);

	memory_guard_count_lookup(&sampler->memory_guard);
	if (module)
		builds_want(sampler->builds, module->number);
	if (module && wait_for(sampler, job, module))
		return;
	if (module) {
		metrics_add(&sampler->metrics, METRIC_UNWIND_WAITING_REFUSED, 1);
		job->force = true;
		(void)walk(sampler, job, &stack);
	}
	add(sampler, job, &stack);
}

void sampler_unwind_finish(
	struct sampler *sampler, struct process *p, const struct abi_unfinished *unfinished)
{
	const struct abi_sample *s = &unfinished->sample;
	const struct abi_stack *raw = sampler_raw_stack(sampler, s->window, s->user_stack);

	if (!sampler->unwind || !raw) {
		sampler_add_sample(sampler, p, s, NULL, NULL);
		return;
	}
	unwind_learn(sampler->unwind, p->mappings, &unfinished->rest);
	finish(sampler, &(struct job){
				.process = p,
				.mappings = p->mappings,
				.unfinished = unfinished,
				.frames = raw->frames,
				.frame_count = raw->frame_count,
			});
}

void sampler_unwind_keep_modules(const struct sampler *sampler)
{
	const struct waiting_sample *w;

	for (w = sampler->waiting_samples; w; w = w->next)
		for (size_t i = 0; i < mappings_count(w->mappings); i++)
			mappings_at(w->mappings, i)->module->used_ns = sampler->newest_sample_ns;
}

/* ---- going on ------------------------------------------------------------------------------- */

static void go_on(struct sampler *sampler, struct waiting_sample *w, bool force)
{
	autofree struct abi_unfinished *unfinished = unpack(w);
	struct process *p = processes_find(sampler->processes, w->process);
	struct job job = {
		.process = p,
		.mappings = w->mappings,
		.unfinished = unfinished,
		.frames = frames_of(w),
		.frame_count = w->frame_count,
		.force = force,
	};

	if (p && unfinished)
		finish(sampler, &job);
	else
		sampler_lose_sample(sampler, &w->unfinished.sample);
	free_waiting(sampler, w);
}

/* Who goes on of those that wait. */
struct call {
	bool force; /* also those that would have to wait on, */
	uint32_t window; /* of this one; 0 = of all */
	size_t most;
};

/* Lets them. Returns how many; what is over the most may go on the next time. */
static size_t let_go_on(struct sampler *sampler, const struct call *call)
{
	struct waiting_sample *all = take(sampler->waiting_samples), *w;
	size_t count = 0;

	while ((w = all) != NULL) {
		const struct index *index;
		bool of_window = !call->window || w->unfinished.sample.window == call->window;
		bool forced = call->force && of_window;
		bool may = forced || state_of(sampler, w->module, &index) != UNWIND_MODULE_WAITING;

		all = w->next;
		if (may && count < call->most) {
			go_on(sampler, w, forced);
			count++;
			continue;
		}
		sampler->more_may_go_on |= may;
		w->next = sampler->waiting_samples;
		sampler->waiting_samples = w;
	}
	return count;
}

void sampler_unwind_retry(struct sampler *sampler, size_t most)
{
	while (most && (sampler->module_came || sampler->more_may_go_on)) {
		if (sampler->module_came && sampler->unwind)
			unwind_modules_changed(sampler->unwind);
		sampler->module_came = sampler->more_may_go_on = false;
		most -= let_go_on(sampler, &(struct call){ .most = most });
	}
}

void sampler_unwind_flush(struct sampler *sampler, uint32_t window)
{
	(void)let_go_on(sampler, &(struct call){ true, window, SIZE_MAX });
}
