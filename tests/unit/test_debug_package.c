/* SPDX-License-Identifier: Apache-2.0 */
/* agent/commands/debug_package: which package has a file's debug symbols, by dpkg's lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/commands/debug_package.h"

static char lists[] = "/tmp/fathom-test-XXXXXX";
static const char *const names[] = { "g++-12.list", "libgcc-s1:amd64.list", "libc6:amd64.list",
	"broken.list.new" };
static const char *const texts[] = { "/.\n/usr/bin/g++-12\n/usr/lib/gcc/12/cc1plus\n",
	"/lib/libgcc_s.so.1\n", "/usr/lib/libc.so.6", "/usr/bin/new\n" };

static void path_of(size_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", lists, names[number]);
}

static int make_lists(void **)
{
	char path[128];

	if (!mkdtemp(lists))
		return -1;
	for (size_t i = 0; i < 4; i++) {
		FILE *file;

		path_of(i, path, sizeof(path));
		file = fopen(path, "w");
		if (!file || fputs(texts[i], file) < 0 || fclose(file))
			return -1;
	}
	return 0;
}

static int remove_lists(void **)
{
	char path[128];

	for (size_t i = 0; i < 4; i++) {
		path_of(i, path, sizeof(path));
		unlink(path);
	}
	return rmdir(lists);
}

static void expect(const char *path, const char *package)
{
	char name[64] = "";
	int err = debug_package_find(lists, path, name, sizeof(name));

	assert_int_equal(err, *package ? 0 : -ENOENT);
	assert_string_equal(name, package);
}

static void a_file_is_in_its_package(void **)
{
	expect("/usr/lib/gcc/12/cc1plus", "g++-12-dbgsym");
	expect("/usr/lib/libc.so.6", "libc6-dbg");
	/* As packages from before the merge of /usr name it. */
	expect("/usr/lib/libgcc_s.so.1", "libgcc-s1-dbgsym");
}

static void other_files_are_in_none(void **)
{
	char name[8];

	expect("/usr/local/bin/own", "");
	expect("/usr/lib/gcc/12", "");
	expect("relative", "");
	expect("/usr/bin/new", "");
	assert_int_equal(debug_package_find("/nowhere", "/x", name, sizeof(name)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_in_its_package),
		cmocka_unit_test(other_files_are_in_none),
	};

	return cmocka_run_group_tests(tests, make_lists, remove_lists);
}
