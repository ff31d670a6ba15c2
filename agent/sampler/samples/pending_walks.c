/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a walk:
 *
 *     finish ──► walk ──► complete ─────────────────────────────────► add
 *                 │
 *                 └► needs a module ──► room? ──no──► walk without ──► add
 *                                         │yes
 *                                         ▼
 *     retry, flush ──────────────────► waiting ──► resumed ──► walk again, as above, or lost
 *
 * A waiting walk is in the list and its bytes are counted. A resumed one is in no list; it is freed
 * when its sample has been added, or when it waits again as a new entry.
 */
#include "agent/sampler/samples/pending_walks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/unwind/stack_pack.h"
#include "base/cleanup.h"
#include "bpf/abi/frame.h"

enum {
	WAITING_LIMIT_BYTES = 2 << 20, /* up to WAITING_HZ, */
	WAITING_HZ = 200,
	WAITING_MOST = 8, /* and so many times as much at higher rates */
	WAITING_OFF_CPU_BYTES = 32 << 20, /* more, if all switches are sampled */
	WAITING_PART = 8, /* at most memory limit / WAITING_PART may wait */
	CHUNKS_FACTOR = 2, /* chunks may take as much again, twice */
};

enum pending_state { PENDING_WAITING = 1, PENDING_RESUMED };

struct pending_walk {
	struct pending_walk *next;
	enum pending_state state;
	size_t bytes; /* of this struct and all that follows it */
	uint32_t process; /* generation number */
	const struct module *module; /* what it waits for */
	struct mappings *mappings;
	uint32_t frame_count; /* words of the frames that the kernel found */
	uint32_t frame_flags; /* as in struct unwind_stack */
	uint32_t returns_bytes; /* of the record with the stack's; 0 = not known */
	uint32_t kept_bytes; /* of the stack, which is packed unless options.whole_stacks */
	struct abi_unfinished unfinished; /* the frames follow, the ids of chunks, the
					returns, the stack */
};

size_t pending_walks_limit(uint64_t hz, double off_cpu_share, uint64_t memory_limit_bytes)
{
	uint64_t times = MIN(MAX(hz / WAITING_HZ, UINT64_C(1)), (uint64_t)WAITING_MOST);
	size_t bytes = (size_t)times * WAITING_LIMIT_BYTES +
		       (size_t)(off_cpu_share * WAITING_OFF_CPU_BYTES);

	if (memory_limit_bytes)
		bytes = (size_t)MIN((uint64_t)bytes, memory_limit_bytes / WAITING_PART);
	return bytes;
}

void pending_walks_init(struct pending_walks *w, const struct pending_walks_options *options)
{
	*w = (struct pending_walks){ .options = *options };
	stack_chunks_init(&w->chunks, options->limit_bytes * CHUNKS_FACTOR);
}

/* ---- waiting walks -------------------------------------------------------------------------- */

/* Above this, walks may still wait, but the kernel is to send no more of them. */
static size_t pending_pause_bytes(const struct pending_walks *w)
{
	return w->options.limit_bytes / 4 * 3;
}

static abi_u64 *pending_frames(struct pending_walk *walk)
{
	return (abi_u64 *)(walk + 1);
}

static uint64_t *pending_deep(struct pending_walk *walk)
{
	return (uint64_t *)(pending_frames(walk) + walk->frame_count);
}

static uint8_t *pending_returns_of(struct pending_walk *walk)
{
	return (uint8_t *)(pending_deep(walk) + walk->unfinished.rest.deep_count);
}

static uint8_t *pending_stack(struct pending_walk *walk)
{
	return pending_returns_of(walk) + walk->returns_bytes;
}

static void pending_push(struct pending_walks *w, struct pending_walk *walk)
{
	walk->state = PENDING_WAITING;
	walk->next = w->waiting;
	w->waiting = walk;
}

static void pending_free(struct pending_walks *w, struct pending_walk *walk)
{
	const uint64_t *deep = pending_deep(walk);

	for (uint32_t i = 0; i < walk->unfinished.rest.deep_count; i++)
		stack_chunk_unref(stack_chunks_get(&w->chunks, deep[i]));
	assert(walk->state == PENDING_RESUMED);
	assert(walk->bytes <= w->waiting_bytes);
	w->waiting_bytes -= walk->bytes;
	if (w->waiting_bytes < pending_pause_bytes(w) / 2)
		unwind_pause(w->options.unwind, false);
	mappings_unref(walk->mappings);
	free(walk);
}

void pending_walks_deinit(struct pending_walks *w)
{
	struct pending_walk *walk;

	assert(!w->resuming);
	while ((walk = w->waiting) != NULL) {
		w->waiting = walk->next;
		walk->state = PENDING_RESUMED;
		pending_free(w, walk);
	}
	assert(!w->waiting_bytes);
	stack_chunks_deinit(&w->chunks);
	free(w->returns);
}

/* ---- deep stacks ---------------------------------------------------------------------------- */

void pending_walks_chunk(struct pending_walks *w, const struct abi_chunk *chunk)
{
	/* Ignoring errors: without it the stacks end there, which is counted. */
	(void)stack_chunks_add(&w->chunks, chunk);
}

void pending_walks_tick(struct pending_walks *w)
{
	stack_chunks_tick(&w->chunks);
}

/* How many of the COUNT chunks with ids DEEP are there, up to the first that is not. */
static uint32_t pending_chunks_there(
	const struct pending_walks *w, const uint64_t *deep, uint32_t count)
{
	uint32_t there = 0;

	while (there < MIN(count, (uint32_t)ABI_DEEP_CHUNKS) &&
		stack_chunks_get(&w->chunks, deep[there]))
		there++;
	return there;
}

/*
 * The whole stack of a sample: the STACK_BYTES that it has, and the COUNT chunks DEEP, which are
 * there. NULL if out of memory.
 */
static uint8_t *pending_assemble(const struct pending_walks *w, const uint8_t *stack,
	uint32_t stack_bytes, const uint64_t *deep, uint32_t count)
{
	uint8_t *whole = malloc(stack_bytes + (size_t)count * ABI_UNFINISHED_CHUNK_BYTES + 1);

	if (!whole)
		return NULL;
	memcpy(whole, stack, stack_bytes);
	for (uint32_t i = 0; i < count; i++)
		memcpy(whole + stack_bytes + (size_t)i * ABI_UNFINISHED_CHUNK_BYTES,
			stack_chunks_get(&w->chunks, deep[i])->bytes, ABI_UNFINISHED_CHUNK_BYTES);
	return whole;
}

/* A walk to be finished, new or resumed. */
struct walk_job {
	struct process *process;
	const struct mappings *mappings;
	const struct abi_unfinished *unfinished;
	const uint64_t *deep; /* rest.deep_count ids, all of which are there */
	const uint8_t *whole; /* the stack and the chunks */
	const abi_u64 *frames; /* that the kernel found */
	uint32_t frame_count; /* words */
	uint32_t frame_flags; /* as in struct unwind_stack */
	uint32_t deep_count;
	const struct abi_returns *returns; /* of the stack; NULL = not known */
	bool force; /* must not wait */
};

/* Of the record, which may be NULL. */
static size_t pending_returns_bytes(const struct abi_returns *returns)
{
	return returns ? offsetof(struct abi_returns, of) + returns->count * sizeof(returns->of[0])
		       : 0;
}

/* Returns NULL if out of memory. */
static struct pending_walk *pending_copy(const struct pending_walks *w, const struct walk_job *job)
{
	const struct abi_unfinished *u = job->unfinished;
	uint32_t stack_bytes = MIN(u->rest.stack_bytes, (abi_u32)ABI_UNFINISHED_STACK_BYTES);
	size_t frame_bytes = job->frame_count * sizeof(job->frames[0]);
	size_t deep_bytes = job->deep_count * sizeof(job->deep[0]);
	uint8_t packed[STACK_PACK_BOUND(ABI_UNFINISHED_STACK_BYTES)];
	const uint8_t *stack = w->options.whole_stacks ? u->stack : packed;
	size_t kept_bytes =
		w->options.whole_stacks ? stack_bytes : stack_pack(u->stack, stack_bytes, packed);
	size_t returns_bytes = pending_returns_bytes(job->returns);
	size_t bytes =
		sizeof(struct pending_walk) + frame_bytes + deep_bytes + returns_bytes + kept_bytes;
	struct pending_walk *walk = malloc(bytes);

	if (!walk)
		return NULL;
	walk->bytes = bytes;
	walk->process = job->process->number;
	walk->frame_count = job->frame_count;
	walk->frame_flags = job->frame_flags;
	walk->kept_bytes = (uint32_t)kept_bytes;
	walk->returns_bytes = (uint32_t)returns_bytes;
	walk->unfinished = *u;
	walk->unfinished.rest.stack_bytes = stack_bytes;
	walk->unfinished.rest.deep_count = (abi_u16)job->deep_count;
	memcpy(pending_frames(walk), job->frames, frame_bytes);
	if (deep_bytes)
		memcpy(pending_deep(walk), job->deep, deep_bytes);
	if (returns_bytes)
		memcpy(pending_returns_of(walk), job->returns, returns_bytes);
	memcpy(pending_stack(walk), stack, kept_bytes);
	for (uint32_t i = 0; i < job->deep_count; i++)
		stack_chunk_ref(stack_chunks_get(&w->chunks, job->deep[i]));
	return walk;
}

/* Restores the record as it came; NULL if out of memory. */
static struct abi_unfinished *pending_restore(
	const struct pending_walks *w, struct pending_walk *walk)
{
	uint32_t stack_bytes = walk->unfinished.rest.stack_bytes;
	autofree struct abi_unfinished *u = malloc(sizeof(*u) + stack_bytes);

	if (!u)
		return NULL;
	*u = walk->unfinished;
	if (w->options.whole_stacks)
		memcpy(u->stack, pending_stack(walk), stack_bytes);
	else if (!stack_unpack(pending_stack(walk), walk->kept_bytes, u->stack, stack_bytes))
		return NULL;
	return take(u);
}

/* Returns false if there is no room to wait. */
static bool pending_wait(
	struct pending_walks *w, const struct walk_job *job, const struct module *module)
{
	struct pending_walk *walk = NULL;

	assert(!job->force);
	if (w->waiting_bytes < w->options.limit_bytes)
		walk = pending_copy(w, job);
	if (!walk)
		return false;
	walk->module = module;
	walk->mappings = mappings_ref((struct mappings *)job->mappings);
	pending_push(w, walk);
	w->waiting_bytes += walk->bytes;
	if (w->waiting_bytes >= pending_pause_bytes(w))
		unwind_pause(w->options.unwind, true);
	return true;
}

/* ---- walking -------------------------------------------------------------------------------- */

static bool pending_module_is_known(const struct pending_walks *w, const struct module *module)
{
	const struct index *index;

	return w->options.module_state(w->options.context, module, &index) != UNWIND_MODULE_WAITING;
}

/*
 * Continues the walk and requests the modules that it needs. Returns the module to wait for, or
 * NULL if STACK is final.
 */
static const struct module *pending_walk_on(
	struct pending_walks *w, const struct walk_job *job, struct unwind_stack *stack)
{
	const struct pending_walks_options *options = &w->options;
	struct abi_unwind_rest rest = job->unfinished->rest;
	bool force = job->force, requested;

	if (job->whole)
		rest.stack_bytes += job->deep_count * ABI_UNFINISHED_CHUNK_BYTES;
	for (;;) {
		const struct mapping *needed;

		stack->flags = job->frame_flags;
		stack->count = MIN(job->frame_count, (uint32_t)ABI_MAX_FRAMES);
		memcpy(stack->frames, job->frames, stack->count * sizeof(stack->frames[0]));
		needed = unwind_finish(options->unwind, job->mappings,
			&(struct unwind_copied){
				.rest = &rest,
				.bytes = job->whole ?: job->unfinished->stack,
				.returns = job->returns,
			},
			force, stack);
		if (!needed)
			return NULL;
		requested = options->request_module(options->context, job->process, needed);
		if (pending_module_is_known(w, needed->module))
			continue;
		if (requested)
			return needed->module;
		force = true;
	}
}

static void pending_add(
	struct pending_walks *w, const struct walk_job *job, const struct unwind_stack *stack)
{
	metrics_add(w->options.metrics, METRIC_UNWIND_FINISHED, 1);
	if (stack->end == ABI_UNWIND_UNKNOWN_MAPPING)
		unwind_settle(w->options.unwind, job->process);
	w->options.add(w->options.context, &(struct attributed_sample){
						   .process = job->process,
						   .record = &job->unfinished->sample,
						   .walked = stack,
						   .mappings = job->mappings,
					   });
}

static void pending_finish_job(struct pending_walks *w, struct walk_job *job)
{
	const struct pending_walks_options *options = &w->options;
	const struct abi_unwind_rest *rest = &job->unfinished->rest;
	autofree uint8_t *whole = NULL;
	struct unwind_stack stack;
	const struct module *module;

	job->deep_count = pending_chunks_there(w, job->deep, rest->deep_count);
	/* Ignoring the lack of memory: the stack then ends with what the sample has. */
	if (job->deep_count)
		whole = pending_assemble(
			w, job->unfinished->stack, rest->stack_bytes, job->deep, job->deep_count);
	job->whole = whole;
	module = pending_walk_on(w, job, &stack);
	options->walked(options->context);
	if (module) {
		options->want_module(options->context, module);
		if (pending_wait(w, job, module))
			return;
		metrics_add(options->metrics, METRIC_UNWIND_WAITING_REFUSED, 1);
		job->force = true;
		module = pending_walk_on(w, job, &stack);
	}
	assert(!module);
	pending_add(w, job, &stack);
}

void pending_walks_returns(struct pending_walks *w, const struct abi_returns *returns)
{
	if (!w->returns)
		w->returns = calloc(PENDING_RETURNS, sizeof(*w->returns));
	/* Ignoring the lack of memory: their walks end where tables end. */
	if (w->returns)
		w->returns[returns->tid % PENDING_RETURNS] = *returns;
}

/* Those of SAMPLE's stack, once; NULL = not known. */
static const struct abi_returns *pending_take_returns(
	const struct pending_walks *w, const struct abi_unfinished *unfinished)
{
	struct abi_returns *of =
		w->returns ? &w->returns[unfinished->sample.tid % PENDING_RETURNS] : NULL;

	if (!of || !of->kind || of->tid != unfinished->sample.tid || of->sp != unfinished->rest.sp)
		return NULL;
	of->kind = 0;
	return of;
}

void pending_walks_finish(struct pending_walks *w, struct process *p,
	const struct abi_unfinished *unfinished, const struct abi_stack *raw)
{
	const struct pending_walks_options *options = &w->options;
	const uint64_t *deep = (const uint64_t *)(unfinished->stack + unfinished->rest.stack_bytes);

	if (!options->unwind || !raw) {
		options->add(options->context, &(struct attributed_sample){
						       .process = p,
						       .record = &unfinished->sample,
					       });
		return;
	}
	unwind_learn(options->unwind, p->mappings, &unfinished->rest);
	pending_finish_job(w,
		&(struct walk_job){
			.process = p,
			.mappings = p->mappings,
			.unfinished = unfinished,
			.deep = deep,
			.returns = pending_take_returns(w, unfinished),
			.frames = raw->frames,
			.frame_count = abi_frame_whole(raw->frames, raw->frame_count, raw->flags),
			.frame_flags = raw->flags & (ABI_STACK_RUNTIME_FRAMES | ABI_STACK_CALL |
							    ABI_STACK_MIDDLE),
		});
}

/* ---- resuming ------------------------------------------------------------------------------- */

/* Resumes WALK, which is in no list, and frees it. */
static void pending_resume(struct pending_walks *w, struct pending_walk *walk, bool force)
{
	autofree struct abi_unfinished *unfinished = pending_restore(w, walk);
	struct process *p = processes_find(w->options.processes, walk->process);
	struct abi_returns returns = { 0 };
	struct walk_job job = {
		.process = p,
		.mappings = walk->mappings,
		.unfinished = unfinished,
		.deep = pending_deep(walk),
		.frames = pending_frames(walk),
		.frame_count = walk->frame_count,
		.frame_flags = walk->frame_flags,
		.returns = walk->returns_bytes ? &returns : NULL,
		.force = force,
	};

	assert(walk->state == PENDING_WAITING);
	walk->state = PENDING_RESUMED;
	memcpy(&returns, pending_returns_of(walk), walk->returns_bytes);
	if (p && unfinished)
		pending_finish_job(w, &job);
	else
		w->options.lost(w->options.context, &walk->unfinished.sample);
	pending_free(w, walk);
}

/* Which of the waiting walks are resumed. */
struct resumption {
	bool force; /* even if their module is not known, */
	uint32_t window; /* of this window; 0 = of all */
	size_t most;
};

/* Returns how many were resumed; the others keep waiting. */
static size_t pending_resume_some(struct pending_walks *w, const struct resumption *which)
{
	struct pending_walk *all = take(w->waiting), *walk;
	size_t count = 0;

	assert(!w->resuming);
	w->resuming = true;
	while ((walk = all) != NULL) {
		bool of_window = !which->window || walk->unfinished.sample.window == which->window;
		bool forced = which->force && of_window;
		bool ready = forced || pending_module_is_known(w, walk->module);

		all = walk->next;
		if (ready && count < which->most) {
			pending_resume(w, walk, forced);
			count++;
			continue;
		}
		w->more_ready |= ready;
		pending_push(w, walk);
	}
	w->resuming = false;
	return count;
}

void pending_walks_module_known(struct pending_walks *w)
{
	w->module_known = true;
}

void pending_walks_retry(struct pending_walks *w, size_t most)
{
	while (most && (w->module_known || w->more_ready)) {
		if (w->module_known && w->options.unwind)
			unwind_modules_changed(w->options.unwind);
		w->module_known = w->more_ready = false;
		most -= pending_resume_some(w, &(struct resumption){ .most = most });
	}
}

void pending_walks_flush(struct pending_walks *w, uint32_t window)
{
	(void)pending_resume_some(
		w, &(struct resumption){ .force = true, .window = window, .most = SIZE_MAX });
}

/* ---- what waits ----------------------------------------------------------------------------- */

void pending_walks_mark_modules(const struct pending_walks *w, uint64_t now_ns)
{
	for (const struct pending_walk *walk = w->waiting; walk; walk = walk->next)
		for (size_t i = 0; i < mappings_count(walk->mappings); i++)
			mappings_at(walk->mappings, i)->module->used_ns = now_ns;
}
