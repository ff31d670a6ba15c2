/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/server/export/remote/retry_after.h"

/* Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110 */
static const int64_t NOW_S = 784111777;
static const uint64_t SECOND = 1000000000, DAY = UINT64_C(86400000000000);

struct expected {
	const char *text;
	uint64_t ns;
};

static void check(const struct expected *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t ns = retry_after_ns(cases[i].text, "", NOW_S);

		if (ns != cases[i].ns)
			fail_msg("\"%s\": %llu ns", cases[i].text, (unsigned long long)ns);
	}
}

static void seconds(void **state)
{
	static const struct expected cases[] = {
		{ "0", 0 },
		{ "17", 17 * SECOND },
		{ "0000000017", 17 * SECOND },
		{ "86400", DAY },
		{ "86401", DAY },
		{ "18446744073709551615", DAY },
		{ "18446744073709551617", DAY },
		{ "99999999999999999999999999999999999999", DAY },
	};

	(void)state;
	check(cases, sizeof(cases) / sizeof(cases[0]));
}

static void invalid_values_are_ignored(void **state)
{
	static const struct expected cases[] = {
		{ "", 0 },
		{ "-1", 0 },
		{ "-99999999999", 0 },
		{ "+5", 0 },
		{ "1.5", 0 },
		{ "5s", 0 },
		{ "0x10", 0 },
		{ "soon", 0 },
		{ "1e9", 0 },
		{ "Sun, 06 Nov 1994 08:49:57", 0 },
		{ "Sun, 06 Nov 1994 08:49:57 GMT, or later", 0 },
		{ "Sun, 99 Nov 1994 08:49:57 GMT", 0 },
	};

	(void)state;
	check(cases, sizeof(cases) / sizeof(cases[0]));
}

static void dates(void **state)
{
	static const struct expected cases[] = {
		{ "Sun, 06 Nov 1994 08:49:57 GMT", 20 * SECOND },
		{ "Sunday, 06-Nov-94 08:49:57 GMT", 20 * SECOND },
		{ "Sun Nov  6 08:49:57 1994", 20 * SECOND },
		/* Now, two seconds ago, long ago. */
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 0 },
		{ "Sun, 06 Nov 1994 08:49:35 GMT", 0 },
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
		{ "Mon, 01 Jan 1900 00:00:00 GMT", 0 },
		/* Far in the future: at most a day. */
		{ "Mon, 07 Nov 1994 08:49:38 GMT", DAY },
		{ "Fri, 31 Dec 9999 23:59:59 GMT", DAY },
	};

	(void)state;
	check(cases, sizeof(cases) / sizeof(cases[0]));
}

/* With the server's own time in the answer, only the difference of its two times counts. */
static void the_servers_own_clock_counts(void **state)
{
	const char *at = "Sun, 06 Nov 1994 08:49:57 GMT";

	(void)state;
	assert_int_equal(retry_after_ns(at, "Sun, 06 Nov 1994 08:49:37 GMT", 0), 20 * SECOND);
	assert_int_equal(
		retry_after_ns(at, "Sun, 06 Nov 1994 08:49:37 GMT", INT64_MAX), 20 * SECOND);
	assert_int_equal(retry_after_ns(at, "Sun, 06 Nov 1994 08:50:00 GMT", NOW_S), 0);
	assert_int_equal(retry_after_ns(at, "yesterday", NOW_S), 20 * SECOND);
	assert_int_equal(retry_after_ns("5", "Sun, 06 Nov 1994 08:49:37 GMT", 0), 5 * SECOND);
	assert_int_equal(retry_after_ns(at, "", INT64_MIN), DAY);
	assert_int_equal(retry_after_ns(at, "", INT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seconds),
		cmocka_unit_test(invalid_values_are_ignored),
		cmocka_unit_test(dates),
		cmocka_unit_test(the_servers_own_clock_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
