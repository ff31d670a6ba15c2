/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The stacks of a profile as an output wants them: each distinct frame is symbolized once and
 * handed to the output, which gives it a number of its own; each distinct stack is a run of those
 * numbers with what is known of it. Frames of JIT code are kept apart by process.
 *
 * Where the profile says that frames were lost, a marker named `[frames lost]` stands in their
 * place; a sample without any frame has the marker `[no stack]`. Both have no mapping and no
 * address, so that nothing takes them for functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/report/symbolize.h"
#include "base/map.h"

struct stack_facts {
	uint32_t number; /* of this stack, from 0, for the output's own arrays */
	uint32_t first, count; /* in stacks.ids; leaf first, markers included */
	uint16_t outcomes[SYMBOLIZE_OUTCOMES]; /* frames by what came of them */
	bool user; /* it has user frames */
	bool user_named; /* the innermost of them has a name */
	bool complete; /* the outermost of them is known to be a thread's first */
	enum metric end; /* how it is counted if it is no root */
};

/* The output's number for FRAME; the frame and its texts live for the call. */
typedef int stacks_frame_fn(void *context, const struct symbolized *frame, uint32_t *ret_id);

struct known_frame;

struct stacks {
	struct symbolize symbolize;
	const struct profile *profile;
	stacks_frame_fn *frame_fn;
	void *context;
	struct intern frame_keys;
	struct known_frame *frames; /* by number in frame_keys */
	size_t frame_capacity;
	struct map by_stack; /* (process or 0, stack) → number of facts */
	uint8_t *kinds; /* by the profile's stack number: shared or private, once known */
	struct stack_facts *facts;
	size_t fact_count, fact_capacity;
	uint32_t *ids;
	size_t id_count, id_capacity;
	struct symbolized scratch;
};

int stacks_create(const struct report_sources *sources, const struct report_options *options,
	stacks_frame_fn *frame_fn, void *context, struct stacks **ret_stacks);
void stacks_destroy(struct stacks *s);
/* *RET_FACTS lives until the next call. */
int stacks_get(struct stacks *s, const struct profile_sample *sample,
	const struct stack_facts **ret_facts);
/* Hands FRAME of generation PROCESS to the output now, before any stack that has it. */
int stacks_prime(struct stacks *s, uint32_t process, const struct profile_frame *frame);
/* Adds SAMPLE, whose stack has FACTS, to the summary and to the metrics. */
void stacks_account(struct stacks *s, const struct stack_facts *facts,
	const struct profile_sample *sample, struct report_summary *summary);
