/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/functions: which functions of an index are chosen, and why others are refused. */
#include "agent/sampler/functions/choose.h"
#include "agent/sampler/functions/vendored.h"
#include "tests/unit/small_index.h"

#include <errno.h>
#include <stdlib.h>

struct fixture {
	struct index_writer *writer;
	struct index *index;
	struct function_patterns wanted, unwanted;
	struct choose_options options;
	struct choice choice;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->writer = create();
	writer_source(f->writer, INDEX_SOURCE_FUNCTIONS);
	f->options = (struct choose_options){ .wanted = &f->wanted,
		.unwanted = &f->unwanted,
		.path = "/usr/bin/app",
		.is_program = true,
		.find_inlined = true,
		.limit = 100 };
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	choice_deinit(&f->choice);
	function_patterns_deinit(&f->wanted);
	function_patterns_deinit(&f->unwanted);
	index_destroy(f->index);
	free(f);
	return 0;
}

/* Adds a function with RETURNS returns at TEXT + OFFSET. */
static void has(
	struct fixture *f, const char *linkage, uint64_t offset, uint32_t flags, uint32_t returns)
{
	uint64_t addresses[] = { TEXT + offset + 8, TEXT + offset + 12 };
	struct writer_function function = { .address = TEXT + offset,
		.linkage = string(f->writer, linkage),
		.flags = flags,
		.return_count = returns };

	assert_true(returns <= ARRAY_SIZE(addresses));
	if (returns)
		assert_int_equal(
			writer_returns(f->writer, addresses, returns, &function.first_return), 0);
	assert_int_equal(writer_function(f->writer, &function), 0);
}

static void add(struct function_patterns *patterns, const char *text)
{
	const char *problem = NULL;

	assert_int_equal(function_patterns_add(patterns, text, &problem), 0);
}

static void choose(struct fixture *f, const char *pattern)
{
	add(&f->wanted, pattern);
	f->index = finish(f->writer);
	assert_int_equal(choose_functions(f->index, &f->options, &f->choice), 0);
}

static const char *name_of(const struct fixture *f, uint32_t number)
{
	static char name[256];
	struct index_function function;

	assert_true(index_function(f->index, number, &function));
	snprintf(name, sizeof(name), "%s", function.name);
	return name;
}

static void expect_chosen(const struct fixture *f, size_t count, ...)
{
	va_list names;

	assert_int_equal(f->choice.chosen_count, count);
	va_start(names, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(
			name_of(f, f->choice.chosen[i].number), va_arg(names, const char *));
	va_end(names);
}

static void test_a_glob_chooses_by_address(void **state)
{
	struct fixture *f = *state;

	has(f, "main.serve", 0x200, 0, 1);
	has(f, "main.accept", 0x100, 0, 2);
	has(f, "runtime.gc", 0x300, 0, 1);
	choose(f, "main.*");
	expect_chosen(f, 2, "main.accept", "main.serve");
	assert_int_equal(f->choice.refused_count, 0);
	assert_int_equal(f->choice.probeable, 2);
	assert_true(f->choice.matches[0] > 0);
	assert_false(f->choice.chosen[0].jumps_out);
	assert_int_equal(f->choice.chosen[0].aliases, 0);
}

static void test_an_equal_name_wins_over_the_glob(void **state)
{
	struct fixture *f = *state;

	has(f, "_Z1fPc", 0x100, 0, 1);
	has(f, "_Z1fPPc", 0x200, 0, 1);
	choose(f, "f(char*)");
	expect_chosen(f, 1, "f(char*)");
}

static void test_without_an_equal_name_it_is_a_glob(void **state)
{
	struct fixture *f = *state;

	has(f, "_Z1fPPc", 0x200, 0, 1);
	choose(f, "f(char*)");
	expect_chosen(f, 1, "f(char**)");
}

static void test_an_equal_name_counts_for_its_pattern_only(void **state)
{
	struct fixture *f = *state;

	has(f, "_Z1fPc", 0x100, 0, 1);
	has(f, "_Z1fPPc", 0x200, 0, 1);
	add(&f->wanted, "f(*)");
	choose(f, "f(char*)");
	expect_chosen(f, 2, "f(char*)", "f(char**)");
}

static void test_excluded_functions_are_left_out(void **state)
{
	struct fixture *f = *state;

	has(f, "main.a", 0x100, 0, 1);
	has(f, "main.b", 0x200, 0, 1);
	has(f, "main.c", 0x300, 0, 1);
	add(&f->unwanted, "*.b");
	add(&f->unwanted, "other:main.c");
	choose(f, "main.*");
	expect_chosen(f, 2, "main.a", "main.c");
	assert_int_equal(f->choice.excluded, 1);
}

static void test_an_equal_name_is_excluded_alone(void **state)
{
	struct fixture *f = *state;

	has(f, "_Z1fPc", 0x100, 0, 1);
	has(f, "_Z1fPPc", 0x200, 0, 1);
	add(&f->unwanted, "f(char*)");
	choose(f, "f*");
	expect_chosen(f, 1, "f(char**)");
}

static void test_an_exclusion_applies_to_every_file(void **state)
{
	struct fixture *f = *state;

	has(f, "a", 0x100, 0, 1);
	has(f, "b", 0x200, 0, 1);
	f->options.is_program = false;
	f->options.path = "/usr/lib/libx.so.1";
	add(&f->unwanted, "b");
	choose(f, "libx:*");
	expect_chosen(f, 1, "a");
}

static void test_patterns_of_other_files_do_not_apply(void **state)
{
	struct fixture *f = *state;

	has(f, "main.a", 0x100, 0, 1);
	add(&f->wanted, "libc:*");
	choose(f, "app:main.a");
	expect_chosen(f, 1, "main.a");
	assert_int_equal(f->choice.matches[0], 0);
	assert_true(f->choice.matches[1] > 0);
	assert_true(choose_concerns(&f->wanted, "/usr/bin/app", false));
	assert_true(choose_concerns(&f->wanted, "/lib/libc.so.6", false));
	assert_false(choose_concerns(&f->wanted, "/usr/bin/other", true));
}

static void test_a_library_needs_to_be_named(void **state)
{
	struct fixture *f = *state;

	has(f, "malloc", 0x100, 0, 1);
	f->options.is_program = false;
	choose(f, "malloc");
	expect_chosen(f, 0);
	assert_false(choose_concerns(&f->wanted, "/lib/libc.so.6", false));
	assert_true(choose_concerns(&f->wanted, "/usr/bin/app", true));
}

static void test_code_with_several_names_is_chosen_once(void **state)
{
	struct fixture *f = *state;

	has(f, "__libc_malloc", 0x100, 0, 1);
	has(f, "malloc", 0x100, 0, 1);
	has(f, "cfree", 0x200, 0, 1);
	has(f, "free", 0x200, 0, 1);
	has(f, "other", 0x200, 0, 1);
	add(&f->wanted, "*free");
	choose(f, "*malloc");
	expect_chosen(f, 2, "malloc", "free");
	assert_int_equal(f->choice.chosen[0].aliases, 1);
	assert_int_equal(f->choice.chosen[1].aliases, 1);
	assert_int_equal(f->choice.probeable, 2);
}

static void test_the_name_that_was_given_is_the_one_shown(void **state)
{
	struct fixture *f = *state;

	has(f, "__libc_malloc", 0x100, 0, 1);
	has(f, "malloc", 0x100, 0, 1);
	add(&f->wanted, "*malloc");
	choose(f, "__libc_malloc");
	expect_chosen(f, 1, "__libc_malloc");
}

static void expect_refused(struct fixture *f, const char *name, enum function_refusal refusal)
{
	for (size_t i = 0; i < f->choice.refused_count; i++) {
		const struct refused_function *refused = &f->choice.refused[i];

		if (strcmp(name_of(f, refused->number), name))
			continue;
		assert_int_equal(refused->refusal, refusal);
		assert_true(strlen(function_refusal_text(refusal)) > 10);
		return;
	}
	fail_msg("%s is not refused", name);
}

static void test_functions_that_cannot_be_probed(void **state)
{
	struct fixture *f = *state;

	has(f, "f_resolver", 0x100, INDEX_FUNCTION_IFUNC, 1);
	has(f, "f_unconfirmed", 0x180, INDEX_FUNCTION_UNCONFIRMED, 0);
	has(f, "f_undecoded", 0x200, INDEX_FUNCTION_UNDECODED, 0);
	has(f, "f_entry", 0x300, INDEX_FUNCTION_ENTRY_IS_RETURN, 1);
	has(f, "f_avx", 0x380, INDEX_FUNCTION_ENTRY_MISREAD, 1);
	has(f, "f_tail", 0x400,
		INDEX_FUNCTION_NO_RETURN | INDEX_FUNCTION_TAIL_JUMP | INDEX_FUNCTION_INDIRECT_JUMP,
		0);
	has(f, "f_indirect", 0x500, INDEX_FUNCTION_NO_RETURN | INDEX_FUNCTION_INDIRECT_JUMP, 0);
	has(f, "f__exit_alias", 0x600, INDEX_FUNCTION_NO_RETURN, 0);
	has(f, "f_exit", 0x600, INDEX_FUNCTION_NO_RETURN, 0);
	has(f, "f_both", 0x700, INDEX_FUNCTION_TAIL_JUMP, 2);
	has(f, "f_switch", 0x800, INDEX_FUNCTION_INDIRECT_JUMP, 2);
	choose(f, "f_*");
	expect_chosen(f, 2, "f_both", "f_switch");
	assert_true(f->choice.chosen[0].jumps_out);
	assert_false(f->choice.chosen[1].jumps_out);
	assert_int_equal(f->choice.refused_count, 8);
	expect_refused(f, "f_unconfirmed", FUNCTION_UNCONFIRMED);
	expect_refused(f, "f_resolver", FUNCTION_RESOLVER);
	expect_refused(f, "f_undecoded", FUNCTION_UNDECODED);
	expect_refused(f, "f_entry", FUNCTION_ENTRY_IS_RETURN);
	expect_refused(f, "f_avx", FUNCTION_ENTRY_MISREAD);
	expect_refused(f, "f_tail", FUNCTION_TAIL_JUMP);
	expect_refused(f, "f_indirect", FUNCTION_INDIRECT_JUMP);
	expect_refused(f, "f_exit", FUNCTION_NO_RETURN);
}

static void test_the_limit_is_kept_and_all_are_counted(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		has(f, name, 0x100 + 0x10 * i, 0, 1);
		snprintf(name, sizeof(name), "f%u_too", (unsigned int)i);
		has(f, name, 0x100 + 0x10 * i, 0, 1);
	}
	f->options.limit = 5;
	choose(f, "f*");
	assert_int_equal(f->choice.chosen_count, 5);
	assert_int_equal(f->choice.probeable, 20);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(f->choice.chosen[i].aliases, 1);
}

static void test_what_exists_only_inlined(void **state)
{
	struct fixture *f = *state;
	uint32_t main_function = function(f->writer, "main", 0x100, 0x200);
	struct index_inlined call;

	inlined(f->writer, main_function, "inlined_twice", 0x110, 0x120);
	inlined(f->writer, main_function, "inlined_twice", 0x130, 0x140);
	inlined(f->writer, main_function, "inlined_too", 0x150, 0x160);
	inlined(f->writer, main_function, "inlined_excluded", 0x170, 0x180);
	inlined(f->writer, main_function, "else", 0x190, 0x1a0);
	inlined(f->writer, main_function, "else", 0x1b0, 0x1c0);
	has(f, "main", 0x100, 0, 1);
	has(f, "inlined_too", 0x300, 0, 1);
	add(&f->wanted, "nowhere");
	add(&f->unwanted, "*_excluded");
	choose(f, "inlined_*");
	expect_chosen(f, 1, "inlined_too");
	assert_int_equal(f->choice.refused_count, 1);
	assert_int_equal(f->choice.refused[0].refusal, FUNCTION_INLINED);
	assert_int_equal(f->choice.refused[0].calls, 2);
	assert_true(index_inlined(f->index, f->choice.refused[0].number, &call));
	assert_string_equal(call.name, "inlined_twice");
	assert_string_equal(call.caller, "main");
	assert_int_equal(f->choice.matches[0], 0);
	assert_true(f->choice.matches[1] > 0);
}

static void test_a_pattern_may_match_only_inlined_functions(void **state)
{
	struct fixture *f = *state;
	uint32_t main_function = function(f->writer, "main", 0x100, 0x200);

	inlined(f->writer, main_function, "tiny", 0x110, 0x120);
	choose(f, "tiny");
	expect_chosen(f, 0);
	assert_true(f->choice.matches[0] > 0);
	assert_int_equal(f->choice.refused_count, 1);
}

static void test_unasked_only_patterns_without_functions_name_inlined_ones(void **state)
{
	struct fixture *f = *state;
	uint32_t main_function = function(f->writer, "main", 0x100, 0x200);
	struct index_inlined call;

	inlined(f->writer, main_function, "in_one", 0x110, 0x120);
	inlined(f->writer, main_function, "tiny", 0x130, 0x140);
	has(f, "in_two", 0x300, 0, 1);
	f->options.find_inlined = false;
	add(&f->wanted, "in_*");
	add(&f->wanted, "nowhere");
	choose(f, "tiny");
	expect_chosen(f, 1, "in_two");
	assert_int_equal(f->choice.refused_count, 1);
	assert_true(index_inlined(f->index, f->choice.refused[0].number, &call));
	assert_string_equal(call.name, "tiny");
	assert_true(f->choice.matches[0] > 0);
	assert_int_equal(f->choice.matches[1], 0);
	assert_true(f->choice.matches[2] > 0);
}

/* Adds a function whose code comes from FILE. */
static void has_source(
	struct fixture *f, const char *name, uint64_t offset, const char *file, uint32_t flags)
{
	has(f, name, offset, flags, 1);
	function(f->writer, name, offset, offset + 0x20);
	sequence(f->writer, 0, offset, offset + 0x20, file, 10);
}

static void test_vendored_packages_are_left_out(void **state)
{
	struct fixture *f = *state;

	has_source(f, "main.run", 0x100, "/home/me/app/main.go", INDEX_FUNCTION_FIBER);
	has_source(f, "x.Run", 0x200, "/home/me/app/vendor/x/x.go", INDEX_FUNCTION_FIBER);
	has_source(f, "y.Run", 0x300, "/root/go/pkg/mod/y@v1.0.0/y.go", INDEX_FUNCTION_FIBER);
	has_source(f, "c_run", 0x400, "/home/me/app/vendor/c/c.c", 0);
	has(f, "unknown.Run", 0x500, INDEX_FUNCTION_FIBER, 1);
	f->options.exclude_vendor = true;
	choose(f, "*");
	expect_chosen(f, 3, "main.run", "c_run", "unknown.Run");
	assert_int_equal(f->choice.vendored, 2);
	assert_int_equal(f->choice.excluded, 0);
}

/* ---- vendored packages ----------------------------------------------------------------------- */

static void test_vendored_paths(void **state)
{
	static const char *const vendored[] = {
		"/home/me/app/vendor/github.com/x/y/z.go",
		"vendor/github.com/x/y/z.go",
		"/root/go/pkg/mod/github.com/x/y@v1.2.3/z.go",
		"github.com/x/y@v1.2.3/z.go",
		"github.com/x/y@v0.0.0-20200101000000-abcdef/sub/z.go",
		"/usr/lib/go/src/vendor/golang.org/x/net/idna/idna.go",
	};
	static const char *const own[] = {
		"/home/me/app/main.go",
		"/home/me/vendors/main.go",
		"/home/me/app@v/main.go",
		"main.go@v1",
		"/usr/lib/go/src/net/http/server.go",
		"/root/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.22.0.linux-amd64/src/net/http/"
		"x.go",
		"golang.org/toolchain@v0.0.1-go1.22.0.linux-amd64/src/runtime/proc.go",
		"",
		"_cgo_gotypes.go",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vendored); i++) {
		if (!path_is_vendored(vendored[i]))
			fail_msg("not vendored: %s", vendored[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (path_is_vendored(own[i]))
			fail_msg("vendored: %s", own[i]);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_glob_chooses_by_address),
		CASE(test_an_equal_name_wins_over_the_glob),
		CASE(test_without_an_equal_name_it_is_a_glob),
		CASE(test_an_equal_name_counts_for_its_pattern_only),
		CASE(test_excluded_functions_are_left_out),
		CASE(test_an_equal_name_is_excluded_alone),
		CASE(test_an_exclusion_applies_to_every_file),
		CASE(test_patterns_of_other_files_do_not_apply),
		CASE(test_a_library_needs_to_be_named),
		CASE(test_code_with_several_names_is_chosen_once),
		CASE(test_the_name_that_was_given_is_the_one_shown),
		CASE(test_functions_that_cannot_be_probed),
		CASE(test_the_limit_is_kept_and_all_are_counted),
		CASE(test_what_exists_only_inlined),
		CASE(test_a_pattern_may_match_only_inlined_functions),
		CASE(test_unasked_only_patterns_without_functions_name_inlined_ones),
		CASE(test_vendored_packages_are_left_out),
		cmocka_unit_test(test_vendored_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
