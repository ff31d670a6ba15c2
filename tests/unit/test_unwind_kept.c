/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of bpf/unwind/step.bpf.h that need a callee-saved register: rules that say where it is
 * saved, a frame found by rbx, and Go's race detector, which keeps its caller's stack in r12.
 */
#include <string.h>

#include "tests/unit/unwind_fixture.h"

#ifdef __x86_64__
/* The usual rule of a frame of two words; WORDS says where it saves register WHICH. */
static struct abi_unwind_rule rule_kept(enum abi_kept which, uint8_t words)
{
	struct abi_unwind_rule rule = rule_sp(16);

	rule.extra = (uint8_t)(words << ABI_UNWIND_KEPT_SHIFT |
			       (which == ABI_KEPT_RBX ? ABI_UNWIND_KEPT_RBX : 0));
	return rule;
}

static void kept_registers_are_followed_where_rules_tell(void **state)
{
	struct fixture *f = *state;

	for (enum abi_kept which = 0; which < ABI_KEPT_REGISTERS; which++) {
		f->state.sp = STACK;
		for (int i = 0; i < 4; i++)
			f->words[2 * i + 1] = CALLER;
		f->words[2] = 0x5678;
		f->state.kept[ABI_KEPT_R12] = f->state.kept[ABI_KEPT_RBX] = 0x1234;
		by_rule(f, rule_kept(which, ABI_UNWIND_UNCHANGED));
		assert_int_equal(f->state.kept[which], 0x1234);
		assert_int_equal(f->state.kept[!which], 0);
		by_rule(f, rule_kept(which, 2));
		assert_int_equal(f->state.kept[which], 0x5678);
		by_rule(f, rule_kept(which, 0));
		assert_int_equal(f->state.kept[which], 0);
		/* Outside of the memory. */
		f->state.kept[which] = 1;
		by_rule(f, rule_kept(which, ABI_UNWIND_KEPT_WORDS));
		assert_int_equal(f->state.kept[which], 0);
	}
}

static void frame_by_a_kept_register(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_of(ABI_CFA_REG);

	rule.ra = ABI_REG_AT_CFA;
	rule.cfa_off = 56;
	rule.extra = 3;
	f->words[106] = CALLER;
	f->state.kept[ABI_KEPT_RBX] = STACK + 800;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 856, 0xdead);
	/* An unknown register, one that points below the stack, and one that is not followed. */
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
	f->state.kept[ABI_KEPT_RBX] = STACK - 800;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
	rule.extra = 10;
	f->state.kept[ABI_KEPT_RBX] = f->state.kept[ABI_KEPT_R12] = STACK + 1000;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
}

static void frame_by_any_register_of_the_innermost_frame(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_of(ABI_CFA_REG);

	rule.ra = ABI_REG_AT_CFA;
	for (uint8_t i = 0; i < ABI_OWN_REGISTERS; i++)
		f->words[9 + i] = CALLER;
	for (uint8_t i = 0; i < ABI_OWN_REGISTERS; i++) {
		f->state.sp = STACK;
		f->state.has_own = 1;
		f->state.own[i] = STACK + 80 + 8 * i;
		rule.extra = i;
		assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
		expect_at(f, CALLER, STACK + 80 + 8 * i, 0xdead);
	}
	f->state.has_own = 1;
	rule.extra = ABI_OWN_REGISTERS;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
}

/* What bn_mul_mont() of OpenSSL needs: *(sp + 8 * r9 + cfa_off) + ra_off. */
static void frame_behind_an_array(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_of(ABI_CFA_REG);

	rule.ra = ABI_REG_AT_CFA;
	rule.extra = 9 | ABI_CFA_REG_INDEX;
	rule.cfa_off = 8;
	rule.ra_off = 8;
	f->state.sp = STACK;
	f->state.has_own = 1;
	f->state.own[9] = 6;
	f->words[7] = STACK + 160;
	f->words[20] = CALLER;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 168, 0xdead);
	/* Far behind the stack, and where that is not known. */
	f->state.has_own = 1;
	f->state.own[9] = 1 << 20;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_UNREADABLE);
	f->state.has_own = 0;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
}

/* Only assembly has its frame in such a register at a call, of a function that does not use it. */
static void caller_by_a_register_that_its_callee_left_alone(void **state)
{
	static const uint8_t scratch[] = { 0, 1, 2, 4, 5, 8, 9, 10, 11 };
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_of(ABI_CFA_REG);

	rule.ra = ABI_REG_AT_CFA;
	for (int i = 0; i < 128; i++)
		f->words[i] = CALLER;
	for (uint8_t i = 0; i < ABI_OWN_REGISTERS; i++) {
		bool is_scratch = memchr(scratch, i, sizeof(scratch));

		f->state.sp = STACK;
		f->state.has_own = 1;
		f->state.own[i] = STACK + 80;
		by_rule(f, rule_sp(16));
		assert_int_equal(f->state.has_own, 2);
		rule.extra = i;
		assert_int_equal(by_rule(f, rule),
			is_scratch ? ABI_UNWIND_GOES_ON : ABI_UNWIND_BAD_REGISTER);
		if (!is_scratch)
			continue;
		expect_at(f, CALLER, STACK + 80, 0xdead);
		/* That one's caller is not found by what this one's callee had. */
		assert_int_equal(f->state.has_own, 0);
		assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
	}
	/* Below the frame, and far away. */
	for (int i = 0; i < 2; i++) {
		f->state.sp = STACK;
		f->state.has_own = 2;
		rule.extra = 0;
		f->state.own[0] = i ? STACK - 8 : STACK + (UINT64_C(2) << 20);
		assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
	}
}

static void race_detector_returns_to_what_r12_says(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->words[0] = OTHER;
	f->words[170] = CALLER;
	f->state.kept[ABI_KEPT_R12] = word_at(170);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_RACECALL, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(171), 0xdead);
}

static void race_detector_without_r12_is_not_followed(void **state)
{
	static const uint64_t values[] = { 0, STACK + 100 * 8, STACK + 170 * 8 + 4, OTHER };
	struct fixture *f = *state;
	struct go_fixture go;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		begin_go(f, &go);
		f->state.kept[ABI_KEPT_R12] = values[i];
		assert_int_equal(
			by_rule(f, rule_go(ABI_CFA_GO_RACECALL, 8)), ABI_UNWIND_BAD_REGISTER);
	}
}

static void race_detector_called_on_the_threads_stack_returns_there(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	f->words[0] = CALLER;
	f->words[1] = CALLER;
	for (uint32_t aligned = 0; aligned < 2; aligned++) {
		begin_go(f, &go);
		f->state.runs.address = 0;
		f->state.sp = STACK;
		f->state.kept[ABI_KEPT_R12] = word_at(aligned);
		assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_RACECALL, 8)), ABI_UNWIND_GOES_ON);
		expect_at(f, CALLER, word_at(aligned + 1), f->state.fp);
	}
}

static void racecall_interrupted_before_its_switch_is_as_usual(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->state.is_return = 0;
	f->state.sp = word_at(140);
	f->state.kept[ABI_KEPT_R12] = word_at(170);
	f->words[140] = CALLER;
	f->words[170] = OTHER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_RACECALL, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(141), 0xdead);
	/* After the switch. */
	f->state.is_return = 0;
	f->state.sp = STACK;
	f->state.kept[ABI_KEPT_R12] = word_at(170);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_RACECALL, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, word_at(171), 0xdead);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			kept_registers_are_followed_where_rules_tell, setup, teardown),
		cmocka_unit_test_setup_teardown(frame_by_a_kept_register, setup, teardown),
		cmocka_unit_test_setup_teardown(
			frame_by_any_register_of_the_innermost_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(frame_behind_an_array, setup, teardown),
		cmocka_unit_test_setup_teardown(
			caller_by_a_register_that_its_callee_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			race_detector_returns_to_what_r12_says, setup, teardown),
		cmocka_unit_test_setup_teardown(
			race_detector_without_r12_is_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			race_detector_called_on_the_threads_stack_returns_there, setup, teardown),
		cmocka_unit_test_setup_teardown(
			racecall_interrupted_before_its_switch_is_as_usual, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
