/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Resolves the two raw stacks of a sample into one stack of a profile. A user pc becomes a module
 * and a file offset, by the mappings as of the sample; a kernel address also gets its tenant; a
 * runtime's frame keeps what identifies it. The result does not depend on what the process does
 * later. The profile caches which stack a pair of raw stacks was resolved to.
 *
 * Does not know windows, samples, indexes or runtimes: the module, JIT code or runtime of each
 * frame is reported to the owner.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/unwind/unwind.h"
#include "base/metrics.h"

struct stack_resolver_options {
	struct kernel_symbols *kernel_symbols; /* borrowed */
	struct metrics *metrics; /* borrowed */
	/* Returns raw stack ID of WINDOW; NULL if it was lost. */
	const struct abi_stack *(*raw_stack)(void *context, uint32_t window, uint64_t id);
	/* A frame of P lies in MAPPING. */
	void (*module_hit)(void *context, struct process *p, const struct mapping *mapping);
	/* A sample of P has STACK, which was cached: its modules are not reported again. */
	void (*stack_hit)(void *context, struct process *p, const struct profile_stack *stack);
	/* A frame of P lies in memory without a file. Called for each such sample. */
	void (*jit_hit)(void *context, struct process *p);
	/* FRAME of P is a runtime's. Called for each such sample. */
	void (*runtime_hit)(void *context, const struct process *p, const struct abi_frame *frame);
	void *context;
};

struct stack_resolver {
	struct stack_resolver_options options;
	bool kernel_seen;
};

/* The stacks of one sample. */
struct stack_request {
	struct process *process;
	uint32_t window; /* of the raw stacks' ids */
	uint64_t user_stack, kernel_stack; /* ids; 0 = none */
	bool switched; /* the thread left the CPU; the kernel stack begins with tracing code */
	/*
	 * The user stack, if it was walked in user space, and the mappings to resolve it with.
	 * NULL: the raw stack, with the mappings of PROCESS.
	 */
	const struct unwind_stack *walked;
	const struct mappings *mappings;
};

/* Where a fiber comes from. The addresses are what a program's memory has: they may be anything. */
struct stack_origin {
	uint64_t key; /* identifies the others */
	uint64_t created_at; /* pc behind the call that created it */
	uint64_t start; /* pc of its first function; 0 = not known */
};

void stack_resolver_init(struct stack_resolver *r, const struct stack_resolver_options *options);
/*
 * Stores the number of REQUEST's stack in PROFILE. A lost raw stack gives a stack with
 * PROFILE_STACK_MISSING, and is counted; one that ends within a frame gives PROFILE_STACK_DEPTH.
 * Returns -E2BIG if PROFILE is full, or -ENOMEM.
 */
int stack_resolver_get(struct stack_resolver *r, struct profile *profile,
	const struct stack_request *request, uint32_t *ret_stack);
/*
 * Stores the number of the stack in PROFILE that ORIGIN is, in REQUEST's process: the call that
 * created the fiber, then its first function. Returns -ENOENT if the call is in no file.
 */
int stack_resolver_get_origin(struct stack_resolver *r, struct profile *profile,
	const struct stack_request *request, const struct stack_origin *origin,
	uint32_t *ret_stack);
/* Whether any sample so far had a kernel stack. */
bool stack_resolver_saw_kernel(const struct stack_resolver *r);
