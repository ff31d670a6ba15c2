/* SPDX-License-Identifier: Apache-2.0 */
/* agent/commands/program_path: which file a command's name stands for. */
#include "agent/commands/program_path.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"

static char directory[] = "/tmp/fathom-test-XXXXXX";

/* The path of NAME below the test's directory. */
static const char *below(const char *name)
{
	static char paths[4][256];
	static unsigned int next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void make(const char *name, mode_t mode)
{
	FILE *file = fopen(below(name), "we");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(below(name), mode), 0);
}

static int set_up(void **state)
{
	char path[600];

	(void)state;
	if (!mkdtemp(directory) || mkdir(below("one"), 0755) || mkdir(below("two"), 0755))
		return -1;
	make("one/plain", 0644);
	make("two/plain", 0755);
	make("two/tool", 0755);
	make("one/data", 0644);
	if (symlink("../two/tool", below("one/link")) || mkdir(below("one/folder"), 0755))
		return -1;
	snprintf(path, sizeof(path), "%s:%s", below("one"), below("two"));
	return setenv("PATH", path, 1);
}

static int tear_down(void **state)
{
	static const char *const files[] = { "one/plain", "two/plain", "two/tool", "one/data",
		"one/link" };
	static const char *const directories[] = { "one/folder", "one", "two", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlink(below(files[i]));
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		rmdir(below(directories[i]));
	return 0;
}

static void expect(const char *name, const char *found)
{
	autofree char *path = NULL;

	assert_int_equal(program_path(name, &path), 0);
	assert_string_equal(path, below(found));
}

static void expect_error(const char *name, int err)
{
	char *path = NULL;

	assert_int_equal(program_path(name, &path), err);
	assert_null(path);
}

static void the_first_that_may_be_executed_is_it(void **state)
{
	(void)state;
	expect("tool", "two/tool");
	expect("plain", "two/plain");
}

static void links_are_followed(void **state)
{
	(void)state;
	expect("link", "two/tool");
}

static void a_path_is_not_searched(void **state)
{
	(void)state;
	expect(below("two/tool"), "two/tool");
	expect_error(below("tool"), -ENOENT);
}

static void what_cannot_be_executed_says_so(void **state)
{
	(void)state;
	expect_error("nothing", -ENOENT);
	expect_error("data", -EACCES);
	expect_error("folder", -EACCES);
	expect_error(below("one/data"), -EACCES);
}

static void an_empty_entry_is_the_working_directory(void **state)
{
	(void)state;
	assert_int_equal(chdir(below("two")), 0);
	assert_int_equal(setenv("PATH", "", 1), 0);
	expect("tool", "two/tool");
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_may_be_executed_is_it),
		cmocka_unit_test(links_are_followed),
		cmocka_unit_test(a_path_is_not_searched),
		cmocka_unit_test(what_cannot_be_executed_says_so),
		cmocka_unit_test(an_empty_entry_is_the_working_directory),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
