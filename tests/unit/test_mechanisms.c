/* SPDX-License-Identifier: Apache-2.0 */
/* The names of mechanisms, and that --test-without is hidden but works on the command line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/mechanisms.h"
#include "agent/settings/config.h"
#include "base/cleanup.h"

static void names_become_mechanisms(void **state)
{
	static const struct {
		const char *names;
		uint32_t mechanisms;
	} cases[] = {
		{ NULL, 0 },
		{ "vma-lookup", MECHANISM_VMA_LOOKUP },
		{ "own-rings", MECHANISM_OWN_RINGS },
		{ "kernel-walk", MECHANISM_KERNEL_WALK },
		{ "packed-stacks", MECHANISM_PACKED_STACKS },
		{ "packed-rules", MECHANISM_PACKED_RULES },
		{ "uprobe-multi", MECHANISM_UPROBE_MULTI },
		{ "attach-cookie", MECHANISM_ATTACH_COOKIE },
		{ "fentry", MECHANISM_FENTRY },
		{ "kprobe-session", MECHANISM_KPROBE_SESSION },
		{ "kprobe-multi", MECHANISM_KPROBE_MULTI },
		{ "kernel-walk,vma-lookup", MECHANISM_KERNEL_WALK | MECHANISM_VMA_LOOKUP },
		{ "own-rings,own-rings", MECHANISM_OWN_RINGS },
	};
	uint32_t found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		found = UINT32_MAX;
		assert_int_equal(mechanisms_parse(cases[i].names, &found), 0);
		assert_int_equal(found, cases[i].mechanisms);
	}
}

static void other_names_are_refused(void **state)
{
	static const char *const cases[] = { "", "own", "own-rings2", "own-rings,", ",own-rings",
		"own-rings,,vma-lookup", "OWN-RINGS", "vma-lookup rings" };
	uint32_t found = 17;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(mechanisms_parse(cases[i], &found), -EINVAL);
	assert_int_equal(found, 17);
}

static void the_switch_is_taken_from_the_command_line_only(void **state)
{
	char *argv[] = { (char *)"agent", (char *)"--test-without=own-rings", NULL };
	struct config config;

	(void)state;
	assert_int_equal(setenv("FATHOM_TEST_WITHOUT", "vma-lookup", 1), 0);
	assert_int_equal(config_parse(&config, IN_AGENT, 1, argv), 0);
	assert_null(config_text(&config, SETTING_test_without));
	assert_int_equal(config_kind_named(&config, "test-without"), CONFIG_UNKNOWN);
	config_deinit(&config);
	assert_int_equal(config_parse(&config, IN_AGENT, 2, argv), 0);
	assert_string_equal(config_text(&config, SETTING_test_without), "own-rings");
	config_deinit(&config);
	assert_int_equal(unsetenv("FATHOM_TEST_WITHOUT"), 0);
}

static void the_help_does_not_show_it(void **state)
{
	static const enum config_command commands[] = { IN_RECORD, IN_TOP, IN_AGENT };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		autofree char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		config_print_options(out, commands[i]);
		fclose(out);
		assert_null(strstr(text, "test-without"));
		assert_non_null(strstr(text, "--memory-limit"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_mechanisms),
		cmocka_unit_test(other_names_are_refused),
		cmocka_unit_test(the_switch_is_taken_from_the_command_line_only),
		cmocka_unit_test(the_help_does_not_show_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
