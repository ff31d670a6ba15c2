/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const struct check_feature *find(
	const struct check_feature *features, int count, const char *name)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(features[i].name, name))
			return &features[i];
	}
	return NULL;
}

static void each_feature_says_why_and_what_to_do(void **state)
{
	struct check_feature features[CHECK_FEATURES];
	int count = check_features(features);

	(void)state;
	assert_true(count > 5 && count <= CHECK_FEATURES);
	for (int i = 0; i < count; i++) {
		assert_ptr_equal(find(features, count, features[i].name), &features[i]);
		assert_string_not_equal(features[i].why, "");
		/* No text was cut. */
		assert_true(strlen(features[i].why) < CHECK_TEXT_BYTES - 1);
		assert_true(strlen(features[i].fix) < CHECK_TEXT_BYTES - 1);
		assert_int_equal(features[i].state == CHECK_OK, features[i].fix[0] == 0);
	}
	assert_non_null(find(features, count, CHECK_SAMPLER));
}

/* Runs in a child without privileges. */
static int check_as_nobody(void)
{
	struct check_feature features[CHECK_FEATURES];
	int count;

	if (setgid(65534) || setuid(65534))
		return 77;
	count = check_features(features);
	return find(features, count, CHECK_SAMPLER)->state == CHECK_MISSING &&
			       find(features, count, "capabilities")->state == CHECK_MISSING
		       ? 0
		       : 1;
}

static void without_rights_the_sampler_is_missing(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(check_as_nobody());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_feature_says_why_and_what_to_do),
		cmocka_unit_test(without_rights_the_sampler_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
