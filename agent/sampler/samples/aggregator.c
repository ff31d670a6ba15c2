/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/samples/aggregator.h"

#include <assert.h>

#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/profile/sample_type.h"

void aggregator_init(struct aggregator *a, const struct aggregator_options *options)
{
	*a = (struct aggregator){ .options = *options };
}

/* S must be the head of a struct abi_tick. */
static const struct abi_tick *tick_of(const struct abi_sample *s)
{
	assert(s->kind == ABI_TICK);
	return (const struct abi_tick *)s;
}

static const struct abi_switch_out *switch_out_of(const struct abi_sample *s)
{
	assert(s->kind == ABI_SWITCH_OUT);
	return (const struct abi_switch_out *)s;
}

static const struct abi_call *call_of(const struct abi_sample *s)
{
	assert(s->kind == ABI_CALL);
	return (const struct abi_call *)s;
}

static struct profile *aggregator_profile(const struct aggregator *a, const struct abi_sample *s)
{
	return a->options.profile(a->options.context, s->window);
}

/*
 * A fiber that was read as an earlier program's runtime wants it is none. That of a call may have
 * been read as the function's own file wants it.
 */
static uint64_t aggregator_fiber(
	const struct aggregator *a, const struct process *p, const struct abi_sample *s)
{
	bool as_called = s->flags & ABI_SAMPLE_FIBER_OF_CALL;

	if (!s->fiber_id || as_called || s->fiber_generation == p->number)
		return s->fiber_id;
	metrics_add(a->options.metrics, METRIC_FIBERS_DROPPED, 1);
	return 0;
}

/* Counts a sample that lacks labels, once for each reason. */
static void aggregator_count_losses(const struct aggregator *a, uint32_t losses)
{
	if (losses & PROFILE_FIBER_CUT)
		metrics_add(a->options.metrics, METRIC_FIBER_LABELS_CUT, 1);
	if (losses & PROFILE_FIBER_UNREADABLE)
		metrics_add(a->options.metrics, METRIC_FIBER_LABELS_UNREADABLE, 1);
	if (losses & PROFILE_FIBER_RESERVED)
		metrics_add(a->options.metrics, METRIC_FIBER_LABELS_RESERVED, 1);
}

/* Sets where the fiber of SAMPLE comes from. A pc that is in no file is no such place. */
static void aggregator_set_origin(const struct aggregator *a, struct profile *profile,
	const struct stack_request *request, const struct abi_fiber_facts *facts,
	struct profile_sample *sample)
{
	const struct stack_origin origin = { facts->id, facts->created_at, facts->start };
	uint32_t stack;

	if (!origin.created_at)
		return;
	if (stack_resolver_get_origin(a->options.resolver, profile, request, &origin, &stack))
		metrics_add(a->options.metrics, METRIC_FIBER_ORIGINS_UNKNOWN, 1);
	else
		sample->origin = stack + 1;
}

/* Sets what is known of the fiber of SAMPLE, of RECORD. */
static void aggregator_set_facts(const struct aggregator *a, struct profile *profile,
	const struct stack_request *request, const struct abi_sample *record,
	struct profile_sample *sample)
{
	const struct aggregator_options *owner = &a->options;
	const bool counts = profile == aggregator_profile(a, record);
	const struct abi_fiber_facts *facts;
	uint32_t losses = 0;

	if (!record->fiber_facts || record->fiber_generation != request->process->number)
		return;
	facts = owner->raw_facts(owner->context, record->window, record->fiber_facts);
	if (!facts) {
		metrics_add(owner->metrics, METRIC_FIBER_FACTS_MISSING, counts);
		return;
	}
	if (profile_fiber(profile, facts, &sample->fiber, &losses)) {
		metrics_add(owner->metrics, METRIC_FIBER_FACTS_REFUSED, counts);
		return;
	}
	if (counts && losses)
		aggregator_count_losses(a, losses);
	aggregator_set_origin(a, profile, request, facts, sample);
}

/* Makes a profile sample and adds its stack to PROFILE; count and weight stay 0. */
static int aggregator_make(struct aggregator *a, struct profile *profile,
	const struct attributed_sample *attributed, struct profile_sample *ret_sample)
{
	const struct abi_sample *s = attributed->record;
	bool switched = s->kind == ABI_SWITCH_OUT;
	struct profile_sample sample = {
		.process = attributed->process->number,
		.flags = s->flags & (ABI_SAMPLE_KERNEL | ABI_SAMPLE_KTHREAD),
		.type = SAMPLE_TYPE_TICKS, /* of others it is set later */
	};
	const struct stack_request request = {
		.process = attributed->process,
		.window = s->window,
		.user_stack = s->user_stack,
		.kernel_stack = s->kernel_stack,
		.switched = switched,
		.walked = attributed->walked,
		.mappings = attributed->mappings,
	};
	int err = stack_resolver_get(a->options.resolver, profile, &request, &sample.stack);

	if (err)
		return err;
	sample_labels_read(s, &sample);
	sample.fiber_id = aggregator_fiber(a, attributed->process, s);
	aggregator_set_facts(a, profile, &request, s, &sample);
	*ret_sample = sample;
	return 0;
}

/* ---- ticks ---------------------------------------------------------------------------------- */

static int aggregator_add_tick(
	struct aggregator *a, struct profile *profile, const struct attributed_sample *attributed)
{
	struct profile_sample sample;
	int err = aggregator_make(a, profile, attributed, &sample);

	if (err)
		return err;
	sample.count = 1;
	sample.weight = tick_of(attributed->record)->period;
	return profile_add(profile, &sample);
}

/* A tick that a full profile on demand leaves out is still in the window's: it is not lost. */
static void aggregator_add_to_taps(struct aggregator *a, const struct attributed_sample *attributed)
{
	const struct aggregator_options *owner = &a->options;
	struct profile *tap;
	size_t iterator = 0;

	while ((tap = owner->next_tap(owner->context, attributed->record->tgid, &iterator))) {
		if (aggregator_add_tick(a, tap, attributed))
			metrics_add(owner->metrics, METRIC_ON_DEMAND_LEFT_OUT, 1);
	}
}

static void aggregator_tick(struct aggregator *a, const struct attributed_sample *attributed)
{
	const struct abi_sample *s = attributed->record;

	if (aggregator_add_tick(a, aggregator_profile(a, s), attributed)) {
		aggregator_lose(a, s);
		return;
	}
	aggregator_add_to_taps(a, attributed);
	a->ticks++;
	metrics_add(a->options.metrics,
		s->flags & ABI_SAMPLE_KERNEL ? METRIC_SAMPLES_KERNEL : METRIC_SAMPLES_USER, 1);
}

uint64_t aggregator_ticks(const struct aggregator *a)
{
	return a->ticks;
}

/* ---- switches off the CPU ------------------------------------------------------------------- */

static void aggregator_switch_out(struct aggregator *a, const struct attributed_sample *attributed)
{
	const struct aggregator_options *owner = &a->options;
	const struct abi_switch_out *switch_out = switch_out_of(attributed->record);
	struct profile_sample sample;

	if (!owner->wants(owner->context, switch_out))
		return;
	if (aggregator_make(a, aggregator_profile(a, attributed->record), attributed, &sample))
		aggregator_lose(a, attributed->record);
	else
		owner->resolved(owner->context, switch_out, &sample);
}

/* ---- calls of functions ---------------------------------------------------------------------- */

static void aggregator_call(struct aggregator *a, const struct attributed_sample *attributed)
{
	const struct abi_sample *s = attributed->record;
	const struct abi_call *call = call_of(s);
	uint32_t shift = call->duration & ABI_CALL_SHIFT;
	struct profile *profile = aggregator_profile(a, s);
	struct profile_sample sample;
	int err = aggregator_make(a, profile, attributed, &sample);

	if (!err) {
		sample.type = a->options.call_type;
		sample.count = UINT64_C(1) << shift;
		sample.weight = (call->duration >> ABI_CALL_SHIFT_BITS) << shift;
		err = profile_add(profile, &sample);
	}
	if (err)
		aggregator_lose(a, s);
	else
		a->calls++;
}

uint64_t aggregator_calls(const struct aggregator *a)
{
	return a->calls;
}

/* ---- all ----------------------------------------------------------------------------------- */

void aggregator_take(const struct aggregator *a, const struct abi_sample *record)
{
	if (record->kind == ABI_SWITCH_OUT)
		a->options.left(a->options.context, switch_out_of(record));
}

void aggregator_lose(struct aggregator *a, const struct abi_sample *record)
{
	metrics_add(a->options.metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	if (record->kind == ABI_SWITCH_OUT)
		a->options.lost(a->options.context, switch_out_of(record));
}

void aggregator_add(struct aggregator *a, const struct attributed_sample *sample)
{
	if (sample->record->kind == ABI_SWITCH_OUT)
		aggregator_switch_out(a, sample);
	else if (sample->record->kind == ABI_CALL)
		aggregator_call(a, sample);
	else
		aggregator_tick(a, sample);
}
