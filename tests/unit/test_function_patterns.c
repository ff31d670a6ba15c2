/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/functions: patterns as users write them, against names of Go, C, C++ and Rust. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "agent/sampler/functions/patterns.h"
#include "base/cleanup.h"

/* ---- globs ----------------------------------------------------------------------------------- */

static bool fits(const char *glob, const char *text)
{
	return glob_matches(glob, text, strlen(text));
}

static void test_globs_match_whole_texts(void **state)
{
	(void)state;
	assert_true(fits("", ""));
	assert_false(fits("", "a"));
	assert_false(fits("a", ""));
	assert_true(fits("main", "main"));
	assert_false(fits("main", "main2"));
	assert_false(fits("main", "xmain"));
	assert_true(fits("*", ""));
	assert_true(fits("*", "anything"));
	assert_true(fits("**", "anything"));
	assert_true(fits("tcp_*", "tcp_v4_rcv"));
	assert_true(fits("tcp_*", "tcp_"));
	assert_false(fits("tcp_*", "udp_tcp_"));
	assert_true(fits("*_rcv", "tcp_v4_rcv"));
	assert_true(fits("*a*b*c", "xxaxxbxxbxc"));
	assert_false(fits("*a*b*c", "xxaxxcxxb"));
	assert_true(fits("?rc", "src"));
	assert_false(fits("?rc", "rc"));
	assert_false(fits("src?", "src"));
}

static void test_sets_in_globs(void **state)
{
	(void)state;
	assert_true(fits("f[0-9]", "f7"));
	assert_false(fits("f[0-9]", "fx"));
	assert_false(fits("f[0-9]", "f"));
	assert_true(fits("f[!0-9]", "fx"));
	assert_false(fits("f[^0-9]", "f7"));
	assert_true(fits("f[abc]x", "fbx"));
	assert_false(fits("f[abc]x", "fdx"));
	assert_true(fits("f[a-]", "f-"));
	assert_true(fits("f[\x80-\xff]", "f\xc3"));
	/* Without an end they are plain brackets. */
	assert_true(fits("f[", "f["));
	assert_true(fits("f[!", "f[!"));
	assert_true(fits("f[a", "f[a"));
}

static void test_a_backslash_takes_the_next_byte_literally(void **state)
{
	(void)state;
	assert_true(fits("a\\*b", "a*b"));
	assert_false(fits("a\\*b", "axb"));
	assert_true(fits("\\[a]", "[a]"));
	assert_true(fits("a\\", "a\\"));
	assert_false(glob_has_wildcards("a\\*b"));
}

static void test_parts_of_go_and_cpp_names_are_literal(void **state)
{
	(void)state;
	assert_true(fits("main.(*T).F", "main.(*T).F"));
	assert_false(fits("main.(*T).F", "main.(*OtherT).F"));
	assert_false(fits("main.(*T).F", "main.(T).F"));
	assert_true(fits("main.(*T).*", "main.(*T).F"));
	assert_false(fits("main.(*T).*", "main.(*OtherT).F"));
	assert_true(fits("main.(*T*).F", "main.(*Tree).F"));
	assert_true(fits("net/http.(**).Serve", "net/http.(*conn).Serve"));
	assert_true(fits("main.(*).F", "main.(*T).F"));
	assert_true(fits("run(*)", "run(int, char*)"));
	assert_true(fits("main.Map[...]", "main.Map[...]"));
	assert_false(fits("main.Map[...]", "main.Map."));
	assert_true(fits("main.*[...].Get", "main.(*Tree[...]).x[...].Get"));
	assert_true(fits("main.Map[go.shape.int]*", "main.Map[go.shape.int].func1"));
	assert_true(fits("*::operator[]*", "V::operator[](int)"));
	assert_true(fits("f[abi:cxx11]*", "f[abi:cxx11](int)"));
	assert_false(glob_has_wildcards("main.(*T).F"));
	assert_false(glob_has_wildcards("main.Map[...]"));
	assert_true(glob_has_wildcards("main.(*T).*"));
	assert_true(glob_has_wildcards("f?"));
	assert_true(glob_has_wildcards("f[ab]"));
}

/* A matcher that tries all ways to divide the text among the stars would not end. */
static void test_many_stars_are_fast(void **state)
{
	char glob[201], text[4001];

	(void)state;
	for (size_t i = 0; i < 200; i += 2) {
		glob[i] = 'a';
		glob[i + 1] = '*';
	}
	memcpy(glob + 198, "b", 2);
	memset(text, 'a', 4000);
	text[4000] = 0;
	assert_false(fits(glob, text));
	text[3999] = 'b';
	assert_true(fits(glob, text));
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Whether FORM is among the names of the function. */
static bool is_known_as(const char *name, const char *linkage, const char *form)
{
	struct name_forms forms;

	name_forms_of(name, linkage, &forms);
	assert_true(forms.count <= NAME_FORMS);
	for (size_t i = 0; i < forms.count; i++) {
		if (forms.forms[i].size == strlen(form) &&
			!memcmp(forms.forms[i].text, form, strlen(form)))
			return true;
	}
	return false;
}

static size_t count_of_forms(const char *name, const char *linkage)
{
	struct name_forms forms;

	name_forms_of(name, linkage, &forms);
	return forms.count;
}

static void test_cpp_names_without_parameters(void **state)
{
	(void)state;
	assert_true(is_known_as("Foo::bar(int)", "_Z1", "Foo::bar(int)"));
	assert_true(is_known_as("Foo::bar(int)", "_Z1", "_Z1"));
	assert_true(is_known_as("Foo::bar(int)", "_Z1", "Foo::bar"));
	assert_true(is_known_as("Foo::bar() const", "_Z1", "Foo::bar"));
	assert_true(is_known_as("Foo::bar(int) const &", "_Z1", "Foo::bar"));
	assert_true(is_known_as("Foo::operator()(int) const", "_Z1", "Foo::operator()"));
	assert_true(is_known_as("f(void (*)(int), int)", "_Z1", "f"));
	assert_true(
		is_known_as("(anonymous namespace)::f(int)", "_Z1", "(anonymous namespace)::f"));
	assert_true(is_known_as("main::{lambda(int)#1}::operator()(int) const", "_Z1",
		"main::{lambda(int)#1}::operator()"));
}

static void test_cpp_names_without_return_type(void **state)
{
	(void)state;
	assert_true(is_known_as("void app::run<int>(int)", "_Z1", "app::run<int>"));
	assert_true(is_known_as("void app::run<int>(int)", "_Z1", "void app::run<int>"));
	assert_true(is_known_as("unsigned long f<a b>(int)", "_Z1", "f<a b>"));
	assert_true(is_known_as("std::pair<int, int> f<int>()", "_Z1", "f<int>"));
	assert_true(is_known_as("bool operator< <int>(V<int>)", "_Z1", "operator< <int>"));
	assert_int_equal(count_of_forms("Foo::operator new(unsigned long)", "_Z1"), 3);
	assert_int_equal(count_of_forms("Foo::operator bool() const", "_Z1"), 3);
	assert_int_equal(count_of_forms("operator new(unsigned long)", "_Z1"), 3);
	assert_true(is_known_as("void* operator new <a>(int)", "_Z1", "operator new <a>"));
	assert_true(is_known_as("int my_operator<int>(int)", "_Z1", "my_operator<int>"));
}

static void test_names_that_have_no_parameters(void **state)
{
	(void)state;
	assert_int_equal(count_of_forms("main.(*T).F", "main.(*T).F"), 1);
	assert_int_equal(count_of_forms("(x)", "_Z1"), 2);
	assert_int_equal(count_of_forms("x)", "_Z1"), 2);
	assert_int_equal(count_of_forms(" const", "_Z1"), 2);
	assert_int_equal(count_of_forms("", "_Z1"), 2);
	assert_int_equal(count_of_forms("<T as core::fmt::Debug>::fmt", "_R1"), 2);
}

/* ---- patterns -------------------------------------------------------------------------------- */

static void expect_pattern(const char *text, const char *binary, const char *glob)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	const char *problem = NULL;

	assert_int_equal(function_patterns_add(&patterns, text, &problem), 0);
	assert_int_equal(patterns.count, 1);
	assert_string_equal(patterns.items[0].text, text);
	assert_string_equal(patterns.items[0].glob, glob);
	if (binary)
		assert_string_equal(patterns.items[0].binary, binary);
	else
		assert_null(patterns.items[0].binary);
}

static void test_a_single_colon_ends_the_file(void **state)
{
	(void)state;
	expect_pattern("main.*", NULL, "main.*");
	expect_pattern("app:main.*", "app", "main.*");
	expect_pattern("/usr/bin/app:main.*", "/usr/bin/app", "main.*");
	expect_pattern("./app:main", "./app", "main");
	expect_pattern("a::b", NULL, "a::b");
	expect_pattern("app:a::b", "app", "a::b");
	expect_pattern("app:::b", "app", "::b");
	expect_pattern("a::b::c", NULL, "a::b::c");
	expect_pattern("a\\:b:c", "a\\:b", "c");
	expect_pattern("f[abi:cxx11]", NULL, "f[abi:cxx11]");
	expect_pattern("app:f[abi:cxx11]", "app", "f[abi:cxx11]");
	expect_pattern("lib:operator->", "lib", "operator->");
	expect_pattern("<T as a::B>::c", NULL, "<T as a::B>::c");
	expect_pattern("f(char*, int)", NULL, "f(char*, int)");
}

static void expect_problem(const char *text, const char *expected)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	const char *problem = NULL;

	assert_int_equal(function_patterns_add(&patterns, text, &problem), -EINVAL);
	assert_int_equal(patterns.count, 0);
	assert_string_equal(problem, expected);
}

static void test_patterns_that_name_nothing(void **state)
{
	(void)state;
	expect_problem("", "names no function");
	expect_problem(":f", "names no file before the colon");
	expect_problem("app:", "names no function after the colon");
}

static void test_patterns_are_bounded(void **state)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	autofree char *text = calloc(1, 20000);
	const char *problem = NULL;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', 19999);
	assert_int_equal(function_patterns_add(&patterns, text, &problem), -E2BIG);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(function_patterns_add(&patterns, "f", &problem), 0);
	assert_int_equal(function_patterns_add(&patterns, "f", &problem), -E2BIG);
	assert_int_equal(patterns.count, 4096);
}

static bool names_file(const char *text, const char *path)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	const char *problem = NULL;

	assert_int_equal(function_patterns_add(&patterns, text, &problem), 0);
	return function_pattern_names_file(&patterns.items[0], path);
}

static void test_files_of_patterns(void **state)
{
	(void)state;
	assert_true(names_file("app:f", "/usr/bin/app"));
	assert_true(names_file("app:f", "app"));
	assert_false(names_file("app:f", "/usr/bin/app2"));
	assert_false(names_file("app:f", "/usr/app/bin"));
	assert_true(names_file("python3*:f", "/usr/bin/python3.11"));
	assert_true(names_file("libc.so.6:f", "/usr/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(names_file("libc:f", "/usr/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(names_file("libpython3.11:f", "/usr/lib/libpython3.11.so.1.0"));
	assert_true(names_file("libx.sox:f", "/lib/libx.sox.so"));
	assert_false(names_file("libx:f", "/lib/libx.sox"));
	assert_false(names_file("lib:f", "/usr/lib/libc.so.6"));
	assert_true(names_file("/usr/bin/app:f", "/usr/bin/app"));
	assert_false(names_file("/bin/app:f", "/usr/bin/app"));
	assert_true(names_file("/opt/*/app:f", "/opt/v2/bin/app"));
}

static void test_a_resolved_path_names_its_file(void **state)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	const char *problem = NULL;

	(void)state;
	assert_int_equal(function_patterns_add(&patterns, "./app:f", &problem), 0);
	patterns.items[0].resolved = strdup("/home/me/app");
	assert_true(function_pattern_names_file(&patterns.items[0], "/home/me/app"));
	assert_false(function_pattern_names_file(&patterns.items[0], "/home/you/app"));
}

static enum function_match match_of(const char *text, const char *name, const char *linkage)
{
	autocall(function_patterns_deinit) struct function_patterns patterns = { 0 };
	const char *problem = NULL;
	struct name_forms forms;

	assert_int_equal(function_patterns_add(&patterns, text, &problem), 0);
	name_forms_of(name, linkage, &forms);
	return function_pattern_match(&patterns.items[0], &forms);
}

static void test_patterns_match_each_form_of_a_name(void **state)
{
	static const char name[] = "void app::run<int>(char*) const", linkage[] = "_ZN3app3runE";

	(void)state;
	assert_int_equal(match_of("app::run<*>", name, linkage), FUNCTION_MATCHES);
	assert_int_equal(match_of("app::run<int>", name, linkage), FUNCTION_EQUALS);
	assert_int_equal(match_of("_ZN3app*", name, linkage), FUNCTION_MATCHES);
	assert_int_equal(match_of("*(char*) const", name, linkage), FUNCTION_MATCHES);
	assert_int_equal(match_of(name, name, linkage), FUNCTION_EQUALS);
	assert_int_equal(match_of("app::run", name, linkage), FUNCTION_DIFFERS);
	assert_int_equal(match_of("lib:app::run<int>", name, linkage), FUNCTION_EQUALS);
	/* Equal, although as a glob it would match as well. */
	assert_int_equal(match_of("f(char*)", "f(char*)", "_Z1fPc"), FUNCTION_EQUALS);
	assert_int_equal(match_of("f(char*)", "f(char**)", "_Z1fPPc"), FUNCTION_MATCHES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs_match_whole_texts),
		cmocka_unit_test(test_sets_in_globs),
		cmocka_unit_test(test_a_backslash_takes_the_next_byte_literally),
		cmocka_unit_test(test_parts_of_go_and_cpp_names_are_literal),
		cmocka_unit_test(test_many_stars_are_fast),
		cmocka_unit_test(test_cpp_names_without_parameters),
		cmocka_unit_test(test_cpp_names_without_return_type),
		cmocka_unit_test(test_names_that_have_no_parameters),
		cmocka_unit_test(test_a_single_colon_ends_the_file),
		cmocka_unit_test(test_patterns_that_name_nothing),
		cmocka_unit_test(test_patterns_are_bounded),
		cmocka_unit_test(test_files_of_patterns),
		cmocka_unit_test(test_a_resolved_path_names_its_file),
		cmocka_unit_test(test_patterns_match_each_form_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
