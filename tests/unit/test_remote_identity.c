/* SPDX-License-Identifier: Apache-2.0 */
/* Which option changes make a remote store a different one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/remote.h"
#include "base/cleanup.h"

static char *identity_of(const struct remote_options *options)
{
	autofree char *message = NULL;
	char *identity = NULL;

	assert_int_equal(remote_identity(options, &identity, &message), 0);
	return identity;
}

static void assert_same(const struct remote_options *a, const struct remote_options *b, bool same)
{
	autofree char *x = identity_of(a), *y = identity_of(b);

	if (same)
		assert_string_equal(x, y);
	else
		assert_string_not_equal(x, y);
}

static const struct remote_options plain = {
	.type = REMOTE_PYROSCOPE,
	.name = "pyroscope",
	.address = "https://pyroscope.example:4040",
	.tenant_id = "team-a",
};

static void credentials_and_the_place_in_the_list_are_no_part_of_it(void **state)
{
	static const char *const headers[] = { "Authorization: secret" };
	struct remote_options other = plain;

	(void)state;
	other.name = "pyroscope-3";
	other.place = "fathom.yaml:17: remote-stores";
	other.bearer_token = "secret";
	other.headers = headers;
	other.header_count = 1;
	other.insecure_skip_verify = true;
	other.timeout_ns = 1;
	assert_same(&plain, &other, true);
	other.bearer_token = "another";
	other.address = "http://pyroscope.example:4040/";
	assert_same(&plain, &other, true);
	other.address = "pyroscope.example:4040";
	assert_same(&plain, &other, true);
}

static void what_the_store_is_makes_another(void **state)
{
	struct remote_options other = plain;

	(void)state;
	other.type = REMOTE_PARCA;
	assert_same(&plain, &other, false);
	other = plain;
	other.address = "https://pyroscope.example:4041";
	assert_same(&plain, &other, false);
	other.address = "https://pyroscope.example:4040/path";
	assert_same(&plain, &other, false);
	other = plain;
	other.tenant_id = "team-b";
	assert_same(&plain, &other, false);
	other = plain;
	other.given_name = "second";
	assert_same(&plain, &other, false);
	other = plain;
	other.basic_auth_user = "12345";
	other.basic_auth_password_file = "/dev/null";
	assert_same(&plain, &other, false);
}

static void a_directory_is_its_path(void **state)
{
	struct remote_options one = { .type = REMOTE_FILE, .name = "file", .address = "/a/b" };
	struct remote_options other = one;

	(void)state;
	other.address = "/a/b//";
	assert_same(&one, &other, true);
	other.address = "/a/c";
	assert_same(&one, &other, false);
	other.address = "/";
	assert_same(&one, &other, false);
}

/* Loads libcurl, which parses addresses. */
static int set_up(void **state)
{
	return remotes_create((struct remotes **)state);
}

static int tear_down(void **state)
{
	remotes_destroy(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credentials_and_the_place_in_the_list_are_no_part_of_it),
		cmocka_unit_test(what_the_store_is_makes_another),
		cmocka_unit_test(a_directory_is_its_path),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
