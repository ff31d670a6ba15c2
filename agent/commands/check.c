/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check.h"

#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/settings/log_options.h"
#include "agent/settings/config.h"
#include "base/cleanup.h"
#include "base/utf8.h"

static const char *const state_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_DEGRADED] = "degraded",
	[CHECK_MISSING] = "missing",
};

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

int command_check(struct invocation *call)
{
	struct check_feature features[CHECK_FEATURES];
	const struct config *config = &call->config;
	int count;

	count = check_features(features);
	for (int i = 0; i < count; i++) {
		utf8_clean(features[i].why, strlen(features[i].why), true);
		if (config_flag(config, SETTING_json))
			print_json(&features[i], i == 0);
		else
			print_line(&features[i]);
	}
	if (config_flag(config, SETTING_json))
		puts("\n]");
	if (fflush(stdout) || ferror(stdout)) {
		perror("fathom check: standard output");
		return EXIT_FAILED;
	}
	return can_sample(features, count) ? EXIT_DONE : EXIT_FAILED;
}
