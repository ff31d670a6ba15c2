/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An aggregator between a real stack resolver and profiles of two windows and some taps. The
 * process has one page of a program; each window has a raw stack of one frame in it. Switches off
 * the CPU are recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/sampler/samples/aggregator.h"
#include "tests/unit/fiber_record.h"
#include "tests/unit/raw_stack.h"

enum {
	SEALED_WINDOW = 1,
	LATE_WINDOW,
	WINDOW, /* the current one */
	WINDOWS,
	TAPS = 2,
	PID = 100,
	GENERATION = 7,
	PERIOD = 52631578,
	USER_STACK = 11, /* id of the raw stack */
	PROGRAM = 0x400000, /* where its page is mapped */
	CALL_TYPE = 5,
};

struct aggregator_fixture {
	struct metrics metrics;
	struct module program;
	struct process process;
	struct profile *windows[WINDOWS]; /* NULL = sealed */
	struct profile *taps[TAPS];
	size_t tap_count;
	uint32_t tap_pid; /* whose taps were asked for last */
	struct stack_resolver resolver;
	struct aggregator aggregator;
	bool wanted; /* switches off the CPU are */
	unsigned int waits_begun, waits_resolved, waits_lost; /* calls */
	struct profile_sample resolved; /* the last one */
};

static struct profile *fixture_profile(void *context, uint32_t window)
{
	const struct aggregator_fixture *f = context;

	return f->windows[window] ? f->windows[window] : f->windows[WINDOW];
}

static const struct abi_stack *fixture_raw_stack(void *context, uint32_t window, uint64_t id)
{
	return profile_get_raw(fixture_profile(context, window), window, id);
}

static const struct abi_fiber_facts *fixture_raw_facts(void *context, uint32_t window, uint64_t id)
{
	return profile_get_raw_facts(fixture_profile(context, window), window, id);
}

static struct profile *fixture_next_tap(void *context, uint32_t pid, size_t *iterator)
{
	struct aggregator_fixture *f = context;

	f->tap_pid = pid;
	return *iterator < f->tap_count ? f->taps[(*iterator)++] : NULL;
}

static void fixture_left(void *context, const struct abi_switch_out *switch_out)
{
	struct aggregator_fixture *f = context;

	assert_int_equal(switch_out->sample.tgid, PID);
	f->waits_begun++;
}

static bool fixture_wants(void *context, const struct abi_switch_out *switch_out)
{
	const struct aggregator_fixture *f = context;

	assert_int_equal(switch_out->sample.tgid, PID);
	return f->wanted;
}

static void fixture_resolved(
	void *context, const struct abi_switch_out *switch_out, const struct profile_sample *sample)
{
	struct aggregator_fixture *f = context;

	assert_int_equal(switch_out->sample.tgid, PID);
	f->resolved = *sample;
	f->waits_resolved++;
}

static void fixture_lost(void *context, const struct abi_switch_out *switch_out)
{
	struct aggregator_fixture *f = context;

	assert_int_equal(switch_out->sample.tgid, PID);
	f->waits_lost++;
}

static void fixture_module_hit(void *context, struct process *p, const struct mapping *mapping)
{
	const struct aggregator_fixture *f = context;

	assert_ptr_equal(p, &f->process);
	assert_ptr_equal(mapping->module, &f->program);
}

static void fixture_stack_hit(void *context, struct process *p, const struct profile_stack *stack)
{
	(void)context;
	(void)p;
	(void)stack;
}

static inline void open_window(struct aggregator_fixture *f, uint32_t window, size_t limit_bytes)
{
	profile_destroy(f->windows[window]);
	assert_int_equal(profile_create(limit_bytes, &f->windows[window]), 0);
}

static inline int aggregator_set_up(void **state)
{
	struct aggregator_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->program = (struct module){ .number = 1, .kind = MODULE_FILE };
	f->process =
		(struct process){ .pid = PID, .number = GENERATION, .mappings = mappings_create() };
	assert_int_equal(mappings_add(&f->process.mappings, &(struct mapping){ .start = PROGRAM,
								    .end = PROGRAM + 0x1000,
								    .module = &f->program }),
		0);
	for (uint32_t window = LATE_WINDOW; window <= WINDOW; window++) {
		open_window(f, window, 1 << 20);
		put_raw(f->windows[window], window, USER_STACK, 0, PROGRAM + 0x10);
	}
	stack_resolver_init(&f->resolver, &(struct stack_resolver_options){
						  .metrics = &f->metrics,
						  .raw_stack = fixture_raw_stack,
						  .module_hit = fixture_module_hit,
						  .stack_hit = fixture_stack_hit,
						  .context = f,
					  });
	aggregator_init(&f->aggregator, &(struct aggregator_options){
						.resolver = &f->resolver,
						.metrics = &f->metrics,
						.call_type = CALL_TYPE,
						.raw_facts = fixture_raw_facts,
						.profile = fixture_profile,
						.next_tap = fixture_next_tap,
						.left = fixture_left,
						.wants = fixture_wants,
						.resolved = fixture_resolved,
						.lost = fixture_lost,
						.context = f,
					});
	*state = f;
	return 0;
}

static inline int aggregator_tear_down(void **state)
{
	struct aggregator_fixture *f = *state;

	for (size_t i = 0; i < WINDOWS; i++)
		profile_destroy(f->windows[i]);
	for (size_t i = 0; i < f->tap_count; i++)
		profile_destroy(f->taps[i]);
	mappings_unref(f->process.mappings);
	free(f);
	return 0;
}

static inline void open_tap(struct aggregator_fixture *f, size_t limit_bytes)
{
	assert_true(f->tap_count < TAPS);
	assert_int_equal(profile_create(limit_bytes, &f->taps[f->tap_count]), 0);
	f->tap_count++;
}

/* From here on the current window has no room for a stack. */
static inline void fill_window(struct aggregator_fixture *f)
{
	open_window(f, WINDOW, 1);
}

static inline struct abi_tick tick_of_window(uint32_t window)
{
	return (struct abi_tick){
		.sample = { .kind = ABI_TICK,
			.tgid = PID,
			.tid = PID,
			.window = window,
			.user_stack = USER_STACK },
		.period = PERIOD,
	};
}

static inline struct abi_switch_out switch_out_of_window(uint32_t window)
{
	struct abi_switch_out switch_out = { .sample = tick_of_window(window).sample };

	switch_out.sample.kind = ABI_SWITCH_OUT;
	return switch_out;
}

static inline void add_tick(struct aggregator_fixture *f, const struct abi_tick *tick)
{
	aggregator_add(&f->aggregator, &(struct attributed_sample){
					       .process = &f->process,
					       .record = &tick->sample,
				       });
}

static inline void add_switch_out(
	struct aggregator_fixture *f, const struct abi_switch_out *switch_out)
{
	aggregator_add(&f->aggregator, &(struct attributed_sample){
					       .process = &f->process,
					       .record = &switch_out->sample,
				       });
}

/* A call of a kernel function, made by fiber 17 as program GENERATION's runtime has it. */
static inline void add_kernel_call(struct aggregator_fixture *f, uint32_t generation)
{
	struct abi_call call = { .sample = tick_of_window(WINDOW).sample,
		.duration = 1000 << ABI_CALL_SHIFT_BITS };

	call.sample.kind = ABI_CALL;
	call.sample.flags = ABI_SAMPLE_KERNEL;
	call.sample.fiber_id = 17;
	call.sample.fiber_generation = generation;
	aggregator_add(&f->aggregator, &(struct attributed_sample){
					       .process = &f->process,
					       .record = &call.sample,
				       });
}

static inline void add_call(struct aggregator_fixture *f, uint64_t duration_ns, uint32_t shift)
{
	struct abi_call call = { .sample = tick_of_window(WINDOW).sample,
		.duration = duration_ns << ABI_CALL_SHIFT_BITS | shift };

	call.sample.kind = ABI_CALL;
	call.sample.flags = ABI_SAMPLE_FIBER_OF_CALL;
	call.sample.fiber_id = 17;
	aggregator_add(&f->aggregator, &(struct attributed_sample){
					       .process = &f->process,
					       .record = &call.sample,
				       });
}
