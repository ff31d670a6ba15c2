/* SPDX-License-Identifier: Apache-2.0 */
/* base/cgroup_path: paths of this machine's own control groups. */
#include "base/cgroup_path.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static const char *mounted_at(void)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char file[128];

	for (size_t i = 0; i < 2; i++) {
		snprintf(file, sizeof(file), "%s/cgroup.controllers", places[i]);
		if (!access(file, F_OK))
			return places[i];
	}
	return NULL;
}

static uint64_t id_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void the_root_is_a_slash(void **)
{
	char path[256];

	if (!mounted_at() || geteuid())
		skip();
	assert_int_equal(cgroup_path(id_of(mounted_at()), path, sizeof(path)), 0);
	assert_string_equal(path, "/");
}

static void a_new_group_is_found_until_it_is_gone(void **)
{
	char group[256], path[256], cut[8];
	uint64_t id;

	if (!mounted_at() || geteuid())
		skip();
	snprintf(group, sizeof(group), "%s/fathom-test-%d", mounted_at(), getpid());
	if (mkdir(group, 0755))
		skip(); /* the file system is read-only in many containers */
	id = id_of(group);
	assert_int_equal(cgroup_path(id, path, sizeof(path)), 0);
	assert_string_equal(path, group + strlen(mounted_at()));
	assert_int_equal(cgroup_path(id, cut, sizeof(cut)), 0);
	assert_string_equal(cut, "/fathom");
	assert_int_equal(rmdir(group), 0);
	assert_int_equal(cgroup_path(id, path, sizeof(path)), -ENOENT);
}

static void an_id_of_nothing_is_not_found(void **)
{
	char path[256];

	if (geteuid())
		skip();
	assert_int_equal(cgroup_path(UINT64_MAX, path, sizeof(path)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_root_is_a_slash),
		cmocka_unit_test(a_new_group_is_found_until_it_is_gone),
		cmocka_unit_test(an_id_of_nothing_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
