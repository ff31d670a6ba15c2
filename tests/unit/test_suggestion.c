/* SPDX-License-Identifier: Apache-2.0 */
/* base/suggestion: what a misspelt command or option may have meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/suggestion.h"

static void expect(const char *word, const char *expected)
{
	static const char *const names[] = { "record", "report", "top", "trace", "check",
		"frequency", "folded" };
	struct suggestion s = { .word = word, .size = strcspn(word, "=") };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		suggestion_offer(&s, names[i]);
	assert_string_equal(s.name ? s.name : "", expected);
}

static void the_nearest_name_is_suggested(void **)
{
	expect("recrod", "record");
	expect("chekc", "check");
	expect("repart", "report");
	expect("tpo", "top");
	expect("frequncy=99", "frequency");
}

static void the_beginning_of_a_name_suggests_it(void **)
{
	expect("freq", "frequency");
	expect("recording", "record");
	expect("fo", "");
}

static void other_words_suggest_nothing(void **)
{
	char longest[300];

	expect("", "");
	expect("x", "");
	expect("symbolize", "");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	expect(longest, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_name_is_suggested),
		cmocka_unit_test(the_beginning_of_a_name_suggests_it),
		cmocka_unit_test(other_words_suggest_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
