/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU budgets of clients: the bucket, and which class pays. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "agent/server/serve/clients.h"
#include "agent/server/serve/cpu_share.h"

static const uint64_t MS_NS = UINT64_C(1000000);
static const uint64_t SECOND_NS = UINT64_C(1000000000);

/* ---- the bucket ----------------------------------------------------------------------------- */

static void test_share_starts_full_and_may_be_overdrawn_once(void **state)
{
	struct cpu_share share;

	(void)state;
	cpu_share_init(&share, 10, 100 * MS_NS, SECOND_NS);
	assert_int_equal(cpu_share_wait_ns(&share, SECOND_NS), 0);
	cpu_share_spend(&share, 99 * MS_NS, SECOND_NS);
	assert_int_equal(cpu_share_wait_ns(&share, SECOND_NS), 0);
	cpu_share_spend(&share, 3 * MS_NS, SECOND_NS);
	/* 2 ms at one hundredth of the time that passes */
	assert_in_range(cpu_share_wait_ns(&share, SECOND_NS), 200 * MS_NS, 201 * MS_NS);
	assert_in_range(cpu_share_wait_ns(&share, SECOND_NS + 150 * MS_NS), 50 * MS_NS, 51 * MS_NS);
	assert_int_equal(cpu_share_wait_ns(&share, SECOND_NS + 201 * MS_NS), 0);
}

static void test_share_waits_as_long_as_announced(void **state)
{
	struct cpu_share share, copy;
	uint64_t now_ns = 0, wait_ns;

	(void)state;
	for (uint64_t permille = 1; permille <= 1000; permille += 37) {
		cpu_share_init(&share, permille, MS_NS, now_ns);
		cpu_share_spend(&share, 3 * MS_NS + permille, now_ns);
		wait_ns = cpu_share_wait_ns(&share, now_ns);
		assert_true(wait_ns > 0);
		copy = share;
		assert_true(cpu_share_wait_ns(&copy, now_ns + wait_ns / 2) > 0);
		assert_int_equal(cpu_share_wait_ns(&share, now_ns + wait_ns), 0);
	}
}

static void test_share_saves_no_more_than_its_limit(void **state)
{
	struct cpu_share share;

	(void)state;
	cpu_share_init(&share, 1000, 5 * MS_NS, 0);
	assert_int_equal(cpu_share_wait_ns(&share, UINT64_MAX / 2), 0);
	cpu_share_spend(&share, 6 * MS_NS, UINT64_MAX / 2);
	assert_in_range(cpu_share_wait_ns(&share, UINT64_MAX / 2), MS_NS, MS_NS + 10);
}

/* The share is exact in the long run, whatever the size of the steps. */
static void test_share_is_exact_over_many_small_steps(void **state)
{
	struct cpu_share share;
	uint64_t spent_ns = 0;

	(void)state;
	cpu_share_init(&share, 20, 1000, 0);
	for (uint64_t now_ns = 0; now_ns < SECOND_NS / 10; now_ns += 777) {
		if (cpu_share_wait_ns(&share, now_ns))
			continue;
		cpu_share_spend(&share, 500, now_ns);
		spent_ns += 500;
	}
	assert_in_range(spent_ns, 1900000, 2002000);
}

static void test_share_forgives_what_takes_too_long(void **state)
{
	struct cpu_share share;

	(void)state;
	cpu_share_init(&share, 10, MS_NS, 0);
	cpu_share_spend(&share, UINT64_MAX, 0);
	cpu_share_spend(&share, UINT64_MAX, 0);
	assert_in_range(cpu_share_wait_ns(&share, 0), 9 * SECOND_NS, 10 * SECOND_NS + MS_NS);
	/* A clock that steps back neither adds nor takes CPU time. */
	cpu_share_init(&share, 10, MS_NS, SECOND_NS);
	cpu_share_spend(&share, 2 * MS_NS, 0);
	assert_in_range(cpu_share_wait_ns(&share, 0), 99 * MS_NS, 101 * MS_NS);
}

/* ---- the classes ---------------------------------------------------------------------------- */

static void spend(struct clients *c, enum client_class class, uint64_t cpu_ns)
{
	assert_int_equal(clients_request(c, class, 0), 0);
	(void)clients_charge(c, cpu_ns, 0);
}

static void test_one_class_does_not_pay_for_the_other(void **state)
{
	struct clients c;

	(void)state;
	clients_init(&c, 0);
	assert_true(clients_enter(&c, CLIENT_OTHER));
	assert_true(clients_enter(&c, CLIENT_OWNER));
	spend(&c, CLIENT_OTHER, SECOND_NS);
	assert_true(clients_request(&c, CLIENT_OTHER, 0) > 0);
	assert_int_equal(clients_request(&c, CLIENT_OWNER, 0), 0);
	(void)clients_charge(&c, 60 * SECOND_NS, 0);
	assert_true(clients_request(&c, CLIENT_OWNER, 0) > 0);
	assert_int_equal(c.cpu_ns, 61 * SECOND_NS);
}

static void test_cost_is_split_by_requests(void **state)
{
	struct clients c;

	(void)state;
	clients_init(&c, 0);
	/* 3 of 4 requests are from others, whose debt reaches its cap. */
	assert_int_equal(clients_request(&c, CLIENT_OWNER, 0), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(clients_request(&c, CLIENT_OTHER, 0), 0);
	assert_false(clients_charge(&c, SECOND_NS, 0));
	assert_in_range(
		clients_request(&c, CLIENT_OTHER, 0), 9 * SECOND_NS, 10 * SECOND_NS + MS_NS);
	assert_int_equal(clients_request(&c, CLIENT_OWNER, 0), 0);
}

static void test_bytes_without_a_request_are_paid_by_others(void **state)
{
	struct clients c;

	(void)state;
	clients_init(&c, 0);
	assert_false(clients_charge(&c, 30 * SECOND_NS, 0)); /* nobody else is there */
	assert_int_equal(clients_request(&c, CLIENT_OTHER, 0), 0);
	(void)clients_charge(&c, 0, 0);
	assert_true(clients_enter(&c, CLIENT_OTHER));
	assert_false(clients_charge(&c, MS_NS, 0)); /* not in debt */
	assert_true(clients_charge(&c, SECOND_NS, 0));
	/* A request that is served is no waste. */
	assert_true(clients_enter(&c, CLIENT_OWNER));
	clients_init(&c, 0);
	assert_int_equal(clients_request(&c, CLIENT_OTHER, 0), 0);
	assert_false(clients_charge(&c, SECOND_NS, 0));
}

static void test_others_have_a_part_of_the_connections(void **state)
{
	struct clients c;

	(void)state;
	clients_init(&c, 0);
	for (int i = 0; i < 16; i++)
		assert_true(clients_enter(&c, CLIENT_OTHER));
	assert_false(clients_enter(&c, CLIENT_OTHER));
	assert_true(clients_enter(&c, CLIENT_OWNER));
	clients_leave(&c, CLIENT_OTHER);
	assert_false(clients_enter(&c, CLIENT_OTHER));
	clients_leave(&c, CLIENT_OTHER);
	/* Promotion to owner frees a place among the others. */
	clients_promote(&c);
	assert_int_equal(c.connections[CLIENT_OWNER], 2);
	assert_true(clients_enter(&c, CLIENT_OTHER));
	for (int i = 0; i < 100; i++)
		assert_true(clients_enter(&c, CLIENT_OWNER));
}

static void test_accepting_has_a_budget(void **state)
{
	struct clients c;

	(void)state;
	clients_init(&c, 0);
	clients_charge_accepting(&c, 49 * MS_NS, 0);
	assert_int_equal(clients_accept_wait_ns(&c, 0), 0);
	clients_charge_accepting(&c, 2 * MS_NS, 0);
	assert_in_range(clients_accept_wait_ns(&c, 0), 100 * MS_NS, 101 * MS_NS);
	assert_int_equal(clients_accept_wait_ns(&c, 101 * MS_NS), 0);
	assert_int_equal(c.cpu_ns, 51 * MS_NS);
	assert_int_equal(clients_request(&c, CLIENT_OTHER, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_starts_full_and_may_be_overdrawn_once),
		cmocka_unit_test(test_share_waits_as_long_as_announced),
		cmocka_unit_test(test_share_saves_no_more_than_its_limit),
		cmocka_unit_test(test_share_is_exact_over_many_small_steps),
		cmocka_unit_test(test_share_forgives_what_takes_too_long),
		cmocka_unit_test(test_one_class_does_not_pay_for_the_other),
		cmocka_unit_test(test_cost_is_split_by_requests),
		cmocka_unit_test(test_bytes_without_a_request_are_paid_by_others),
		cmocka_unit_test(test_others_have_a_part_of_the_connections),
		cmocka_unit_test(test_accepting_has_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
