/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/report/frame_keys.h"
#include "agent/report/roots.h"
#include "agent/report/truncation.h"
#include "agent/sampler/seam/runtime_functions.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_FRAMES = 1 << 24, /* distinct, of one profile */
	MAX_STACKS = 1 << 24,
	MAX_IDS = 1 << 28,
	MAX_KEY_BYTES = 256 << 20,
};

DEFINE_AUTO(stacks);

enum stack_kind {
	KIND_UNKNOWN,
	KIND_SHARED, /* the same in every process */
	KIND_PRIVATE, /* has JIT frames */
};

struct stack_key {
	uint32_t stack;
	uint32_t process; /* of a private stack; else 0 */
	uint32_t origin; /* as in struct profile_sample, if that is wanted; else 0 */
};

enum frame_trait {
	FRAME_NAMED = 1 << 0,
	FRAME_ROOT = 1 << 1,
	FRAME_STARTS_PROGRAM = 1 << 2,
	FRAME_HIDES_CALLERS = 1 << 3,
	FRAME_IDLE = 1 << 4,
};

struct known_frame {
	uint32_t id; /* the output's id */
	uint8_t outcome; /* enum symbolize_outcome */
	uint8_t traits; /* enum frame_trait */
	bool known;
};

int stacks_create(const struct report_sources *sources, const struct report_options *options,
	stacks_frame_fn *frame_fn, void *context, struct stacks **ret_stacks)
{
	autocall(auto_stacks_destroy) struct stacks *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->sources = sources;
	s->profile = sources->profile;
	s->no_inlines = options && options->no_inlines;
	s->no_demangle = options && options->no_demangle;
	s->created_by = options && options->created_by;
	s->frame_fn = frame_fn;
	s->context = context;
	err = intern_init(&s->stack_keys, MAX_STACKS, MAX_KEY_BYTES);
	if (!err)
		err = intern_init(&s->frame_keys, MAX_FRAMES, MAX_KEY_BYTES);
	if (err)
		return err;
	s->kinds = calloc(profile_stack_count(s->profile) + 1, sizeof(*s->kinds));
	if (!s->kinds)
		return -ENOMEM;
	*ret_stacks = take(s);
	return 0;
}

void stacks_destroy(struct stacks *s)
{
	if (!s)
		return;
	intern_deinit(&s->frame_keys);
	intern_deinit(&s->stack_keys);
	free(s->frames);
	free(s->kinds);
	free(s->facts);
	free(s->ids);
	free(s);
}

static uint8_t traits_of(const struct symbolized *frame)
{
	const char *outermost;
	uint8_t traits = 0;

	if (frame->outcome != SYMBOLIZE_NAMED)
		return 0;
	traits = FRAME_NAMED;
	if (frame->kernel)
		return traits;
	outermost = frame->lines[frame->line_count - 1].linkage;
	if (root_function(outermost))
		traits |= FRAME_ROOT;
	if (root_starts_program(outermost))
		traits |= FRAME_STARTS_PROGRAM;
	if (runtime_function_is_idle(outermost))
		traits |= FRAME_IDLE;
	if (runtime_function_hides_callers(outermost))
		traits |= FRAME_HIDES_CALLERS | FRAME_ROOT;
	return traits;
}

/* Finds or adds the frame of KEY; a new one has `known` unset. */
static int stacks_slot_of(
	struct stacks *s, const void *key, size_t size, struct known_frame **ret_frame)
{
	size_t known = s->frame_keys.count;
	uint32_t number;
	int err;

	err = array_reserve(s->frames, s->frame_capacity, known + 1, MAX_FRAMES);
	if (err)
		return err;
	err = intern_bytes(&s->frame_keys, key, size, &number);
	if (err)
		return err;
	if (number == known)
		s->frames[number] = (struct known_frame){ 0 };
	*ret_frame = &s->frames[number];
	return 0;
}

/* Passes the scratch frame to the output. */
static int learn(struct stacks *s, struct known_frame *known)
{
	int err;

	err = s->frame_fn(s->context, &s->scratch, &known->id);
	if (err)
		return err;
	known->outcome = (uint8_t)s->scratch.outcome;
	known->traits = traits_of(&s->scratch);
	known->known = true;
	return 0;
}

static void stacks_apply_options(const struct stacks *s, struct symbolized *frame)
{
	if (s->no_inlines && frame->line_count > 1) {
		frame->lines[0] = frame->lines[frame->line_count - 1];
		frame->line_count = 1;
	}
	for (size_t i = 0; s->no_demangle && !frame->nameless && i < frame->line_count; i++)
		frame->lines[i].name = frame->lines[i].linkage;
}

/* Symbolizes FRAME and passes it to the output. */
static int stacks_ask(struct stacks *s, uint32_t process, const struct profile_frame *frame,
	struct known_frame *known)
{
	int err = symbolize_frame(s->sources->symbolize, process, frame, &s->scratch);

	if (err)
		return err;
	stacks_apply_options(s, &s->scratch);
	return learn(s, known);
}

static int frame_of(struct stacks *s, uint32_t process, const struct profile_frame *frame,
	struct known_frame *ret_frame)
{
	struct frame_key key;
	size_t key_bytes = frame_key(s->sources->anon_module, process, frame, &key);
	struct known_frame *known;
	int err = stacks_slot_of(s, &key, key_bytes, &known);

	if (err)
		return err;
	if (!known->known) {
		err = stacks_ask(s, process, frame, known);
		if (err)
			return err;
	}
	*ret_frame = *known;
	return 0;
}

int stacks_add_frame(
	struct stacks *s, uint32_t process, const struct profile_frame *frame, uint32_t *ret_id)
{
	struct known_frame known;
	int err = frame_of(s, process, frame, &known);

	if (!err)
		*ret_id = known.id;
	return err;
}

static int add_id(struct stacks *s, uint32_t id)
{
	int err;

	err = array_reserve(s->ids, s->id_capacity, s->id_count + 1, MAX_IDS);
	if (err)
		return err;
	s->ids[s->id_count++] = id;
	return 0;
}

/* A note named NAME (`[frames lost]`), which must outlive it, in the place of a frame. */
static void stacks_make_marker(const char *name, struct symbolized *ret_frame)
{
	ret_frame->address = 0;
	ret_frame->mapping = NULL;
	ret_frame->kernel = ret_frame->nameless = false;
	ret_frame->outcome = SYMBOLIZE_MARKER;
	ret_frame->line_count = 1;
	ret_frame->lines[0] = (struct index_frame){ .name = name, .linkage = name, .file = "" };
}

static int add_marker(struct stacks *s, const char *name)
{
	struct known_frame *known;
	int err;

	err = stacks_slot_of(s, name, strlen(name), &known);
	if (err)
		return err;
	if (!known->known) {
		stacks_make_marker(name, &s->scratch);
		err = learn(s, known);
		if (err)
			return err;
	}
	return add_id(s, known->id);
}

/*
 * True if OUTERMOST is a root by name, or is unnamed and calls a function that only the entry code
 * calls: a stripped program has no symbol for its _start.
 */
static bool is_complete(const struct known_frame *outermost, const struct known_frame *inside)
{
	if (outermost->traits & FRAME_ROOT)
		return true;
	return !(outermost->traits & FRAME_NAMED) && inside &&
	       (inside->traits & FRAME_STARTS_PROGRAM);
}

/*
 * Number of frames without the trailing callers in no mapping. Those are not code: the walk left
 * the stack, following a register that was no frame pointer. add_frames() counts them.
 */
static uint32_t believable_count(const struct profile_stack *stack)
{
	uint32_t count = stack->frame_count;

	while (count > stack->kernel_count + 1 &&
		stack->frames[count - 1].module == PROFILE_MODULE_NONE)
		count--;
	return count;
}

/*
 * Frame I of STACK. What an interrupt or an exception came in upon may be the first instruction of
 * a kernel function: it keeps its address. The kernel's symbols, which say where that is, need not
 * have been read when the sample came.
 */
static struct profile_frame stacks_frame_at(
	const struct stacks *s, const struct profile_stack *stack, uint32_t i)
{
	struct profile_frame frame = stack->frames[i];

	if (i && i < stack->kernel_count &&
		symbolize_is_kernel_entry(s->sources->symbolize, stack->frames[i - 1].address))
		frame.flags &= ~(uint32_t)PROFILE_FRAME_RETURN;
	return frame;
}

static int add_frames(struct stacks *s, uint32_t process, const struct profile_stack *stack,
	struct stack_facts *facts)
{
	uint32_t frame_count = believable_count(stack);
	uint32_t gap = stack->flags & PROFILE_STACK_MIDDLE ? stack->kernel_count + ABI_INNER_FRAMES
							   : UINT32_MAX;
	uint32_t guessed = (stack->flags & PROFILE_STACK_GUESS_MASK) >> PROFILE_STACK_GUESS_SHIFT;
	uint32_t guess = guessed ? stack->kernel_count + guessed : UINT32_MAX;
	struct known_frame frame = { 0 }, inside = { 0 };
	int err = 0;

	facts->outcomes[SYMBOLIZE_NO_MAPPING] = (uint16_t)(stack->frame_count - frame_count);
	for (uint32_t i = 0; i < frame_count && !(frame.traits & FRAME_HIDES_CALLERS); i++) {
		const struct profile_frame at = stacks_frame_at(s, stack, i);

		inside = frame;
		if (i == gap)
			err = add_marker(s, TRUNCATION_MIDDLE_MARK);
		else if (i == guess)
			err = add_marker(s, TRUNCATION_GUESS_MARK);
		if (err)
			return err;
		err = frame_of(s, process, &at, &frame) ?: add_id(s, frame.id);
		if (err)
			return err;
		facts->outcomes[frame.outcome]++;
		facts->idle |= frame.traits & FRAME_IDLE;
		if (i == stack->kernel_count)
			facts->user_named = frame.outcome == SYMBOLIZE_NAMED;
	}
	facts->user = stack->frame_count > stack->kernel_count;
	if (facts->user)
		facts->complete = is_complete(
			&frame, stack->frame_count - stack->kernel_count > 1 ? &inside : NULL);
	return 0;
}

static int stacks_build(struct stacks *s, uint32_t process, const struct profile_stack *stack,
	struct stack_facts *facts)
{
	bool lost = stack->flags & PROFILE_STACK_MISSING;
	/* User frames without kernel frames: the kernel frames were lost. */
	bool lost_kernel = lost && stack->frame_count && !stack->kernel_count;
	int err = 0;

	if (lost_kernel)
		err = add_marker(s, "[frames lost]");
	if (err)
		return err;
	err = add_frames(s, process, stack, facts);
	if (err)
		return err;
	facts->end = truncation_of(stack->flags);
	facts->no_middle = stack->flags & PROFILE_STACK_MIDDLE;
	facts->guessed = stack->flags & PROFILE_STACK_GUESS_MASK;
	/* Unwind tables mark roots even where a stripped C library has no names. */
	if ((stack->flags & PROFILE_STACK_END_MASK) >> PROFILE_STACK_END_SHIFT == ABI_UNWIND_ROOT)
		facts->complete = facts->user;
	facts->marked = facts->user && !facts->complete;
	if (facts->marked)
		return add_marker(s, truncation_mark(facts->end));
	if (lost && !lost_kernel)
		return add_marker(s, "[frames lost]");
	return stack->frame_count ? 0 : add_marker(s, "[no stack]");
}

static enum stack_kind stacks_kind_of(
	struct stacks *s, const struct profile_stack *stack, uint32_t number)
{
	uint8_t kind = KIND_SHARED;

	if (s->kinds[number] != KIND_UNKNOWN)
		return s->kinds[number];
	for (uint32_t i = 0; i < stack->frame_count && kind == KIND_SHARED; i++) {
		if (frame_is_private(s->sources->anon_module, &stack->frames[i]))
			kind = KIND_PRIVATE;
	}
	s->kinds[number] = kind;
	return kind;
}

/* The outermost frame is the call that created the fiber, if it has a name. */
static int stacks_add_origin(struct stacks *s, const struct stack_key *key, uint32_t process)
{
	struct profile_stack origin = { 0 };
	struct known_frame frame;
	int err;

	if (key->origin)
		origin = profile_stack_at(s->profile, key->origin - 1);
	if (!origin.frame_count)
		return 0;
	err = frame_of(s, process, &origin.frames[0], &frame);
	if (err || !(frame.traits & FRAME_NAMED))
		return err;
	return add_id(s, frame.id);
}

/* FACTS are those of KEY, and not known yet. */
static int stacks_learn(struct stacks *s, const struct stack_key *key, uint32_t process,
	const struct profile_stack *stack, uint32_t number)
{
	struct stack_facts facts = { .number = number, .first = (uint32_t)s->id_count };
	int err = stacks_build(s, process, stack, &facts);

	if (!err)
		err = stacks_add_origin(s, key, process);
	if (err)
		return err;
	facts.count = (uint32_t)s->id_count - facts.first;
	facts.known = true;
	s->facts[number] = facts;
	return 0;
}

/* Finds or adds the facts of KEY; new ones have `known` unset. */
static int stacks_facts_of(struct stacks *s, const struct stack_key *key, uint32_t *ret_number)
{
	size_t known = s->stack_keys.count;
	int err = array_reserve(s->facts, s->fact_capacity, known + 1, MAX_STACKS);

	if (!err)
		err = intern_bytes(&s->stack_keys, key, sizeof(*key), ret_number);
	if (!err && *ret_number == known)
		s->facts[known] = (struct stack_facts){ 0 };
	return err;
}

int stacks_get(
	struct stacks *s, const struct profile_sample *sample, const struct stack_facts **ret_facts)
{
	struct profile_stack stack = profile_stack_at(s->profile, sample->stack);
	struct stack_key key = { .stack = sample->stack,
		.origin = s->created_by ? sample->origin : 0 };
	uint32_t number;
	int err;

	if (stacks_kind_of(s, &stack, sample->stack) == KIND_PRIVATE)
		key.process = sample->process;
	err = stacks_facts_of(s, &key, &number);
	if (!err && !s->facts[number].known)
		err = stacks_learn(s, &key, sample->process, &stack, number);
	if (!err)
		*ret_facts = &s->facts[number];
	return err;
}

void stacks_account(struct stacks *s, const struct stack_facts *facts,
	const struct profile_sample *sample, struct report_summary *summary)
{
	static const enum metric metric_of[SYMBOLIZE_OUTCOMES] = {
		[SYMBOLIZE_NAMED] = METRIC_FRAMES_NAMED,
		[SYMBOLIZE_NO_MAPPING] = METRIC_FRAMES_UNKNOWN_MAPPING,
		[SYMBOLIZE_NO_SYMBOL] = METRIC_FRAMES_NO_SYMBOL,
		[SYMBOLIZE_UNREAD] = METRIC_FRAMES_MAP_UNREAD,
		[SYMBOLIZE_NO_INDEX] = METRIC_FRAMES_NO_INDEX,
		[SYMBOLIZE_NO_RUNTIME] = METRIC_FRAMES_NO_RUNTIME,
	};
	struct metrics *metrics = s->sources->metrics;
	uint64_t count = sample->count;

	summary->of[sample->type].count += count;
	summary->of[sample->type].weight += sample->weight;
	for (size_t i = 0; i < SYMBOLIZE_OUTCOMES; i++)
		metrics_add(metrics, metric_of[i], facts->outcomes[i] * count);
	if (!facts->user)
		return;
	summary->user_stacks += count;
	summary->user_frames += count;
	summary->named_user_frames += facts->user_named ? count : 0;
	summary->complete_stacks += facts->complete ? count : 0;
	metrics_add(
		metrics, facts->complete ? METRIC_STACKS_COMPLETE : METRIC_STACKS_TRUNCATED, count);
	if (facts->no_middle)
		metrics_add(metrics, METRIC_STACKS_NO_MIDDLE, count);
	if (facts->guessed)
		metrics_add(metrics, METRIC_STACKS_GUESSED, count);
	if (!facts->complete)
		metrics_add(metrics, facts->end, count);
}
