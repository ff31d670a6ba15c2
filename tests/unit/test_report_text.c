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
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

static char *folded_of(struct fixture *f)
{
	struct report_summary summary;
	struct buffer out;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(report_folded(sealed_sources(f), &f->options, &out, &summary), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	return (char *)out.bytes;
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
		{ 0x99, f->anon->number, 0 } };
	autofree char *text = NULL;

	snprintf(f->one->comm, sizeof(f->one->comm), "a;b\n\xff");
	add_user(f, f->one, frames, 4);
	text = folded_of(f);
	assert_string_equal(text, "a:b??;[anon];LazyCompile:*foo /src/a.js:12;[unknown];"
				  "[stripped:odd.so+0x1234] 1\n");
}

static void test_folded_waits_are_microseconds_and_alone(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_kernel(1, 0), in_program(MAIN + 0x90, 0, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_stack stack = { frames, 3, 1, 0 }, short_one = { frames, 1, 1, 0 };
	autofree char *waits = NULL, *samples = NULL;

	add_stack(f, f->one, &stack, 4);
	add_wait(f, f->one, &stack, 1500);
	add_wait(f, f->one, &stack, 1500);
	add_wait(f, f->one, &short_one, 999);
	f->options.types = sample_types_of(false, true);
	waits = folded_of(f);
	assert_string_equal(waits, "one;_start;main;inner;do_syscall_64_[k] 3\n");
	f->options.types = sample_types_of(false, false);
	samples = folded_of(f);
	assert_string_equal(samples, "one;_start;main;inner;do_syscall_64_[k] 4\n");
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
	assert_int_equal(count, 4);
	assert_string_equal(list[0].name, "inner");
	assert_string_equal(list[0].module, "/bin/program");
	assert_int_equal(list[0].self_count, 5);
	assert_string_equal(list[1].name, "[unknown]");
	assert_int_equal(list[1].self_count, 1);
	for (size_t i = 2; i < 4; i++) {
		assert_int_equal(list[i].self_count, 0);
		assert_int_equal(list[i].total_count, 5);
	}
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
	assert_int_equal(count, 1);
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
		CASE(test_hottest_counts_recursion_once),
		CASE(test_hottest_names_steer_no_terminal),
		CASE(test_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
