/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rules of aarch64 code without call frame information, from its instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolizer/index/index.h"
#include "tests/unit/cfi_writer.h"

enum { BARE = CFI_TEXT + 0x400 };

static const char entry[] = "sp+0 fp=same ra=same";

#define RET 0xd65f03c0
#define RETAA 0xd65f0bff
#define PACIASP 0xd503233f
#define NOP 0xd503201f
#define BL_OUTSIDE 0x94040000
#define B_OUTSIDE 0x14040000
#define BL(words) (0x94000000 | ((words)&0x3ffffff))
#define B(words) (0x14000000 | ((words)&0x3ffffff))
#define CBZ(words) (0xb4000000 | ((words)&0x7ffff) << 5)
#define PUSH_FP_RA_32 0xa9be7bfd /* stp x29, x30, [sp, #-32]! */
#define POP_FP_RA_32 0xa8c27bfd /* ldp x29, x30, [sp], #32 */
#define FP_FROM_SP 0x910003fd /* mov x29, sp */
#define SP_FROM_FP 0x910003bf /* mov sp, x29 */
#define PUSH_RA_16 0xf81f0ffe /* str x30, [sp, #-16]! */
#define POP_RA_16 0xf84107fe /* ldr x30, [sp], #16 */
#define PUSH_48 0xa9bd53f3 /* stp x19, x20, [sp, #-48]! */
#define POP_48 0xa8c353f3 /* ldp x19, x20, [sp], #48 */
#define SAVE_RA_32 0xf90013fe /* str x30, [sp, #32] */
#define LOAD_RA_32 0xf94013fe /* ldr x30, [sp, #32] */
#define SAVE_RA 0xf90003fe /* str x30, [sp] */
#define LOAD_RA 0xf94003fe /* ldr x30, [sp] */
#define SUB_16 0xd10043ff /* sub sp, sp, #16 */
#define SUB_X0 0xcb2063ff /* sub sp, sp, x0 */
#define BR_X16 0xd61f0200
#define BLR_X21 0xd63f02a0

static struct index *index_of_words(const uint32_t *words, size_t size)
{
	return cfi_index_beside(EM_AARCH64,
		&(struct elf_section_spec){ .name = ".text.bare",
			.flags = SHF_ALLOC | SHF_EXECINSTR,
			.address = BARE,
			.bytes = words,
			.size = size },
		0, 0);
}

/* What is too short for a gap has no rules at all: each program here ends with padding. */
#define INDEX_OF(...)                                                               \
	index_of_words((const uint32_t[]){ __VA_ARGS__, NOP, NOP, NOP, NOP, 0, 0 }, \
		sizeof((const uint32_t[]){ __VA_ARGS__, NOP, NOP, NOP, NOP, 0, 0 }))

/* At instruction NUMBER. */
static void assert_rule(const struct index *index, unsigned int number, const char *rule)
{
	assert_string_equal(cfi_rule_at(index, BARE + UINT64_C(4) * number), rule);
}

static void assert_refused(struct index *index, unsigned int end)
{
	for (unsigned int i = 0; i < end; i++)
		assert_rule(index, i, "none");
	index_destroy(index);
}

static void test_a_function_without_a_frame(void **)
{
	struct index *index = INDEX_OF(NOP, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 1, entry);
	assert_rule(index, 2, "none");
	index_destroy(index);
}

static void test_a_frame_record(void **)
{
	struct index *index = INDEX_OF(PUSH_FP_RA_32, FP_FROM_SP, BL_OUTSIDE, POP_FP_RA_32, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 1, "sp+32 fp=same ra=[cfa-24]");
	assert_rule(index, 2, "sp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_rule(index, 3, "sp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_rule(index, 4, entry);
	index_destroy(index);
}

/* As GCC has it without frame pointers. */
static void test_the_return_address_alone(void **)
{
	struct index *index = INDEX_OF(PUSH_48, SAVE_RA_32, BL_OUTSIDE, LOAD_RA_32, POP_48, RET);

	assert_rule(index, 1, "sp+48 fp=same ra=same");
	assert_rule(index, 2, "sp+48 fp=same ra=[cfa-16]");
	assert_rule(index, 4, "sp+48 fp=same ra=[cfa-16]");
	assert_rule(index, 5, entry);
	index_destroy(index);
}

static void test_a_signed_return_address(void **)
{
	struct index *index = INDEX_OF(PACIASP, PUSH_RA_16, BL_OUTSIDE, POP_RA_16, RETAA);

	assert_rule(index, 1, entry);
	assert_rule(index, 2, "sp+16 fp=same ra=[cfa-16]");
	assert_rule(index, 4, entry);
	index_destroy(index);
}

/* More than an instruction has room for: mov x12, #0x2090; sub sp, sp, x12. */
static void test_a_frame_whose_size_is_in_a_register(void **)
{
	struct index *index = INDEX_OF(
		0xd284120c, 0xcb2c63ff, SAVE_RA, BL_OUTSIDE, LOAD_RA, 0xd284120c, 0x8b2c63ff, RET);

	assert_rule(index, 1, entry);
	assert_rule(index, 2, "sp+8336 fp=same ra=same");
	assert_rule(index, 3, "sp+8336 fp=same ra=[cfa-8336]");
	assert_rule(index, 7, entry);
	index_destroy(index);
}

static void test_a_frame_of_unknown_size(void **)
{
	struct index *index = INDEX_OF(
		PUSH_FP_RA_32, FP_FROM_SP, SUB_X0, BL_OUTSIDE, SP_FROM_FP, POP_FP_RA_32, RET);

	assert_rule(index, 2, "sp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_rule(index, 3, "fp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_rule(index, 5, "sp+32 fp=[cfa-32] ra=[cfa-24]");
	index_destroy(index);
}

/* getcwd() of musl: one of two ways makes room for a path. */
static void test_ways_with_room_of_different_sizes(void **)
{
	struct index *index = INDEX_OF(PUSH_FP_RA_32, FP_FROM_SP, CBZ(2), SUB_16, BL_OUTSIDE,
		SP_FROM_FP, POP_FP_RA_32, RET);

	assert_rule(index, 3, "sp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_rule(index, 4, "fp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_rule(index, 6, "sp+32 fp=[cfa-32] ra=[cfa-24]");
	index_destroy(index);
}

static void test_a_return_address_that_a_call_has_overwritten(void **)
{
	assert_refused(INDEX_OF(SUB_16, BL(2), RET, RET, NOP), 3);
	assert_refused(INDEX_OF(PUSH_RA_16, BL(3), RET, NOP, RET), 3);
}

static void test_a_saved_return_address_that_is_overwritten(void **)
{
	/* str x0, [sp]; then str w0, [sp, #4]; and str w0, [sp, #12], which is beside it */
	assert_refused(INDEX_OF(PUSH_RA_16, 0xf90003e0, BL_OUTSIDE, POP_RA_16, RET), 5);
	assert_refused(INDEX_OF(PUSH_RA_16, 0xb90007e0, BL_OUTSIDE, POP_RA_16, RET), 5);
	struct index *index = INDEX_OF(PUSH_RA_16, 0xb9000fe0, BL_OUTSIDE, POP_RA_16, RET);

	assert_rule(index, 2, "sp+16 fp=same ra=[cfa-16]");
	index_destroy(index);
}

static void test_a_return_with_a_frame(void **)
{
	assert_refused(INDEX_OF(PUSH_48, SAVE_RA_32, BL(3), LOAD_RA_32, RET, RET), 5);
}

/* Functions are not aligned: what follows a call of abort(), say, begins at once. */
static void test_a_function_behind_a_call_that_never_returns(void **)
{
	struct index *index = INDEX_OF(
		CBZ(2), RET, PUSH_RA_16, BL_OUTSIDE, PUSH_FP_RA_32, BL_OUTSIDE, POP_FP_RA_32, RET);

	assert_rule(index, 3, "sp+16 fp=same ra=[cfa-16]");
	assert_rule(index, 4, entry);
	assert_rule(index, 5, "sp+32 fp=same ra=[cfa-24]");
	index_destroy(index);
}

/* Nothing shows whether the second call is made with the first function's frame. */
static void test_what_never_returns_behind_such_a_call(void **)
{
	struct index *index = INDEX_OF(CBZ(2), RET, PUSH_RA_16, BL_OUTSIDE, SUB_16, NOP, B(-1));

	assert_rule(index, 2, entry);
	assert_rule(index, 3, "sp+16 fp=same ra=[cfa-16]");
	assert_rule(index, 4, "none");
	assert_rule(index, 5, "none");
	index_destroy(index);
}

/* A loop shows that the call in it returns. */
static void test_a_loop_around_a_call(void **)
{
	struct index *index = INDEX_OF(CBZ(2), RET, PUSH_RA_16, NOP, BL_OUTSIDE, NOP, B(-3));

	assert_rule(index, 4, "sp+16 fp=same ra=[cfa-16]");
	assert_rule(index, 5, "sp+16 fp=same ra=[cfa-16]");
	index_destroy(index);
}

static void test_tail_calls(void **)
{
	struct index *index = INDEX_OF(PUSH_RA_16, BL_OUTSIDE, POP_RA_16, BR_X16);

	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-16]");
	assert_rule(index, 3, entry);
	index_destroy(index);
	index = INDEX_OF(PUSH_RA_16, BL_OUTSIDE, POP_RA_16, B_OUTSIDE);
	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-16]");
	assert_rule(index, 3, entry);
	index_destroy(index);
	assert_refused(INDEX_OF(PUSH_RA_16, BL(3), B_OUTSIDE, NOP, RET), 3);
}

/*
 * musl's libc_start_main_stage2(), which calls main() and then exit(). It is not aligned and
 * nothing calls it directly: only the address that the next function computes shows that it begins
 * there.
 */
static void test_a_function_that_is_pointed_to(void **)
{
	const uint32_t adrp = 0x90000000, add = 0x91101000; /* x0 = page + 0x404 */
	struct index *index = INDEX_OF(RET, PUSH_48, SAVE_RA_32, BLR_X21, BL_OUTSIDE, PUSH_RA_16,
		adrp, add, BL_OUTSIDE, POP_RA_16, RET);

	assert_rule(index, 3, "sp+48 fp=same ra=[cfa-16]");
	index_destroy(index);
	index = INDEX_OF(RET, PUSH_48, SAVE_RA_32, BLR_X21, BL_OUTSIDE, PUSH_RA_16, adrp, NOP,
		BL_OUTSIDE, POP_RA_16, RET);
	assert_rule(index, 3, "none");
	index_destroy(index);
}

/* musl's wrapper_cmp(): a callback that only goes on to another, behind padding. */
static void test_a_callback_that_goes_on(void **)
{
	const uint32_t adrp = 0x90000000, add = 0x91102000; /* x0 = page + 0x408 */
	struct index *index = INDEX_OF(RET, NOP, NOP, BR_X16, adrp, add, B_OUTSIDE);

	assert_rule(index, 3, entry);
	index_destroy(index);
	index = INDEX_OF(RET, NOP, NOP, BR_X16, adrp, NOP, B_OUTSIDE);
	assert_rule(index, 3, "none");
	index_destroy(index);
}

static void test_code_that_is_known(void **)
{
	/* mov x8, #139; svc #0 */
	struct index *index = INDEX_OF(RET, NOP, 0xd2801168, 0xd4000001, NOP, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 1, "signal");
	assert_rule(index, 2, "signal");
	assert_rule(index, 3, "signal");
	assert_rule(index, 4, entry);
	index_destroy(index);
	/* Without the nop: a handler's caller is looked up one byte before. */
	index = INDEX_OF(NOP, RET, 0xd2801168, 0xd4000001, NOP, RET);
	assert_rule(index, 1, entry);
	assert_string_equal(cfi_rule_at(index, BARE + 7), "signal");
	assert_rule(index, 2, "signal");
	index_destroy(index);
	/* ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0 */
	index = INDEX_OF(RET, 0xa8c103e1, 0xd63f0020, 0xd2800ba8, 0xd4000001, NOP, RET);
	assert_rule(index, 1, "end");
	assert_rule(index, 4, "end");
	assert_rule(index, 5, entry);
	index_destroy(index);
}

/* An indirect jump, as far as the return address is concerned. */
static void test_a_return_to_another_register(void **)
{
	/* ret x16 */
	assert_refused(INDEX_OF(PUSH_RA_16, 0xd65f0200), 2);
}

static void test_words_that_are_no_code(void **)
{
	struct index *index = INDEX_OF(PUSH_RA_16, 0, RET);

	assert_rule(index, 0, "none");
	assert_rule(index, 2, entry);
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_function_without_a_frame),
		cmocka_unit_test(test_a_frame_record),
		cmocka_unit_test(test_the_return_address_alone),
		cmocka_unit_test(test_a_signed_return_address),
		cmocka_unit_test(test_a_frame_whose_size_is_in_a_register),
		cmocka_unit_test(test_a_frame_of_unknown_size),
		cmocka_unit_test(test_ways_with_room_of_different_sizes),
		cmocka_unit_test(test_a_return_address_that_a_call_has_overwritten),
		cmocka_unit_test(test_a_saved_return_address_that_is_overwritten),
		cmocka_unit_test(test_a_return_with_a_frame),
		cmocka_unit_test(test_a_function_behind_a_call_that_never_returns),
		cmocka_unit_test(test_what_never_returns_behind_such_a_call),
		cmocka_unit_test(test_a_loop_around_a_call),
		cmocka_unit_test(test_tail_calls),
		cmocka_unit_test(test_a_function_that_is_pointed_to),
		cmocka_unit_test(test_a_callback_that_goes_on),
		cmocka_unit_test(test_code_that_is_known),
		cmocka_unit_test(test_a_return_to_another_register),
		cmocka_unit_test(test_words_that_are_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
