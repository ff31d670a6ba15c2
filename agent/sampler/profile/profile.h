/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One window's aggregated samples: each distinct stack is stored once, and so is each distinct
 * combination of stack and labels. Frames are stored as the owner resolved them at the time of the
 * sample (frame.h). Bounded: what does not fit is refused, and counted by the caller.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/fiber.h"
#include "agent/sampler/profile/frame.h"
#include "bpf/abi/fiber_facts.h"
#include "bpf/abi/sample.h"

struct profile;

/* A stack, kernel frames first (innermost first throughout). */
struct profile_stack {
	const struct profile_frame *frames;
	uint32_t frame_count;
	uint32_t kernel_count; /* how many of them are kernel frames */
	uint32_t flags; /* enum profile_stack_flags */
};

enum profile_stack_flags {
	PROFILE_STACK_DEPTH = 1 << 0, /* cut at the depth limit */
	PROFILE_STACK_MISSING = 1 << 1, /* its frames were lost on the way */
	PROFILE_STACK_JIT = 1 << 2, /* a frame is in memory without a file */
	PROFILE_STACK_RUNTIME = 1 << 3, /* a frame is a language runtime's */
	PROFILE_STACK_END_SHIFT = 4, /* from here on 4 bits: enum abi_unwind_end; 0 = not known */
	PROFILE_STACK_END_MASK = 0xf << PROFILE_STACK_END_SHIFT,
	/* After the first ABI_INNER_FRAMES user frames some are left out: it is too deep. */
	PROFILE_STACK_MIDDLE = 1 << 8,
	/*
	 * 8 bits: how many user frames are inside of the one that was found by a search
	 * (struct unwind_stack.guessed); 0 = none was.
	 */
	PROFILE_STACK_GUESS_SHIFT = 16,
	PROFILE_STACK_GUESS_MASK = 0xff << PROFILE_STACK_GUESS_SHIFT,
};

struct profile_sample {
	uint32_t process; /* generation number */
	uint32_t stack; /* number from profile_stack() */
	uint32_t flags; /* ABI_SAMPLE_KERNEL and ABI_SAMPLE_KTHREAD */
	/* A field for each label. */
#define SAMPLE_NUMBER(name, field, type, ...) type field;
#define SAMPLE_TEXT(name, field, bytes, ...) char field[bytes];
#include "agent/sampler/profile/sample_labels.def"
	uint32_t fiber; /* number from profile_fiber(); 0 = nothing is known of its fiber */
	/*
	 * 1 + the number of a stack: where its fiber was created, as a return address, then the
	 * fiber's first function. 0 = not known.
	 */
	uint32_t origin;
	uint32_t type; /* what it counts: number in struct sample_types */
	uint64_t count; /* of events */
	uint64_t weight; /* of ticks: the sum of their periods; of waits: ns */
};

int profile_create(size_t limit_bytes, struct profile **ret_profile);
void profile_destroy(struct profile *p);

/*
 * Keeps raw stacks as BPF shipped them, by (window, id), for the samples that refer to them. Those
 * of two windows are kept: returns -ENOENT for an older window, -E2BIG over the limit.
 */
int profile_put_raw(struct profile *p, const struct abi_stack *stack);
const struct abi_stack *profile_get_raw(const struct profile *p, uint32_t window, uint64_t id);
/* Likewise for facts about fibers, which come as raw stacks do. */
const struct abi_fiber_facts *profile_get_raw_facts(
	const struct profile *p, uint32_t window, uint64_t id);
/* Forgets raw stacks of windows before WINDOW. */
void profile_drop_raw(struct profile *p, uint32_t window);

/*
 * Returns the number of a stack with this content, which is added if new; -E2BIG over the limit. A
 * cache saves resolving: KEY_A and KEY_B are the raw ids that the frames were resolved from,
 * CONTEXT stands for what they were resolved with (mappings generation and process).
 * profile_cached_stack() finds the number without frames.
 */
int profile_stack(struct profile *p, const struct profile_stack *stack, uint32_t *ret_stack);
bool profile_cached_stack(const struct profile *p, uint64_t key_a, uint64_t key_b, uint64_t context,
	uint32_t *ret_stack);
int profile_cache_stack(
	struct profile *p, uint64_t key_a, uint64_t key_b, uint64_t context, uint32_t stack);
/*
 * Sets *RET_FIBER to the number of FACTS, which are added if new; 0 if nothing is left of them.
 * *RET_LOSSES (enum profile_fiber_losses) says what is not. Returns -E2BIG over the limit.
 */
int profile_fiber(struct profile *p, const struct abi_fiber_facts *facts, uint32_t *ret_fiber,
	uint32_t *ret_losses);
/* Changes the numbers in SAMPLE from those of FROM to those of P, which gets what it lacks. */
int profile_adopt(struct profile *p, const struct profile *from, struct profile_sample *sample);
/*
 * Adds SAMPLE's count and weight to the equal sample, or adds SAMPLE as a new one. Returns -E2BIG
 * over the limit, -EINVAL for an unknown number of a stack or fiber.
 */
int profile_add(struct profile *p, const struct profile_sample *sample);

/* Removes the samples that KEEP refuses; returns how many were counted in them. Stacks stay. */
uint64_t profile_keep(struct profile *p,
	bool (*keep)(void *context, const struct profile_sample *sample), void *context);

size_t profile_sample_count(const struct profile *p); /* distinct */
const struct profile_sample *profile_sample_at(const struct profile *p, size_t number);
size_t profile_stack_count(const struct profile *p);
struct profile_stack profile_stack_at(const struct profile *p, uint32_t number);
/* All zero for 0. Its text is valid as long as the profile. */
struct profile_fiber profile_fiber_at(const struct profile *p, uint32_t number);
size_t profile_bytes(const struct profile *p);
uint64_t profile_total_count(const struct profile *p);
uint64_t profile_tick_count(const struct profile *p); /* SAMPLE_TYPE_TICKS among them */
