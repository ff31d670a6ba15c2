/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/sampler/runtimes/go/goids.h"

static const struct index_go known = {
	.version = 26,
	.supported = 1,
	.g_tls_offset = -128,
	.g_m = 48,
	.m_curg = 184,
	.g_goid = 152,
};

static void known_facts_are_copied(void **state)
{
	struct abi_runtime_process how;

	(void)state;
	assert_true(goids_how(&known, 7, NULL, &how));
	assert_true((int64_t)how.go.g_tls_offset == -128);
	assert_int_equal(how.go.g_m, 48);
	assert_int_equal(how.go.m_curg, 184);
	assert_int_equal(how.go.g_goid, 152);
	assert_int_equal(how.generation, 7);
}

static void the_exec_id_is_told_once_it_is_known(void **state)
{
	const uint32_t exec_id = 0;
	struct abi_runtime_process how;

	(void)state;
	assert_true(goids_how(&known, 7, NULL, &how));
	assert_int_equal(how.exec_known, 0);
	assert_true(goids_how(&known, 7, &exec_id, &how));
	assert_int_equal(how.exec_known, 1);
	assert_int_equal(how.exec_id, 0);
}

static void refused(struct index_go go, uint32_t generation)
{
	struct abi_runtime_process how = { .generation = 99 };

	assert_false(goids_how(&go, generation, NULL, &how));
	assert_int_equal(how.generation, 99);
}

static void no_go_program_is_refused(void **state)
{
	struct abi_runtime_process how;
	struct index_go go = known;

	(void)state;
	assert_false(goids_how(NULL, 1, NULL, &how));
	go.version = 0;
	refused(go, 1);
}

static void unknown_version_is_refused(void **state)
{
	struct index_go go = { .version = 27 };

	(void)state;
	refused(go, 1);
}

static void offsets_of_zero_are_refused(void **state)
{
	struct index_go go = known;

	(void)state;
	go.g_tls_offset = 0;
	refused(go, 1);
	go = known;
	go.g_m = 0;
	refused(go, 1);
	go = known;
	go.m_curg = 0;
	refused(go, 1);
	go = known;
	go.g_goid = 0;
	refused(go, 1);
}

static void generation_zero_is_refused(void **state)
{
	(void)state;
	refused(known, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_facts_are_copied),
		cmocka_unit_test(the_exec_id_is_told_once_it_is_known),
		cmocka_unit_test(no_go_program_is_refused),
		cmocka_unit_test(unknown_version_is_refused),
		cmocka_unit_test(offsets_of_zero_are_refused),
		cmocka_unit_test(generation_zero_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
