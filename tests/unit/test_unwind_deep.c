/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of stacks that are deeper than what is kept of them. */
#include "tests/unit/unwind_room_fixture.h"

/* Each frame has two words, the return address second: of the N-th frame it is DEEP + N. */
static const uint64_t DEEP = LOADED + 0x1100;
enum { DEEP_FRAMES = 1000 };

static void deep_stack_keeps_both_ends(void **state)
{
	struct fixture *f = *state;
	uint64_t words[2 * DEEP_FRAMES];
	struct abi_unwind_rest rest = {
		.pc = DEEP, .sp = STACK, .stack_address = STACK, .stack_bytes = sizeof(words)
	};
	struct unwind_stack stack = { .flags = 0 };

	for (uint64_t i = 1; i < DEEP_FRAMES; i++)
		words[2 * i - 1] = DEEP + i;
	words[2 * DEEP_FRAMES - 1] = LOADED + 0x2001;
	assert_null(finish_rest(f, &rest, words, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_ROOT);
	assert_int_equal(stack.count, ABI_MAX_FRAMES);
	assert_int_equal(stack.flags, ABI_STACK_MIDDLE);
	assert_int_equal(stack.frames[ABI_MAX_FRAMES - 1], LOADED + 0x2001);
	for (uint32_t i = 1; i < ABI_OUTER_FRAMES; i++)
		assert_int_equal(stack.frames[ABI_MAX_FRAMES - 1 - i], DEEP + DEEP_FRAMES - i);
	for (uint32_t i = 1; i < ABI_INNER_FRAMES; i++)
		assert_int_equal(stack.frames[i], DEEP + i);
}

static void stack_of_the_most_frames_is_whole(void **state)
{
	struct fixture *f = *state;
	uint64_t words[2 * (ABI_MAX_FRAMES - 1)];
	struct abi_unwind_rest rest = {
		.pc = DEEP, .sp = STACK, .stack_address = STACK, .stack_bytes = sizeof(words)
	};
	struct unwind_stack stack = { .flags = 0 };

	for (uint64_t i = 1; i < ABI_MAX_FRAMES; i++)
		words[2 * i - 1] = DEEP + i;
	words[2 * ABI_MAX_FRAMES - 3] = LOADED + 0x2001;
	assert_null(finish_rest(f, &rest, words, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_ROOT);
	assert_int_equal(stack.count, ABI_MAX_FRAMES);
	assert_int_equal(stack.flags, 0);
	assert_int_equal(stack.frames[ABI_INNER_FRAMES], DEEP + ABI_INNER_FRAMES);
}

static void endless_stack_is_cut_at_the_limit(void **state)
{
	struct fixture *f = *state;
	static uint64_t words[2 * ABI_WALK_FRAMES + 16];
	struct abi_unwind_rest rest = { .pc = LOADED + 0x1004,
		.sp = STACK,
		.stack_address = STACK,
		.stack_bytes = sizeof(words) };
	struct unwind_stack stack = { .flags = 0 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = LOADED + 0x1800;
	assert_null(finish_rest(f, &rest, words, false, &stack));
	assert_int_equal(stack.count, ABI_MAX_FRAMES);
	assert_int_equal(stack.flags, ABI_STACK_MIDDLE);
	assert_int_equal(stack.end, ABI_UNWIND_DEPTH);
}

#define UNWIND_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNWIND_TEST(deep_stack_keeps_both_ends),
		UNWIND_TEST(stack_of_the_most_frames_is_whole),
		UNWIND_TEST(endless_stack_is_cut_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
