/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of remote_kinds.def has a unique name, can be created, and yields a verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/remote_fixture.h"

static const enum remote_type kinds[] = {
#define REMOTE_KIND(id, ...) REMOTE_##id,
#include "agent/server/export/remote/remote_kinds.def"
#undef REMOTE_KIND
};

static void a_kind_is_found_by_its_name_alone(void **state)
{
	enum remote_type found = (enum remote_type)ARRAY_SIZE(kinds);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(remote_type_find(remote_type_name(kinds[i]), &found), 0);
		assert_int_equal(found, kinds[i]);
	}
	assert_int_equal(remote_type_find("parc", &found), -ENOENT);
	assert_int_equal(remote_type_find("", &found), -ENOENT);
	assert_int_equal(found, kinds[ARRAY_SIZE(kinds) - 1]);
}

static void the_list_names_each_kind(void **state)
{
	char text[256], cut[16];

	(void)state;
	remote_type_list(text, sizeof(text));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_non_null(strstr(text, remote_type_name(kinds[i])));
	assert_non_null(strstr(text, "pyroscope, parca"));
	assert_non_null(strstr(text, " or "));
	remote_type_list(cut, sizeof(cut));
	assert_memory_equal(cut, text, sizeof(cut) - 1);
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
}

/* A store that wants sample labels also takes them. */
static void properties_fit_each_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (remote_type_has(kinds[i], REMOTE_WANTS_SAMPLE_LABELS))
			assert_true(remote_type_has(kinds[i], REMOTE_TAKES_SAMPLE_LABELS));
		if (remote_type_has(kinds[i], REMOTE_IS_DIRECTORY))
			assert_false(remote_type_has(kinds[i], REMOTE_TAKES_DEBUGINFO));
	}
}

static void an_unreachable_server_is_retried(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct remote_fixture f;

		if (remote_type_has(kinds[i], REMOTE_IS_DIRECTORY))
			continue;
		remote_fixture_init(&f, NULL, NULL, NULL);
		remote_fixture_put_profile(&f);
		remote_fixture_open(&f, (struct remote_options){ .type = kinds[i] });
		remote_fixture_send(&f);
		assert_int_equal(f.result.verdict, REMOTE_RETRY);
		assert_string_equal(f.result.code, "connect");
		remote_fixture_deinit(&f);
	}
}

/* Removes the files in DIRECTORY; returns how many there were. */
static int remove_files(const char *directory)
{
	DIR *files = opendir(directory);
	struct dirent *file;
	int count = 0;

	assert_non_null(files);
	while ((file = readdir(files)) != NULL)
		count += unlinkat(dirfd(files), file->d_name, 0) == 0;
	closedir(files);
	return count;
}

static void a_directory_has_the_payload_at_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		char directory[] = "/tmp/fathom-test-kinds-XXXXXX";
		struct remote_fixture f;

		if (!remote_type_has(kinds[i], REMOTE_IS_DIRECTORY))
			continue;
		assert_non_null(mkdtemp(directory));
		remote_fixture_init(&f, NULL, NULL, NULL);
		remote_fixture_open(
			&f, (struct remote_options){ .type = kinds[i], .address = directory });
		remote_fixture_send(&f);
		assert_int_equal(f.result.verdict, REMOTE_SENT);
		remote_fixture_deinit(&f);
		assert_int_equal(remove_files(directory), 2);
		assert_int_equal(rmdir(directory), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kind_is_found_by_its_name_alone),
		cmocka_unit_test(the_list_names_each_kind),
		cmocka_unit_test(properties_fit_each_other),
		cmocka_unit_test(an_unreachable_server_is_retried),
		cmocka_unit_test(a_directory_has_the_payload_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
