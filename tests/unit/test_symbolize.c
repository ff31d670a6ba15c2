/* SPDX-License-Identifier: Apache-2.0 */
/* The lookups of a report in the sampler, and how long their answers stay valid. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/report/frame_keys.h"
#include "agent/sampler/symbolize/known_frames.h"
#include "agent/sampler/symbolize/symbolize.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

static void ask(struct fixture *f, const struct process *p, struct profile_frame frame,
	struct symbolized *ret_answer)
{
	assert_int_equal(symbolize_frame(f->symbolize, p->number, &frame, ret_answer), 0);
}

static void frames_of_a_segment_share_its_mapping(void **state)
{
	struct fixture *f = *state;
	struct symbolized main_frame, start;

	ask(f, f->one, in_program(MAIN + 0x90, 0, f), &main_frame);
	ask(f, f->two, in_program(START, 0, f), &start);
	assert_int_equal(main_frame.outcome, SYMBOLIZE_NAMED);
	assert_int_equal(main_frame.line_count, 2);
	assert_string_equal(main_frame.lines[0].name, "inner");
	assert_string_equal(main_frame.lines[1].name, "main");
	assert_ptr_equal(main_frame.mapping, start.mapping);
	assert_string_equal(main_frame.mapping->file, "/bin/program");
	assert_true(main_frame.mapping->is_file);
	assert_int_equal(main_frame.mapping->start, SEGMENT_ADDRESS);
	assert_int_equal(main_frame.mapping->limit, SEGMENT_ADDRESS + SEGMENT_SIZE);
	assert_int_equal(main_frame.mapping->offset, SEGMENT_OFFSET);
	assert_string_equal(main_frame.mapping->file_hash, PROGRAM_HASH);
}

static void a_frame_that_stands_for_its_function_has_nothing_inlined(void **state)
{
	struct fixture *f = *state;
	struct symbolized inside, function;

	ask(f, f->one, in_program(MAIN + 0x90, 0, f), &inside);
	ask(f, f->one, in_program(MAIN + 0x90, PROFILE_FRAME_FUNCTION, f), &function);
	assert_int_equal(function.line_count, 1);
	assert_string_equal(function.lines[0].name, "main");
	assert_int_equal(function.lines[0].line, inside.lines[1].start_line);
	assert_int_equal(function.lines[0].column, 0);
	/* Without a name nothing changes. */
	ask(f, f->one,
		(struct profile_frame){ 0x1234, PROFILE_MODULE_NONE, PROFILE_FRAME_FUNCTION },
		&function);
	assert_int_equal(function.line_count, 0);
}

static void a_frame_in_no_mapping(void **state)
{
	struct fixture *f = *state;
	struct symbolized answer;

	ask(f, f->one, (struct profile_frame){ 0x1234, PROFILE_MODULE_NONE, 0 }, &answer);
	assert_null(answer.mapping);
	assert_int_equal(answer.outcome, SYMBOLIZE_NO_MAPPING);
	assert_int_equal(answer.line_count, 0);
	ask(f, f->one, (struct profile_frame){ 0x1234, MODULE_NUMBER_MAX, 0 }, &answer);
	assert_null(answer.mapping);
}

static void code_in_memory_is_named_for_its_process(void **state)
{
	struct fixture *f = *state;
	const struct profile_frame jit = { JIT_PC, f->anon->number, 0 };
	struct symbolized answer;

	ask(f, f->one, jit, &answer);
	assert_int_equal(answer.outcome, SYMBOLIZE_NAMED);
	assert_string_equal(answer.mapping->file, "[jit]");
	assert_false(answer.mapping->is_file);
	ask(f, f->two, jit, &answer);
	assert_int_equal(answer.outcome, SYMBOLIZE_NO_SYMBOL);
	assert_string_equal(answer.mapping->file, "[anon]");
}

/* Between two windows, an index may arrive or be replaced. */
static void another_window_has_mappings_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct index *index = take(f->index);
	struct symbolized answer;

	ask(f, f->one, in_program(MAIN, 0, f), &answer);
	assert_int_equal(answer.outcome, SYMBOLIZE_NO_INDEX);
	assert_int_equal(answer.address, MAIN);
	assert_null(answer.mapping->file_hash);
	f->index = index;
	symbolize_begin(f->symbolize, NULL);
	ask(f, f->one, in_program(MAIN, 0, f), &answer);
	assert_int_equal(answer.outcome, SYMBOLIZE_NAMED);
	assert_int_equal(answer.address, MAIN + SEGMENT_ADDRESS - SEGMENT_OFFSET);
	assert_int_equal(answer.mapping->start, SEGMENT_ADDRESS);
}

static void names_are_kept_for_the_next_windows(void **state)
{
	struct fixture *f = *state;
	struct symbolized first, again;
	const uint64_t places[] = { MAIN + 0x90, START, NAMELESS, UNWOUND };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		f->looked_up = 0;
		ask(f, f->one, in_program(places[i], 0, f), &first);
		assert_int_equal(f->looked_up, 1);
		symbolize_begin(f->symbolize, NULL);
		symbolize_begin(f->symbolize, f->kallsyms);
		ask(f, f->two, in_program(places[i], 0, f), &again);
		assert_int_equal(f->looked_up, 1);
		assert_int_equal(again.address, first.address);
		assert_int_equal(again.outcome, first.outcome);
		assert_int_equal(again.nameless, first.nameless);
		assert_int_equal(again.line_count, first.line_count);
		for (size_t k = 0; k < first.line_count; k++) {
			assert_string_equal(again.lines[k].name, first.lines[k].name);
			assert_string_equal(again.lines[k].linkage, first.lines[k].linkage);
			assert_string_equal(again.lines[k].file, first.lines[k].file);
			assert_int_equal(again.lines[k].line, first.lines[k].line);
			assert_int_equal(again.lines[k].column, first.lines[k].column);
			assert_int_equal(again.lines[k].start_line, first.lines[k].start_line);
		}
		assert_int_equal(again.mapping->start, SEGMENT_ADDRESS);
		assert_string_equal(again.mapping->file_hash, PROGRAM_HASH);
	}
}

/* Its own names stand in the answer; whole functions are made of the same names. */
static void kept_names_stay_whole(void **state)
{
	struct fixture *f = *state;
	struct symbolized frame;

	ask(f, f->one, in_program(MAIN + 0x90, PROFILE_FRAME_FUNCTION, f), &frame);
	assert_int_equal(frame.line_count, 1);
	ask(f, f->one, in_program(MAIN + 0x90, 0, f), &frame);
	assert_int_equal(f->looked_up, 1);
	assert_int_equal(frame.line_count, 2);
	assert_string_equal(frame.lines[0].name, "inner");
}

static void another_index_is_asked_anew(void **state)
{
	struct fixture *f = *state;
	struct index *index = f->index;
	struct symbolized frame;

	ask(f, f->one, in_program(MAIN, 0, f), &frame);
	f->index = NULL;
	ask(f, f->one, in_program(MAIN, 0, f), &frame);
	assert_int_equal(frame.outcome, SYMBOLIZE_NO_INDEX);
	f->index = index;
	ask(f, f->one, in_program(MAIN, 0, f), &frame);
	assert_int_equal(frame.outcome, SYMBOLIZE_NAMED);
	assert_int_equal(f->looked_up, 1);
	symbolize_index_replaced(f->symbolize);
	ask(f, f->one, in_program(MAIN, 0, f), &frame);
	assert_int_equal(f->looked_up, 2);
	symbolize_shrink(f->symbolize);
	ask(f, f->one, in_program(MAIN, 0, f), &frame);
	assert_int_equal(f->looked_up, 3);
}

static void known_frames_are_bounded(void **state)
{
	static const size_t limit = 1 << 20;
	const struct index_frame line = { "a function", "_Z1av", "a.c", 1, 2, 3 };
	struct known_frame frame = {
		.index = state, .lines = &line, .line_count = 1, .named = true
	};
	struct known_frame_key key = { 0 };
	struct known_frames known;
	const struct known_frame *got;

	known_frames_init(&known, limit);
	for (; key.file_off < 100000; key.file_off++) {
		frame.address = key.file_off + 7;
		known_frames_put(&known, &key, &frame);
	}
	assert_true(known_frames_bytes(&known) < limit);
	key.file_off = 5;
	got = known_frames_get(&known, &key, state);
	assert_int_equal(got->address, 12);
	assert_string_equal(got->lines[0].linkage, "_Z1av");
	assert_null(known_frames_get(&known, &key, &line));
	key.file_off = 99999;
	assert_null(known_frames_get(&known, &key, state));
	known_frames_trim(&known);
	known_frames_put(&known, &key, &frame);
	known_frames_trim(&known);
	assert_non_null(known_frames_get(&known, &key, state));
	known_frames_forget(&known);
	assert_int_equal(known_frames_bytes(&known), 0);
	known_frames_deinit(&known);
}

static void what_is_asked_for_stays_known(void **state)
{
	const struct index_frame line = { "a function", "_Z1av", "a.c", 1, 2, 3 };
	const struct known_frame frame = { .index = state, .lines = &line, .line_count = 1 };
	struct known_frame_key key = { 0 }, used = { 0 }, unused = { .file_off = 1 };
	struct known_frames known;

	known_frames_init(&known, 1 << 20);
	for (unsigned int window = 0; window < 5; window++) {
		for (unsigned int i = 0; i < 10000; i++, key.file_off++)
			known_frames_put(&known, &key, &frame);
		known_frames_trim(&known);
		assert_non_null(known_frames_get(&known, &used, state));
	}
	assert_null(known_frames_get(&known, &unused, state));
	known_frames_deinit(&known);
}

static void the_kernels_symbols_are_those_of_the_window(void **state)
{
	struct fixture *f = *state;
	struct symbolized answer;

	ask(f, f->one, in_kernel(1, 0), &answer);
	assert_true(answer.kernel);
	assert_int_equal(answer.line_count, 0);
	symbolize_begin(f->symbolize, f->kallsyms);
	ask(f, f->one, in_kernel(1, 0), &answer);
	assert_string_equal(answer.lines[0].name, "do_syscall_64");
}

/* The kernel's walk does not say which frame an interrupt came upon: its address is no return
 * address. */
static void an_interrupted_first_instruction_is_not_in_the_padding(void **state)
{
	struct fixture *f = *state;
	struct profile_frame first = in_kernel(2, PROFILE_FRAME_RETURN);
	struct symbolized answer;

	first.address -= 0x10;
	symbolize_begin(f->symbolize, f->kallsyms);
	ask(f, f->one, first, &answer);
	assert_string_equal(answer.lines[0].name, "vfs_read");
	assert_int_equal(answer.address, KERNEL_LINKED + 0x2000);
	first.flags = 0;
	first.address -= 1;
	ask(f, f->one, first, &answer);
	assert_string_equal(answer.lines[0].name, "__pfx_vfs_read");
}

/* Before Linux 5.16 a stack shows where the caller's return address was, and what replaced it. */
static void a_probed_function_returns_to_the_trampoline_and_not_before_it(void **state)
{
	struct fixture *f = *state;
	struct profile_frame returned = in_kernel(2, PROFILE_FRAME_RETURN);
	struct symbolized answer;

	symbolize_begin(f->symbolize, f->kallsyms);
	returned.address += 0x7f0;
	ask(f, f->one, returned, &answer);
	assert_string_equal(answer.lines[0].name, "kretprobe_trampoline");
	assert_int_equal(answer.address, KERNEL_LINKED + 0x2800);
	returned.address -= 0x1;
	ask(f, f->one, returned, &answer);
	assert_string_equal(answer.lines[0].name, "vfs_read");
	assert_int_equal(answer.address, KERNEL_LINKED + 0x27fe);
}

static void the_kernels_debug_file_adds_lines_to_what_has_the_same_name(void **state)
{
	struct fixture *f = *state;
	struct symbolized answer;

	f->kernel_lines = true;
	symbolize_begin(f->symbolize, f->kallsyms);
	ask(f, f->one, in_kernel(2, 0), &answer);
	assert_int_equal(answer.outcome, SYMBOLIZE_NAMED);
	assert_int_equal(answer.address, KERNEL_LINKED + 0x2010);
	assert_int_equal(answer.line_count, 2);
	assert_string_equal(answer.lines[0].name, "checked");
	assert_string_equal(answer.lines[0].file, "/fs/check.h");
	assert_int_equal(answer.lines[0].line, 7);
	/* The kernel's name for it, without what the compiler has appended. */
	assert_string_equal(answer.lines[1].name, "vfs_read");
	assert_int_equal(answer.lines[1].line, 42);
	assert_string_equal(answer.mapping->file, "[kernel.kallsyms]");
	ask(f, f->one, in_kernel(1, 0), &answer);
	assert_int_equal(answer.line_count, 1);
	assert_string_equal(answer.lines[0].name, "do_syscall_64");
	assert_string_equal(answer.lines[0].file, "");
	assert_int_equal(answer.lines[0].line, 0);
	f->kernel_lines = false;
	ask(f, f->one, in_kernel(2, 0), &answer);
	assert_int_equal(answer.line_count, 1);
}

static void how_a_program_was_built(void **state)
{
	struct fixture *f = *state;
	struct symbolized_program program;
	char hex[FILE_HASH_TEXT_BYTES];

	assert_true(symbolize_program(f->symbolize, f->program->number, &program));
	file_hash_format(&program.file_hash, hex);
	assert_string_equal(hex, PROGRAM_HASH);
	assert_string_equal(program.toolchain, "");
	assert_false(symbolize_program(f->symbolize, f->library->number, &program));
	assert_false(symbolize_program(f->symbolize, MODULE_NUMBER_MAX, &program));
}

static bool are_same(const struct fixture *f, const struct process *p,
	const struct profile_frame *a, const struct process *q, const struct profile_frame *b)
{
	struct frame_key left, right;
	size_t size = frame_key(f->anon->number, p->number, a, &left);

	return size == frame_key(f->anon->number, q->number, b, &right) &&
	       !memcmp(&left, &right, size);
}

static void frames_are_the_same_where_their_names_are(void **state)
{
	const struct fixture *f = *state;
	const struct profile_frame program = in_program(MAIN, 0, f),
				   before = in_program(MAIN - 1, 0, f),
				   call = in_program(MAIN, PROFILE_FRAME_RETURN, f),
				   whole = in_program(MAIN, PROFILE_FRAME_FUNCTION, f),
				   jit = { JIT_PC, f->anon->number, 0 }, kernel = in_kernel(1, 0),
				   tenant = in_kernel(1, 1 << PROFILE_FRAME_TENANT_SHIFT),
				   runtime = { MAIN, PROFILE_KIND_RUNTIME << PROFILE_KIND_SHIFT,
					   3 },
				   position = { MAIN, PROFILE_KIND_RUNTIME << PROFILE_KIND_SHIFT,
					   4 };

	assert_true(are_same(f, f->one, &program, f->two, &program));
	assert_false(are_same(f, f->one, &program, f->one, &before));
	assert_true(are_same(f, f->one, &call, f->one, &before));
	assert_true(are_same(f, f->one, &whole, f->two, &whole));
	assert_false(are_same(f, f->one, &program, f->one, &whole));
	assert_true(are_same(f, f->one, &jit, f->one, &jit));
	assert_false(are_same(f, f->one, &jit, f->two, &jit));
	assert_true(are_same(f, f->one, &kernel, f->two, &kernel));
	assert_false(are_same(f, f->one, &kernel, f->one, &tenant));
	assert_true(are_same(f, f->one, &runtime, f->one, &runtime));
	assert_false(are_same(f, f->one, &runtime, f->two, &runtime));
	assert_false(are_same(f, f->one, &runtime, f->one, &position));
	assert_true(frame_is_private(f->anon->number, &jit));
	assert_true(frame_is_private(f->anon->number, &runtime));
	assert_false(frame_is_private(f->anon->number, &program));
	assert_false(frame_is_private(f->anon->number, &kernel));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(frames_of_a_segment_share_its_mapping),
		CASE(a_frame_that_stands_for_its_function_has_nothing_inlined),
		CASE(a_frame_in_no_mapping),
		CASE(code_in_memory_is_named_for_its_process),
		CASE(another_window_has_mappings_of_its_own),
		CASE(names_are_kept_for_the_next_windows),
		CASE(kept_names_stay_whole),
		CASE(another_index_is_asked_anew),
		CASE(known_frames_are_bounded),
		CASE(what_is_asked_for_stays_known),
		CASE(the_kernels_symbols_are_those_of_the_window),
		CASE(an_interrupted_first_instruction_is_not_in_the_padding),
		CASE(a_probed_function_returns_to_the_trampoline_and_not_before_it),
		CASE(the_kernels_debug_file_adds_lines_to_what_has_the_same_name),
		CASE(how_a_program_was_built),
		CASE(frames_are_the_same_where_their_names_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
