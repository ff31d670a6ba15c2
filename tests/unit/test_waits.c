/* SPDX-License-Identifier: Apache-2.0 */
/* Waits, with two windows and two on-demand profiles made by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/sampler/probes/off_cpu/waits.h"
#include "agent/sampler/probes/probes.h"
#include "bpf/abi/sampler.h"

enum { TGID = 70, TID = 71, LEFT_NS = 1000, PLENTY = 1 << 20, TAPS = 2 };

struct fixture {
	struct waits *waits;
	struct metrics metrics;
	struct profile *previous, *current; /* PREVIOUS: NULL = no previous window is open */
	uint32_t number; /* of the current one */
	struct profile *taps[TAPS]; /* NULL = none */
	unsigned int hits; /* number of resolved stacks */
	uint32_t hit_process;
};

static struct profile *on_profile(void *context, uint32_t number, uint32_t *ret_number)
{
	const struct fixture *f = context;
	bool late = f->previous && number == f->number - 1;

	*ret_number = late ? number : f->number;
	return late ? f->previous : f->current;
}

static struct profile *on_next_tap(void *context, uint32_t pid, size_t *iterator)
{
	const struct fixture *f = context;

	assert_int_equal(pid, TGID);
	return *iterator < TAPS ? f->taps[(*iterator)++] : NULL;
}

static void on_stack_hit(void *context, uint32_t process, const struct profile_stack *stack)
{
	struct fixture *f = context;

	assert_int_equal(stack->frame_count, 1);
	f->hits++;
	f->hit_process = process;
}

static void create(struct fixture *f, double share)
{
	assert_int_equal(waits_create(
				 &(struct waits_options){
					 .share = share,
					 .metrics = &f->metrics,
					 .handlers = {
						 .profile = on_profile,
						 .next_tap = on_next_tap,
						 .stack_hit = on_stack_hit,
						 .context = f,
					 },
				 },
				 &f->waits),
		0);
}

static struct profile *make_profile(size_t limit_bytes)
{
	struct profile *profile;

	assert_int_equal(profile_create(limit_bytes, &profile), 0);
	return profile;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->number = 1;
	f->current = make_profile(PLENTY);
	create(f, 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	waits_destroy(f->waits);
	profile_destroy(f->previous);
	profile_destroy(f->current);
	for (size_t i = 0; i < TAPS; i++)
		profile_destroy(f->taps[i]);
	free(f);
	return 0;
}

static struct abi_switch_out switch_out_at(uint64_t left_ns, uint32_t window)
{
	return (struct abi_switch_out){
		.sample = { .kind = ABI_SWITCH_OUT, .tgid = TGID, .tid = TID, .window = window },
		.left_ns = left_ns,
	};
}

static void leave(struct fixture *f, uint64_t left_ns)
{
	const struct abi_switch_out switch_out = switch_out_at(left_ns, f->number);

	waits_left(f->waits, &switch_out);
}

/* Resolves the stack of a switch in WINDOW into its profile. */
static void resolve(struct fixture *f, uint64_t left_ns, uint32_t window)
{
	const struct abi_switch_out switch_out = switch_out_at(left_ns, window);
	const struct profile_frame frame = { .address = left_ns, .module = 3 };
	struct profile_sample sample = { .process = 5, .pid = TGID, .tid = TID };
	uint32_t number;

	assert_int_equal(profile_stack(on_profile(f, window, &number),
				 &(struct profile_stack){ .frames = &frame, .frame_count = 1 },
				 &sample.stack),
		0);
	waits_resolved(f->waits, &switch_out, &sample);
}

static void wake(struct fixture *f, uint64_t left_ns, uint64_t wait_ns)
{
	waits_woke(f->waits, &(struct abi_wake){ .kind = ABI_WAKE,
				     .window = f->number,
				     .tgid = TGID,
				     .tid = TID,
				     .left_ns = left_ns,
				     .wait_ns = wait_ns });
}

/* Ends the current window. */
static void rotate(struct fixture *f)
{
	assert_null(f->previous);
	f->previous = f->current;
	f->current = make_profile(PLENTY);
	f->number++;
}

static void seal(struct fixture *f)
{
	waits_move(f->waits, f->number - 1);
	profile_destroy(f->previous);
	f->previous = NULL;
}

static uint64_t lost(const struct fixture *f)
{
	return metrics_get(&f->metrics, METRIC_LOST_MEMORY_LIMIT);
}

/* Checks that PROFILE has one sample: a wait of WAIT_NS whose stack has the frame ADDRESS. */
static void assert_wait(const struct profile *profile, uint64_t address, uint64_t wait_ns)
{
	const struct profile_sample *sample = profile_sample_at(profile, 0);

	assert_int_equal(profile_sample_count(profile), 1);
	assert_int_equal(sample->type, PROBE_off_cpu);
	assert_int_equal(sample->process, 5);
	assert_int_equal(sample->count, 1);
	assert_int_equal(sample->weight, wait_ns);
	assert_int_equal(profile_stack_at(profile, sample->stack).frames[0].address, address);
}

static void assert_nothing_added(const struct fixture *f)
{
	assert_int_equal(profile_sample_count(f->current), 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_OFF_CPU), 0);
}

/* ---- one wait ------------------------------------------------------------------------------- */

static void wait_counts_when_the_thread_runs_again(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	assert_nothing_added(f);
	wake(f, LEFT_NS, 77);
	assert_wait(f->current, LEFT_NS, 77);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_OFF_CPU), 1);
	assert_int_equal(f->hits, 0);
	/* A second wake-up adds nothing. */
	wake(f, LEFT_NS, 77);
	assert_wait(f->current, LEFT_NS, 77);
}

static void wait_counts_when_its_stack_comes_last(void **state)
{
	struct fixture *f = *state;
	const struct abi_switch_out switch_out = switch_out_at(LEFT_NS, 1);

	leave(f, LEFT_NS);
	wake(f, LEFT_NS, 77);
	assert_nothing_added(f);
	assert_true(waits_wants(f->waits, &switch_out));
	resolve(f, LEFT_NS, 1);
	assert_wait(f->current, LEFT_NS, 77);
	assert_false(waits_wants(f->waits, &switch_out));
}

static void waits_of_a_thread_may_be_resolved_in_any_order(void **state)
{
	struct fixture *f = *state;

	for (uint64_t left_ns = 1; left_ns <= 3; left_ns++) {
		leave(f, left_ns);
		wake(f, left_ns, 10 * left_ns);
	}
	/* The thread's end does not end waits that are over. */
	waits_thread_ended(f->waits, TID);
	resolve(f, 2, 1);
	assert_wait(f->current, 2, 20);
	resolve(f, 3, 1);
	resolve(f, 1, 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_OFF_CPU), 3);
	assert_int_equal(profile_sample_at(f->current, 1)->weight, 30);
	assert_int_equal(profile_sample_at(f->current, 2)->weight, 10);
}

static void wake_of_an_unknown_wait_is_ignored(void **state)
{
	struct fixture *f = *state;

	wake(f, LEFT_NS, 77);
	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	wake(f, LEFT_NS + 1, 77);
	assert_nothing_added(f);
	assert_int_equal(lost(f), 0);
}

static void wait_whose_end_was_lost_gives_way_to_the_next(void **state)
{
	struct fixture *f = *state;
	const struct abi_switch_out first = switch_out_at(LEFT_NS, 1);

	leave(f, LEFT_NS);
	leave(f, 2 * LEFT_NS);
	assert_false(waits_wants(f->waits, &first));
	resolve(f, LEFT_NS, 1);
	resolve(f, 2 * LEFT_NS, 1);
	wake(f, LEFT_NS, 7);
	assert_nothing_added(f);
	wake(f, 2 * LEFT_NS, 8);
	assert_wait(f->current, 2 * LEFT_NS, 8);
}

static void thread_that_ends_no_longer_waits(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	waits_thread_ended(f->waits, TID);
	waits_thread_ended(f->waits, TID);
	wake(f, LEFT_NS, 77);
	assert_nothing_added(f);
}

static void wait_without_its_stack_is_forgotten(void **state)
{
	struct fixture *f = *state;
	const struct abi_switch_out switch_out = switch_out_at(LEFT_NS, 1);

	for (int ended = 0; ended < 2; ended++) {
		leave(f, LEFT_NS);
		if (ended)
			wake(f, LEFT_NS, 77);
		waits_lost(f->waits, &switch_out);
		assert_false(waits_wants(f->waits, &switch_out));
	}
	waits_lost(f->waits, &switch_out);
	assert_nothing_added(f);
}

static void some_waits_stand_for_all(void **state)
{
	struct fixture *f = *state;
	uint64_t count = 0, weight = 0;

	waits_destroy(f->waits);
	create(f, 0.3);
	for (uint64_t left_ns = 1; left_ns <= 30; left_ns++) {
		leave(f, left_ns);
		resolve(f, left_ns, 1);
		wake(f, left_ns, 300);
	}
	for (size_t i = 0; i < profile_sample_count(f->current); i++) {
		count += profile_sample_at(f->current, i)->count;
		weight += profile_sample_at(f->current, i)->weight;
	}
	assert_in_range(count, 99, 100);
	assert_in_range(weight, 30 * 999, 30 * 1000);
}

/* ---- windows and profiles on demand --------------------------------------------------------- */

static void wait_counts_in_the_window_in_which_it_ends(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	rotate(f);
	assert_int_equal(f->hits, 0);
	seal(f);
	/* Its stack moved to the new window, where its modules are still needed. */
	assert_int_equal(f->hits, 1);
	assert_int_equal(f->hit_process, 5);
	rotate(f);
	seal(f);
	wake(f, LEFT_NS, 77);
	assert_wait(f->current, LEFT_NS, 77);
}

static void stack_is_copied_into_a_window_that_began_meanwhile(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	rotate(f);
	wake(f, LEFT_NS, 77);
	assert_int_equal(profile_sample_count(f->previous), 0);
	assert_wait(f->current, LEFT_NS, 77);
	assert_int_equal(f->hits, 1);
}

static void wait_that_is_resolved_late_counts_where_it_began(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	rotate(f);
	wake(f, LEFT_NS, 77);
	resolve(f, LEFT_NS, 1);
	assert_wait(f->previous, LEFT_NS, 77);
	assert_int_equal(profile_sample_count(f->current), 0);
}

static void wait_of_a_sealed_window_is_resolved_into_the_current_one(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	rotate(f);
	seal(f);
	resolve(f, LEFT_NS, 1);
	rotate(f);
	seal(f);
	wake(f, LEFT_NS, 77);
	assert_wait(f->current, LEFT_NS, 77);
}

static void profiles_on_demand_have_it_too(void **state)
{
	struct fixture *f = *state;

	f->taps[0] = make_profile(PLENTY);
	f->taps[1] = make_profile(PLENTY);
	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	wake(f, LEFT_NS, 77);
	assert_wait(f->taps[0], LEFT_NS, 77);
	assert_wait(f->taps[1], LEFT_NS, 77);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_OFF_CPU), 1);
}

/* ---- what is full --------------------------------------------------------------------------- */

static void full_profile_on_demand_leaves_it_out(void **state)
{
	struct fixture *f = *state;

	f->taps[0] = make_profile(1);
	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	wake(f, LEFT_NS, 77);
	assert_wait(f->current, LEFT_NS, 77);
	assert_int_equal(metrics_get(&f->metrics, METRIC_ON_DEMAND_LEFT_OUT), 1);
	assert_int_equal(lost(f), 0);
}

static void full_window_loses_it(void **state)
{
	struct fixture *f = *state;

	f->taps[0] = make_profile(PLENTY);
	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	rotate(f);
	profile_destroy(f->current);
	f->current = make_profile(1);
	wake(f, LEFT_NS, 77);
	assert_nothing_added(f);
	assert_int_equal(profile_sample_count(f->taps[0]), 0);
	assert_int_equal(lost(f), 1);
}

static void stack_that_cannot_move_on_is_lost(void **state)
{
	struct fixture *f = *state;

	leave(f, LEFT_NS);
	resolve(f, LEFT_NS, 1);
	rotate(f);
	profile_destroy(f->current);
	f->current = make_profile(1);
	seal(f);
	assert_int_equal(lost(f), 1);
	/* The wake-up is no second loss. */
	wake(f, LEFT_NS, 77);
	assert_nothing_added(f);
	assert_int_equal(lost(f), 1);
}

static void waits_beyond_the_limit_are_lost(void **state)
{
	struct fixture *f = *state;
	struct abi_switch_out switch_out = switch_out_at(LEFT_NS, 1);

	for (uint32_t tid = 1; tid <= 4 * ABI_WAITS + 3; tid++) {
		switch_out.sample.tid = tid;
		waits_left(f->waits, &switch_out);
	}
	assert_int_equal(lost(f), 3);
	assert_false(waits_wants(f->waits, &switch_out));
	/* The other waits are unchanged. */
	switch_out.sample.tid = 1;
	assert_true(waits_wants(f->waits, &switch_out));
}

static void destroying_null_is_harmless(void **state)
{
	(void)state;
	waits_destroy(NULL);
}

#define WAITS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WAITS_TEST(wait_counts_when_the_thread_runs_again),
		WAITS_TEST(wait_counts_when_its_stack_comes_last),
		WAITS_TEST(waits_of_a_thread_may_be_resolved_in_any_order),
		WAITS_TEST(wake_of_an_unknown_wait_is_ignored),
		WAITS_TEST(wait_whose_end_was_lost_gives_way_to_the_next),
		WAITS_TEST(thread_that_ends_no_longer_waits),
		WAITS_TEST(wait_without_its_stack_is_forgotten),
		WAITS_TEST(some_waits_stand_for_all),
		WAITS_TEST(wait_counts_in_the_window_in_which_it_ends),
		WAITS_TEST(stack_is_copied_into_a_window_that_began_meanwhile),
		WAITS_TEST(wait_that_is_resolved_late_counts_where_it_began),
		WAITS_TEST(wait_of_a_sealed_window_is_resolved_into_the_current_one),
		WAITS_TEST(profiles_on_demand_have_it_too),
		WAITS_TEST(full_profile_on_demand_leaves_it_out),
		WAITS_TEST(full_window_loses_it),
		WAITS_TEST(stack_that_cannot_move_on_is_lost),
		WAITS_TEST(waits_beyond_the_limit_are_lost),
		WAITS_TEST(destroying_null_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
