/* SPDX-License-Identifier: Apache-2.0 */
/* The token of the HTTP address: read from a file, or generated and kept. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/daemon/token.h"
#include "agent/server/serve/serve.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/secret_file.h"

struct token_fixture {
	struct config config;
	char directory[64]; /* exists */
	char cache[96]; /* does not exist */
	char path[128]; /* path of the kept token */
	char given[128];
};

static void token_configure(struct token_fixture *f, const char *option)
{
	char *arguments[] = { (char *)"agent", (char *)(uintptr_t)option, NULL };

	config_deinit(&f->config);
	assert_int_equal(config_parse(&f->config, IN_AGENT, option ? 2 : 1, arguments), 0);
}

static int token_setup(void **state)
{
	struct token_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	snprintf(f->directory, sizeof(f->directory), "/tmp/test-token-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->cache, sizeof(f->cache), "%s/a/b", f->directory);
	snprintf(f->path, sizeof(f->path), "%s/http-token", f->cache);
	snprintf(f->given, sizeof(f->given), "%s/given", f->directory);
	*state = f;
	token_configure(f, NULL);
	return 0;
}

static int token_teardown(void **state)
{
	struct token_fixture *f = *state;
	char parent[96];

	snprintf(parent, sizeof(parent), "%s/a", f->directory);
	unlink(f->path);
	unlink(f->given);
	rmdir(f->cache);
	rmdir(parent);
	assert_int_equal(rmdir(f->directory), 0);
	config_deinit(&f->config);
	free(f);
	return 0;
}

static char *token_ask(struct token_fixture *f)
{
	char *token = NULL, *message = NULL;

	assert_int_equal(token_get(&f->config, f->cache, &token, &message), 0);
	assert_null(message);
	assert_non_null(token);
	return token;
}

static void token_write(const char *path, const char *text, mode_t mode)
{
	assert_int_equal(io_replace_file(AT_FDCWD, path, text, strlen(text), mode), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_made_once_and_kept(void **state)
{
	struct token_fixture *f = *state;
	char *first = token_ask(f), *second = token_ask(f);
	struct stat st;

	assert_string_equal(first, second);
	assert_true(strlen(first) >= 32);
	for (const char *c = first; *c; c++)
		assert_true(isalnum(*c));
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	secret_free(&first);
	secret_free(&second);
}

static void test_another_machine_has_another(void **state)
{
	struct token_fixture *f = *state;
	char *first = token_ask(f), *second;

	assert_int_equal(unlink(f->path), 0);
	second = token_ask(f);
	assert_string_not_equal(first, second);
	secret_free(&first);
	secret_free(&second);
}

/* Others may know the token in such a file, so a new one replaces it. */
static void test_file_that_others_can_read_is_replaced(void **state)
{
	static const mode_t open[] = { 0640, 0604, 0666, 0620 };
	struct token_fixture *f = *state;
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(open); i++) {
		char *first = token_ask(f), *second;

		assert_int_equal(chmod(f->path, open[i]), 0);
		second = token_ask(f);
		assert_string_not_equal(first, second);
		assert_int_equal(stat(f->path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		secret_free(&first);
		secret_free(&second);
	}
}

static void test_link_and_damaged_file_are_replaced(void **state)
{
	struct token_fixture *f = *state;
	char *token = token_ask(f);
	struct stat st;

	secret_free(&token);
	token_write(f->given, "chosen by somebody else", 0600);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(symlink(f->given, f->path), 0);
	token = token_ask(f);
	assert_string_not_equal(token, "chosen by somebody else");
	assert_int_equal(lstat(f->path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	secret_free(&token);
	token_write(f->path, "", 0600);
	token = token_ask(f);
	assert_true(strlen(token) >= 32);
	secret_free(&token);
}

static void test_file_of_another_user_is_replaced(void **state)
{
	struct token_fixture *f = *state;
	char *first, *second;

	if (geteuid() != 0)
		skip();
	first = token_ask(f);
	assert_int_equal(chown(f->path, 12345, 12345), 0);
	second = token_ask(f);
	assert_string_not_equal(first, second);
	secret_free(&first);
	secret_free(&second);
}

/* No directory can be made in /proc. */
static void test_a_token_that_cannot_be_stored_is_for_this_run(void **state)
{
	struct token_fixture *f = *state;
	char *first = NULL, *second = NULL;

	assert_int_equal(token_get(&f->config, "/proc/none", &first, NULL), 0);
	assert_int_equal(token_get(&f->config, "/proc/none", &second, NULL), 0);
	assert_string_not_equal(first, second);
	secret_free(&first);
	secret_free(&second);
}

static void test_given_file(void **state)
{
	struct token_fixture *f = *state;
	char option[192];
	char *token;

	snprintf(option, sizeof(option), "--http-token-file=%s", f->given);
	token_configure(f, option);
	token_write(f->given, "s3cret\n", 0644);
	token = token_ask(f);
	assert_string_equal(token, "s3cret");
	secret_free(&token);
	/* No token is generated besides the given one. */
	assert_int_equal(access(f->path, F_OK), -1);
}

static void test_given_file_that_holds_no_token(void **state)
{
	struct token_fixture *f = *state;
	char option[192], longer[SERVE_TOKEN_BYTES + 2];
	const char *const texts[] = { "", "\n", "two\nlines\n", longer };
	static const char *const why[] = { "empty", "empty", "more than one line", "longer than" };
	char *token = NULL;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	snprintf(option, sizeof(option), "--http-token-file=%s", f->given);
	token_configure(f, option);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		autofree char *message = NULL;

		token_write(f->given, texts[i], 0600);
		assert_true(token_get(&f->config, f->cache, &token, &message) < 0);
		assert_null(token);
		assert_non_null(message);
		assert_non_null(strstr(message, "--http-token-file"));
		assert_non_null(strstr(message, why[i]));
	}
	assert_int_equal(unlink(f->given), 0);
	{
		autofree char *message = NULL;

		assert_true(token_get(&f->config, f->cache, &token, &message) < 0);
		assert_non_null(strstr(message, f->given));
	}
}

#define TOKEN(name) cmocka_unit_test_setup_teardown(name, token_setup, token_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TOKEN(test_made_once_and_kept),
		TOKEN(test_another_machine_has_another),
		TOKEN(test_file_that_others_can_read_is_replaced),
		TOKEN(test_link_and_damaged_file_are_replaced),
		TOKEN(test_file_of_another_user_is_replaced),
		TOKEN(test_a_token_that_cannot_be_stored_is_for_this_run),
		TOKEN(test_given_file),
		TOKEN(test_given_file_that_holds_no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
