/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/probed_files/measured_pids.h: pids that come, end and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/sampler/probed_files/measured_pids.h"

static void pids_come_and_go(void **)
{
	static struct measured_pids pids;

	assert_true(measured_pids_add(&pids, 5));
	assert_false(measured_pids_add(&pids, 5));
	assert_true(measured_pids_add(&pids, 6));
	assert_true(measured_pids_have(&pids, 5));
	assert_true(measured_pids_remove(&pids, 5));
	assert_false(measured_pids_remove(&pids, 5));
	assert_false(measured_pids_have(&pids, 5));
	assert_true(measured_pids_have(&pids, 6));
	for (uint32_t pid = 100; pid < 100 + ABI_MAX_PIDS - 1; pid++)
		assert_true(measured_pids_add(&pids, pid));
	assert_false(measured_pids_add(&pids, 1));
	assert_int_equal(pids.refused, 1);
}

static void pids_stay_for_a_while_when_they_end(void **)
{
	static struct measured_pids pids;

	assert_false(measured_pids_end(&pids, 4));
	for (uint32_t pid = 5; pid < 8; pid++)
		assert_true(measured_pids_add(&pids, pid));
	for (uint32_t pid = 5; pid < 8; pid++)
		assert_false(measured_pids_end(&pids, pid));
	assert_false(measured_pids_tick(&pids));
	assert_true(measured_pids_have(&pids, 5));
	/* One is there again, another one's number was given to a stranger. */
	assert_false(measured_pids_add(&pids, 6));
	assert_true(measured_pids_begin(&pids, 7));
	assert_false(measured_pids_begin(&pids, 6));
	assert_true(measured_pids_tick(&pids));
	assert_false(measured_pids_have(&pids, 5));
	assert_true(measured_pids_have(&pids, 6));
	assert_false(measured_pids_have(&pids, 7));
	assert_false(measured_pids_tick(&pids));
	assert_int_equal(pids.count, 1);
}

static void too_many_pids_end_at_once(void **)
{
	static struct measured_pids pids;

	for (uint32_t pid = 1; pid <= ABI_MAX_PIDS; pid++)
		assert_true(measured_pids_add(&pids, pid));
	for (uint32_t pid = 1; pid <= MEASURED_PIDS_ENDING; pid++)
		assert_false(measured_pids_end(&pids, pid));
	assert_true(measured_pids_end(&pids, 500));
	assert_false(measured_pids_have(&pids, 1));
	assert_true(measured_pids_add(&pids, 5000));
	/* Those that live need the room. */
	assert_true(measured_pids_add(&pids, 5001));
	assert_false(measured_pids_have(&pids, 2));
	assert_true(measured_pids_have(&pids, 3));
	assert_int_equal(pids.refused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pids_come_and_go),
		cmocka_unit_test(pids_stay_for_a_while_when_they_end),
		cmocka_unit_test(too_many_pids_end_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
