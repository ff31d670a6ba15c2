/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/settings/arguments.h"
#include "base/cleanup.h"

static void secrets_are_overwritten_and_copied(void **state)
{
	static const struct {
		const char *given, *next, *shown, *next_shown;
	} cases[] = {
		{ "--remote-store-bearer-token=abc", "x", "--remote-store-bearer-token=***", "x" },
		{ "--remote-store-bearer-token", "abc", "--remote-store-bearer-token", "***" },
		{ "--remote-store-bearer-t=abc", "x", "--remote-store-bearer-t=***", "x" },
		{ "--remote-store-headers=A=b", "x", "--remote-store-headers=***", "x" },
		{ "--remote-store-proxy-url", "abc", "--remote-store-proxy-url", "***" },
		{ "--remote-store-bearer-token-file=/f", "x", "--remote-store-bearer-token-file=/f",
			"x" },
		{ "--remote-store-address=h:1", "x", "--remote-store-address=h:1", "x" },
		{ "--", "--remote-store-bearer-token=x", "--", "--remote-store-bearer-token=x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char program[] = "agent", given[64], next[64], **copy;
		char *argv[] = { program, given, next, NULL };

		snprintf(given, sizeof(given), "%s", cases[i].given);
		snprintf(next, sizeof(next), "%s", cases[i].next);
		assert_int_equal(arguments_take(3, argv, &copy), 0);
		assert_string_equal(argv[1], cases[i].shown);
		assert_string_equal(argv[2], cases[i].next_shown);
		assert_string_equal(copy[1], cases[i].given);
		assert_string_equal(copy[2], cases[i].next);
		assert_null(copy[3]);
		arguments_free(copy);
	}
}

static void a_secret_without_a_value_overwrites_nothing_else(void **state)
{
	char program[] = "agent", given[] = "--remote-store-headers", **copy;
	char *argv[] = { program, given, NULL };

	(void)state;
	assert_int_equal(arguments_take(2, argv, &copy), 0);
	assert_string_equal(argv[1], "--remote-store-headers");
	arguments_free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_overwritten_and_copied),
		cmocka_unit_test(a_secret_without_a_value_overwrites_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
