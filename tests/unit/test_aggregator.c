/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributed samples into the profiles of two windows and of a tap, and switches off the CPU to an
 * owner that records them. The stacks are those of tests/unit/aggregator_fixture.h.
 */
#include "agent/sampler/profile/sample_type.h"
#include "base/cleanup.h"
#include "tests/unit/aggregator_fixture.h"

#include <errno.h>

static const struct profile_sample *only_sample(const struct profile *profile)
{
	assert_int_equal(profile_sample_count(profile), 1);
	return profile_sample_at(profile, 0);
}

static uint64_t counted(const struct aggregator_fixture *f, enum metric metric)
{
	return metrics_get(&f->metrics, metric);
}

/* ---- ticks ---------------------------------------------------------------------------------- */

static void a_tick_goes_into_its_window(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);
	const struct profile_sample *sample;

	add_tick(f, &tick);
	add_tick(f, &tick);
	sample = only_sample(f->windows[WINDOW]);
	assert_int_equal(sample->count, 2);
	assert_int_equal(sample->weight, 2 * PERIOD);
	assert_int_equal(sample->process, GENERATION);
	assert_int_equal(sample->type, SAMPLE_TYPE_TICKS);
	assert_int_equal(profile_stack_at(f->windows[WINDOW], sample->stack).frame_count, 1);
	assert_int_equal(profile_sample_count(f->windows[LATE_WINDOW]), 0);
	assert_int_equal(aggregator_ticks(&f->aggregator), 2);
	assert_int_equal(counted(f, METRIC_SAMPLES_USER), 2);
	assert_int_equal(counted(f, METRIC_SAMPLES_KERNEL), 0);
}

static void a_late_tick_goes_into_the_window_before(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(LATE_WINDOW);

	add_tick(f, &tick);
	only_sample(f->windows[LATE_WINDOW]);
	assert_int_equal(profile_sample_count(f->windows[WINDOW]), 0);
}

static void a_tick_of_a_sealed_window_goes_into_the_current_one(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(SEALED_WINDOW);

	add_tick(f, &tick);
	only_sample(f->windows[WINDOW]);
	assert_int_equal(profile_sample_count(f->windows[LATE_WINDOW]), 0);
	/* The raw stack was freed with its window; the sample is counted as without a stack. */
	assert_int_equal(counted(f, METRIC_STACK_MISSING), 1);
}

static void a_tick_in_the_kernel_is_counted_as_one(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	tick.sample.flags = ABI_SAMPLE_KERNEL | ABI_SAMPLE_KTHREAD | ABI_SAMPLE_EXECUTING;
	add_tick(f, &tick);
	assert_int_equal(
		only_sample(f->windows[WINDOW])->flags, ABI_SAMPLE_KERNEL | ABI_SAMPLE_KTHREAD);
	assert_int_equal(counted(f, METRIC_SAMPLES_KERNEL), 1);
	assert_int_equal(counted(f, METRIC_SAMPLES_USER), 0);
}

static void a_walk_of_user_space_replaces_the_raw_stack(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);
	const struct unwind_stack walked = { .frames = { PROGRAM, PROGRAM + 8 }, .count = 2 };

	aggregator_add(&f->aggregator, &(struct attributed_sample){
					       .process = &f->process,
					       .record = &tick.sample,
					       .walked = &walked,
					       .mappings = f->process.mappings,
				       });
	assert_int_equal(
		profile_stack_at(f->windows[WINDOW], only_sample(f->windows[WINDOW])->stack)
			.frame_count,
		2);
}

/* ---- fibers --------------------------------------------------------------------------------- */

static void a_fiber_of_this_program_is_kept(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	tick.sample.fiber_id = 17;
	tick.sample.fiber_generation = GENERATION;
	add_tick(f, &tick);
	assert_int_equal(only_sample(f->windows[WINDOW])->fiber_id, 17);
	assert_int_equal(counted(f, METRIC_FIBERS_DROPPED), 0);
}

static void a_fiber_of_the_program_before_is_dropped(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	tick.sample.fiber_id = 17;
	tick.sample.fiber_generation = GENERATION - 1;
	add_tick(f, &tick);
	assert_int_equal(only_sample(f->windows[WINDOW])->fiber_id, 0);
	assert_int_equal(counted(f, METRIC_FIBERS_DROPPED), 1);
}

static void fiber_0_is_kept_for_any_program(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	tick.sample.fiber_generation = GENERATION - 1;
	add_tick(f, &tick);
	assert_int_equal(counted(f, METRIC_FIBERS_DROPPED), 0);
}

/* ---- facts about fibers ---------------------------------------------------------------------- */

static void put_facts(struct aggregator_fixture *f, uint32_t flags)
{
	union fiber_record record;

	fiber_record_begin(&record, WINDOW, 33);
	record.facts.flags |= flags;
	fiber_record_add(&record, "handler", "/index");
	put_raw_facts(f->windows[WINDOW], &record);
}

static struct abi_tick tick_with_facts(void)
{
	struct abi_tick tick = tick_of_window(WINDOW);

	tick.sample.fiber_facts = 33;
	tick.sample.fiber_generation = GENERATION;
	return tick;
}

static uint32_t labels_of(struct profile *profile)
{
	return profile_fiber_at(profile, only_sample(profile)->fiber).label_count;
}

static void put_origin(struct aggregator_fixture *f, uint64_t created_at, uint64_t start)
{
	union fiber_record record;

	fiber_record_begin(&record, WINDOW, 33);
	record.facts.created_at = created_at;
	record.facts.start = start;
	put_raw_facts(f->windows[WINDOW], &record);
}

static struct profile_stack origin_of(struct aggregator_fixture *f)
{
	const struct abi_tick tick = tick_with_facts();

	add_tick(f, &tick);
	add_tick(f, &tick); /* from the cache */
	return profile_stack_at(f->windows[WINDOW], only_sample(f->windows[WINDOW])->origin - 1);
}

static void where_a_fiber_was_created_is_a_stack(void **state)
{
	struct aggregator_fixture *f = *state;
	struct profile_stack origin;

	put_origin(f, PROGRAM + 0x20, PROGRAM + 0x40);
	origin = origin_of(f);
	assert_int_equal(origin.frame_count, 2);
	assert_int_equal(origin.frames[0].address, 0x20);
	assert_int_equal(origin.frames[0].flags, PROFILE_FRAME_RETURN);
	assert_int_equal(origin.frames[1].address, 0x40);
	assert_int_equal(origin.frames[1].flags, PROFILE_FRAME_FUNCTION);
	assert_int_equal(counted(f, METRIC_FIBER_ORIGINS_UNKNOWN), 0);
}

/* A call may be the last instruction of a mapping. */
static void a_forged_start_leaves_the_creator(void **state)
{
	struct aggregator_fixture *f = *state;
	struct profile_stack origin;

	put_origin(f, PROGRAM + 0x1000, UINT64_MAX);
	origin = origin_of(f);
	assert_int_equal(origin.frame_count, 1);
	assert_int_equal(origin.frames[0].address, 0x1000);
}

static void a_forged_creator_is_none(void **state)
{
	static const uint64_t forged[] = { 1, PROGRAM, PROGRAM + 0x1001, UINT64_MAX,
		UINT64_C(0xffffffff81000000) };
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_with_facts();

	for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
		union fiber_record record;

		fiber_record_begin(&record, WINDOW, 100 + i);
		record.facts.created_at = forged[i];
		put_raw_facts(f->windows[WINDOW], &record);
		tick.sample.fiber_facts = 100 + i;
		add_tick(f, &tick);
		assert_int_equal(only_sample(f->windows[WINDOW])->origin, 0);
		assert_int_equal(counted(f, METRIC_FIBER_ORIGINS_UNKNOWN), i + 1);
	}
}

static void facts_get_into_the_window_and_the_taps(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_with_facts();

	put_facts(f, ABI_FIBER_CUT | ABI_FIBER_UNREADABLE);
	open_tap(f, 1 << 20);
	add_tick(f, &tick);
	assert_int_equal(labels_of(f->windows[WINDOW]), 1);
	assert_int_equal(labels_of(f->taps[0]), 1);
	assert_int_equal(counted(f, METRIC_FIBER_LABELS_CUT), 1);
	assert_int_equal(counted(f, METRIC_FIBER_LABELS_UNREADABLE), 1);
	assert_int_equal(counted(f, METRIC_FIBER_LABELS_RESERVED), 0);
}

static void facts_of_the_program_before_are_dropped(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_with_facts();

	put_facts(f, 0);
	tick.sample.fiber_generation--;
	add_tick(f, &tick);
	assert_int_equal(only_sample(f->windows[WINDOW])->fiber, 0);
}

static void facts_that_were_lost_are_counted(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_with_facts();

	add_tick(f, &tick);
	assert_int_equal(only_sample(f->windows[WINDOW])->fiber, 0);
	assert_int_equal(counted(f, METRIC_FIBER_FACTS_MISSING), 1);
}

/* ---- profiles on demand --------------------------------------------------------------------- */

static void a_tick_is_in_each_tap_of_its_process(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	open_tap(f, 1 << 20);
	open_tap(f, 1 << 20);
	add_tick(f, &tick);
	only_sample(f->windows[WINDOW]);
	assert_int_equal(only_sample(f->taps[0])->weight, PERIOD);
	assert_int_equal(only_sample(f->taps[1])->count, 1);
	assert_int_equal(f->tap_pid, PID);
	assert_int_equal(counted(f, METRIC_ON_DEMAND_LEFT_OUT), 0);
	assert_int_equal(aggregator_ticks(&f->aggregator), 1);
}

static void a_full_tap_loses_nothing_of_the_window(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	open_tap(f, 1);
	open_tap(f, 1 << 20);
	add_tick(f, &tick);
	only_sample(f->windows[WINDOW]);
	assert_int_equal(profile_sample_count(f->taps[0]), 0);
	only_sample(f->taps[1]);
	assert_int_equal(counted(f, METRIC_ON_DEMAND_LEFT_OUT), 1);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 0);
}

/* ---- losses --------------------------------------------------------------------------------- */

static void a_tick_that_its_window_cannot_hold_is_lost_for_the_taps_too(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);

	fill_window(f);
	open_tap(f, 1 << 20);
	add_tick(f, &tick);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 1);
	assert_int_equal(aggregator_ticks(&f->aggregator), 0);
	assert_int_equal(counted(f, METRIC_SAMPLES_USER), 0);
	assert_int_equal(profile_sample_count(f->taps[0]), 0);
	assert_int_equal(f->waits_lost, 0);
}

/* The stack is already stored; only a new sample would need room. */
static void a_full_window_still_counts_samples_that_it_has(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick first = tick_of_window(WINDOW), tick = first;

	open_window(f, WINDOW, 1 << 15);
	put_raw(f->windows[WINDOW], WINDOW, USER_STACK, 0, PROGRAM + 0x10);
	tick.sample.fiber_generation = GENERATION;
	add_tick(f, &first);
	while (!counted(f, METRIC_LOST_MEMORY_LIMIT)) {
		tick.sample.fiber_id++;
		assert_in_range(tick.sample.fiber_id, 1, 1 << 15);
		add_tick(f, &tick);
	}
	assert_int_equal(profile_stack_count(f->windows[WINDOW]), 1);
	assert_int_equal(profile_sample_count(f->windows[WINDOW]), tick.sample.fiber_id);
	add_tick(f, &first);
	assert_int_equal(profile_sample_at(f->windows[WINDOW], 0)->count, 2);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 1);
	assert_int_equal(aggregator_ticks(&f->aggregator), tick.sample.fiber_id + 1);
}

static void a_sample_lost_elsewhere_is_counted(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);
	struct abi_switch_out switch_out = switch_out_of_window(WINDOW);

	aggregator_lose(&f->aggregator, &tick.sample);
	assert_int_equal(f->waits_lost, 0);
	aggregator_lose(&f->aggregator, &switch_out.sample);
	assert_int_equal(f->waits_lost, 1);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 2);
}

/* ---- switches off the CPU ------------------------------------------------------------------- */

static void only_a_switch_off_the_cpu_begins_a_wait(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_tick tick = tick_of_window(WINDOW);
	struct abi_switch_out switch_out = switch_out_of_window(WINDOW);

	aggregator_take(&f->aggregator, &tick.sample);
	assert_int_equal(f->waits_begun, 0);
	aggregator_take(&f->aggregator, &switch_out.sample);
	assert_int_equal(f->waits_begun, 1);
}

static void a_switch_off_the_cpu_gets_its_stack_and_no_weight(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_switch_out switch_out = switch_out_of_window(WINDOW);

	f->wanted = true;
	open_tap(f, 1 << 20);
	add_switch_out(f, &switch_out);
	assert_int_equal(f->waits_resolved, 1);
	assert_int_equal(f->resolved.count, 0);
	assert_int_equal(f->resolved.weight, 0);
	assert_int_equal(f->resolved.process, GENERATION);
	assert_int_equal(profile_stack_at(f->windows[WINDOW], f->resolved.stack).frame_count, 1);
	/* It is counted when the wait has ended. */
	assert_int_equal(profile_sample_count(f->windows[WINDOW]), 0);
	assert_int_equal(profile_sample_count(f->taps[0]), 0);
	assert_int_equal(aggregator_ticks(&f->aggregator), 0);
}

static void an_unwanted_switch_off_the_cpu_is_not_a_loss(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_switch_out switch_out = switch_out_of_window(WINDOW);

	add_switch_out(f, &switch_out);
	assert_int_equal(f->waits_resolved, 0);
	assert_int_equal(f->waits_lost, 0);
	assert_int_equal(profile_stack_count(f->windows[WINDOW]), 0);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 0);
}

static void a_switch_off_the_cpu_without_room_for_its_stack_is_lost(void **state)
{
	struct aggregator_fixture *f = *state;
	struct abi_switch_out switch_out = switch_out_of_window(WINDOW);

	f->wanted = true;
	fill_window(f);
	add_switch_out(f, &switch_out);
	assert_int_equal(f->waits_resolved, 0);
	assert_int_equal(f->waits_lost, 1);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 1);
}

/* ---- calls of functions ---------------------------------------------------------------------- */

static void a_call_counts_with_its_duration(void **state)
{
	struct aggregator_fixture *f = *state;
	const struct profile_sample *sample;

	open_tap(f, 1 << 20);
	add_call(f, 1000, 0);
	add_call(f, 234, 3); /* stands for 8 */
	sample = only_sample(f->windows[WINDOW]);
	assert_int_equal(sample->type, CALL_TYPE);
	assert_int_equal(sample->count, 9);
	assert_int_equal(sample->weight, 1000 + 8 * 234);
	/* Known from the function's own file, before anything is known of the process. */
	assert_int_equal(sample->fiber_id, 17);
	assert_int_equal(aggregator_calls(&f->aggregator), 2);
	assert_int_equal(aggregator_ticks(&f->aggregator), 0);
	assert_int_equal(profile_sample_count(f->taps[0]), 0);
}

/* It may have been read as an earlier program's runtime wants it. */
static void the_fiber_of_a_kernel_functions_call_is_the_programs_own(void **state)
{
	struct aggregator_fixture *f = *state;
	uint32_t number = f->process.number;

	add_kernel_call(f, number);
	assert_int_equal(only_sample(f->windows[WINDOW])->fiber_id, 17);
	assert_int_equal(only_sample(f->windows[WINDOW])->flags, ABI_SAMPLE_KERNEL);
	assert_int_equal(counted(f, METRIC_FIBERS_DROPPED), 0);
	open_window(f, WINDOW, 1 << 20);
	put_raw(f->windows[WINDOW], WINDOW, USER_STACK, 0, PROGRAM + 0x10);
	add_kernel_call(f, number - 1);
	assert_int_equal(only_sample(f->windows[WINDOW])->fiber_id, 0);
	assert_int_equal(counted(f, METRIC_FIBERS_DROPPED), 1);
	assert_int_equal(aggregator_calls(&f->aggregator), 2);
}

static void a_call_without_room_is_lost(void **state)
{
	struct aggregator_fixture *f = *state;

	fill_window(f);
	add_call(f, 1000, 0);
	assert_int_equal(aggregator_calls(&f->aggregator), 0);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, aggregator_set_up, aggregator_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_tick_goes_into_its_window),
		CASE(a_late_tick_goes_into_the_window_before),
		CASE(a_tick_of_a_sealed_window_goes_into_the_current_one),
		CASE(a_tick_in_the_kernel_is_counted_as_one),
		CASE(a_walk_of_user_space_replaces_the_raw_stack),
		CASE(where_a_fiber_was_created_is_a_stack),
		CASE(a_forged_start_leaves_the_creator),
		CASE(a_forged_creator_is_none),
		CASE(facts_get_into_the_window_and_the_taps),
		CASE(facts_of_the_program_before_are_dropped),
		CASE(facts_that_were_lost_are_counted),
		CASE(a_fiber_of_this_program_is_kept),
		CASE(a_fiber_of_the_program_before_is_dropped),
		CASE(fiber_0_is_kept_for_any_program),
		CASE(a_tick_is_in_each_tap_of_its_process),
		CASE(a_full_tap_loses_nothing_of_the_window),
		CASE(a_tick_that_its_window_cannot_hold_is_lost_for_the_taps_too),
		CASE(a_full_window_still_counts_samples_that_it_has),
		CASE(a_sample_lost_elsewhere_is_counted),
		CASE(only_a_switch_off_the_cpu_begins_a_wait),
		CASE(a_switch_off_the_cpu_gets_its_stack_and_no_weight),
		CASE(an_unwanted_switch_off_the_cpu_is_not_a_loss),
		CASE(a_switch_off_the_cpu_without_room_for_its_stack_is_lost),
		CASE(a_call_counts_with_its_duration),
		CASE(the_fiber_of_a_kernel_functions_call_is_the_programs_own),
		CASE(a_call_without_room_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
