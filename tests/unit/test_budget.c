/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU budget: which frequency follows from the CPU time used. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/daemon/budget.h"

static const uint64_t SECOND = 1000000000;

/* Time and CPU time of a process that is measured every fifteen seconds. */
struct load {
	struct budget budget;
	uint64_t now_ns, cpu_ns, probes_ns;
};

static uint64_t look(struct load *l, double share)
{
	l->now_ns += 15 * SECOND;
	l->cpu_ns += (uint64_t)(15e9 * share);
	return budget_look(&l->budget, &(struct budget_cost){ l->cpu_ns, l->probes_ns }, l->now_ns);
}

static struct load begin(double share, uint64_t hz)
{
	struct load l = { .now_ns = 1000 * SECOND, .cpu_ns = 7 * SECOND };

	budget_init(&l.budget, share, hz);
	/* Startup costs do not count. */
	assert_int_equal(look(&l, 1), hz);
	return l;
}

static void stays_within_the_budget(void **state)
{
	struct load l = begin(0.01, 97);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(look(&l, 0.009), 97);
	for (int i = 0; i < 100; i++)
		assert_int_equal(look(&l, 0), 97);
}

static void steps_down_by_half(void **state)
{
	static const uint64_t steps[] = { 48, 24, 12, 6, 3, 1, 1, 1 };
	struct load l = begin(0.01, 97);

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		assert_int_equal(look(&l, 0.02), steps[i]);
}

static void steps_up_by_a_quarter_after_three_calm_measurements(void **state)
{
	static const uint64_t steps[] = { 24, 24, 30, 30, 30, 37, 37, 37, 46, 46, 46, 57, 57, 57,
		71, 71, 71, 88, 88, 88, 97, 97, 97, 97 };
	struct load l = begin(0.01, 97);

	(void)state;
	(void)look(&l, 0.02);
	assert_int_equal(look(&l, 0.02), 24);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		assert_int_equal(look(&l, 0.001), steps[i]);
}

static void recovers_from_one_hertz(void **state)
{
	struct load l = begin(0.01, 2);

	(void)state;
	assert_int_equal(look(&l, 0.02), 1);
	(void)look(&l, 0);
	(void)look(&l, 0);
	assert_int_equal(look(&l, 0), 2);
}

/* Usage between calm and excessive changes nothing and restarts the count of calm measurements. */
static void the_middle_breaks_the_calm(void **state)
{
	struct load l = begin(0.01, 97);

	(void)state;
	assert_int_equal(look(&l, 0.02), 48);
	assert_int_equal(look(&l, 0.001), 48);
	assert_int_equal(look(&l, 0.001), 48);
	assert_int_equal(look(&l, 0.008), 48);
	assert_int_equal(look(&l, 0.001), 48);
	assert_int_equal(look(&l, 0.001), 48);
	assert_int_equal(look(&l, 0.001), 60);
}

/* A cost in proportion to the frequency settles below the budget and stays there. */
static void the_frequency_settles(void **state)
{
	struct load l = begin(0.01, 97);
	uint64_t hz = 97, changes = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		uint64_t next = look(&l, (double)hz * 0.0003);

		changes += i > 50 && next != hz;
		hz = next;
	}
	assert_in_range(hz, 15, 33);
	assert_int_equal(changes, 0);
}

static void without_a_budget_there_is_no_limit(void **state)
{
	struct load l = begin(0, 97);

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(look(&l, 2), 97);
}

static void clocks_that_step_back_change_nothing(void **state)
{
	struct load l = begin(0.01, 97);

	(void)state;
	/* BPF's run time was reset: less than before. */
	l.cpu_ns = 0;
	assert_int_equal(look(&l, 0), 97);
	assert_int_equal(
		budget_look(&l.budget, &(struct budget_cost){ l.cpu_ns + SECOND, 0 }, l.now_ns),
		97);
	assert_int_equal(budget_look(&l.budget, &(struct budget_cost){ l.cpu_ns + 2 * SECOND, 0 },
				 l.now_ns - 1),
		97);
	assert_int_equal(look(&l, 1), 48);
}

/* Probes are thinned out first: they have what sampling leaves, and never lower the frequency. */
static void probes_have_what_sampling_leaves(void **state)
{
	struct load l = begin(0.05, 97);

	(void)state;
	assert_true(budget_for_probes(&l.budget) == 0.05);
	l.probes_ns += 15 * SECOND;
	assert_int_equal(look(&l, 0.02), 97);
	assert_float_equal(l.budget.probes_used, 1, 1e-9);
	assert_float_equal(budget_for_probes(&l.budget), 0.03, 1e-9);
	assert_int_equal(look(&l, 0.06), 48);
	assert_true(budget_for_probes(&l.budget) == 0);
	assert_true(l.budget.probes_used == 0);
	/* The probes' counter was reset. */
	l.probes_ns = 0;
	(void)look(&l, 0.01);
	assert_true(budget_for_probes(&l.budget) == 0);
	(void)look(&l, 0.01);
	assert_float_equal(budget_for_probes(&l.budget), 0.04, 1e-9);
	budget_init(&l.budget, 0, 97);
	assert_true(budget_for_probes(&l.budget) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stays_within_the_budget),
		cmocka_unit_test(steps_down_by_half),
		cmocka_unit_test(steps_up_by_a_quarter_after_three_calm_measurements),
		cmocka_unit_test(recovers_from_one_hertz),
		cmocka_unit_test(the_middle_breaks_the_calm),
		cmocka_unit_test(the_frequency_settles),
		cmocka_unit_test(without_a_budget_there_is_no_limit),
		cmocka_unit_test(clocks_that_step_back_change_nothing),
		cmocka_unit_test(probes_have_what_sampling_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
