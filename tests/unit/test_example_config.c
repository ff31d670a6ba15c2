/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/fathom.yaml lists all settings with their defaults. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/config.h"
#include "agent/daemon/daemon_internal.h"
#include "agent/sampler/process/selection.h"
#include "base/cleanup.h"

static const char EXAMPLE[] = "deploy/fathom.yaml";

static void parse(struct config *config)
{
	char *argv[] = { (char *)"agent", NULL };

	assert_int_equal(config_parse(config, IN_AGENT, 1, argv), 0);
}

static void load(struct config *config, const char *path)
{
	autofree char *message = NULL;

	if (config_load(config, path, &message))
		fail_msg("%s", message ? message : "out of memory");
}

/* `#name: value` and `#  - item`: a setting that is not set. Explanations have a blank after the
 * `#`. */
static bool is_setting(const char *line)
{
	return line[0] == '#' && (islower((unsigned char)line[1]) || !strncmp(line, "#  - ", 5));
}

/* The example with every setting that it shows enabled. */
static void write_all(char *path)
{
	autofclose FILE *in = fopen(EXAMPLE, "r");
	FILE *out = fdopen(mkstemp(path), "w");
	char line[512];

	assert_non_null(in);
	assert_non_null(out);
	while (fgets(line, sizeof(line), in))
		fputs(is_setting(line) ? line + 1 : line, out);
	assert_int_equal(fclose(out), 0);
}

static void the_example_changes_nothing(void **state)
{
	struct config plain, example;

	(void)state;
	parse(&plain);
	parse(&example);
	load(&example, EXAMPLE);
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		const char *a = config_text(&plain, id), *b = config_text(&example, id);

		if (a ? !b || strcmp(a, b) : b != NULL)
			fail_msg("%s: %s here, by default %s", config_name(id), b, a);
	}
	config_deinit(&plain);
	config_deinit(&example);
}

static bool is_for_a_file(const struct config *config, enum setting id)
{
	struct config copy;
	int err;

	assert_int_equal(config_copy(config, &copy), 0);
	err = config_set_named(&copy, config_name(id) + strlen("--"), "1", 1);
	/* Another command may have a setting of this name, which is not the one that was set. */
	if (!err && copy.values[id].source != CONFIG_FILE)
		err = -ENOENT;
	config_deinit(&copy);
	return err != -ENOENT;
}

static void all_settings_are_in_it(void **state)
{
	char path[] = "/tmp/test-example-XXXXXX";
	struct config plain, all;
	size_t count = 0;

	(void)state;
	write_all(path);
	parse(&plain);
	parse(&all);
	load(&all, path);
	unlink(path);
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (!is_for_a_file(&plain, id))
			continue;
		if (all.values[id].source != CONFIG_FILE)
			fail_msg("%s is not in %s", config_name(id), EXAMPLE);
		count++;
	}
	assert_true(count > 20);
	config_deinit(&plain);
	config_deinit(&all);
}

static void its_values_are_accepted(void **state)
{
	char path[] = "/tmp/test-example-XXXXXX";
	struct daemon_settings settings;
	autofree char *message = NULL;
	struct config all;

	(void)state;
	write_all(path);
	parse(&all);
	load(&all, path);
	unlink(path);
	/* It shows ways to authenticate that exclude each other. */
	free(all.values[SETTING_remote_store_address].text);
	free(all.values[SETTING_remote_store_type].text);
	all.values[SETTING_remote_store_address].text = NULL;
	all.values[SETTING_remote_store_type].text = NULL;
	if (daemon_settings_read(&all, &settings, &message))
		fail_msg("%s", message);
	assert_true(settings.frequency_hz == 19);
	selection_destroy(settings.selection);
	config_deinit(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_changes_nothing),
		cmocka_unit_test(all_settings_are_in_it),
		cmocka_unit_test(its_values_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
