/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check.h"

#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/log_options.h"
#include "agent/settings/config.h"
#include "base/cleanup.h"
#include "base/utf8.h"

static const char *const state_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_DEGRADED] = "degraded",
	[CHECK_MISSING] = "missing",
};

static void print_usage(FILE *out)
{
	fputs("usage: fathom check [OPTION]…\n\n"
	      "Says what this machine allows: one line a feature, ok, degraded or missing, why,\n"
	      "and what to do. Exits with 0 when profiles can be taken.\n\n",
		out);
	config_print_options(out, IN_CHECK);
}

static void print_line(const struct check_feature *f)
{
	printf("%-8s  %-19s  %s%s%s\n", state_names[f->state], f->name, f->why,
		f->fix[0] ? "; to do: " : "", f->fix);
}

/* TEXT is valid UTF-8 without control characters. */
static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_json(const struct check_feature *f, bool first)
{
	printf("%s\n  {\"feature\": \"%s\", \"state\": \"%s\", \"why\": ", first ? "[" : ",",
		f->name, state_names[f->state]);
	print_json_string(f->why);
	fputs(", \"fix\": ", stdout);
	print_json_string(f->fix);
	putchar('}');
}

static bool can_sample(const struct check_feature *features, int count)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(features[i].name, CHECK_SAMPLER))
			return features[i].state != CHECK_MISSING;
	}
	return false;
}

int command_check(int argc, char **argv)
{
	struct check_feature features[CHECK_FEATURES];
	autocall(config_deinit) struct config config;
	int count;

	if (config_parse(&config, IN_CHECK, argc, argv))
		return EXIT_USAGE;
	if (config_flag(&config, SETTING_help)) {
		print_usage(stdout);
		return EXIT_DONE;
	}
	if (log_options(&config))
		return EXIT_USAGE;
	if (config.rest_count) {
		fprintf(stderr, "fathom check: '%s' is not wanted here; see fathom check --help\n",
			config.rest[0]);
		return EXIT_USAGE;
	}
	count = check_features(features);
	for (int i = 0; i < count; i++) {
		utf8_clean(features[i].why, strlen(features[i].why), true);
		if (config_flag(&config, SETTING_json))
			print_json(&features[i], i == 0);
		else
			print_line(&features[i]);
	}
	if (config_flag(&config, SETTING_json))
		puts("\n]");
	if (fflush(stdout) || ferror(stdout)) {
		perror("fathom check: standard output");
		return EXIT_FAILED;
	}
	return can_sample(features, count) ? EXIT_DONE : EXIT_FAILED;
}
