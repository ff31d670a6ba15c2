/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings/config.h"
#include "base/cleanup.h"

static int parse(struct config *config, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return config_parse(config, IN_RECORD, argc, argv);
}

#define PARSE(config, ...) parse(config, (char *[]){ (char *)"record", __VA_ARGS__, NULL })

static void defaults_are_in_effect(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(parse(&config, (char *[]){ (char *)"record", NULL }), 0);
	assert_true(config_number(&config, SETTING_frequency) == 99);
	assert_false(config_given(&config, SETTING_frequency));
	assert_string_equal(config_text(&config, SETTING_event), "cpu-clock");
	assert_null(config_text(&config, SETTING_output));
	assert_int_equal(config.rest_count, 0);
	config_deinit(&config);
}

static void options_in_all_their_forms(void **state)
{
	struct config config;

	(void)state;
	assert_int_equal(PARSE(&config, "-F199", "--duration=1.5", "-o", "x", "-U", "-p1,2", "-p",
				 "3", "--", "cmd", "-F1"),
		0);
	assert_true(config_number(&config, SETTING_frequency) == 199);
	assert_true(config_number(&config, SETTING_duration) == 1500000000);
	assert_string_equal(config_text(&config, SETTING_output), "x");
	assert_true(config_flag(&config, SETTING_user));
	assert_string_equal(config_text(&config, SETTING_pid), "1,2,3");
	assert_int_equal(config.rest_count, 2);
	assert_string_equal(config.rest[0], "cmd");
	config_deinit(&config);
}

static void units_of_time_and_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = { { "10", 10000000000 }, { "10s", 10000000000 }, { "500ms", 500000000 },
		{ "2m", 120000000000 }, { "1h", 3600000000000 }, { "0.25", 250000000 },
		{ ".5s", 500000000 } };
	struct config config;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(PARSE(&config, "-d", (char *)cases[i].text), 0);
		assert_true(config_number(&config, SETTING_duration) == cases[i].ns);
		config_deinit(&config);
	}
	assert_int_equal(PARSE(&config, "--memory-limit=64M"), 0);
	assert_true(config_number(&config, SETTING_memory_limit) == 64 << 20);
	config_deinit(&config);
}

static void invalid_values_are_refused(void **state)
{
	static const char *const bad[] = { "-Fabc", "-F-1", "-F", "-d1x", "-d-1", "-d.", "-ds",
		"-dinf", "-d0x1", "-d1e3", "--no-such", "-Z", "--memory-limit=1Q",
		"-F99999999999999999999", "--duration=1e3", "--duration=nan" };
	struct config config;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(PARSE(&config, (char *)bad[i]), -EINVAL);
}

static void the_command_line_overrides_the_environment(void **state)
{
	struct config config;

	(void)state;
	setenv("FATHOM_FREQUENCY", "49", 1);
	setenv("FATHOM_CPU", "5", 1);
	assert_int_equal(PARSE(&config, "-U"), 0);
	assert_true(config_number(&config, SETTING_frequency) == 49);
	assert_string_equal(config_text(&config, SETTING_cpu), "5");
	config_deinit(&config);
	assert_int_equal(PARSE(&config, "-F", "50", "-C", "1", "-C", "2"), 0);
	assert_true(config_number(&config, SETTING_frequency) == 50);
	assert_string_equal(config_text(&config, SETTING_cpu), "1,2");
	config_deinit(&config);
	setenv("FATHOM_FREQUENCY", "many", 1);
	assert_int_equal(PARSE(&config, "-U"), -EINVAL);
	unsetenv("FATHOM_FREQUENCY");
	unsetenv("FATHOM_CPU");
}

static void servers_of_debug_files(void **state)
{
	struct config config;

	(void)state;
	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(PARSE(&config, "-U"), 0);
	assert_null(config_text(&config, SETTING_debuginfod_urls));
	config_deinit(&config);
	setenv("DEBUGINFOD_URLS", "https://a http://b/c/", 1);
	assert_int_equal(PARSE(&config, "-U"), 0);
	assert_string_equal(config_text(&config, SETTING_debuginfod_urls), "https://a http://b/c/");
	config_deinit(&config);
	assert_int_equal(PARSE(&config, "--debuginfod-urls="), 0);
	assert_string_equal(config_text(&config, SETTING_debuginfod_urls), "");
	config_deinit(&config);
	setenv("FATHOM_DEBUGINFOD_URLS", "https://d", 1);
	assert_int_equal(PARSE(&config, "-U"), 0);
	assert_string_equal(config_text(&config, SETTING_debuginfod_urls), "https://d");
	config_deinit(&config);
	assert_int_equal(PARSE(&config, "--debuginfod-urls=debian.net"), -EINVAL);
	setenv("FATHOM_DEBUGINFOD_URLS", "debian.net", 1);
	assert_int_equal(PARSE(&config, "-U"), -EINVAL);
	unsetenv("FATHOM_DEBUGINFOD_URLS");
	/* Forms that gdb accepts and we do not. */
	setenv("DEBUGINFOD_URLS", "https://a file:///mnt", 1);
	assert_int_equal(PARSE(&config, "-U"), 0);
	assert_null(config_text(&config, SETTING_debuginfod_urls));
	config_deinit(&config);
	unsetenv("DEBUGINFOD_URLS");
}

static void number_lists(void **state)
{
	static const char *const bad[] = { "", "1-", "a", "3-1", "1,,2", "0-99999999", "-1",
		"1;2" };
	struct config config;
	uint32_t *numbers = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(PARSE(&config, "-C", "0,2-4"), 0);
	assert_int_equal(config_numbers(&config, SETTING_cpu, 16, &numbers, &count), 0);
	assert_int_equal(count, 4);
	assert_int_equal(numbers[3], 4);
	free(numbers);
	config_deinit(&config);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char option[32];

		snprintf(option, sizeof(option), "--cpu=%s", bad[i]);
		assert_int_equal(PARSE(&config, option), 0);
		assert_int_equal(
			config_numbers(&config, SETTING_cpu, 16, &numbers, &count), -EINVAL);
		config_deinit(&config);
	}
}

static void each_option_is_in_the_help(void **state)
{
	autofree char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	config_print_options(out, IN_RECORD);
	fclose(out);
#define SETTING(id, type, name, letter, commands, argument, fallback, help_) \
	if (((commands)&IN_RECORD) && (help_))                               \
		assert_non_null(strstr(text, "--" name));
#include "agent/settings/settings.def"
#undef SETTING
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_in_effect),
		cmocka_unit_test(options_in_all_their_forms),
		cmocka_unit_test(units_of_time_and_size),
		cmocka_unit_test(invalid_values_are_refused),
		cmocka_unit_test(the_command_line_overrides_the_environment),
		cmocka_unit_test(servers_of_debug_files),
		cmocka_unit_test(number_lists),
		cmocka_unit_test(each_option_is_in_the_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
