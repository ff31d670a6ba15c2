/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
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
	.g_status = 144,
	.g_goid = 152,
	.g_waitreason = 176,
	.m_lockedg = 384,
	.g_parent_goid = 280,
	.g_gopc = 288,
	.g_startpc = 304,
	.g_labels = 352,
	.labels_kind = ABI_GO_LABELS_SLICE,
};

static struct index_go changed;
static const uint64_t bias = 0x7f0000000000;

static void known_facts_are_copied(void **state)
{
	struct abi_runtime_go how;

	(void)state;
	assert_int_equal(goids_how(&known, NULL, &how), 0);
	assert_true((int64_t)how.g_tls_offset == -128);
	assert_int_equal(how.g_tls_word, 0);
	assert_int_equal(how.g_m, 48);
	assert_int_equal(how.m_curg, 184);
	assert_int_equal(how.g_goid, 152);
	assert_int_equal(how.g_birth, 280);
	assert_int_equal(how.has_parent, 1);
	assert_int_equal(how.labels_kind, ABI_GO_LABELS_SLICE);
	assert_int_equal(how.m_lockedg, 384);
	assert_int_equal(how.minor, 26);
}

/* Goroutine ids are there all the same. */
static void reasons_of_waits_in_other_places_are_not_read(void **state)
{
	static uint16_t *const moved[] = { &changed.g_status, &changed.g_waitreason };
	struct abi_runtime_go how;

	(void)state;
	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		changed = known;
		*moved[i] += 8;
		assert_int_equal(goids_how(&changed, NULL, &how), 0);
		assert_int_equal(how.g_goid, 152);
		assert_int_equal(how.minor, 0);
	}
	changed = known;
	changed.m_lockedg = 0;
	assert_int_equal(goids_how(&changed, NULL, &how), 0);
	assert_int_equal(how.minor, 0);
	changed = known;
	changed.version = 256;
	assert_int_equal(goids_how(&changed, NULL, &how), 0);
	assert_int_equal(how.minor, 0);
}

static void a_librarys_offset_is_in_a_word_of_the_process(void **state)
{
	struct abi_runtime_go how = { .g_m = 99 };
	struct index_go go = known;

	(void)state;
	go.g_tls_in_word = 1;
	go.g_tls_offset = 0x201fb0;
	assert_int_equal(goids_how(&go, NULL, &how), -EAGAIN);
	assert_int_equal(how.g_m, 99);
	assert_int_equal(goids_how(&go, &bias, &how), 0);
	assert_int_equal(how.g_tls_word, bias + 0x201fb0);
	assert_int_equal(how.g_tls_offset, 0);
	assert_int_equal(how.g_m, 48);
}

/* Goroutine ids are there all the same. */
static void labels_that_are_not_known_are_not_read(void **state)
{
	struct abi_runtime_go how;
	struct index_go go = known;

	(void)state;
	go.labels_kind = 3;
	assert_int_equal(goids_how(&go, NULL, &how), 0);
	assert_int_equal(how.labels_kind, ABI_GO_LABELS_NONE);
	go = known;
	go.g_labels = 0;
	assert_int_equal(goids_how(&go, NULL, &how), 0);
	assert_int_equal(how.labels_kind, ABI_GO_LABELS_NONE);
}

/* Versions before 1.21 do not know the parent, but the other words are as far apart. */
static void a_goroutine_without_a_parent_has_an_origin(void **state)
{
	struct abi_runtime_go how;
	struct index_go go = known;

	(void)state;
	go.g_parent_goid = 0;
	assert_int_equal(goids_how(&go, NULL, &how), 0);
	assert_int_equal(how.g_birth, 280);
	assert_int_equal(how.has_parent, 0);
}

static void members_in_other_places_are_not_read(void **state)
{
	static uint16_t *const moved[] = { &changed.g_parent_goid, &changed.g_gopc,
		&changed.g_startpc };
	struct abi_runtime_go how;

	(void)state;
	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		changed = known;
		*moved[i] += 8;
		assert_int_equal(goids_how(&changed, NULL, &how), 0);
		assert_int_equal(how.g_goid, 152);
		assert_int_equal(how.g_birth, 0);
		assert_int_equal(how.labels_kind, ABI_GO_LABELS_NONE);
	}
	changed = known;
	changed.g_gopc = 0;
	assert_int_equal(goids_how(&changed, NULL, &how), 0);
	assert_int_equal(how.g_birth, 0);
}

static void refused(struct index_go go)
{
	struct abi_runtime_go how = { .g_m = 99 };

	assert_int_equal(goids_how(&go, &bias, &how), -EOPNOTSUPP);
	assert_int_equal(how.g_m, 99);
}

static void no_go_program_is_refused(void **state)
{
	struct abi_runtime_go how;
	struct index_go go = known;

	(void)state;
	assert_int_equal(goids_how(NULL, NULL, &how), -EOPNOTSUPP);
	go.version = 0;
	refused(go);
}

static void unknown_version_is_refused(void **state)
{
	struct index_go go = { .version = 27 };

	(void)state;
	refused(go);
}

static void offsets_of_zero_are_refused(void **state)
{
	struct index_go go = known;

	(void)state;
	go.g_tls_offset = 0;
	refused(go);
	go = known;
	go.g_m = 0;
	refused(go);
	go = known;
	go.m_curg = 0;
	refused(go);
	go = known;
	go.g_goid = 0;
	refused(go);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_facts_are_copied),
		cmocka_unit_test(a_librarys_offset_is_in_a_word_of_the_process),
		cmocka_unit_test(reasons_of_waits_in_other_places_are_not_read),
		cmocka_unit_test(labels_that_are_not_known_are_not_read),
		cmocka_unit_test(a_goroutine_without_a_parent_has_an_origin),
		cmocka_unit_test(members_in_other_places_are_not_read),
		cmocka_unit_test(no_go_program_is_refused),
		cmocka_unit_test(unknown_version_is_refused),
		cmocka_unit_test(offsets_of_zero_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
