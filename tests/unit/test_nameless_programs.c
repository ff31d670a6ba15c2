/* SPDX-License-Identifier: Apache-2.0 */
/* agent/report/nameless: which programs have no names, why, and what would name them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/report/nameless.h"
#include "tests/unit/report_fixture.h"

static struct report_nameless *list;
static size_t count;

static void look(struct fixture *f)
{
	report_nameless_free(list, count);
	list = NULL;
	assert_int_equal(report_nameless(sealed_sources(f), 8, &list, &count), 0);
}

static int nameless_teardown(void **state)
{
	report_nameless_free(list, count);
	list = NULL;
	count = 0;
	return report_teardown(state);
}

static void add(struct fixture *f, const struct process *p, uint64_t file_off, uint32_t samples)
{
	struct profile_frame frame = in_program(file_off, 0, f);

	add_stack(f, p, &(struct profile_stack){ .frames = &frame, .frame_count = 1 }, samples);
}

static void a_program_with_names_is_not_listed(void **state)
{
	struct fixture *f = *state;

	add(f, f->one, MAIN, 100);
	look(f);
	assert_int_equal(count, 0);
}

static void a_file_without_symbols_is_named(void **state)
{
	struct fixture *f = *state;

	add(f, f->one, MAIN, 60);
	add(f, f->one, NAMELESS, 30);
	add(f, f->one, UNWOUND, 10);
	look(f);
	assert_int_equal(count, 1);
	assert_int_equal(list->why, NAMELESS_STRIPPED);
	assert_string_equal(list->file, "/bin/program");
	assert_int_equal(list->count, 40);
	assert_int_equal(list->total, 100);
	assert_false(list->contained);
}

static void few_samples_are_not_worth_a_line(void **state)
{
	struct fixture *f = *state;

	add(f, f->one, MAIN, 96);
	add(f, f->one, NAMELESS, 4);
	look(f);
	assert_int_equal(count, 0);
}

static void jit_code_without_a_map_is_a_process_own(void **state)
{
	struct fixture *f = *state;
	struct profile_frame jit = { .address = JIT_PC + 0x4000, .module = f->anon->number };

	add_user(f, f->two, &jit, 1);
	look(f);
	assert_int_equal(count, 1);
	assert_int_equal(list->why, NAMELESS_JIT);
	assert_string_equal(list->file, "");
	assert_int_equal(list->pid, f->two->pid);
}

/* ---- hints ----------------------------------------------------------------------------------- */

static void expect_hint(const struct report_nameless *n, const char *package, const char *text)
{
	char hint[512];

	nameless_hint(n, package, hint, sizeof(hint));
	if (!strstr(hint, text))
		fail_msg("'%s' does not say '%s'", hint, text);
}

static void a_jit_compiler_is_told_to_write_its_map(void **)
{
	static char java[] = "java", node[] = "node", python[] = "python3.12", other[] = "game",
		    none[] = "";
	struct report_nameless n = { .program = java, .file = none, .pid = 7 };

	expect_hint(&n, NULL, "jcmd 7 Compiler.perfmap");
	expect_hint(&n, NULL, "-XX:+PreserveFramePointer");
	n.program = node;
	expect_hint(&n, NULL, "--perf-basic-prof");
	n.program = python;
	expect_hint(&n, NULL, "-X perf");
	n.program = other;
	expect_hint(&n, NULL, "/tmp/perf-7.map");
	expect_hint(&n, NULL, "packed program (UPX)");
}

static void a_stripped_file_needs_its_debug_symbols(void **)
{
	static char program[] = "cc1plus", file[] = "/usr/lib/gcc/cc1plus";
	struct report_nameless n = { .program = program, .file = file, .why = NAMELESS_STRIPPED };

	expect_hint(
		&n, "g++-12-dbgsym", "no symbols in /usr/lib/gcc/cc1plus: install g++-12-dbgsym");
	expect_hint(&n, NULL, "install its debug symbols, set --debuginfod-urls");
	n.contained = true;
	expect_hint(&n, NULL, "cc1plus (in its container)");
	n.why = NAMELESS_NO_INDEX;
	expect_hint(&n, NULL, "could not be read");
	n.why = NAMELESS_NOWHERE;
	expect_hint(&n, NULL, "UPX");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, nameless_teardown)
		CASE(a_program_with_names_is_not_listed),
		CASE(a_file_without_symbols_is_named),
		CASE(few_samples_are_not_worth_a_line),
		CASE(jit_code_without_a_map_is_a_process_own),
		cmocka_unit_test(a_jit_compiler_is_told_to_write_its_map),
		cmocka_unit_test(a_stripped_file_needs_its_debug_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
