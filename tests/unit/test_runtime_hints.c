/* SPDX-License-Identifier: Apache-2.0 */
/* For which pids the sampler looks up a runtime, read as in bpf/runtimes/sample.bpf.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "agent/sampler/collect/runtime_hints.h"

struct fixture {
	uint64_t words[ABI_RUNTIME_HINTS / 64];
	struct runtime_hints hints;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .hints.words = f.words };
	*state = &f;
	return 0;
}

static bool may_have_runtime(const struct fixture *f, uint32_t tgid)
{
	return f->words[tgid % ABI_RUNTIME_HINTS / 64] >> (tgid % 64) & 1;
}

static uint32_t bits_set(const struct fixture *f)
{
	uint32_t count = 0;

	for (size_t i = 0; i < ABI_RUNTIME_HINTS / 64; i++)
		count += (uint32_t)__builtin_popcountll(f->words[i]);
	return count;
}

static void a_process_sets_its_bit_and_no_other(void **state)
{
	static const uint32_t tgids[] = { 0, 1, 63, 64, ABI_RUNTIME_HINTS - 1, ABI_RUNTIME_HINTS,
		3 * ABI_RUNTIME_HINTS + 777, INT32_MAX, UINT32_MAX };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(tgids) / sizeof(tgids[0]); i++) {
		runtime_hints_add(&f->hints, tgids[i]);
		assert_true(may_have_runtime(f, tgids[i]));
		assert_int_equal(bits_set(f), 1);
		runtime_hints_remove(&f->hints, tgids[i]);
		assert_int_equal(bits_set(f), 0);
	}
}

/* A bit stays set as long as one of its processes has a runtime. */
static void processes_that_share_a_bit(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 3; i++)
		runtime_hints_add(&f->hints, 100 + i * ABI_RUNTIME_HINTS);
	runtime_hints_add(&f->hints, 101);
	assert_int_equal(bits_set(f), 2);
	runtime_hints_remove(&f->hints, 100);
	assert_true(may_have_runtime(f, 100));
	runtime_hints_remove(&f->hints, 100 + 2 * ABI_RUNTIME_HINTS);
	assert_true(may_have_runtime(f, 100 + ABI_RUNTIME_HINTS));
	runtime_hints_remove(&f->hints, 100 + ABI_RUNTIME_HINTS);
	assert_false(may_have_runtime(f, 100));
	assert_true(may_have_runtime(f, 101));
	runtime_hints_remove(&f->hints, 101);
	assert_int_equal(bits_set(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_process_sets_its_bit_and_no_other, setup),
		cmocka_unit_test_setup(processes_that_share_a_bit, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
