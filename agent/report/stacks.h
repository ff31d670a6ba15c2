/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stacks of a profile, symbolized for an output. Each distinct frame is symbolized once and passed
 * to the output, which returns an id for it; each distinct stack is a run of those ids plus facts
 * about it. JIT frames are kept separate by process.
 *
 * The marker `[frames lost]` stands where the profile has lost frames; a sample without frames gets
 * the marker `[no stack]`, and a user stack without its root ends with `[truncated: REASON]`
 * (truncation.h). One too deep to be kept has a marker between its innermost and its outermost
 * frames, one with a caller that was found by a search has a marker before that one. Beyond all of
 * them comes, if it is wanted, the function that created the fiber. Markers have no mapping and no
 * address, so they are not mistaken for functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/report/report.h"
#include "agent/sampler/seam/symbolized.h"
#include "base/intern.h"

struct stack_facts {
	uint32_t number; /* index of this stack, for the output's own arrays */
	uint32_t first, count; /* range in stacks.ids; leaf first, markers included */
	uint16_t outcomes[SYMBOLIZE_OUTCOMES]; /* number of frames by outcome */
	bool user; /* it has user frames */
	bool user_named; /* the innermost user frame has a name */
	bool complete; /* the outermost user frame is a thread's first function */
	bool idle; /* the thread calls a function in which it sleeps without a fiber */
	bool known; /* the rest is */
	bool marked; /* the outermost frame is the marker `[truncated: REASON]` */
	bool no_middle; /* the marker TRUNCATION_MIDDLE_MARK stands between its frames */
	bool guessed; /* the marker TRUNCATION_GUESS_MARK does */
	enum metric end; /* why the stack is truncated, unless complete */
};

/* Stores the output's id for FRAME in *RET_ID. FRAME and its strings are valid during the call. */
typedef int stacks_frame_fn(void *context, const struct symbolized *frame, uint32_t *ret_id);

struct known_frame;

struct stacks {
	const struct report_sources *sources;
	const struct profile *profile;
	bool no_inlines, no_demangle, created_by;
	stacks_frame_fn *frame_fn;
	void *context;
	struct intern frame_keys;
	struct known_frame *frames; /* indexed by number in frame_keys */
	size_t frame_capacity;
	struct intern stack_keys; /* numbered as `facts` */
	uint8_t *kinds; /* enum stack_kind, by the profile's stack number */
	struct stack_facts *facts;
	size_t fact_capacity;
	uint32_t *ids;
	size_t id_count, id_capacity;
	struct symbolized scratch;
};

int stacks_create(const struct report_sources *sources, const struct report_options *options,
	stacks_frame_fn *frame_fn, void *context, struct stacks **ret_stacks);
void stacks_destroy(struct stacks *s);
/* *RET_FACTS is valid until the next call. */
int stacks_get(struct stacks *s, const struct profile_sample *sample,
	const struct stack_facts **ret_facts);
/* Passes FRAME of process generation PROCESS to the output, unless that was done before. */
int stacks_add_frame(
	struct stacks *s, uint32_t process, const struct profile_frame *frame, uint32_t *ret_id);
/* Adds SAMPLE, whose stack has FACTS, to SUMMARY and to the metrics. */
void stacks_account(struct stacks *s, const struct stack_facts *facts,
	const struct profile_sample *sample, struct report_summary *summary);
