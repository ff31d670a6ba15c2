/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rules of x86_64 code without call frame information, from its instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/code/decoder.h"
#include "tests/unit/cfi_writer.h"

enum { BARE = CFI_TEXT + 0x400 };

static const char entry[] = "sp+8 fp=same ra=[cfa-8]";

#define RET 0xc3
#define NOP 0x90
#define CALL_OUTSIDE 0xe8, 0, 0, 0x10, 0
#define TEST_EAX 0x85, 0xc0
#define TESTS_8 TEST_EAX, TEST_EAX, TEST_EAX, TEST_EAX, TEST_EAX, TEST_EAX, TEST_EAX, TEST_EAX
#define PUSH_RBX 0x53
#define POP_RBX 0x5b
#define PUSH_RBP 0x55
#define POP_RBP 0x5d
#define SUB_24 0x48, 0x83, 0xec, 24
#define ADD_24 0x48, 0x83, 0xc4, 24
#define SUB_8 0x48, 0x83, 0xec, 8
#define NOPS_4 0x0f, 0x1f, 0x40, 0
#define NOPS_8 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
#define NOPS_16 NOPS_8, NOPS_8

/* The index of a file with a function at CFI_TEXT, and behind it CODE without an entry at BARE. */
static struct index *index_with_entry(
	uint16_t machine, const uint8_t *code, size_t size, uint64_t entry_point)
{
	return cfi_index_beside(machine,
		&(struct elf_section_spec){ .name = ".text.bare",
			.flags = SHF_ALLOC | SHF_EXECINSTR,
			.address = BARE,
			.bytes = code,
			.size = size },
		0, entry_point);
}

static struct index *index_of_bytes(uint16_t machine, const uint8_t *code, size_t size)
{
	return index_with_entry(machine, code, size, 0);
}

/* What is too short for a gap has no rules at all: each program here ends with padding. */
#define INDEX_OF(...)                                                        \
	index_of_bytes(EM_X86_64, (const uint8_t[]){ __VA_ARGS__, NOPS_16 }, \
		sizeof((const uint8_t[]){ __VA_ARGS__, NOPS_16 }))

static void assert_rule(const struct index *index, uint64_t off, const char *rule)
{
	assert_string_equal(cfi_rule_at(index, BARE + off), rule);
}

/* Nothing from BARE up to END has a rule. */
static void assert_refused(struct index *index, uint64_t end)
{
	for (uint64_t off = 0; off < end; off++)
		assert_rule(index, off, "none");
	index_destroy(index);
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void test_a_function_without_a_frame(void **)
{
	struct index *index = INDEX_OF(TEST_EAX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 2, entry);
	assert_rule(index, 3, "none");
	index_destroy(index);
}

static void test_pushes_and_room(void **)
{
	/* mov $1,%ebp */
	struct index *index = INDEX_OF(
		PUSH_RBX, PUSH_RBP, SUB_24, 0xbd, 1, 0, 0, 0, ADD_24, POP_RBP, POP_RBX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 2, "sp+24 fp=same ra=[cfa-8]");
	assert_rule(index, 6, "sp+48 fp=same ra=[cfa-8]");
	assert_rule(index, 11, "sp+48 fp=[cfa-24] ra=[cfa-8]");
	assert_rule(index, 15, "sp+24 fp=[cfa-24] ra=[cfa-8]");
	assert_rule(index, 16, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 17, entry);
	index_destroy(index);
}

static void test_a_frame_of_unknown_size(void **)
{
	/* mov %rsp,%rbp; sub %rax,%rsp; nop; leave */
	struct index *index =
		INDEX_OF(PUSH_RBP, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4, NOP, 0xc9, RET);

	assert_rule(index, 4, "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_rule(index, 7, "fp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_rule(index, 9, entry);
	index_destroy(index);
}

static void test_a_realigned_stack(void **)
{
	/*
	 * push %rbx; mov %rsp,%rax; and $-32,%rsp; sub $64,%rsp; mov %rax,0x40(%rsp); nop;
	 * mov 0x40(%rsp),%rsp; pop %rbx
	 */
	struct index *index = INDEX_OF(PUSH_RBX, 0x48, 0x89, 0xe0, 0x48, 0x83, 0xe4, 0xe0, 0x48,
		0x83, 0xec, 0x40, 0x48, 0x89, 0x44, 0x24, 0x40, NOP, 0x48, 0x8b, 0x64, 0x24, 0x40,
		POP_RBX, RET);

	assert_rule(index, 4, "sp+16 fp=same ra=[cfa-8]");
	/* Only rax has it, which walks do not know. */
	assert_rule(index, 8, "none");
	assert_rule(index, 12, "none");
	assert_rule(index, 17, "[sp+64]+16 fp=same ra=[cfa+16]");
	assert_rule(index, 23, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

static void test_a_register_that_walks_know(void **)
{
	/* push %rbx; mov %rsp,%rbx; and $-32,%rsp; nop; mov %rbx,%rsp; pop %rbx */
	struct index *index = INDEX_OF(PUSH_RBX, 0x48, 0x89, 0xe3, 0x48, 0x83, 0xe4, 0xe0, NOP,
		0x48, 0x89, 0xdc, POP_RBX, RET);

	assert_rule(index, 8, "r3+16 fp=same ra=[cfa-8]");
	assert_rule(index, 12, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

static void test_ways_through_a_function(void **)
{
	/* push %rbx; 1: test; je 2f; call outside (aligned); jne 1b; 2: pop %rbx; ret */
	struct index *index =
		INDEX_OF(PUSH_RBX, TEST_EAX, 0x74, 7, CALL_OUTSIDE, 0x75, 0xf5, POP_RBX, RET);

	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 5, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 12, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 13, entry);
	index_destroy(index);
}

static void test_a_function_that_begins_with_a_loop(void **)
{
	/* test; je to the beginning; ret */
	struct index *index = INDEX_OF(TEST_EAX, 0x74, 0xfc, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 4, entry);
	index_destroy(index);
}

static void test_functions_of_the_gap_that_call_each_other(void **)
{
	/* call 1f, with a stack that is not aligned; ret; 1: push %rbx; pop %rbx; ret */
	struct index *index = INDEX_OF(0xe8, 1, 0, 0, 0, RET, PUSH_RBX, POP_RBX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 5, entry);
	assert_rule(index, 6, entry);
	assert_rule(index, 7, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

static void test_a_call_by_a_pointer_leads_nowhere_here(void **)
{
	/* push %rbx; call *%rax; pop %rbx; ret */
	struct index *index = INDEX_OF(PUSH_RBX, 0xff, 0xd0, POP_RBX, RET);

	assert_rule(index, 3, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

/* ---- what is not believed ------------------------------------------------------------------- */

static void test_a_return_to_what_was_pushed(void **)
{
	assert_refused(INDEX_OF(0x50, RET), 2);
	assert_refused(INDEX_OF(ADD_24, RET), 5);
}

/* push %rbp; call 1f; pop %rbp; ret; 1: mov $1,%ebp; ret */
static void test_a_helper_that_loses_the_frame_pointer(void **)
{
	struct index *index =
		INDEX_OF(PUSH_RBP, 0xe8, 2, 0, 0, 0, POP_RBP, RET, 0xbd, 1, 0, 0, 0, RET);

	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 6, "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_rule(index, 7, entry);
	assert_rule(index, 8, entry);
	assert_rule(index, 13, "sp+8 fp=undefined ra=[cfa-8]");
	index_destroy(index);
}

/* Through another helper, which the first round takes for one that keeps it. */
static void test_helpers_of_helpers_that_lose_it(void **)
{
	/* push %rbp; call 1f; pop %rbp; ret; 1: call 2f; ret; 2: mov $1,%ebp; ret */
	struct index *index = INDEX_OF(PUSH_RBP, 0xe8, 2, 0, 0, 0, POP_RBP, RET, 0xe8, 1, 0, 0, 0,
		RET, 0xbd, 1, 0, 0, 0, RET);

	assert_rule(index, 6, "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_rule(index, 8, entry);
	assert_rule(index, 13, "sp+8 fp=undefined ra=[cfa-8]");
	index_destroy(index);
}

/* The caller's caller expects its own. */
static void test_a_function_whose_helper_loses_it(void **)
{
	/* call 1f; ret; 1: mov $1,%ebp; ret */
	struct index *index = INDEX_OF(0xe8, 1, 0, 0, 0, RET, 0xbd, 1, 0, 0, 0, RET);

	for (uint64_t off = 0; off < 6; off++)
		assert_rule(index, off, "none");
	assert_rule(index, 6, entry);
	index_destroy(index);
}

static void test_a_return_without_the_callers_frame_pointer(void **)
{
	assert_refused(INDEX_OF(0xbd, 1, 0, 0, 0, RET), 6);
	/* What was popped is another word: push %rbp; push %rbx; pop %rbp; pop %rbx */
	assert_refused(INDEX_OF(PUSH_RBP, PUSH_RBX, POP_RBP, POP_RBX, RET), 5);
}

static void test_switched_stacks(void **)
{
	/* mov %rdi,%rsp */
	assert_refused(INDEX_OF(0x48, 0x89, 0xfc, RET), 4);
	/* xchg %rsp,%rdi */
	assert_refused(INDEX_OF(0x48, 0x87, 0xe7, RET), 4);
}

static void test_ways_that_disagree(void **)
{
	/* test; je 1f; push %rbx; 1: ret */
	assert_refused(INDEX_OF(TEST_EAX, 0x74, 1, PUSH_RBX, RET), 6);
}

#define JUMP_RAX 0xff, 0xe0

/* A case looks like a function, but takes more than it pushed. */
static void test_cases_of_a_switch(void **)
{
	/* two cases, the first of which goes on in the second */
	struct index *index =
		INDEX_OF(SUB_24, JUMP_RAX, TEST_EAX, 0xeb, 0, ADD_24, RET, PUSH_RBX, POP_RBX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 4, "sp+32 fp=same ra=[cfa-8]");
	assert_rule(index, 6, "sp+32 fp=same ra=[cfa-8]");
	assert_rule(index, 10, "sp+32 fp=same ra=[cfa-8]");
	assert_rule(index, 14, entry);
	assert_rule(index, 15, entry);
	assert_rule(index, 16, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

/* Of a compiler that optimizes for size: the jump is at the function's end. */
static void test_cases_before_the_jump(void **)
{
	/*
	 * nop; call 1f; ret; 1: push; jmp 2f; (at 10, a case) pop; ret; (at 12, another) test;
	 * jmp 3f; nop; 3: pop; ret; 2: nop; jmp *%rax
	 */
	struct index *index = INDEX_OF(NOP, 0xe8, 1, 0, 0, 0, RET, PUSH_RBX, 0xeb, 9, POP_RBX, RET,
		TEST_EAX, 0xeb, 1, NOP, POP_RBX, RET, NOP, 0xff, 0xe0);

	assert_rule(index, 8, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 10, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 11, entry);
	assert_rule(index, 12, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 17, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 18, entry);
	assert_rule(index, 20, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

static void test_a_case_that_does_not_leave_the_frame(void **)
{
	assert_refused(INDEX_OF(SUB_24, JUMP_RAX, POP_RBX, RET), 8);
}

/* The frame is gone: it is a call of another function. */
static void test_a_jump_by_a_pointer_without_a_frame(void **)
{
	struct index *index = INDEX_OF(JUMP_RAX, PUSH_RBX, POP_RBX, RET);

	assert_rule(index, 2, entry);
	assert_rule(index, 3, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

/* musl ends programs by it and does not tell the compiler so. */
static void test_code_behind_a_halt(void **)
{
	struct index *index = INDEX_OF(SUB_24, 0xf4, ADD_24, RET);

	assert_rule(index, 5, "sp+32 fp=same ra=[cfa-8]");
	assert_rule(index, 9, entry);
	index_destroy(index);
	assert_refused(INDEX_OF(SUB_24, 0x0f, 0x0b, ADD_24, RET), 11); /* ud2 */
}

static void test_a_call_of_a_function_that_never_returns(void **)
{
	/* call 1f; then another function; 1: jmp 1b */
	struct index *index = INDEX_OF(SUB_8, 0xe8, 3, 0, 0, 0, PUSH_RBX, POP_RBX, RET, 0xeb, 0xfe);

	assert_rule(index, 4, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 9, entry);
	assert_rule(index, 10, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

/* Each has its own frame: what is wrong with one function is not wrong with those that end so. */
static void test_a_tail_call(void **)
{
	/* push; pop; jmp 1f; call 1f; ret; 1: pop */
	struct index *index =
		INDEX_OF(PUSH_RBX, POP_RBX, 0xeb, 6, 0xe8, 1, 0, 0, 0, RET, POP_RBX, RET);

	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 10, "none");
	index_destroy(index);
}

static void test_a_jump_into_an_instruction(void **)
{
	assert_refused(INDEX_OF(0x74, 1, 0xb8, 0, 0, 0, 0, RET), 8);
}

static void test_a_jump_out_with_a_frame(void **)
{
	assert_refused(INDEX_OF(PUSH_RBX, 0x74, 2, POP_RBX, RET, 0xe9, 0, 0, 1, 0), 10);
}

/* The gap's beginning is aligned, as a function is, and what follows the call is not. */
static void test_a_call_outside_with_a_stack_that_is_not_aligned(void **)
{
	struct index *index = INDEX_OF(CALL_OUTSIDE, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 5, entry);
	index_destroy(index);
}

static void test_such_a_call_where_no_function_begins(void **)
{
	/* test; ret; call outside; ret */
	struct index *index = INDEX_OF(TEST_EAX, RET, CALL_OUTSIDE, RET);

	assert_rule(index, 0, entry);
	for (uint64_t off = 3; off < 9; off++)
		assert_rule(index, off, "none");
	index_destroy(index);
}

/* The callee may not return, and what follows be the next function. */
static void test_such_a_call_before_what_may_be_a_function(void **)
{
	/* eleven bytes of nops; call outside; ret, at a multiple of 16 */
	struct index *index = INDEX_OF(NOPS_8, 0x66, NOP, NOP, CALL_OUTSIDE, RET);

	for (uint64_t off = 0; off < 16; off++)
		assert_rule(index, off, "none");
	index_destroy(index);
}

/* What follows pops, and so is the same function's. */
static void test_such_a_call_that_returns(void **)
{
	struct index *index = INDEX_OF(
		PUSH_RBX, SUB_8, NOPS_4, NOP, NOP, CALL_OUTSIDE, 0x48, 0x83, 0xc4, 8, POP_RBX, RET);

	assert_rule(index, 16, "sp+24 fp=same ra=[cfa-8]");
	assert_rule(index, 21, entry);
	index_destroy(index);
}

/* So far behind the call nothing is looked at. */
static void test_such_a_call_that_returns_late(void **)
{
	assert_refused(INDEX_OF(PUSH_RBX, SUB_8, NOPS_4, NOP, NOP, CALL_OUTSIDE, TESTS_8, TESTS_8,
			       TESTS_8, TESTS_8, 0x48, 0x83, 0xc4, 8, POP_RBX, RET),
		80);
}

static void test_padding_before_such_a_function(void **)
{
	struct index *index = INDEX_OF(RET, NOPS_8, NOPS_4, NOP, NOP, NOP, CALL_OUTSIDE, RET);

	assert_rule(index, 16, entry);
	assert_rule(index, 21, entry);
	index_destroy(index);
}

/* Nothing says how deep its stack is. */
static void test_a_function_that_never_returns(void **)
{
	assert_refused(INDEX_OF(TEST_EAX, 0xeb, 0xfc), 4);
}

static void test_one_that_calls_with_an_aligned_stack(void **)
{
	/* push %rbx; 1: call outside; jmp 1b */
	struct index *index = INDEX_OF(PUSH_RBX, CALL_OUTSIDE, 0xeb, 0xf9);

	assert_rule(index, 0, entry);
	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 6, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
	/* A part of a function would be as deep as its calls need. */
	assert_refused(INDEX_OF(CALL_OUTSIDE, 0xeb, 0xf9), 7);
	/* Its calls disagree: push %rbx; 1: call outside; push %rbx; call outside; jmp 1b */
	assert_refused(INDEX_OF(PUSH_RBX, CALL_OUTSIDE, PUSH_RBX, CALL_OUTSIDE, 0xeb, 0xf3), 14);
}

/* The next function may begin behind a call of something that need not return. */
static void test_a_function_behind_its_first_call(void **)
{
	/* push; nops; call outside; (at 16) test; 1: call outside; jmp 1b */
	struct index *index = INDEX_OF(
		PUSH_RBX, NOPS_8, NOP, NOP, CALL_OUTSIDE, TEST_EAX, CALL_OUTSIDE, 0xeb, 0xf9);

	assert_rule(index, 0, entry);
	assert_rule(index, 11, "sp+16 fp=same ra=[cfa-8]");
	for (uint64_t off = 16; off < 25; off++)
		assert_rule(index, off, "none");
	index_destroy(index);
}

/* musl's qsort(): an aligned loop behind a call that returns. */
static void test_a_loop_behind_a_call(void **)
{
	/* push; call outside; nops; (at 16) 1: test; jne 1b; pop; ret */
	struct index *index = INDEX_OF(
		PUSH_RBX, CALL_OUTSIDE, NOPS_8, NOP, NOP, TEST_EAX, 0x75, 0xfc, POP_RBX, RET);

	assert_rule(index, 16, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 21, entry);
	index_destroy(index);
}

/* musl's clone.s */
static void test_the_first_call_of_a_thread(void **)
{
	/* test; jne 1f; xor %ebp,%ebp; pop %rdi; call *%r9; exit(%eax); hlt; 1: ret */
	struct index *index = INDEX_OF(TEST_EAX, 0x75, 15, 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89,
		0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05, 0xf4, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 3, entry);
	assert_rule(index, 4, "end");
	assert_rule(index, 9, "end");
	assert_rule(index, 18, "end");
	assert_rule(index, 19, entry);
	index_destroy(index);
}

/*
 * A musl that was built for size: functions are not aligned. __libc_start_main() is behind what
 * calls main() and exit(), and computes the address of that.
 */
static void test_functions_that_are_not_aligned(void **)
{
	/*
	 * nop; 1: test; ret; 2: push; call *%r12; call outside; push; call 1b; lea 2b(%rip),%rax;
	 * pop; jmp *%rax
	 */
	struct index *index = INDEX_OF(NOP, TEST_EAX, RET, PUSH_RBX, 0x41, 0xff, 0xd4, CALL_OUTSIDE,
		PUSH_RBX, 0xe8, 0xee, 0xff, 0xff, 0xff, 0x48, 0x8d, 0x05, 0xea, 0xff, 0xff, 0xff,
		POP_RBX, 0xff, 0xe0);

	assert_rule(index, 4, entry);
	assert_rule(index, 5, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 13, entry);
	assert_rule(index, 14, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 27, entry);
	index_destroy(index);
}

/* What uses a register of its caller's is no function's beginning: the call before it returns. */
static void test_code_that_uses_what_a_call_has_kept(void **)
{
	/* push; nops; call outside; (at 16) mov %rbx,%rdi or mov %rdi,%rbx; 1: call outside; jmp 1b
	 */
	struct index *index = INDEX_OF(PUSH_RBX, NOPS_8, NOP, NOP, CALL_OUTSIDE, 0x48, 0x89, 0xdf,
		CALL_OUTSIDE, 0xeb, 0xf9);

	assert_rule(index, 16, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 19, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
	index = INDEX_OF(PUSH_RBX, NOPS_8, NOP, NOP, CALL_OUTSIDE, 0x48, 0x89, 0xfb, CALL_OUTSIDE,
		0xeb, 0xf9);
	assert_rule(index, 16, "none");
	assert_rule(index, 19, "none");
	index_destroy(index);
}

/* The file's entry point has no caller: it ends at a jump, or where a function begins that it
 * calls. */
static void test_the_entry_point(void **)
{
	/* nop; call 1f; 1: test; ret; then the same, and a jump in between */
	static const uint8_t calls[] = { NOP, 0xe8, 0, 0, 0, 0, TEST_EAX, RET, NOPS_16 };
	static const uint8_t jumps[] = { NOP, 0xe8, 2, 0, 0, 0, 0xeb, 0, TEST_EAX, RET, NOPS_16 };
	struct index *index = index_with_entry(EM_X86_64, calls, sizeof(calls), BARE);

	assert_rule(index, 5, "end");
	assert_rule(index, 6, entry);
	assert_rule(index, 8, entry);
	index_destroy(index);
	index = index_with_entry(EM_X86_64, jumps, sizeof(jumps), BARE);
	assert_rule(index, 7, "end");
	assert_rule(index, 8, entry);
	index_destroy(index);
}

/* The next function is another one. */
static void test_a_call_that_never_returns(void **)
{
	struct index *index =
		INDEX_OF(SUB_8, CALL_OUTSIDE, NOPS_4, 0x66, NOP, NOP, PUSH_RBX, POP_RBX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 8, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 16, entry);
	assert_rule(index, 17, "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

static void test_bytes_that_are_no_code(void **)
{
	/* test; (06 is none in 64-bit mode); at the next multiple of 16, another function */
	struct index *index = INDEX_OF(TEST_EAX, 6, RET, NOPS_8, NOPS_4, TEST_EAX, RET);

	assert_rule(index, 0, "none");
	assert_rule(index, 3, "none");
	assert_rule(index, 16, entry);
	index_destroy(index);
}

static void test_a_gap_that_ends_in_the_middle(void **)
{
	static const uint8_t code[] = { NOPS_16, TEST_EAX, 0x48, 0x83 };

	assert_refused(index_of_bytes(EM_X86_64, code, sizeof(code)), sizeof(code));
}

/* musl's restore.s, between functions that would run into it and on from it. */
static void test_what_signal_handlers_return_to(void **)
{
	/* nop; mov $15,%rax; syscall */
	struct index *index = INDEX_OF(
		SUB_8, CALL_OUTSIDE, NOP, 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05, TEST_EAX, RET);

	assert_rule(index, 8, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 9, "signal");
	assert_rule(index, 10, "signal");
	assert_rule(index, 18, "signal");
	assert_rule(index, 19, entry);
	index_destroy(index);
	/* mov $15,%eax; syscall */
	index = INDEX_OF(TEST_EAX, RET, 0xb8, 15, 0, 0, 0, 0x0f, 0x05, TEST_EAX, RET);
	assert_rule(index, 2, entry);
	assert_rule(index, 3, "signal");
	assert_rule(index, 9, "signal");
	assert_rule(index, 10, entry);
	index_destroy(index);
}

static void test_another_system_call(void **)
{
	/* mov $16,%eax; syscall */
	struct index *index = INDEX_OF(0xb8, 16, 0, 0, 0, 0x0f, 0x05, TEST_EAX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 6, entry);
	assert_rule(index, 8, entry);
	index_destroy(index);
}

static void assert_function(const struct index *index, uint64_t off, uint64_t start)
{
	uint64_t at = 0;

	assert_true(index_nameless(index, BARE + off, &at));
	assert_int_equal(at - BARE, start);
}

/* Where no symbol is, functions have the place of their beginning for a name. */
static void test_where_functions_begin(void **)
{
	/* test; ret; nops; (at 16) an indirect jump; (at 18) test; ret; nops; (at 32) test; ret */
	struct index *index = INDEX_OF(TEST_EAX, RET, NOPS_8, NOPS_4, NOP, 0xff, 0xe0, TEST_EAX,
		RET, NOPS_8, NOP, NOP, NOP, TEST_EAX, RET);

	assert_function(index, 0, 0);
	assert_function(index, 10, 0);
	assert_function(index, 16, 16);
	/* Not believed, and no function: a case of a switch. */
	assert_function(index, 18, 16);
	assert_function(index, 32, 32);
	index_destroy(index);
}

/* musl's libc.so: its entry point is behind assembly without entries. */
static void test_code_before_the_entry_point(void **)
{
	static const uint8_t code[] = { PUSH_RBX, TEST_EAX, POP_RBX, RET, NOPS_16, TEST_EAX, RET };
	struct index *index = index_with_entry(EM_X86_64, code, sizeof(code), BARE + 21);

	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 4, entry);
	assert_rule(index, 21, "end");
	index_destroy(index);
}

/* Without optimization, compilers leave jumps that nothing leads to. */
static void test_a_dead_jump(void **)
{
	/* push; test; jmp to the second next; jmp there, too; nop; pop; ret */
	struct index *index = INDEX_OF(
		PUSH_RBX, TEST_EAX, 0xeb, 3, 0xeb, 1, NOP, POP_RBX, RET, NOPS_4, PUSH_RBX, RET);

	assert_rule(index, 0, entry);
	assert_rule(index, 3, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 8, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 9, entry);
	index_destroy(index);
	/* Before a loop, with padding. */
	index = INDEX_OF(PUSH_RBX, TEST_EAX, 0xeb, 6, NOPS_4, 0xeb, 0, POP_RBX, RET, NOPS_4, RET);
	assert_rule(index, 3, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, 12, entry);
	index_destroy(index);
}

/* A file with no call frame information at all, as Free Pascal writes them. */
static void test_a_file_without_any_table(void **)
{
	static const uint8_t code[] = { PUSH_RBX, TESTS_8, POP_RBX, RET, NOPS_16 };
	autoclose int output = memory_file("", 0);
	autoclose int fd = -1;
	struct sandbox_result result;
	struct index *index = NULL;
	struct elf_writer elf;

	elf_writer_init(&elf);
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = BARE,
					 .bytes = code,
					 .size = sizeof(code) });
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(index_open(output, &index), 0);
	assert_rule(index, 0, entry);
	assert_rule(index, 1, "sp+16 fp=same ra=[cfa-8]");
	assert_rule(index, sizeof(code) - 17, entry);
	index_destroy(index);
}

/* What a context of Boost's make_fcontext() begins with is where its stack ends. */
static void test_the_first_frame_of_a_context(void **)
{
	/* push %rbp; jmp *%rbx; xor %rdi,%rdi; call; hlt */
	struct index *index =
		INDEX_OF(TEST_EAX, RET, PUSH_RBP, 0xff, 0xe3, 0x48, 0x31, 0xff, CALL_OUTSIDE, 0xf4);

	assert_rule(index, 2, entry);
	for (uint64_t off = 3; off < 14; off++)
		assert_rule(index, off, "end");
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_dead_jump),
		cmocka_unit_test(test_a_file_without_any_table),
		cmocka_unit_test(test_the_first_frame_of_a_context),
		cmocka_unit_test(test_a_function_without_a_frame),
		cmocka_unit_test(test_pushes_and_room),
		cmocka_unit_test(test_a_frame_of_unknown_size),
		cmocka_unit_test(test_a_realigned_stack),
		cmocka_unit_test(test_a_register_that_walks_know),
		cmocka_unit_test(test_ways_through_a_function),
		cmocka_unit_test(test_a_function_that_begins_with_a_loop),
		cmocka_unit_test(test_functions_of_the_gap_that_call_each_other),
		cmocka_unit_test(test_a_call_by_a_pointer_leads_nowhere_here),
		cmocka_unit_test(test_a_return_to_what_was_pushed),
		cmocka_unit_test(test_a_helper_that_loses_the_frame_pointer),
		cmocka_unit_test(test_helpers_of_helpers_that_lose_it),
		cmocka_unit_test(test_a_function_whose_helper_loses_it),
		cmocka_unit_test(test_a_return_without_the_callers_frame_pointer),
		cmocka_unit_test(test_switched_stacks),
		cmocka_unit_test(test_ways_that_disagree),
		cmocka_unit_test(test_cases_of_a_switch),
		cmocka_unit_test(test_cases_before_the_jump),
		cmocka_unit_test(test_a_case_that_does_not_leave_the_frame),
		cmocka_unit_test(test_a_jump_by_a_pointer_without_a_frame),
		cmocka_unit_test(test_code_behind_a_halt),
		cmocka_unit_test(test_a_call_of_a_function_that_never_returns),
		cmocka_unit_test(test_a_tail_call),
		cmocka_unit_test(test_a_jump_into_an_instruction),
		cmocka_unit_test(test_a_jump_out_with_a_frame),
		cmocka_unit_test(test_a_call_outside_with_a_stack_that_is_not_aligned),
		cmocka_unit_test(test_such_a_call_where_no_function_begins),
		cmocka_unit_test(test_such_a_call_before_what_may_be_a_function),
		cmocka_unit_test(test_such_a_call_that_returns),
		cmocka_unit_test(test_such_a_call_that_returns_late),
		cmocka_unit_test(test_padding_before_such_a_function),
		cmocka_unit_test(test_a_function_that_never_returns),
		cmocka_unit_test(test_one_that_calls_with_an_aligned_stack),
		cmocka_unit_test(test_a_function_behind_its_first_call),
		cmocka_unit_test(test_a_loop_behind_a_call),
		cmocka_unit_test(test_the_first_call_of_a_thread),
		cmocka_unit_test(test_functions_that_are_not_aligned),
		cmocka_unit_test(test_code_that_uses_what_a_call_has_kept),
		cmocka_unit_test(test_the_entry_point),
		cmocka_unit_test(test_a_call_that_never_returns),
		cmocka_unit_test(test_bytes_that_are_no_code),
		cmocka_unit_test(test_a_gap_that_ends_in_the_middle),
		cmocka_unit_test(test_what_signal_handlers_return_to),
		cmocka_unit_test(test_another_system_call),
		cmocka_unit_test(test_where_functions_begin),
		cmocka_unit_test(test_code_before_the_entry_point),
	};

	code_libraries_load(false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
