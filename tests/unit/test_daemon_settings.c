/* SPDX-License-Identifier: Apache-2.0 */
/* How the agent applies its settings at the start and on a reload. */
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

#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/fixed_settings.h"
#include "base/cleanup.h"
#include "base/secret_file.h"

enum { MAX_ARGUMENTS = 8 };

/* The settings in a NULL-terminated list of arguments. */
static void parse(struct config *config, ...)
{
	char *argv[MAX_ARGUMENTS] = { (char *)"agent" };
	int argc = 1;
	va_list list;

	va_start(list, config);
	while ((argv[argc] = va_arg(list, char *)))
		argc++;
	va_end(list);
	assert_int_equal(config_parse(config, IN_AGENT, argc, argv), 0);
}

/* ---- settings that only a start can change -------------------------------------------------- */

static char *note_of(struct config *old, struct config *new)
{
	char *note = NULL;

	fixed_settings_keep(old, new, &note);
	return note;
}

static void all_fixed_settings_that_changed_are_named(void **state)
{
	struct config old, new;
	autofree char *note = NULL;

	(void)state;
	parse(&old, "--memory-limit=256M", "--cache-max-bytes=1G", "--node=a", NULL);
	parse(&new, "--memory-limit=300M", "--cache-max-bytes=2G", "--node=b",
		"--debuginfo-directories=/x", NULL);
	note = note_of(&old, &new);
	assert_non_null(note);
	assert_non_null(strstr(note, "--memory-limit"));
	assert_non_null(strstr(note, "--cache-max-bytes"));
	assert_non_null(strstr(note, "--debuginfo-directories"));
	assert_non_null(strstr(note, " take effect at the next start"));
	assert_null(strstr(note, "--node"));
	assert_string_equal(config_text(&new, SETTING_memory_limit), "256M");
	assert_string_equal(config_text(&new, SETTING_node), "b");
	config_deinit(&old);
	config_deinit(&new);
}

static void one_changed_setting_is_named_alone(void **state)
{
	struct config old, new;
	autofree char *note = NULL;

	(void)state;
	parse(&old, "--memory-limit=256M", NULL);
	parse(&new, "--memory-limit=300M", NULL);
	note = note_of(&old, &new);
	assert_string_equal(note, "--memory-limit takes effect at the next start");
	config_deinit(&old);
	config_deinit(&new);
}

static void unchanged_settings_are_not_named(void **state)
{
	struct config old, new;

	(void)state;
	parse(&old, "--memory-limit=256M", "--node=a", NULL);
	parse(&new, "--memory-limit=256M", NULL);
	assert_null(note_of(&old, &new));
	config_deinit(&old);
	config_deinit(&new);
}

/* ---- the token of the HTTP address ---------------------------------------------------------- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fixed_settings_that_changed_are_named),
		cmocka_unit_test(one_changed_setting_is_named_alone),
		cmocka_unit_test(unchanged_settings_are_not_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
