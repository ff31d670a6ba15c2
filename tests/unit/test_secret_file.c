/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/secret_file.h"

enum { LIMIT = 100 };

static char path[] = "/tmp/fathom-secret-XXXXXX";

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static int read_back(const char *text, size_t size, char **ret_secret)
{
	autoclose int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, text, size), (ssize_t)size);
	return secret_file_read(path, LIMIT, ret_secret);
}

static void assert_secret(const char *text, const char *expected)
{
	char *secret = NULL;

	assert_int_equal(read_back(text, strlen(text), &secret), 0);
	assert_string_equal(secret, expected);
	secret_free(&secret);
	assert_null(secret);
}

static void trailing_white_space_is_removed(void **state)
{
	(void)state;
	assert_secret("token", "token");
	assert_secret("token\n", "token");
	assert_secret("token \r\n", "token");
	assert_secret("token\n\n\t \n", "token");
	assert_secret(" two words", " two words");
	assert_secret("caf\xc3\xa9\n", "caf\xc3\xa9");
}

static void too_long_secrets_are_refused_not_truncated(void **state)
{
	char text[LIMIT + 1000], *secret = NULL;

	(void)state;
	memset(text, 't', sizeof(text));
	assert_int_equal(read_back(text, LIMIT, &secret), 0);
	assert_int_equal(strlen(secret), LIMIT);
	secret_free(&secret);
	assert_int_equal(read_back(text, LIMIT + 1, &secret), -E2BIG);
	assert_int_equal(read_back(text, sizeof(text), &secret), -E2BIG);
	assert_null(secret);
	/* Trailing whitespace does not count. */
	memset(text + LIMIT, '\n', 10);
	assert_int_equal(read_back(text, LIMIT + 10, &secret), 0);
	assert_int_equal(strlen(secret), LIMIT);
	secret_free(&secret);
}

static void invalid_secrets_are_refused(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		int err;
	} cases[] = {
		{ "", 0, -ENODATA },
		{ " \r\n\n", 4, -ENODATA },
		{ "one\ntwo", 7, -EBADMSG },
		{ "one\0two", 7, -EBADMSG },
		{ "one\0", 4, -EBADMSG },
		{ "one\x7f", 4, -EBADMSG },
	};
	char *secret = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(read_back(cases[i].text, cases[i].size, &secret), cases[i].err);
	assert_int_equal(secret_file_read("/nowhere/token", LIMIT, &secret), -ENOENT);
	assert_int_equal(secret_file_read("/tmp", LIMIT, &secret), -EISDIR);
	assert_null(secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trailing_white_space_is_removed),
		cmocka_unit_test(too_long_secrets_are_refused_not_truncated),
		cmocka_unit_test(invalid_secrets_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
