/* SPDX-License-Identifier: Apache-2.0 */
/* agent/report's folded text, its list of the hottest functions, and the roots of stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/report/roots.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

static char *folded_type_of(struct fixture *f, uint32_t type, struct report_summary *ret_summary)
{
	struct buffer out;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(report_folded(sealed_sources(f), &f->options, type, &out, ret_summary), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	return (char *)out.bytes;
}

static char *folded_of(struct fixture *f)
{
	struct report_summary summary;

	return folded_type_of(f, SAMPLE_TYPE_TICKS, &summary);
}

/* ---- folded ---- */

static void test_folded_lines_are_root_first_sorted_and_merged(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_kernel(2, 0), in_kernel(1, PROFILE_FRAME_RETURN),
		in_program(MAIN + 0x90, 0, f), in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_stack stack = { frames, 4, 2, 0 };
	autofree char *text = NULL;

	add_stack(f, f->two, &stack, 4);
	frames[2].address++;
	add_stack(f, f->two, &stack, 1);
	add_stack(f, f->one, &stack, 1);
	text = folded_of(f);
	assert_string_equal(text, "one;_start;main;inner;do_syscall_64_[k];vfs_read_[k] 1\n"
				  "two;_start;main;inner;do_syscall_64_[k];vfs_read_[k] 5\n");
}

static void test_folded_unknown_frames_and_hostile_names(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { { 0x1234, f->library->number, 0 },
		{ 0x50, PROFILE_MODULE_NONE, 0 }, { JIT_PC + 1, f->anon->number, 0 },
		{ 0x99, f->anon->number, 0 }, in_program(UNWOUND + 5, 0, f) };
	autofree char *text = NULL;

	snprintf(f->one->comm, sizeof(f->one->comm), "a;b\n\xff");
	add_user(f, f->one, frames, 5);
	text = folded_of(f);
	assert_string_equal(text, "a:b??;[truncated: no_root];program+0x401900;[anon];"
				  "LazyCompile:*foo /src/a.js:12;[unknown];"
				  "[stripped:odd.so+0x1234] 1\n");
}

static void test_folded_waits_are_microseconds_and_alone(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_kernel(1, 0), in_program(MAIN + 0x90, 0, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_stack stack = { frames, 3, 1, 0 }, short_one = { frames, 1, 1, 0 };
	struct report_summary summary;
	autofree char *waits = NULL, *samples = NULL;

	add_stack(f, f->one, &stack, 4);
	add_wait(f, f->one, &stack, 1500);
	add_wait(f, f->one, &stack, 1500);
	add_wait(f, f->one, &short_one, 999);
	f->options.types = sample_types_of(false, true);
	waits = folded_type_of(f, PROBE_off_cpu, &summary);
	assert_string_equal(waits, "one;_start;main;inner;do_syscall_64_[k] 3\n");
	samples = folded_of(f);
	assert_string_equal(samples, "one;_start;main;inner;do_syscall_64_[k] 4\n");
}

/* A third probe's samples are neither ticks nor waits. */
static void test_each_type_of_samples_is_folded_and_summed_up_alone(void **state)
{
	enum { ALLOCATIONS = PROBES };
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct profile_sample allocation = {
		.process = f->one->number, .type = ALLOCATIONS, .count = 3, .weight = 4096
	};
	struct report_summary of_waits, of_allocations;
	autofree char *waits = NULL, *allocations = NULL;

	f->options.types = sample_types_of(false, true);
	f->options.types.of[ALLOCATIONS] =
		(struct sample_type){ .count = { "allocations", "count" },
			.weight = { "allocated", "bytes" } };
	add_wait(f, f->one, &stack, 7000);
	assert_int_equal(profile_stack(f->profile, &stack, &allocation.stack), 0);
	assert_int_equal(profile_add(f->profile, &allocation), 0);
	waits = folded_type_of(f, PROBE_off_cpu, &of_waits);
	assert_string_equal(waits, "one;[truncated: no_root];main 7\n");
	assert_int_equal(of_waits.of[PROBE_off_cpu].count, 1);
	assert_int_equal(of_waits.of[PROBE_off_cpu].weight, 7000);
	assert_int_equal(of_waits.of[ALLOCATIONS].count, 0);
	allocations = folded_type_of(f, ALLOCATIONS, &of_allocations);
	assert_string_equal(allocations, "one;[truncated: no_root];main 4096\n");
	assert_int_equal(of_allocations.of[ALLOCATIONS].count, 3);
	assert_int_equal(of_allocations.of[ALLOCATIONS].weight, 4096);
	assert_int_equal(of_allocations.of[PROBE_off_cpu].count, 0);
}

/* ---- marks ---- */

/* The reason is that of the counter which counts the stack. */
static void test_each_cut_stack_says_why_in_its_outermost_frame(void **state)
{
	static const enum metric of_end[ABI_UNWIND_ENDS] = {
		[ABI_UNWIND_GOES_ON] = METRIC_UNWIND_NO_ROOT,
		[ABI_UNWIND_DEPTH] = METRIC_UNWIND_DEPTH,
		[ABI_UNWIND_GAP] = METRIC_UNWIND_NO_TABLE,
		[ABI_UNWIND_UNREADABLE] = METRIC_UNWIND_UNREADABLE,
		[ABI_UNWIND_BAD_REGISTER] = METRIC_UNWIND_BAD_REGISTER,
		[ABI_UNWIND_UNKNOWN_MAPPING] = METRIC_UNWIND_UNKNOWN_MAPPING,
		[ABI_UNWIND_NOT_LOADED] = METRIC_UNWIND_NOT_LOADED,
	};
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_kernel(1, 0), in_program(MAIN, 0, f) };
	autofree char *text = NULL;
	char reason[32], line[96];

	for (uint32_t end = 0; end < ABI_UNWIND_ENDS; end++) {
		struct profile_stack stack = { frames, 2, 1, end << PROFILE_STACK_END_SHIFT };

		if (of_end[end])
			add_stack(f, f->one, &stack, 1 + end);
	}
	text = folded_of(f);
	for (uint32_t end = 0; end < ABI_UNWIND_ENDS; end++) {
		const char *label = metric_texts[of_end[end]].label;

		if (!of_end[end])
			continue;
		assert_int_equal(metrics_get(&f->metrics, of_end[end]), 1 + end);
		assert_int_equal(sscanf(label, "reason=\"%31[^\"]", reason), 1);
		snprintf(line, sizeof(line), "one;[truncated: %s];main;do_syscall_64_[k] %u\n",
			reason, 1 + end);
		assert_non_null(strstr(text, line));
	}
}

/* A kernel frame, the innermost user frames, all of main, then the root. */
static void test_a_mark_stands_for_the_middle(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[1 + ABI_INNER_FRAMES + 1];
	struct profile_stack stack = { frames, ARRAY_SIZE(frames), 1, PROFILE_STACK_MIDDLE };
	autofree char *text = NULL;
	const char *rest;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = in_program(MAIN + 5, PROFILE_FRAME_RETURN, f);
	frames[0] = in_kernel(1, 0);
	frames[ARRAY_SIZE(frames) - 1] = in_program(START + 5, PROFILE_FRAME_RETURN, f);
	add_stack(f, f->one, &stack, 4);
	text = folded_of(f);
	rest = strstr(text, "one;_start;[truncated: middle];main;");
	assert_ptr_equal(rest, text);
	rest += strlen("one;_start;[truncated: middle]");
	for (size_t i = 0; i < ABI_INNER_FRAMES; i++, rest += strlen(";main"))
		assert_int_equal(strncmp(rest, ";main", strlen(";main")), 0);
	assert_string_equal(rest, ";do_syscall_64_[k] 4\n");
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACKS_COMPLETE), 4);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACKS_NO_MIDDLE), 4);
}

/* A kernel frame, code without a table, and the caller that a search found for it. */
static void test_a_mark_stands_before_a_caller_that_was_searched_for(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_kernel(1, 0), in_program(MAIN, 0, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	const uint32_t flags =
		ABI_UNWIND_ROOT << PROFILE_STACK_END_SHIFT | 1U << PROFILE_STACK_GUESS_SHIFT;
	autofree char *text = NULL;

	add_stack(f, f->one, &(struct profile_stack){ frames, 3, 1, flags }, 4);
	text = folded_of(f);
	assert_string_equal(text, "one;_start;[guessed];main;do_syscall_64_[k] 4\n");
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACKS_COMPLETE), 4);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACKS_GUESSED), 4);
}

static void test_whole_stacks_and_kernel_stacks_have_no_mark(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_program(MAIN, 0, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_frame kernel = in_kernel(1, 0);
	const uint32_t root = ABI_UNWIND_ROOT << PROFILE_STACK_END_SHIFT;
	autofree char *text = NULL;

	add_stack(f, f->one, &(struct profile_stack){ frames, 2, 0, 0 }, 1);
	add_stack(f, f->one, &(struct profile_stack){ frames, 1, 0, root }, 1);
	add_stack(f, f->one, &(struct profile_stack){ &kernel, 1, 1, 0 }, 1);
	text = folded_of(f);
	assert_string_equal(text, "one;_start;main 1\none;do_syscall_64_[k] 1\none;main 1\n");
}

/* ---- hottest ---- */

static void test_hottest_counts_recursion_once(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_program(MAIN + 0x90, 0, f),
		in_program(MAIN + 0x10, PROFILE_FRAME_RETURN, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_frame library = { 0x1234, f->library->number, 0 };
	struct profile_stack stack = { frames, 3, 0, 0 };
	struct report_hot *list;
	size_t count;

	add_stack(f, f->one, &stack, 5);
	add_user(f, f->one, &library, 1);
	add_wait(f, f->one, &stack, 1000000);
	assert_int_equal(report_hottest(sealed_sources(f), &list, 10, &count), 0);
	assert_int_equal(count, 5);
	assert_string_equal(list[0].name, "inner");
	assert_string_equal(list[0].module, "/bin/program");
	assert_int_equal(list[0].self_count, 5);
	assert_string_equal(list[1].name, "[unknown]");
	assert_int_equal(list[1].self_count, 1);
	for (size_t i = 2; i < 4; i++) {
		assert_int_equal(list[i].self_count, 0);
		assert_int_equal(list[i].total_count, 5);
	}
	assert_string_equal(list[4].name, "[truncated: no_root]");
	assert_int_equal(list[4].self_count, 0);
	assert_int_equal(list[4].total_count, 1);
	report_hottest_free(list, count);
	assert_int_equal(report_hottest(sealed_sources(f), &list, 2, &count), 0);
	assert_int_equal(count, 2);
	report_hottest_free(list, count);
}

static void test_hottest_names_steer_no_terminal(void **state)
{
	struct fixture *f = *state;
	struct profile_frame library = { 0x1234, f->library->number, 0 };
	struct report_hot *list;
	size_t count;

	f->library->path[1] = '\033';
	add_user(f, f->one, &library, 1);
	assert_int_equal(report_hottest(sealed_sources(f), &list, 10, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].module[0], '/');
	assert_int_equal(list[0].module[1], '?');
	report_hottest_free(list, count);
}

/* ---- roots ---- */

static void test_roots(void **state)
{
	(void)state;
	assert_true(root_function("_start"));
	assert_true(root_function("runtime.goexit.abi0"));
	assert_true(root_function("runtime.goexit"));
	assert_true(root_function("__clone3"));
	assert_false(root_function("runtime.systemstack"));
	assert_false(root_function("main"));
	assert_false(root_function("_start_server"));
	assert_false(root_function(""));
	assert_false(root_function(".abi0"));
	assert_true(root_starts_program("__libc_start_main"));
	assert_false(root_starts_program("main"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_folded_lines_are_root_first_sorted_and_merged),
		CASE(test_folded_unknown_frames_and_hostile_names),
		CASE(test_folded_waits_are_microseconds_and_alone),
		CASE(test_each_type_of_samples_is_folded_and_summed_up_alone),
		CASE(test_each_cut_stack_says_why_in_its_outermost_frame),
		CASE(test_a_mark_stands_for_the_middle),
		CASE(test_a_mark_stands_before_a_caller_that_was_searched_for),
		CASE(test_whole_stacks_and_kernel_stacks_have_no_mark),
		CASE(test_hottest_counts_recursion_once),
		CASE(test_hottest_names_steer_no_terminal),
		CASE(test_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
