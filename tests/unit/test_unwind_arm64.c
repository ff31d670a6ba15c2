/* SPDX-License-Identifier: Apache-2.0 */
/* The arm64 specifics of the walk, tested on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#ifndef __aarch64__
#define __TARGET_ARCH_arm64
#endif
#include "bpf/unwind/step.bpf.h"

enum { STACK = 0x7ffd0000, STACK_WORDS = 96, CALLER = 0x401234, OTHER = 0x402468 };
enum { GOROUTINE = 0xc000000, M = 0xd000000, GO_PC = 0x40aaaa, GO_WAITS = 40 };

/* Pointer authentication code above an address. */
static const uint64_t SIGNED = UINT64_C(0x55) << 48;

struct fixture {
	uint64_t words[STACK_WORDS];
	uint64_t head[ABI_FIBER_HEAD_WORDS];
	struct unwind_memory memory, head_memory;
	struct unwind_state state;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->head_memory =
		(struct unwind_memory){ GOROUTINE, sizeof(f->head), (const void *)f->head, NULL };
	f->memory = (struct unwind_memory){ STACK, sizeof(f->words), (const void *)f->words,
		&f->head_memory };
	f->state = (struct unwind_state){
		.memory = &f->memory, .pc = 0x400100, .sp = STACK, .fp = 0xdead, .lr = CALLER
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static uint64_t word_at(uint64_t number)
{
	return STACK + 8 * number;
}

static int by_rule(struct fixture *f, struct abi_unwind_rule rule)
{
	return unwind_step_from(&f->state, UNWIND_PLACE_TABLE, &rule);
}

static void expect_at(const struct fixture *f, uint64_t pc, uint64_t sp, uint64_t fp)
{
	assert_int_equal(f->state.pc, pc);
	assert_int_equal(f->state.sp, sp);
	assert_int_equal(f->state.fp, fp);
}

/* The rule of a Go function that has lowered the stack pointer by DEPTH. */
static struct abi_unwind_rule rule_go(int kind, int depth)
{
	return (struct abi_unwind_rule){
		.cfa = (abi_u8)kind,
		.fp = depth ? ABI_REG_FRAME : ABI_REG_SAME,
		.ra = depth ? ABI_REG_AT_CFA : ABI_REG_SAME,
		.cfa_off = depth,
		.fp_off = (short)(depth ? -depth - 8 : 0),
		.ra_off = (short)-depth,
	};
}

static void leaf_returns_by_its_register(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 0)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK, 0xdead);
	/* A call has overwritten the link register. */
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 0)), ABI_UNWIND_BAD_REGISTER);
}

static void signed_return_addresses_are_plain(void **state)
{
	struct fixture *f = *state;

	f->words[0] = STACK + 32;
	f->words[1] = CALLER | SIGNED;
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_SP,
					    .fp = ABI_REG_AT_CFA,
					    .ra = ABI_REG_AT_CFA,
					    .cfa_off = 16,
					    .fp_off = -16,
					    .ra_off = -8 }),
		ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 16, STACK + 32);
	f->words[4] = STACK + 64;
	f->words[5] = OTHER | SIGNED;
	f->state.block_address = 0;
	assert_int_equal(unwind_step_from(&f->state, UNWIND_PLACE_GAP, NULL), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, STACK + 48 + UNWIND_SP_IS_BOUND, STACK + 64);
}

/* OPENSSL_cleanse and its like: a leaf's caller is not the one that the frame record returns to. */
static void assembly_without_a_record_hides_no_caller(void **state)
{
	struct fixture *f = *state;

	f->state.fp = word_at(2);
	f->words[2] = word_at(20);
	f->words[3] = OTHER;
	assert_int_equal(unwind_step_from(&f->state, UNWIND_PLACE_GAP, NULL), ABI_UNWIND_GAP);
	/* Elsewhere there are no tables at all: better than nothing. */
	assert_int_equal(
		unwind_step_from(&f->state, UNWIND_PLACE_NO_TABLES, NULL), ABI_UNWIND_GOES_ON);
}

static struct abi_unwind_rule rule_with_record(int depth)
{
	return (struct abi_unwind_rule){ .cfa = ABI_CFA_SP,
		.fp = ABI_REG_AT_CFA,
		.ra = ABI_REG_AT_CFA,
		.cfa_off = depth,
		.fp_off = (short)-depth,
		.ra_off = (short)(8 - depth) };
}

/* How much the assembly has pushed above its record is not known. */
static void after_assembly_the_caller_is_found_by_its_record(void **state)
{
	struct fixture *f = *state;

	f->state.fp = word_at(2);
	f->words[2] = word_at(10);
	f->words[3] = CALLER | SIGNED;
	f->words[10] = word_at(30);
	f->words[11] = OTHER;
	assert_int_equal(unwind_step_from(&f->state, UNWIND_PLACE_GAP, NULL), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(4) + UNWIND_SP_IS_BOUND, word_at(10));
	assert_int_equal(by_rule(f, rule_with_record(64)), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, word_at(18), word_at(30));
}

static void after_assembly_nothing_else_is_believed(void **state)
{
	struct fixture *f = *state;

	f->state.sp = word_at(4) | UNWIND_SP_IS_BOUND;
	f->state.fp = word_at(10);
	f->state.is_return = 1;
	f->words[6] = f->words[7] = f->words[8] = OTHER;
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_SP,
					    .cfa_off = 32,
					    .ra = ABI_REG_AT_CFA,
					    .ra_off = -8 }),
		ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_SIGNAL }),
		ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(
		by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_END }), ABI_UNWIND_ROOT);
}

enum { SIGNAL_X0 = (128 + 176 + 8) / 8 };

static void signal_frame_leads_to_the_interrupted_code(void **state)
{
	struct fixture *f = *state;

	f->words[SIGNAL_X0 + 29] = word_at(90);
	f->words[SIGNAL_X0 + 30] = OTHER;
	f->words[SIGNAL_X0 + 31] = word_at(80);
	f->words[SIGNAL_X0 + 32] = CALLER;
	f->words[SIGNAL_X0 + 35] = 0x21046508001; /* struct fpsimd_context: 528 bytes */
	f->state.is_return = 1;
	assert_int_equal(
		by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_SIGNAL }), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(80), word_at(90));
	assert_int_equal(f->state.is_return, 0);
	assert_int_equal(f->state.lr, OTHER);
}

/* rt_sigreturn has put back the interrupted code's sp, and pc is still the handler's return. */
static void stack_without_a_signal_frame_is_refused(void **state)
{
	struct fixture *f = *state;

	f->words[SIGNAL_X0 + 31] = word_at(80);
	f->words[SIGNAL_X0 + 32] = CALLER;
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_SIGNAL }),
		ABI_UNWIND_BAD_REGISTER);
	expect_at(f, 0x400100, STACK, 0xdead);
}

/* What rt_sigreturn has put back as pc follows other code than a system call. */
static void code_tells_whether_a_system_call_stands_before_it(void **state)
{
	struct fixture *f = *state;

	f->words[2] = UINT64_C(0xd4000001) << 32 | 0xd2801168; /* mov x8, #139; svc #0 */
	assert_true(unwind_may_be_behind_syscall(&f->state, word_at(3)));
	assert_false(unwind_may_be_behind_syscall(&f->state, word_at(3) - 4));
	assert_true(unwind_may_be_behind_syscall(&f->state, STACK));
}

static void frame_of_go_is_below_its_stack_pointer(void **state)
{
	struct fixture *f = *state;

	f->state.sp = word_at(1);
	f->state.fp = word_at(0);
	f->words[0] = word_at(20);
	f->words[1] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 48)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(7), word_at(20));
}

/* The goroutine's stack has grown below the frame: fp points to the old one. */
static void frame_of_go_that_made_a_call_has_saved_its_fp(void **state)
{
	struct fixture *f = *state;

	f->state.sp = word_at(1);
	f->state.fp = word_at(60);
	f->words[0] = word_at(20);
	f->words[1] = CALLER;
	f->words[6] = word_at(30);
	f->words[7] = OTHER;
	/* It has just begun: fp is still the caller's. */
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 48)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(7), word_at(60));
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 64)), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, word_at(15), word_at(30));
}

static void morestack_leads_to_a_function_that_has_not_stored_its_return(void **state)
{
	struct fixture *f = *state;

	/* Up to Go 1.24, gobuf has one member more. */
	for (int old = 0; old < 2; old++) {
		teardown(state);
		setup(state);
		f = *state;
		f->head[ABI_GO_STACK_LOW] = word_at(32);
		f->head[ABI_GO_STACK_HIGH] = word_at(STACK_WORDS);
		f->head[ABI_GO_M] = M;
		f->head[ABI_GO_SCHED_SP] = word_at(GO_WAITS);
		f->head[ABI_GO_SCHED_PC] = GO_PC;
		f->head[ABI_GO_SCHED_LR + old] = OTHER;
		if (!old)
			f->head[ABI_GO_SCHED_LR + 1] = word_at(60); /* its frame pointer */
		f->words[GO_WAITS - 1] = word_at(50);
		f->words[GO_WAITS] = CALLER;
		f->state.runs = (struct abi_unwind_fiber){ .address = GOROUTINE, .thread = M };
		f->state.is_return = 1;
		assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MORESTACK, 0)), ABI_UNWIND_GOES_ON);
		expect_at(f, GO_PC, word_at(GO_WAITS), 0);
		assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 0)), ABI_UNWIND_GOES_ON);
		expect_at(f, OTHER, word_at(GO_WAITS), 0);
		assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 32)), ABI_UNWIND_GOES_ON);
		expect_at(f, CALLER, word_at(GO_WAITS + 4), word_at(50));
	}
}

static void pushed_call_has_the_link_register_of_what_it_interrupted(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_go(ABI_CFA_SP, 32);

	rule.extra = ABI_UNWIND_INTERRUPTED;
	f->words[0] = CALLER; /* pc of the interrupted code */
	f->words[4] = OTHER; /* its link register */
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(6), 0xdead);
	assert_int_equal(f->state.is_return, 0);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 0)), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, word_at(6), 0xdead);
}

static void c_returns_to_the_goroutine_that_called_it(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_go(ABI_CFA_GO_CGOCALL, 16);

	rule.fp = ABI_REG_AT_CFA;
	f->head[ABI_GO_STACK_LOW] = word_at(32);
	f->head[ABI_GO_STACK_HIGH] = word_at(STACK_WORDS);
	f->head[ABI_GO_M] = M;
	f->state.runs = (struct abi_unwind_fiber){ .address = GOROUTINE, .thread = M };
	f->state.is_return = 1;
	f->words[0] = GOROUTINE;
	f->words[1] = 8 * (STACK_WORDS - GO_WAITS);
	f->words[GO_WAITS - 1] = word_at(50);
	f->words[GO_WAITS] = CALLER;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(GO_WAITS + 2), word_at(50));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leaf_returns_by_its_register, setup, teardown),
		cmocka_unit_test_setup_teardown(signed_return_addresses_are_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(
			assembly_without_a_record_hides_no_caller, setup, teardown),
		cmocka_unit_test_setup_teardown(
			after_assembly_the_caller_is_found_by_its_record, setup, teardown),
		cmocka_unit_test_setup_teardown(
			after_assembly_nothing_else_is_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			signal_frame_leads_to_the_interrupted_code, setup, teardown),
		cmocka_unit_test_setup_teardown(
			stack_without_a_signal_frame_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			code_tells_whether_a_system_call_stands_before_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			frame_of_go_is_below_its_stack_pointer, setup, teardown),
		cmocka_unit_test_setup_teardown(
			frame_of_go_that_made_a_call_has_saved_its_fp, setup, teardown),
		cmocka_unit_test_setup_teardown(
			morestack_leads_to_a_function_that_has_not_stored_its_return, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			c_returns_to_the_goroutine_that_called_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			pushed_call_has_the_link_register_of_what_it_interrupted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
