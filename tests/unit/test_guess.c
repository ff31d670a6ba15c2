/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller of code without a table: found where the calls on the stack agree, and nowhere else.
 * Frames with a table have two words, the return address second.
 */
#include "bpf/unwind/arch.bpf.h"
#include "tests/unit/unwind_room_fixture.h"

#ifdef __x86_64__

static const uint64_t LEAF = LOADED + 0x3000, LEAF_PC = LOADED + 0x3010;
static const uint64_t INNER = LOADED + 0x1100, OUTER = LOADED + 0x1200, STALE = LOADED + 0x1300;
static const uint64_t IN_INNER = LOADED + 0x1108, IN_OUTER = LOADED + 0x1208;
static const uint64_t IN_STALE = LOADED + 0x1308, IN_ROOT = LOADED + 0x2008;
static const uint64_t NO_TABLE = LOADED + 0x3108;

enum { WORDS = 16 };

/* The end of `call *%rax`. */
static const uint64_t INDIRECT = UINT64_C(0xd0ff) << 48;

/* Of a direct call of TARGET that returns to ADDRESS. */
static uint64_t direct(uint64_t address, uint64_t target)
{
	return (target - address) << 32 | 0xe8000000;
}

struct stack_of_test {
	uint64_t words[WORDS];
	struct abi_returns returns;
};

/* WORD of the stack gets ADDRESS, which follows a call with CODE. */
static void returns_to(struct stack_of_test *s, uint64_t word, uint64_t address, uint64_t code)
{
	s->words[word] = address;
	s->returns.of[s->returns.count++] = (struct abi_return){ .word = word, .code = code };
}

static const struct mapping *walk(
	struct fixture *f, struct stack_of_test *s, bool force, struct unwind_stack *stack)
{
	const struct abi_unwind_rest rest = {
		.pc = LEAF_PC, .sp = STACK, .stack_address = STACK, .stack_bytes = sizeof(s->words)
	};

	*stack = (struct unwind_stack){ .count = 1, .frames = { LEAF_PC } };
	s->returns.sp = STACK;
	s->returns.words = WORDS;
	return unwind_finish(f->unwind, f->process.mappings,
		&(struct unwind_copied){
			.rest = &rest, .bytes = (const void *)s->words, .returns = &s->returns },
		force, stack);
}

/* The walk has LEAF and the COUNT callers that follow. */
static void expect_callers(struct fixture *f, struct stack_of_test *s, uint32_t count, ...)
{
	struct unwind_stack stack;
	va_list callers;

	assert_null(walk(f, s, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_ROOT);
	assert_int_equal(stack.guessed, 1);
	assert_int_equal(stack.count, 1 + count);
	va_start(callers, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(stack.frames[1 + i], va_arg(callers, uint64_t));
	va_end(callers);
}

static void expect_none(struct fixture *f, struct stack_of_test *s)
{
	struct unwind_stack stack;

	assert_null(walk(f, s, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_GAP);
	assert_int_equal(stack.guessed, 0);
	assert_int_equal(stack.count, 1);
}

/* INNER at WORD, called by OUTER, called by the root. */
static void inner_from(struct stack_of_test *s, uint64_t word, uint64_t code)
{
	returns_to(s, word, IN_INNER, code);
	returns_to(s, word + 2, IN_OUTER, direct(IN_OUTER, INNER));
	returns_to(s, word + 4, IN_ROOT, direct(IN_ROOT, OUTER));
}

static void a_caller_is_found_behind_what_the_function_pushed(void **state)
{
	for (uint64_t pushed = 0; pushed < 6; pushed++) {
		struct stack_of_test s = { .words = { 1, 2, 3, 4, 5, 6 } };

		inner_from(&s, pushed, direct(IN_INNER, LEAF));
		expect_callers(*state, &s, 3, IN_INNER, IN_OUTER, IN_ROOT);
	}
}

static void a_caller_by_pointer_is_found_if_it_is_the_nearest(void **state)
{
	struct stack_of_test s = { 0 };

	inner_from(&s, 3, INDIRECT);
	expect_callers(*state, &s, 3, IN_INNER, IN_OUTER, IN_ROOT);
}

static void a_stale_caller_is_betrayed_by_the_call_above_it(void **state)
{
	struct stack_of_test s = { 0 };

	returns_to(&s, 0, IN_STALE, direct(IN_STALE, OUTER));
	inner_from(&s, 2, direct(IN_INNER, LEAF));
	expect_callers(*state, &s, 3, IN_INNER, IN_OUTER, IN_ROOT);
}

static void a_stale_caller_that_called_the_function_is_betrayed_as_well(void **state)
{
	struct stack_of_test s = { 0 };

	returns_to(&s, 0, IN_STALE, direct(IN_STALE, LEAF));
	inner_from(&s, 2, direct(IN_INNER, LEAF));
	expect_callers(*state, &s, 3, IN_INNER, IN_OUTER, IN_ROOT);
}

static void a_stale_caller_and_one_by_pointer_prove_nothing(void **state)
{
	const uint64_t codes[] = { INDIRECT, direct(IN_STALE, LEAF), direct(IN_STALE, OUTER) };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		struct stack_of_test s = { 0 };

		returns_to(&s, 0, IN_STALE, codes[i]);
		inner_from(&s, 2, INDIRECT);
		expect_none(*state, &s);
	}
}

static void a_caller_without_a_table_is_not_passed_over(void **state)
{
	struct stack_of_test s = { 0 };

	returns_to(&s, 1, NO_TABLE, direct(NO_TABLE, LEAF));
	inner_from(&s, 3, INDIRECT);
	expect_none(*state, &s);
}

static void a_caller_that_calls_another_function_is_none(void **state)
{
	struct stack_of_test s = { 0 };

	inner_from(&s, 0, direct(IN_INNER, STALE));
	expect_none(*state, &s);
}

static void a_caller_whose_callers_do_not_reach_the_root_is_none(void **state)
{
	struct stack_of_test s = { 0 };

	returns_to(&s, 0, IN_INNER, direct(IN_INNER, LEAF));
	returns_to(&s, 2, IN_OUTER, direct(IN_OUTER, INNER));
	expect_none(*state, &s);
	s.words[4] = LOADED + 0x4000;
	expect_none(*state, &s);
}

static void words_that_follow_no_call_are_no_callers(void **state)
{
	struct stack_of_test s = { .words = { IN_INNER, 0, IN_OUTER, 0, IN_ROOT } };

	expect_none(*state, &s);
}

static void a_list_that_is_cut_near_the_frame_proves_nothing(void **state)
{
	struct stack_of_test s = { 0 };

	inner_from(&s, 0, direct(IN_INNER, LEAF));
	for (uint64_t i = s.returns.count; i < ABI_RETURNS; i++)
		returns_to(&s, 6, LOADED + 0x1400, INDIRECT);
	expect_none(*state, &s);
}

static void the_callers_module_is_waited_for(void **state)
{
	struct fixture *f = *state;
	struct stack_of_test s = { 0 };
	struct unwind_stack stack;

	inner_from(&s, 0, direct(IN_INNER, LEAF));
	f->module_state = UNWIND_MODULE_WAITING;
	assert_non_null(walk(f, &s, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_MISSED);
	assert_null(walk(f, &s, true, &stack));
	assert_int_equal(stack.guessed, 0);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* The last bytes of CODE, of COUNT bytes, as eight bytes of which the others are nop. */
static uint64_t code_of(const uint8_t *code, size_t count)
{
	uint8_t bytes[8] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	uint64_t value;

	memcpy(bytes + 8 - count, code, count);
	memcpy(&value, bytes, sizeof(value));
	return value;
}

#define CODE(...) \
	code_of((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void all_forms_of_a_call_are_known(void **state)
{
	(void)state;
	assert_true(unwind_is_direct_call(CODE(0xe8, 1, 0, 0, 0)));
	assert_int_equal(unwind_call_target(CODE(0xe8, 0xf0, 0xff, 0xff, 0xff), 0x1000), 0xff0);
	assert_true(unwind_is_indirect_call(CODE(0xff, 0xd0))); /* call *%rax */
	assert_true(unwind_is_indirect_call(CODE(0x41, 0xff, 0xd4))); /* *%r12 */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x13))); /* *(%rbx) */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x50, 8))); /* *8(%rax) */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x14, 0xc8))); /* *(%rax,%rcx,8) */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x54, 0x24, 8))); /* *8(%rsp) */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x15, 1, 2, 3, 0))); /* *0x30201(%rip) */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x97, 0, 1, 0, 0))); /* *256(%rdi) */
	assert_true(unwind_is_indirect_call(CODE(0xff, 0x94, 0x24, 0, 1, 0, 0))); /* *256(%rsp) */
	assert_true(
		unwind_is_indirect_call(CODE(0xff, 0x14, 0xc5, 0, 1, 0, 0))); /* *256(,%rax,8) */
}

static void what_is_no_call_is_none(void **state)
{
	(void)state;
	assert_false(unwind_is_direct_call(CODE(0xe9, 1, 0, 0, 0))); /* jmp */
	assert_false(unwind_is_direct_call(CODE(0xe8, 1, 0, 0)));
	assert_false(unwind_is_indirect_call(CODE(0xff, 0xe0))); /* jmp *%rax */
	assert_false(unwind_is_indirect_call(CODE(0xff, 0x14))); /* its SIB byte is missing */
	assert_false(unwind_is_indirect_call(CODE(0xff, 0x15)));
	assert_false(unwind_is_indirect_call(CODE(0xff, 0x50)));
	assert_false(unwind_is_indirect_call(CODE(0xff, 0xd0, 0x90)));
}

#define UNWIND_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNWIND_TEST(a_caller_is_found_behind_what_the_function_pushed),
		UNWIND_TEST(a_caller_by_pointer_is_found_if_it_is_the_nearest),
		UNWIND_TEST(a_stale_caller_is_betrayed_by_the_call_above_it),
		UNWIND_TEST(a_stale_caller_that_called_the_function_is_betrayed_as_well),
		UNWIND_TEST(a_stale_caller_and_one_by_pointer_prove_nothing),
		UNWIND_TEST(a_caller_without_a_table_is_not_passed_over),
		UNWIND_TEST(a_caller_that_calls_another_function_is_none),
		UNWIND_TEST(a_caller_whose_callers_do_not_reach_the_root_is_none),
		UNWIND_TEST(words_that_follow_no_call_are_no_callers),
		UNWIND_TEST(a_list_that_is_cut_near_the_frame_proves_nothing),
		UNWIND_TEST(the_callers_module_is_waited_for),
		cmocka_unit_test(all_forms_of_a_call_are_known),
		cmocka_unit_test(what_is_no_call_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0; /* there is no search */
}

#endif
