/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any words as a raw stack, with or without runtime frames, through the resolver into a profile:
 * each word becomes part of at most one frame, and a runtime frame comes back unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/samples/stack_resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { WINDOW = 1, PROGRAM = 0x400000, PROGRAM_BYTES = 0x100000, JIT = 0x600000 };

struct words {
	struct abi_stack head;
	abi_u64 words[ABI_MAX_FRAMES];
};

static const struct abi_stack *raw_stack(void *context, uint32_t window, uint64_t id)
{
	(void)window;
	(void)id;
	return context;
}

static void module_hit(void *context, struct process *p, const struct mapping *mapping)
{
	(void)context;
	(void)p;
	if (!mapping)
		abort();
}

static void stack_hit(void *context, struct process *p, const struct profile_stack *stack)
{
	(void)context;
	(void)p;
	(void)stack;
}

static void jit_hit(void *context, struct process *p)
{
	(void)context;
	(void)p;
}

static void runtime_hit(void *context, const struct process *p, const struct abi_frame *frame)
{
	struct profile_frame stored = profile_runtime_frame(frame);
	struct abi_frame back = profile_frame_of_runtime(&stored);

	(void)context;
	(void)p;
	if (!profile_frame_is_runtime(&stored) || back.address != frame->address ||
		back.kind != frame->kind || back.position != frame->position ||
		back.cookie != frame->cookie)
		abort();
}

/* A runtime frame takes two words of the raw stack, any other frame one. */
static void check_stack(const struct words *raw, const struct profile_stack *stack)
{
	uint32_t words = 0;

	for (uint32_t i = 0; i < stack->frame_count; i++)
		words += profile_frame_is_runtime(&stack->frames[i]) ? ABI_FRAME_RUNTIME_WORDS : 1;
	if (words != abi_frame_whole(raw->words, raw->head.frame_count, raw->head.flags))
		abort();
	if (words < raw->head.frame_count && !(stack->flags & PROFILE_STACK_DEPTH))
		abort();
}

static void resolve_twice(struct words *raw, struct process *p)
{
	const struct stack_request request = { .process = p, .window = WINDOW, .user_stack = 1 };
	struct metrics metrics = { 0 };
	struct stack_resolver resolver;
	struct profile *profile;
	struct profile_stack stack;
	uint32_t number;

	if (profile_create(1 << 20, &profile))
		return;
	stack_resolver_init(&resolver, &(struct stack_resolver_options){
					       .metrics = &metrics,
					       .raw_stack = raw_stack,
					       .module_hit = module_hit,
					       .stack_hit = stack_hit,
					       .jit_hit = jit_hit,
					       .runtime_hit = runtime_hit,
					       .context = raw,
				       });
	for (int i = 0; i < 2; i++) {
		if (stack_resolver_get(&resolver, profile, &request, &number))
			abort();
		stack = profile_stack_at(profile, number);
		check_stack(raw, &stack);
	}
	profile_destroy(profile);
}

static void map_module(struct process *p, uint64_t start, struct module *module)
{
	if (mappings_add(&p->mappings,
		    &(struct mapping){
			    .start = start, .end = start + PROGRAM_BYTES, .module = module }))
		abort();
}

/* The input is the stack's flags, then its words. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct module program = { .number = 1, .kind = MODULE_FILE };
	struct module anon = { .number = 2, .kind = MODULE_ANON };
	struct words raw = { .head = { .kind = ABI_STACK, .id = 1, .window = WINDOW } };
	struct process p = { .pid = 1, .number = 1, .mappings = mappings_create() };
	size_t count;

	if (!p.mappings)
		abort();
	if (size >= sizeof(raw.head.flags)) {
		memcpy(&raw.head.flags, bytes, sizeof(raw.head.flags));
		count = (size - sizeof(raw.head.flags)) / sizeof(raw.words[0]);
		raw.head.frame_count = count < ABI_MAX_FRAMES ? (uint32_t)count : ABI_MAX_FRAMES;
		memcpy(raw.words, bytes + sizeof(raw.head.flags),
			raw.head.frame_count * sizeof(raw.words[0]));
		map_module(&p, PROGRAM, &program);
		map_module(&p, JIT, &anon);
		resolve_twice(&raw, &p);
	}
	mappings_unref(p.mappings);
	return 0;
}
