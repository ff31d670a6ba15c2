/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Adds attributed samples to profiles. A tick goes into the profile of its window and into the
 * profiles on demand that want its process. A switch off the CPU gets its stack in the window's
 * profile; its owner joins it with the end of the wait, which has its length. A call of a function
 * goes into the profile of its window with its duration.
 *
 * Each sample is added or counted as lost. Does not know windows, waits or how a stack is resolved.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "agent/sampler/samples/attributed_sample.h"
#include "agent/sampler/samples/stack_resolver.h"
#include "base/metrics.h"

struct aggregator_options {
	struct stack_resolver *resolver; /* borrowed, as is `metrics` */
	struct metrics *metrics;
	uint32_t call_type; /* the type of samples that calls of functions are */
	/* Returns facts ID of WINDOW about a fiber; NULL if they were lost. */
	const struct abi_fiber_facts *(*raw_facts)(void *context, uint32_t window, uint64_t id);
	/* The profile that records of WINDOW go into; never NULL. */
	struct profile *(*profile)(void *context, uint32_t window);
	/* Iterates over PID's profiles on demand: starts with *ITERATOR = 0, ends with NULL. */
	struct profile *(*next_tap)(void *context, uint32_t pid, size_t *iterator);
	/* A thread leaves the CPU; its stack follows, at once or when its walk is finished. */
	void (*left)(void *context, const struct abi_switch_out *switch_out);
	/* Whether the wait that began with SWITCH_OUT can still be counted. */
	bool (*wants)(void *context, const struct abi_switch_out *switch_out);
	/* SAMPLE is made from SWITCH_OUT, without type, count and weight. */
	void (*resolved)(void *context, const struct abi_switch_out *switch_out,
		const struct profile_sample *sample);
	/* The stack of SWITCH_OUT will not come, which was counted. */
	void (*lost)(void *context, const struct abi_switch_out *switch_out);
	void *context;
};

struct aggregator {
	struct aggregator_options options;
	uint64_t ticks, calls; /* added to windows so far */
};

void aggregator_init(struct aggregator *a, const struct aggregator_options *options);
/* RECORD was taken; aggregator_add() or aggregator_lose() follows. */
void aggregator_take(const struct aggregator *a, const struct abi_sample *record);
void aggregator_add(struct aggregator *a, const struct attributed_sample *sample);
/* RECORD cannot be added: out of memory, or its process was freed. */
void aggregator_lose(struct aggregator *a, const struct abi_sample *record);
/* Ticks that were added to windows. */
uint64_t aggregator_ticks(const struct aggregator *a);
/* Likewise, records of calls, each of which may stand for several. */
uint64_t aggregator_calls(const struct aggregator *a);
