/* SPDX-License-Identifier: Apache-2.0 */
/* The step from a signal handler's return to the code that the signal interrupted, on x86_64. */
#include "tests/unit/unwind_fixture.h"

#ifdef __x86_64__
static void signal_frame_leads_to_the_interrupted_code(void **state)
{
	struct fixture *f = *state;

	f->words[5 + 10] = STACK + 0x300; /* uc_mcontext: rbp, rsp, rip */
	f->words[5 + 15] = STACK + 0x200;
	f->words[5 + 16] = CALLER;
	f->words[5 + 18] = 0x2b000000000033; /* cs, gs, fs, ss */
	f->state.is_return = 1;
	assert_int_equal(by_rule(f, rule_of(ABI_CFA_SIGNAL)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 0x200, STACK + 0x300);
	assert_int_equal(f->state.is_return, 0);
	assert_int_equal(unwind_recorded(&f->state), CALLER + 1);
}

/* rt_sigreturn has put back the interrupted code's sp, and pc is still the handler's return. */
static void stack_without_a_signal_frame_is_refused(void **state)
{
	struct fixture *f = *state;

	f->words[5 + 15] = STACK + 0x200;
	f->words[5 + 16] = CALLER;
	f->words[5 + 18] = 0x1e033; /* cs of Xen's PV guests, gs */
	assert_int_equal(by_rule(f, rule_of(ABI_CFA_SIGNAL)), ABI_UNWIND_GOES_ON);
	f->state.sp = STACK;
	f->state.block_address = 0;
	f->words[5 + 18] = CALLER;
	assert_int_equal(by_rule(f, rule_of(ABI_CFA_SIGNAL)), ABI_UNWIND_BAD_REGISTER);
	expect_at(f, CALLER, STACK, 0);
}

/* Code is 16 bytes at CALLER - 8, and the signal came with rcx = CALLER there. */
static void signal_comes_at(struct fixture *f, const uint8_t code[16])
{
	struct unwind_memory text = { CALLER - 8, 16, code, NULL };

	f->words[5 + 14] = CALLER; /* rcx */
	f->words[5 + 15] = STACK + 0x200;
	f->words[5 + 16] = CALLER;
	f->words[5 + 18] = 0x33; /* cs */
	f->state.sp = STACK;
	f->state.block_address = 0;
	f->memory.next = &text;
	assert_int_equal(by_rule(f, rule_of(ABI_CFA_SIGNAL)), ABI_UNWIND_GOES_ON);
	f->memory.next = NULL;
}

static void signal_frame_leads_to_an_interrupted_system_call(void **state)
{
	static const uint8_t call[16] = { [6] = 0x0f, 0x05, 0xc3 };
	static const uint8_t first[16] = { [6] = 0xeb, 0xfe, 0xc3 };
	struct fixture *f = *state;

	signal_comes_at(f, call);
	expect_at(f, CALLER - 2, STACK + 0x200, 0);
	assert_int_equal(unwind_recorded(&f->state), CALLER - 1);
	/* The first instruction of a function that was called by rcx. */
	signal_comes_at(f, first);
	expect_at(f, CALLER, STACK + 0x200, 0);
}
#endif

int main(void)
{
#ifdef __x86_64__
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			signal_frame_leads_to_the_interrupted_code, setup, teardown),
		cmocka_unit_test_setup_teardown(
			stack_without_a_signal_frame_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			signal_frame_leads_to_an_interrupted_system_call, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0;
#endif
}
