/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/kernel_functions: which kernel functions are chosen from the kernel's lists. */
#include "agent/sampler/kernel_functions/kernel_choice.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { LIST_BYTES = 1 << 20 };

static const char symbols[] = "ffffffff81000000 T _stext\n"
			      "ffffffff81000100 T vfs_read\n"
			      "ffffffff810000f0 t __pfx_vfs_read\n"
			      "ffffffff81000200 T vfs_write\n"
			      "ffffffff81000300 t do_work\n"
			      "ffffffff81000400 t do_work\n"
			      "ffffffff81000500 T __x64_sys_getpid\n"
			      "ffffffff81000500 T __ia32_sys_getpid\n"
			      "ffffffff81000500 T __do_sys_getpid\n"
			      "ffffffff81000600 t vfs_read.cold\n"
			      "ffffffff81000700 D vfs_data\n"
			      "ffffffff81000800 T vfs_forbidden\n"
			      "ffffffffc0000100 t vfs_read\t[ext4]\n"
			      "ffffffffc0000200 t bpf_prog_vfs\t[bpf]\n";
static const char traceable[] = "vfs_read\n"
				"vfs_write\n"
				"do_work\n"
				"__ia32_sys_getpid\n"
				"vfs_forbidden\n"
				"vfs_read [ext4]\n";
static const char forbidden[] = "0xffffffff81000800-0xffffffff81000810\tvfs_forbidden\n"
				"0xffffffff81000000-0xffffffff81000010\t_stext\n";

struct fixture {
	struct kernel_lists lists;
	struct function_patterns wanted, unwanted;
	struct kernel_choice_options options;
	struct kernel_choice choice;
};

static void fill(struct buffer *list, const char *text)
{
	buffer_init(list, LIST_BYTES);
	assert_int_equal(buffer_string(list, text), 0);
}

static int set_up(void **state)
{
	static struct fixture fixture;

	fixture = (struct fixture){ .options = { .limit = 100 } };
	fixture.options.wanted = &fixture.wanted;
	fixture.options.unwanted = &fixture.unwanted;
	fill(&fixture.lists.symbols, symbols);
	fill(&fixture.lists.traceable, traceable);
	fill(&fixture.lists.forbidden, forbidden);
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	kernel_lists_deinit(&f->lists);
	kernel_choice_deinit(&f->choice);
	function_patterns_deinit(&f->wanted);
	function_patterns_deinit(&f->unwanted);
	return 0;
}

static void replace(struct buffer *list, const char *text)
{
	buffer_deinit(list);
	fill(list, text);
}

static void want(struct fixture *f, const char *pattern)
{
	const char *problem;

	assert_int_equal(function_patterns_add(&f->wanted, pattern, &problem), 0);
}

static void choose(struct fixture *f)
{
	assert_int_equal(kernel_choice_make(&f->lists, &f->options, &f->choice), 0);
}

/* The function of this name, which must have been listed. */
static const struct kernel_function *chosen(
	const struct fixture *f, const char *name, const char *binary)
{
	for (size_t i = 0; i < f->choice.count; i++)
		if (!strcmp(f->choice.functions[i].name, name) &&
			!strcmp(f->choice.functions[i].binary, binary))
			return &f->choice.functions[i];
	fail_msg("%s of %s is not there", name, binary);
	return NULL;
}

static void a_name_is_a_function_of_the_kernel_and_of_modules(void **state)
{
	struct fixture *f = *state;

	want(f, "vfs_read");
	choose(f);
	assert_int_equal(f->choice.count, 2);
	assert_int_equal(f->choice.probeable, 2);
	assert_int_equal(chosen(f, "vfs_read", "kernel")->address_count, 1);
	assert_true(chosen(f, "vfs_read", "kernel")->addresses[0] == 0xffffffff81000100);
	assert_true(chosen(f, "vfs_read", "[ext4]")->addresses[0] == 0xffffffffc0000100);
	assert_int_equal(chosen(f, "vfs_read", "[ext4]")->refusal, KERNEL_NOT_REFUSED);
	assert_int_equal(f->choice.matches[0], 2);
}

static void what_cannot_be_probed_is_listed_with_the_reason(void **state)
{
	struct fixture *f = *state;

	want(f, "vfs_*");
	choose(f);
	assert_int_equal(f->choice.count, 5);
	assert_int_equal(f->choice.probeable, 3);
	assert_int_equal(chosen(f, "vfs_read.cold", "kernel")->refusal, KERNEL_NOT_TRACEABLE);
	assert_int_equal(chosen(f, "vfs_forbidden", "kernel")->refusal, KERNEL_FORBIDDEN);
	assert_non_null(strstr(kernel_refusal_text(KERNEL_FORBIDDEN), "blacklist"));
	assert_non_null(strstr(kernel_refusal_text(KERNEL_NOT_TRACEABLE), "notrace"));
}

static void without_the_other_lists_nothing_is_refused(void **state)
{
	struct fixture *f = *state;

	f->lists.traceable.size = f->lists.forbidden.size = 0;
	want(f, "vfs_*");
	choose(f);
	assert_int_equal(f->choice.probeable, 5);
}

static void functions_of_one_name_are_one(void **state)
{
	struct fixture *f = *state;

	want(f, "do_work");
	choose(f);
	assert_int_equal(f->choice.count, 1);
	assert_int_equal(f->choice.functions[0].address_count, 2);
	assert_int_equal(f->choice.matches[0], 1);
}

static void code_with_several_names_is_one_function(void **state)
{
	struct fixture *f = *state;

	want(f, "*getpid");
	choose(f);
	assert_int_equal(f->choice.count, 1);
	assert_int_equal(f->choice.functions[0].aliases, 2);
	assert_int_equal(f->choice.functions[0].address_count, 1);
	/* The list of traceable functions has another of its names. */
	assert_int_equal(f->choice.functions[0].refusal, KERNEL_NOT_REFUSED);
	assert_int_equal(f->choice.matches[0], 3);
}

static void the_name_that_was_asked_for_is_kept(void **state)
{
	struct fixture *f = *state;

	want(f, "__x64_sys_getpid");
	choose(f);
	assert_int_equal(f->choice.count, 1);
	assert_string_equal(f->choice.functions[0].name, "__x64_sys_getpid");
	assert_int_equal(f->choice.functions[0].refusal, KERNEL_NOT_REFUSED);
	assert_int_equal(f->choice.functions[0].aliases, 0);
}

static void excluded_ones_are_counted(void **state)
{
	struct fixture *f = *state;
	const char *problem;

	assert_int_equal(function_patterns_add(&f->unwanted, "*_read", &problem), 0);
	assert_int_equal(function_patterns_add(&f->unwanted, "libc:vfs_write", &problem), 0);
	want(f, "vfs_*");
	want(f, "nothing");
	choose(f);
	assert_int_equal(f->choice.excluded, 2);
	assert_int_equal(f->choice.probeable, 1);
	assert_int_equal(chosen(f, "vfs_write", "kernel")->refusal, KERNEL_NOT_REFUSED);
	assert_int_equal(f->choice.matches[1], 0);
}

static void too_many_are_counted_and_not_listed(void **state)
{
	struct fixture *f = *state;

	f->options.limit = 2;
	want(f, "*");
	choose(f);
	assert_int_equal(f->choice.probeable, 5);
	assert_int_equal(f->choice.count, 0);
}

static void hidden_addresses_are_an_error(void **state)
{
	struct fixture *f = *state;

	replace(&f->lists.symbols, "0000000000000000 T vfs_read\n");
	want(f, "vfs_read");
	assert_int_equal(kernel_choice_make(&f->lists, &f->options, &f->choice), -EACCES);
}

static void malformed_lines_are_skipped(void **state)
{
	struct fixture *f = *state;
	char *too_long = test_malloc(2048);

	memset(too_long, 'v', 2047);
	memcpy(too_long, "ffffffff81000900 T v", 20);
	too_long[2047] = 0;
	replace(&f->lists.symbols, "\n \nffffffff81000100\nffffffff81000100 T\n"
				   "ffffffff81000100 T \ngarbage T vfs_read\n"
				   "ffffffff81000100T vfs_read\n"
				   "ffffffff81000100 T vfs_read [ext4\n"
				   "ffffffff81000100 T vfs_read []\n"
				   "fffffffff81000100 T vfs_read\n");
	assert_int_equal(buffer_string(&f->lists.symbols, too_long), 0);
	test_free(too_long);
	want(f, "v*");
	choose(f);
	assert_int_equal(f->choice.count, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_name_is_a_function_of_the_kernel_and_of_modules),
		CASE(what_cannot_be_probed_is_listed_with_the_reason),
		CASE(without_the_other_lists_nothing_is_refused),
		CASE(functions_of_one_name_are_one),
		CASE(code_with_several_names_is_one_function),
		CASE(the_name_that_was_asked_for_is_kept),
		CASE(excluded_ones_are_counted),
		CASE(too_many_are_counted_and_not_listed),
		CASE(hidden_addresses_are_an_error),
		CASE(malformed_lines_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
