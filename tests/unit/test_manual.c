/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page lists everything that the tables hold, and roff renders it as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "tests/unit/command_fixture.h"

static struct command_run run;

static const char *page(void)
{
	run = (struct command_run){ 0 };
	command_expect(&run, "manual", EXIT_DONE, "");
	assert_string_equal(run.err, "");
	return run.out;
}

/* The section HEAD of this KIND, up to the next of that kind. */
static char *section(const char *kind, const char *head)
{
	char begin[128], next[16];
	char *at, *end;

	snprintf(begin, sizeof(begin), "\n%s %s\n", kind, head);
	at = strstr(page(), begin);
	if (!at)
		fail_msg("no section %s", head);
	snprintf(next, sizeof(next), "\n%s ", kind);
	end = strstr(at + strlen(begin), next);
	if (end)
		end[1] = 0;
	end = strstr(at + strlen(begin), "\n.SH ");
	if (end)
		end[1] = 0;
	return at + strlen(begin);
}

static size_t count(const char *text, const char *word)
{
	size_t found = 0;

	while ((text = strstr(text, word)) != NULL) {
		found++;
		text += strlen(word);
	}
	return found;
}

static void contains(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("no '%s' in:\n%s", wanted, text);
}

static void the_head_names_the_program(void **state)
{
	static const char *const sections[] = { "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS",
		"OPTIONS", "CONFIGURATION", "LABELS OF SAMPLES", "SIGNALS", "HTTP", "FILES",
		"EXIT STATUS", "EXAMPLES", "SEE ALSO" };
	size_t count_of_sections = sizeof(sections) / sizeof(*sections);
	const char *at;

	(void)state;
	assert_int_equal(strncmp(page(), ".TH FATHOM 1 ", 13), 0);
	at = run.out;
	for (size_t i = 0; i < count_of_sections; i++) {
		char line[64];

		snprintf(line, sizeof(line), "\n.SH %s\n", sections[i]);
		at = strstr(at, line); /* in this order */
		if (!at)
			fail_msg("no section %s behind the one before", sections[i]);
	}
	assert_int_equal(count(run.out, "\n.SH "), count_of_sections);
	contains(run.out, "\nfathom \\- a sampling profiler for whole Linux machines\n");
	contains(run.out, "\n.BR perf (1),\n.BR capabilities (7)\n");
}

static void every_command_has_a_synopsis_and_a_description(void **state)
{
	const struct command *command;
	char line[64];
	size_t shown = 0;

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		const char *synopsis = section(".SH", "SYNOPSIS");

		snprintf(line, sizeof(line), ".B fathom %s\n", command->name);
		assert_int_equal(count(synopsis, line), command->summary != NULL);
		snprintf(line, sizeof(line), ".SS fathom %s\n", command->name);
		assert_int_equal(count(page(), line), command->summary != NULL);
		shown += command->summary != NULL;
	}
	/* Each is on a line of its own; --help and --version are on the last one. */
	assert_int_equal(count(section(".SH", "SYNOPSIS"), ".br\n"), shown);
	assert_int_equal(strncmp(section(".SH", "SYNOPSIS"), ".B fathom ", 10), 0);
	contains(section(".SH", "SYNOPSIS"),
		".B fathom record\n[OPTION]... [\\-\\- CMD ARG...]\n.br\n.B fathom top\n");
	contains(section(".SH", "SYNOPSIS"), ".br\n.B fathom \\-\\-help\n|\n.B \\-\\-version\n");
	contains(section(".SS", "fathom completion"), "\\(gamake install\\(aq installs them");
}

static void options_tell_their_values_defaults_and_environment(void **state)
{
	(void)state;
	contains(section(".SS", "Options of fathom record"),
		".TP\n\\fB\\-F\\fR, \\fB\\-\\-frequency\\fR=\\fIHZ\\fR\n"
		"samples per second on each CPU (1 to 10000). Default: 99.\n"
		"Environment: \\fBFATHOM_FREQUENCY\\fR.\n");
	contains(section(".SS", "Options of fathom record"),
		".TP\n\\fB\\-\\-comm\\fR=\\fINAME\\fR\n"
		"only threads with this name (the first 15 bytes are compared).\n"
		"Environment: \\fBFATHOM_COMM\\fR.\n");
	contains(section(".SS", "Options of fathom record"),
		".TP\n\\fB\\-K\\fR, \\fB\\-\\-kernel\\fR\nkernel stacks only.\n");
	/* --help has no environment variable. */
	contains(section(".SS", "Options of fathom check"),
		".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nthis text.\n");
	assert_int_equal(count(page(), "FATHOM_HELP"), 0);
}

static void every_option_is_with_its_command_only(void **state)
{
	const struct command *command;
	char head[64];

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		size_t options = 0;

		if (!command->settings) {
			snprintf(head, sizeof(head), ".SS Options of fathom %s\n", command->name);
			assert_int_equal(count(page(), head), 0);
			continue;
		}
		for (enum setting id = 0; id < SETTING_COUNT; id++)
			options += (config_row(id)->commands & command->settings) &&
				   !config_is_hidden(id);
		snprintf(head, sizeof(head), "Options of fathom %s", command->name);
		assert_int_equal(count(section(".SS", head), ".TP\n"), options);
	}
}

static void keys_of_the_settings_file_are_listed(void **state)
{
	char environment[80], line[160];
	const char *text;
	size_t keys = 0;

	(void)state;
	text = section(".SH", "CONFIGURATION");
	for (enum setting id = 0; id < SETTING_COUNT; id++)
		keys += (config_row(id)->commands & IN_AGENT) && config_in_file(id);
	assert_int_equal(count(text, ".TP\n\\fB"), keys);
	config_environment_name(SETTING_node, environment, sizeof(environment));
	snprintf(line, sizeof(line), ".TP\n\\fBnode\\fR\n%s\n", environment);
	contains(text, line);
	contains(text, ".TP\n\\fBlocal\\-store\\-directory\\fR\nFATHOM_LOCAL_STORE_DIRECTORY\n");
	assert_null(strstr(text, "\\fBconfig\\-path\\fR\nFATHOM"));
	assert_null(strstr(text, "\\fBfrequency\\fR\n"));
	contains(text, ".PP\nOther commands take their options from the environment");
}

static void sections_without_a_table_are_present(void **state)
{
	(void)state;
	contains(section(".SH", "SIGNALS"), ".TP\n\\fBSIGHUP\\fR\nagent: reload the settings.");
	contains(section(".SH", "HTTP"), ".TP\n\\fBGET /metrics\\fR\nOpenMetrics text\n");
	contains(section(".SH", "HTTP"), ".PP\nServed by \\fBfathom agent\\fR");
	contains(section(".SH", "FILES"),
		".TP\n\\fBfathom.pb.gz\\fR\nThe default output file of record.");
	contains(
		section(".SH", "EXIT STATUS"), ".TP\n\\fB0\\fR\nSuccess.\n.TP\n\\fB1\\fR\nFailed;");
	contains(section(".SH", "EXAMPLES"), ".TP\n\\fBsudo fathom record \\-d 10\\fR\n");
	/* A dot or a quote at the beginning of a line would be a request. */
	contains(section(".SH", "EXAMPLES"), "\\fBgo tool pprof \\(aqhttp://127.0.0.1:7071/");
	contains(section(".SS", "fathom record"), "\n.PP\nAt the end it prints");
}

static void roff_finds_nothing_wrong(void **state)
{
	char path[] = "/tmp/fathom-test-XXXXXX", command[128];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	(void)state;
	fputs(page(), file);
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof(command), "mandoc -T lint -W warning %s", path);
	assert_int_equal(system(command), 0);
	remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_names_the_program),
		cmocka_unit_test(every_command_has_a_synopsis_and_a_description),
		cmocka_unit_test(options_tell_their_values_defaults_and_environment),
		cmocka_unit_test(every_option_is_with_its_command_only),
		cmocka_unit_test(keys_of_the_settings_file_are_listed),
		cmocka_unit_test(sections_without_a_table_are_present),
		cmocka_unit_test(roff_finds_nothing_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
