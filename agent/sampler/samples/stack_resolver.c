/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/samples/stack_resolver.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	/* Both stacks, and the one extra frame that a walk may end with. */
	RESOLVED_FRAMES_LIMIT = 2 * ABI_MAX_FRAMES + 2,
	/* The tracing of a switch takes at most this many of the innermost frames. */
	SWITCH_DEPTH = 12,
};

struct resolved_frames {
	struct profile_frame items[RESOLVED_FRAMES_LIMIT];
	uint32_t count, kernel_count, flags;
};

/* A user stack, wherever it was walked, and the mappings to resolve it with. */
struct user_stack {
	const struct mappings *mappings;
	const abi_u64 *frames; /* words, as in struct abi_stack */
	uint32_t count;
	uint32_t flags; /* ABI_STACK_RUNTIME_FRAMES and ABI_STACK_CALL, among others */
	uint32_t end; /* enum abi_unwind_end; 0 = not known */
	uint32_t guessed; /* struct unwind_stack.guessed */
	bool cut; /* at the depth limit */
};

void stack_resolver_init(struct stack_resolver *r, const struct stack_resolver_options *options)
{
	*r = (struct stack_resolver){ .options = *options };
}

bool stack_resolver_saw_kernel(const struct stack_resolver *r)
{
	return r->kernel_seen;
}

static const struct abi_stack *resolver_raw_stack(
	const struct stack_resolver *r, const struct stack_request *request, uint64_t id)
{
	return r->options.raw_stack(r->options.context, request->window, id);
}

/* ---- kernel frames -------------------------------------------------------------------------- */

/*
 * A thread leaves the CPU in __schedule(). The frames inside of it belong to the tracepoint that
 * reports the switch; their number differs between kernels.
 */
static uint32_t resolver_count_switch_frames(
	const struct stack_resolver *r, const struct abi_stack *raw)
{
	const struct kallsyms *kallsyms = kernel_symbols_table(r->options.kernel_symbols);
	struct ksymbol symbol;

	for (uint32_t i = 0; kallsyms && i < raw->frame_count && i < SWITCH_DEPTH; i++) {
		if (kallsyms_lookup(kallsyms, raw->frames[i], &symbol) &&
			!strncmp(symbol.name, "__schedule", strlen("__schedule")))
			return i;
	}
	return 0;
}

static struct profile_frame resolver_kernel_frame(
	const struct stack_resolver *r, uint64_t kaddr, bool is_return)
{
	uint32_t tenant = kernel_symbols_tenant(r->options.kernel_symbols, kaddr - is_return);

	return (struct profile_frame){
		.address = kaddr,
		.module = PROFILE_MODULE_KERNEL,
		.flags = (is_return ? PROFILE_FRAME_RETURN : 0) |
			 tenant << PROFILE_FRAME_TENANT_SHIFT,
	};
}

static void resolver_add_kernel(
	struct stack_resolver *r, const struct stack_request *request, struct resolved_frames *out)
{
	const struct abi_stack *raw = resolver_raw_stack(r, request, request->kernel_stack);
	uint32_t first;

	r->kernel_seen = true;
	if (!raw) {
		out->flags |= PROFILE_STACK_MISSING;
		return;
	}
	first = request->switched ? resolver_count_switch_frames(r, raw) : 0;
	for (uint32_t i = first; i < raw->frame_count && i < ABI_MAX_FRAMES; i++)
		out->items[out->count++] = resolver_kernel_frame(r, raw->frames[i], i > 0);
	out->kernel_count = out->count;
	if (raw->flags & ABI_STACK_DEPTH)
		out->flags |= PROFILE_STACK_DEPTH;
}

/* ---- user frames ---------------------------------------------------------------------------- */

static struct profile_frame resolver_pc_frame(struct stack_resolver *r, struct process *p,
	const struct mapping *mapping, uint64_t pc, bool is_return)
{
	struct profile_frame frame = {
		.address = pc,
		.module = PROFILE_MODULE_NONE,
		.flags = is_return ? PROFILE_FRAME_RETURN : 0,
	};

	if (!mapping)
		return frame;
	frame.module = mapping->module->number;
	if (mapping->module->kind != MODULE_ANON)
		frame.address = mapping_file_off(mapping, pc);
	r->options.module_hit(r->options.context, p, mapping);
	return frame;
}

static void resolver_add_pc(struct stack_resolver *r, struct process *p,
	const struct mappings *mappings, uint64_t pc, struct resolved_frames *out)
{
	const bool is_return = out->count > out->kernel_count;
	/* A call may be the last instruction of a mapping. */
	const struct mapping *mapping = mappings_find(mappings, pc - is_return);

	if (mapping && mapping->module->kind == MODULE_ANON)
		out->flags |= PROFILE_STACK_JIT;
	out->items[out->count++] = resolver_pc_frame(r, p, mapping, pc, is_return);
}

static void resolver_add_runtime(struct stack_resolver *r, const struct process *p,
	const struct abi_frame *frame, struct resolved_frames *out)
{
	out->flags |= PROFILE_STACK_RUNTIME;
	out->items[out->count++] = profile_runtime_frame(frame);
	r->options.runtime_hit(r->options.context, p, frame);
}

static void resolver_add_user(struct stack_resolver *r, struct process *p,
	const struct user_stack *user, struct resolved_frames *out)
{
	const uint32_t words = MIN(user->count, (uint32_t)ABI_MAX_FRAMES), first = out->count;
	struct abi_frame frame;
	uint32_t at = 0;

	while (abi_frame_read(user->frames, words, user->flags, &at, &frame)) {
		if (frame.kind == ABI_FRAME_PC)
			resolver_add_pc(r, p, user->mappings, frame.address, out);
		else
			resolver_add_runtime(r, p, &frame, out);
	}
	if (user->flags & ABI_STACK_CALL && out->count > first &&
		!profile_frame_is_runtime(&out->items[first]))
		out->items[first].flags |= PROFILE_FRAME_FUNCTION;
	if (out->flags & PROFILE_STACK_JIT)
		r->options.jit_hit(r->options.context, p);
	if (at < words)
		out->flags |= PROFILE_STACK_DEPTH | ABI_UNWIND_DEPTH << PROFILE_STACK_END_SHIFT;
	else
		out->flags |= user->end << PROFILE_STACK_END_SHIFT;
	if (user->cut)
		out->flags |= PROFILE_STACK_DEPTH;
	if (user->flags & ABI_STACK_MIDDLE)
		out->flags |= PROFILE_STACK_MIDDLE;
	out->flags |= user->guessed << PROFILE_STACK_GUESS_SHIFT;
}

static struct user_stack user_stack_walked(const struct stack_request *request)
{
	const struct unwind_stack *walked = request->walked;

	return (struct user_stack){
		.mappings = request->mappings,
		.frames = walked->frames,
		.count = walked->count,
		.flags = walked->flags,
		.end = walked->end,
		.guessed = walked->guessed,
		.cut = walked->end == ABI_UNWIND_DEPTH,
	};
}

static struct user_stack user_stack_raw(const struct process *p, const struct abi_stack *raw)
{
	return (struct user_stack){
		.mappings = p->mappings,
		.frames = raw->frames,
		.count = raw->frame_count,
		.flags = raw->flags,
		.end = (raw->flags & ABI_STACK_END_MASK) >> ABI_STACK_END_SHIFT,
		.cut = raw->flags & ABI_STACK_DEPTH,
	};
}

/* Returns false if the raw stack was lost. */
static bool resolver_user_stack(const struct stack_resolver *r, const struct stack_request *request,
	struct user_stack *ret_user)
{
	const struct abi_stack *raw;

	if (request->walked) {
		*ret_user = user_stack_walked(request);
		return true;
	}
	raw = resolver_raw_stack(r, request, request->user_stack);
	if (!raw)
		return false;
	*ret_user = user_stack_raw(request->process, raw);
	return true;
}

/* ---- both ----------------------------------------------------------------------------------- */

static int resolver_resolve(struct stack_resolver *r, struct profile *profile,
	const struct stack_request *request, uint32_t *ret_stack)
{
	struct resolved_frames frames = { 0 };
	struct user_stack user;

	if (request->kernel_stack)
		resolver_add_kernel(r, request, &frames);
	if (request->walked || request->user_stack) {
		if (resolver_user_stack(r, request, &user))
			resolver_add_user(r, request->process, &user, &frames);
		else
			frames.flags |= PROFILE_STACK_MISSING;
	}
	if (frames.flags & PROFILE_STACK_MISSING)
		metrics_add(r->options.metrics, METRIC_STACK_MISSING, 1);
	return profile_stack(profile,
		&(struct profile_stack){
			.frames = frames.items,
			.frame_count = frames.count,
			.kernel_count = frames.kernel_count,
			.flags = frames.flags,
		},
		ret_stack);
}

/* A hash of what a stack's addresses mean: equal raw stacks with equal contexts are one stack. */
static uint64_t resolver_context(
	const struct stack_resolver *r, const struct stack_request *request)
{
	uint64_t epoch =
		request->kernel_stack ? kernel_symbols_epoch(r->options.kernel_symbols) : 0;

	return mappings_generation(request->process->mappings) ^
	       epoch * UINT64_C(0x9e3779b97f4a7c15);
}

static void resolver_report_runtime(
	const struct stack_resolver *r, const struct process *p, const struct profile_stack *stack)
{
	for (uint32_t i = stack->kernel_count; i < stack->frame_count; i++) {
		const struct abi_frame frame = profile_frame_of_runtime(&stack->frames[i]);

		if (profile_frame_is_runtime(&stack->frames[i]))
			r->options.runtime_hit(r->options.context, p, &frame);
	}
}

/* STACK may have been resolved for another process, such as the parent this one was forked from. */
static void resolver_report_hit(
	struct stack_resolver *r, struct process *p, const struct profile_stack *stack)
{
	r->options.stack_hit(r->options.context, p, stack);
	if (stack->flags & PROFILE_STACK_JIT)
		r->options.jit_hit(r->options.context, p);
	if (stack->flags & PROFILE_STACK_RUNTIME)
		resolver_report_runtime(r, p, stack);
}

int stack_resolver_get(struct stack_resolver *r, struct profile *profile,
	const struct stack_request *request, uint32_t *ret_stack)
{
	uint64_t user_id = request->user_stack, kernel_id = request->kernel_stack;
	struct profile_stack stack;
	uint64_t context;
	uint32_t number;
	int err;

	if (request->walked)
		return resolver_resolve(r, profile, request, ret_stack);
	context = resolver_context(r, request);
	if (profile_cached_stack(profile, user_id, kernel_id, context, &number)) {
		stack = profile_stack_at(profile, number);
		resolver_report_hit(r, request->process, &stack);
		*ret_stack = number;
		return 0;
	}
	err = resolver_resolve(r, profile, request, &number);
	if (err)
		return err;
	/*
	 * Lost frames may arrive with a later sample: their absence is not cached. Ignoring an
	 * error: without room in the cache, the next such sample is resolved again.
	 */
	if (!(profile_stack_at(profile, number).flags & PROFILE_STACK_MISSING))
		(void)profile_cache_stack(profile, user_id, kernel_id, context, number);
	*ret_stack = number;
	return 0;
}

/* ---- origins -------------------------------------------------------------------------------- */

/* No kernel stack has this id in a pair with an origin's key. */
#define ORIGIN_KEY UINT64_C(0x6f726967696e)

/* Adds a frame of P, unless its code is in no file. */
static bool resolver_add_origin(struct stack_resolver *r, struct process *p,
	const struct mapping *mapping, struct profile_frame frame, struct resolved_frames *out)
{
	if (!mapping || mapping->module->kind != MODULE_FILE)
		return false;
	frame.module = mapping->module->number;
	frame.address = mapping_file_off(mapping, frame.address);
	out->items[out->count++] = frame;
	r->options.module_hit(r->options.context, p, mapping);
	return true;
}

int stack_resolver_get_origin(struct stack_resolver *r, struct profile *profile,
	const struct stack_request *request, const struct stack_origin *origin, uint32_t *ret_stack)
{
	const struct mappings *mappings = request->mappings ?: request->process->mappings;
	const struct profile_frame call = { .address = origin->created_at,
		.flags = PROFILE_FRAME_RETURN };
	const struct profile_frame first = { .address = origin->start,
		.flags = PROFILE_FRAME_FUNCTION };
	uint64_t context = mappings_generation(mappings);
	struct resolved_frames frames = { 0 };
	uint32_t number;
	int err;

	if (profile_cached_stack(profile, origin->key, ORIGIN_KEY, context, ret_stack))
		return 0;
	if (!resolver_add_origin(
		    r, request->process, mappings_find(mappings, call.address - 1), call, &frames))
		return -ENOENT;
	if (origin->start)
		(void)resolver_add_origin(r, request->process,
			mappings_find(mappings, origin->start), first, &frames);
	err = profile_stack(profile,
		&(struct profile_stack){ .frames = frames.items, .frame_count = frames.count },
		&number);
	if (err)
		return err;
	/* Ignoring an error: without room in the cache, it is resolved again. */
	(void)profile_cache_stack(profile, origin->key, ORIGIN_KEY, context, number);
	*ret_stack = number;
	return 0;
}
