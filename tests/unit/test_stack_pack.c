/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/unwind/stack_pack.h"
#include "base/cleanup.h"

enum { WORDS = 3072, BYTES = WORDS * 8 };

/* Packs WORDS, compares the unpacked words, and returns the packed size. */
static size_t there_and_back(const uint64_t *words, size_t count)
{
	uint8_t packed[STACK_PACK_BOUND(BYTES)];
	uint64_t back[WORDS];
	size_t size = stack_pack((const uint8_t *)words, count * 8, packed);

	assert_true(size <= STACK_PACK_BOUND(count * 8));
	memset(back, 0xa5, sizeof(back));
	assert_true(stack_unpack(packed, size, (uint8_t *)back, count * 8));
	assert_memory_equal(back, words, count * 8);
	return size;
}

static void test_empty_input_is_empty_output(void **state)
{
	uint64_t none = 1;

	(void)state;
	assert_int_equal(there_and_back(&none, 0), 0);
}

static void test_each_kind_of_word(void **state)
{
	const uint64_t words[] = { 0, 0x7ffc12345678, 0x7ffc12345678, 0x7ffc12345680, 0xffff, 1, 0,
		UINT64_MAX, 0x7ffc12345678 };

	(void)state;
	/* Three bytes of kinds; then a new word, the same one, one with other low bits, … */
	assert_int_equal(there_and_back(words, ARRAY_SIZE(words)), 3 + 8 + 1 + 3 + 3 + 3 + 8 + 3);
}

static void test_zeros_take_a_thirtysecond(void **state)
{
	static const uint64_t words[WORDS];

	(void)state;
	assert_int_equal(there_and_back(words, WORDS), BYTES / 32);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void test_incompressible_input_fits(void **state)
{
	uint64_t words[WORDS], seed = 88172645463325252;

	(void)state;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = next_random(&seed);
	assert_int_equal(there_and_back(words, WORDS), BYTES + BYTES / 32);
	assert_int_equal(there_and_back(words, 1), 9);
}

/* Return addresses, saved frame pointers, small numbers, and words that were never written. */
static void test_a_stack_becomes_much_smaller(void **state)
{
	uint64_t words[WORDS], seed = 1234567;

	(void)state;
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t low = next_random(&seed);

		words[i] = (const uint64_t[]){ 0, 0x7ffc00a00000 + (low & 0x5ff8),
			0x55d0c8500000 + (low & 0x2ffff), low & 0xff }[low >> 32 & 3];
	}
	assert_true(there_and_back(words, WORDS) < BYTES / 3);
}

static void test_truncated_input_is_refused(void **state)
{
	const uint64_t words[] = { 1, 0x7ffc12345678, UINT64_MAX };
	uint8_t packed[STACK_PACK_BOUND(sizeof(words))], back[sizeof(words)];
	size_t size = stack_pack((const uint8_t *)words, sizeof(words), packed);

	(void)state;
	for (size_t cut = 0; cut < size; cut++)
		assert_false(stack_unpack(packed, cut, back, sizeof(back)));
	assert_false(stack_unpack(packed, size, back, sizeof(back) - 8));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_input_is_empty_output),
		cmocka_unit_test(test_each_kind_of_word),
		cmocka_unit_test(test_zeros_take_a_thirtysecond),
		cmocka_unit_test(test_incompressible_input_fits),
		cmocka_unit_test(test_a_stack_becomes_much_smaller),
		cmocka_unit_test(test_truncated_input_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
