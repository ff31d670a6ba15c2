/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf/unwind/step.bpf.h compiled natively: the search in a page, and each kind of step over a stack
 * written by hand.
 */
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/unwind.h"
#include "tests/unit/unwind_fixture.h"

static uint8_t region[ABI_UNWIND_REGION_BYTES];

/* ---- the search ----------------------------------------------------------------------------- */

/* ROW must hold for its whole extent; its neighbours begin and end next to it. */
static void expect_extent(uint32_t at, uint64_t row, uint32_t offset)
{
	uint32_t first = unwind_row_first(row), last = unwind_row_last(row);

	assert_in_range(offset, first, last);
	assert_true(unwind_row_at(region, at, first) == row);
	assert_true(unwind_row_at(region, at, last) == row);
	if (first > 0)
		assert_int_equal(unwind_row_last(unwind_row_at(region, at, first - 1)), first - 1);
	if (last < 0xffff)
		assert_int_equal(unwind_row_first(unwind_row_at(region, at, last + 1)), last + 1);
}

/* Looks up the rule at each offset in three ways, with the region at an odd place. */
static void expect_all_offsets(struct fixture *f)
{
	const struct abi_unwind_page *page = page_finish(&f->page);
	const uint32_t at = 0x12340;

	assert_true(unwind_page_check(page, page->size));
	memcpy(region + at, page, page->size);
	for (uint32_t offset = 0; offset < 0x10000; offset++) {
		struct abi_unwind_rule wanted = page_rule_at(&f->page, (uint16_t)offset);
		uint64_t row = unwind_row_at(region, at, offset);
		struct abi_unwind_rule here, there;

		expect_extent(at, row, offset);
		unwind_rule_of(region, at, unwind_row_number(row), &here);
		assert_true(unwind_rule_at(page, page->size, offset, &there));
		assert_memory_equal(&here, &wanted, sizeof(here));
		assert_memory_equal(&there, &wanted, sizeof(there));
	}
}

static void page_without_rows_has_its_first_rule_everywhere(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->page, rule_sp(8));
	expect_all_offsets(f);
}

static void rows_at_all_borders_are_found(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->page, rule_none());
	page_row(&f->page, 0, rule_sp(8));
	page_row(&f->page, 1, rule_sp(16));
	page_row(&f->page, 0xfff, rule_fp(16));
	page_row(&f->page, 0x1000, rule_sp(24));
	page_row(&f->page, 0x1001, rule_none());
	page_row(&f->page, 0x8000, rule_sp(32));
	page_row(&f->page, 0xffff, rule_of(ABI_CFA_END));
	expect_all_offsets(f);
}

static void step_with_a_row_for_each_byte_is_searched(void **state)
{
	struct fixture *f = *state;

	page_begin(&f->page, rule_none());
	page_row(&f->page, 0x0ff0, rule_sp(8));
	for (uint32_t offset = 0x1000; offset < 0x2000; offset++)
		page_row(&f->page, (uint16_t)offset, rule_sp(8 + 8 * (int)(offset % 7)));
	page_row(&f->page, 0x2000, rule_none());
	expect_all_offsets(f);
}

static void random_pages_are_searched(void **state)
{
	struct fixture *f = *state;
	unsigned int seed = 1;

	for (int round = 0; round < 8; round++) {
		uint32_t step = 1 + (uint32_t)rand_r(&seed) % 200;

		page_begin(&f->page, rule_sp(8));
		for (uint32_t offset = (uint32_t)rand_r(&seed) % step;
			offset < 0x10000 && f->page.row_count < PAGE_WRITER_ROWS;
			offset += 1 + (uint32_t)rand_r(&seed) % step)
			page_row(&f->page, (uint16_t)offset, rule_sp(8 * (rand_r(&seed) % 12)));
		expect_all_offsets(f);
	}
}

static void negative_offsets_keep_their_sign(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = { .cfa = ABI_CFA_FP,
		.fp = ABI_REG_AT_CFA,
		.ra = ABI_REG_AT_CFA,
		.extra = 200,
		.cfa_off = -1000000,
		.fp_off = -32768,
		.ra_off = 32767 };

	page_begin(&f->page, rule);
	expect_all_offsets(f);
}

#ifdef __x86_64__
/* ---- steps by table ------------------------------------------------------------------------- */

static void leaf_without_a_frame(void **state)
{
	struct fixture *f = *state;

	f->words[0] = CALLER;
	assert_int_equal(by_rule(f, rule_sp(8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 8, 0xdead);
	assert_int_equal(f->state.is_return, 1);
}

/* vfork() has taken its return address from the stack and holds it in rdi. */
static void return_address_in_a_register(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_sp(0);

	rule.ra = ABI_REG_SAME;
	rule.ra_off = 0;
	f->state.lr = CALLER;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK, 0xdead);
	/* A caller has called since: its registers are not known. */
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_BAD_REGISTER);
}

static void frame_pointer_comes_back_from_the_stack(void **state)
{
	struct fixture *f = *state;

	f->state.fp = STACK + 32;
	f->words[4] = 0xbeef;
	f->words[5] = CALLER;
	assert_int_equal(by_rule(f, rule_fp(16)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 48, 0xbeef);
}

static void realigned_stack_has_it_where_the_frame_pointer_is(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = {
		.cfa = ABI_CFA_DEREF_FP, .fp = ABI_REG_AT_FP, .ra = ABI_REG_AT_CFA, .cfa_off = -8
	};

	f->state.fp = STACK + 64;
	f->words[8] = 0xbeef; /* at fp */
	f->words[7] = STACK + 160; /* the CFA, at fp - 8 */
	f->words[19] = CALLER;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 160, 0xbeef);
}

/* As in GCC's epilogues between `pop rbp` and `ret`. */
static void frame_pointer_outside_of_a_realigned_frame_is_the_callers(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_sp(8);
	const uint64_t callers[] = { STACK + 8, STACK + 64, STACK - 8, 0, 0xdead };

	rule.fp = ABI_REG_AT_FP;
	for (int i = 0; i < 16; i++)
		f->words[i] = CALLER;
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		f->state.sp = STACK;
		f->state.fp = callers[i];
		assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
		expect_at(f, CALLER, STACK + 8, callers[i]);
	}
}

static void cfa_saved_on_the_stack(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = {
		.cfa = ABI_CFA_DEREF_SP, .cfa_off = 16, .ra = ABI_REG_AT_CFA, .ra_off = 8
	};

	f->words[2] = STACK + 72;
	f->words[9] = CALLER;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 80, 0xdead);
}

static void plt_entry_before_and_after_its_push(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = { .cfa = ABI_CFA_PLT, .cfa_off = 11, .ra = ABI_REG_AT_CFA };

	f->words[0] = OTHER;
	f->words[1] = CALLER;
	f->state.pc = 0x40100b;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 16, 0xdead);
	f->state.pc = 0x40100a;
	f->state.sp = STACK;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, STACK + 8, 0xdead);
}

static void undefined_return_address_is_the_root(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_sp(8);

	assert_int_equal(by_rule(f, rule_of(ABI_CFA_END)), ABI_UNWIND_ROOT);
	rule.ra = ABI_REG_UNDEFINED;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_ROOT);
}

static int by_fp(struct fixture *f, enum unwind_place place)
{
	return unwind_step_from(&f->state, place, NULL);
}

/* The first function of a coroutine has it. */
static void return_address_zero_is_the_root(void **state)
{
	struct fixture *f = *state;

	/* Ruby leaves 0 in the frame pointer, D the stack's end, Crystal what was there before. */
	f->state.fp = 0;
	assert_int_equal(by_rule(f, rule_sp(16)), ABI_UNWIND_ROOT);
	f->state.fp = STACK + 16;
	assert_int_equal(by_rule(f, rule_sp(16)), ABI_UNWIND_ROOT);
	f->state.fp = 0xdead;
	assert_int_equal(by_rule(f, rule_sp(16)), ABI_UNWIND_ROOT);
	f->state.is_return = 1;
	f->state.fp = STACK + 80;
	assert_int_equal(by_fp(f, UNWIND_PLACE_GAP), ABI_UNWIND_ROOT);
	assert_int_equal(by_fp(f, UNWIND_PLACE_UNKNOWN), ABI_UNWIND_ROOT);
}

/*
 * Mono's tables do not follow epilogues, where their CFA is too high, often by an odd number of
 * words. Its trampolines put a zero above the frame pointer that they saved.
 */
static void zero_that_is_no_return_address_is_no_root(void **state)
{
	struct fixture *f = *state;

	f->words[10] = STACK + 400;
	f->state.fp = 0;
	assert_int_equal(by_rule(f, rule_sp(24)), ABI_UNWIND_BAD_REGISTER);
	f->state.fp = STACK + 400;
	assert_int_equal(by_rule(f, rule_sp(16)), ABI_UNWIND_BAD_REGISTER);
	f->state.fp = STACK + 96; /* a register with the address of something that is zeroed */
	assert_int_equal(by_fp(f, UNWIND_PLACE_UNKNOWN), ABI_UNWIND_BAD_REGISTER);
	f->state.is_return = 1;
	f->state.fp = STACK + 80;
	assert_int_equal(by_fp(f, UNWIND_PLACE_GAP), ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_fp(f, UNWIND_PLACE_UNKNOWN), ABI_UNWIND_BAD_REGISTER);
	f->state.fp = STACK + 88;
	assert_int_equal(by_fp(f, UNWIND_PLACE_UNKNOWN), ABI_UNWIND_BAD_REGISTER);
}

static void frame_pointer_that_is_lost_is_zero(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_sp(8);

	rule.fp = ABI_REG_UNDEFINED;
	f->words[0] = CALLER;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 8, 0);
}

/* ---- what stops a walk ---------------------------------------------------------------------- */

static void stack_pointer_that_does_not_rise_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule backwards = rule_sp(-16);

	assert_int_equal(by_rule(f, rule_sp(0)), ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_rule(f, backwards), ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_rule(f, rule_sp(12)), ABI_UNWIND_BAD_REGISTER);
}

static void register_that_is_not_followed_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(by_rule(f, rule_of(ABI_CFA_REG)), ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_rule(f, rule_of(ABI_CFA_UNSUPPORTED)), ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_rule(f, rule_of((enum abi_cfa)250)), ABI_UNWIND_BAD_REGISTER);
}

static void impossible_code_address_is_refused(void **state)
{
	struct fixture *f = *state;

	f->words[0] = 4095;
	f->words[1] = 0xffffffff81000000;
	assert_int_equal(by_rule(f, rule_sp(8)), ABI_UNWIND_BAD_REGISTER);
	f->state.sp = STACK + 8;
	assert_int_equal(by_rule(f, rule_sp(8)), ABI_UNWIND_BAD_REGISTER);
}

static void unreadable_stack_is_reported(void **state)
{
	struct fixture *f = *state;

	f->state.sp = STACK + sizeof(f->words);
	assert_int_equal(by_rule(f, rule_sp(8)), ABI_UNWIND_UNREADABLE);
	f->state.sp = STACK;
	f->state.fp = STACK - 4096;
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ .cfa = ABI_CFA_DEREF_FP }),
		ABI_UNWIND_UNREADABLE);
	f->state.sp = STACK + sizeof(f->words) - 64;
	assert_int_equal(by_rule(f, rule_of(ABI_CFA_SIGNAL)), ABI_UNWIND_UNREADABLE);
}

static void last_words_of_a_stack_are_read_singly(void **state)
{
	struct fixture *f = *state;

	f->state.sp = STACK + sizeof(f->words) - 8;
	f->words[STACK_WORDS - 1] = CALLER;
	assert_int_equal(by_rule(f, rule_sp(8)), ABI_UNWIND_GOES_ON);
	assert_int_equal(f->state.pc, CALLER);
}

static void walk_over_many_blocks_reads_the_right_words(void **state)
{
	struct fixture *f = *state;
	const uint64_t steps[] = { 8, 16, 512, 520, 8, 248, 400 };
	uint64_t sp = STACK;

	for (size_t i = 0; i < 7; i++) {
		sp += steps[i];
		f->words[(sp - STACK) / 8 - 1] = CALLER + i;
	}
	sp = STACK;
	for (size_t i = 0; i < 7; i++) {
		sp += steps[i];
		assert_int_equal(by_rule(f, rule_sp((int)steps[i])), ABI_UNWIND_GOES_ON);
		expect_at(f, CALLER + i, sp, 0xdead);
	}
}

/* ---- frame pointers ------------------------------------------------------------------------- */

static void code_without_rules_is_unwound_by_a_plausible_frame_pointer(void **state)
{
	struct fixture *f = *state;

	f->state.fp = STACK + 80;
	f->words[10] = STACK + 400;
	f->words[11] = CALLER;
	assert_int_equal(by_fp(f, UNWIND_PLACE_GAP), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 96, STACK + 400);
}

static void register_that_is_no_frame_pointer_is_not_followed(void **state)
{
	struct fixture *f = *state;
	const uint64_t bad[] = { STACK + 81, STACK - 8, STACK + (2ULL << 20), 7 };

	f->words[11] = CALLER;
	for (size_t i = 0; i < 4; i++) {
		f->state.fp = bad[i];
		assert_int_equal(by_fp(f, UNWIND_PLACE_GAP), ABI_UNWIND_GAP);
		assert_int_equal(by_fp(f, UNWIND_PLACE_UNKNOWN), ABI_UNWIND_UNKNOWN_MAPPING);
	}
}

static void no_frame_pointer_is_gos_root_only(void **state)
{
	struct fixture *f = *state;

	f->state.fp = 0;
	assert_int_equal(by_fp(f, UNWIND_PLACE_KEEPS_FP), ABI_UNWIND_ROOT);
	assert_int_equal(by_fp(f, UNWIND_PLACE_GAP), ABI_UNWIND_GAP);
	assert_int_equal(by_fp(f, UNWIND_PLACE_UNKNOWN), ABI_UNWIND_UNKNOWN_MAPPING);
}

static void go_may_go_on_on_a_lower_stack(void **state)
{
	struct fixture *f = *state;

	f->state.sp = STACK + 1024;
	f->state.fp = STACK + 80;
	f->words[10] = STACK + 40;
	f->words[11] = CALLER;
	assert_int_equal(by_fp(f, UNWIND_PLACE_KEEPS_FP), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 96, STACK + 40);
}

static void frame_pointer_to_itself_ends(void **state)
{
	struct fixture *f = *state;

	f->state.fp = STACK + 80;
	f->words[10] = STACK + 80;
	f->words[11] = CALLER;
	assert_int_equal(by_fp(f, UNWIND_PLACE_KEEPS_FP), ABI_UNWIND_BAD_REGISTER);
}

/* ---- edges of functions without tables ------------------------------------------------------ */

/* Code of the fixture's pc, from one byte before it on, and of the call that CALLER is behind. */
struct edge_code {
	uint8_t at_pc[16], at_call[16];
	struct unwind_memory pieces[2];
};

static const uint8_t direct_call[8] = { 0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4 };

static void edge_begin(struct fixture *f, struct edge_code *code, const char *bytes, size_t size)
{
	*code = (struct edge_code){ 0 };
	memcpy(code->at_pc, bytes, size);
	memcpy(code->at_call, direct_call, sizeof(direct_call));
	code->pieces[0] = (struct unwind_memory){ f->state.pc - 1, sizeof(code->at_pc), code->at_pc,
		&code->pieces[1] };
	code->pieces[1] = (struct unwind_memory){ CALLER - sizeof(direct_call),
		sizeof(code->at_call), code->at_call, NULL };
	f->memory.next = code->pieces;
	f->state.sp = STACK;
	f->state.fp = STACK + 80;
}

#define EDGE(bytes) bytes, sizeof(bytes) - 1

static void caller_is_kept_where_no_frame_is_set_up(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} edges[] = {
		{ EDGE("\x90\x55\x48\x89\xe5") }, /* push rbp */
		{ EDGE("\x90\xf3\x0f\x1e\xfa\x55") }, /* endbr64 */
		{ EDGE("\x90\x89\x84\x24\x00\xc0\xfe\xff\x55") }, /* HotSpot's stack bang */
		{ EDGE("\x5d\xc3") }, /* ret */
		{ EDGE("\x5d\xc2\x10\x00") }, /* ret 16 */
	};
	struct fixture *f = *state;
	uint64_t pc = f->state.pc;
	struct edge_code code;

	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		f->state.pc = pc;
		edge_begin(f, &code, edges[i].bytes, edges[i].size);
		f->words[0] = CALLER;
		assert_true(unwind_by_edge(&f->state));
		expect_at(f, CALLER, STACK + 8, STACK + 80);
		assert_int_equal(f->state.is_return, 1);
	}
}

static void caller_is_kept_while_the_frame_is_set_up(void **state)
{
	static const char *const edges[] = { "\x55\x48\x89\xe5", "\x55\x48\x8b\xec" };
	struct fixture *f = *state;
	uint64_t pc = f->state.pc;
	struct edge_code code;

	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		f->state.pc = pc;
		edge_begin(f, &code, edges[i], 4);
		f->words[0] = STACK + 120;
		f->words[1] = CALLER;
		assert_true(unwind_by_edge(&f->state));
		expect_at(f, CALLER, STACK + 16, STACK + 120);
	}
}

/* Nothing changes: the frame pointer is the better guess. */
static void edge_needs_its_instructions_and_a_call(void **state)
{
	struct fixture *f = *state;
	struct unwind_state before;
	struct edge_code code;

	edge_begin(f, &code, EDGE("\x90\x48\x89\xe5")); /* mov rbp, rsp, after no push */
	f->words[0] = f->words[1] = CALLER;
	before = f->state;
	assert_false(unwind_by_edge(&f->state));
	edge_begin(f, &code, EDGE("\x90\x55"));
	code.at_call[3] = 0x90; /* no call */
	assert_false(unwind_by_edge(&f->state));
	f->words[0] = 0x7777777777; /* cannot be read */
	assert_false(unwind_by_edge(&f->state));
	f->memory.next = NULL; /* nor can the code */
	assert_false(unwind_by_edge(&f->state));
	expect_at(f, before.pc, before.sp, before.fp);
	assert_int_equal(f->state.is_return, 0);
}

/* ---- Go's stacks ---------------------------------------------------------------------------- */

static void systemstack_goes_on_on_the_goroutines_stack(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->words[WAITS] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(WAITS + 1), 0xdead);
}

static void systemstack_with_a_frame_has_its_frame_pointer_there(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->state.fp = word_at(WAITS);
	f->words[WAITS] = word_at(200);
	f->words[WAITS + 1] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 16)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(WAITS + 2), word_at(200));
}

static void systemstack_before_its_switch_is_as_usual(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->state.is_return = 0;
	f->state.sp = word_at(140);
	f->words[140] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(141), 0xdead);
}

static void goroutine_of_another_thread_is_not_followed(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	go.head[ABI_GO_M] = M + 8;
	f->words[WAITS] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 8)), ABI_UNWIND_BAD_REGISTER);
	go.head[ABI_GO_M] = M;
	go.head[ABI_GO_SCHED_SP] = STACK;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 8)), ABI_UNWIND_BAD_REGISTER);
}

static void goroutine_that_is_not_known_is_found_by_its_frame(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->state.runs = (struct abi_unwind_fiber){ 0 };
	f->state.fp = word_at(WAITS);
	f->words[WAITS] = word_at(200);
	f->words[WAITS + 1] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 8)), ABI_UNWIND_BAD_REGISTER);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_SYSTEMSTACK, 16)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(WAITS + 2), word_at(200));
}

static void thread_that_left_its_goroutine_ends(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->state.runs.address = 0;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MORESTACK, 8)), ABI_UNWIND_ROOT);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MCALL, 8)), ABI_UNWIND_ROOT);
}

static void morestack_goes_on_in_the_function_that_called_it(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->words[WAITS - 1] = 0x77777778; /* below the goroutine's stack */
	f->words[WAITS] = OTHER;
	f->words[WAITS + 4] = word_at(200);
	f->words[WAITS + 5] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MORESTACK, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, GO_PC, word_at(WAITS), 0);
	assert_int_equal(f->state.is_return, 1);
	/* The function had no frame yet; the next frame restores the frame pointer. */
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, word_at(WAITS + 1), 0);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 40)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(WAITS + 6), word_at(200));
}

static void mcall_is_the_root_once_it_has_left_the_goroutine(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MCALL, 8)), ABI_UNWIND_ROOT);
	f->state.is_return = 0;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MCALL, 8)), ABI_UNWIND_ROOT);
	f->state.sp = word_at(140);
	f->words[140] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_MCALL, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(141), 0xdead);
}

static void gogo_is_the_root_once_it_is_on_the_goroutines_stack(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->state.is_return = 0;
	f->words[0] = CALLER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_GOGO, 8)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(1), 0xdead);
	f->state.sp = word_at(140);
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_GOGO, 8)), ABI_UNWIND_ROOT);
}

static void frame_on_another_stack_is_found_in_either_direction(void **state)
{
	struct fixture *f = *state;

	f->state.sp = word_at(100);
	f->state.fp = word_at(10);
	f->words[10] = word_at(180);
	f->words[11] = CALLER;
	f->words[180] = 0xbeef;
	f->words[181] = OTHER;
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ ABI_CFA_GO_FRAME, ABI_REG_AT_CFA,
					    ABI_REG_AT_CFA, 0, 16, -16, -8 }),
		ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(12), word_at(180));
	assert_int_equal(by_rule(f, (struct abi_unwind_rule){ ABI_CFA_GO_FRAME, ABI_REG_AT_CFA,
					    ABI_REG_AT_CFA, 0, 16, -16, -8 }),
		ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, word_at(182), 0xbeef);
	f->state.fp = 0;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_GO_FRAME, 16)), ABI_UNWIND_BAD_REGISTER);
}

static struct abi_unwind_rule rule_cgocall(void)
{
	struct abi_unwind_rule rule = rule_go(ABI_CFA_GO_CGOCALL, 8);

	rule.extra = 40;
	return rule;
}

static void c_returns_to_the_depth_that_was_written_down(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->words[5] = (STACK_WORDS - 170) * 8;
	f->words[6] = GOROUTINE;
	f->words[170] = CALLER;
	assert_int_equal(by_rule(f, rule_cgocall()), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(171), 0xdead);
}

static void c_that_was_called_on_the_threads_stack_returns_there(void **state)
{
	struct fixture *f = *state;
	struct go_fixture go;

	begin_go(f, &go);
	f->words[5] = word_at(20);
	f->words[20] = CALLER;
	assert_int_equal(by_rule(f, rule_cgocall()), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, word_at(21), 0xdead);
	f->state.sp = STACK + sizeof(f->words);
	assert_int_equal(by_rule(f, rule_cgocall()), ABI_UNWIND_UNREADABLE);
}

static void prologue_of_go_keeps_the_callers_frame_pointer(void **state)
{
	struct fixture *f = *state;

	/* The frame pointer is pushed, but the register still has the caller's. */
	f->words[0] = 0xdead;
	f->words[1] = CALLER;
	f->words[4] = 0xbeef;
	f->words[5] = OTHER;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 16)), ABI_UNWIND_GOES_ON);
	expect_at(f, CALLER, STACK + 16, 0xdead);
	/* The register is set up for this frame. */
	f->state.fp = STACK + 32;
	assert_int_equal(by_rule(f, rule_go(ABI_CFA_SP, 32)), ABI_UNWIND_GOES_ON);
	expect_at(f, OTHER, STACK + 48, 0xbeef);
}

static void interrupted_caller_is_where_it_was(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rule rule = rule_go(ABI_CFA_SP, 8);

	rule.extra = ABI_UNWIND_INTERRUPTED;
	f->words[0] = CALLER;
	f->state.is_return = 1;
	assert_int_equal(by_rule(f, rule), ABI_UNWIND_GOES_ON);
	assert_int_equal(f->state.is_return, 0);
}
#endif

#define STEP_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEP_TEST(page_without_rows_has_its_first_rule_everywhere),
		STEP_TEST(rows_at_all_borders_are_found),
		STEP_TEST(step_with_a_row_for_each_byte_is_searched),
		STEP_TEST(random_pages_are_searched),
		STEP_TEST(negative_offsets_keep_their_sign),
#ifdef __x86_64__
		STEP_TEST(leaf_without_a_frame),
		STEP_TEST(return_address_in_a_register),
		STEP_TEST(frame_pointer_comes_back_from_the_stack),
		STEP_TEST(realigned_stack_has_it_where_the_frame_pointer_is),
		STEP_TEST(frame_pointer_outside_of_a_realigned_frame_is_the_callers),
		STEP_TEST(cfa_saved_on_the_stack),
		STEP_TEST(plt_entry_before_and_after_its_push),
		STEP_TEST(undefined_return_address_is_the_root),
		STEP_TEST(return_address_zero_is_the_root),
		STEP_TEST(zero_that_is_no_return_address_is_no_root),
		STEP_TEST(frame_pointer_that_is_lost_is_zero),
		STEP_TEST(stack_pointer_that_does_not_rise_is_refused),
		STEP_TEST(register_that_is_not_followed_is_refused),
		STEP_TEST(impossible_code_address_is_refused),
		STEP_TEST(unreadable_stack_is_reported),
		STEP_TEST(last_words_of_a_stack_are_read_singly),
		STEP_TEST(walk_over_many_blocks_reads_the_right_words),
		STEP_TEST(code_without_rules_is_unwound_by_a_plausible_frame_pointer),
		STEP_TEST(register_that_is_no_frame_pointer_is_not_followed),
		STEP_TEST(no_frame_pointer_is_gos_root_only),
		STEP_TEST(go_may_go_on_on_a_lower_stack),
		STEP_TEST(frame_pointer_to_itself_ends),
		STEP_TEST(caller_is_kept_where_no_frame_is_set_up),
		STEP_TEST(caller_is_kept_while_the_frame_is_set_up),
		STEP_TEST(edge_needs_its_instructions_and_a_call),
		STEP_TEST(systemstack_goes_on_on_the_goroutines_stack),
		STEP_TEST(systemstack_with_a_frame_has_its_frame_pointer_there),
		STEP_TEST(systemstack_before_its_switch_is_as_usual),
		STEP_TEST(goroutine_of_another_thread_is_not_followed),
		STEP_TEST(goroutine_that_is_not_known_is_found_by_its_frame),
		STEP_TEST(thread_that_left_its_goroutine_ends),
		STEP_TEST(morestack_goes_on_in_the_function_that_called_it),
		STEP_TEST(mcall_is_the_root_once_it_has_left_the_goroutine),
		STEP_TEST(gogo_is_the_root_once_it_is_on_the_goroutines_stack),
		STEP_TEST(frame_on_another_stack_is_found_in_either_direction),
		STEP_TEST(c_returns_to_the_depth_that_was_written_down),
		STEP_TEST(c_that_was_called_on_the_threads_stack_returns_there),
		STEP_TEST(prologue_of_go_keeps_the_callers_frame_pointer),
		STEP_TEST(interrupted_caller_is_where_it_was),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
