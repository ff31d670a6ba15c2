/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check.h"

#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/settings/log_options.h"
#include "agent/settings/config.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

enum { JSON_BYTES = 1 << 20 };

static const char *const state_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_DEGRADED] = "degraded",
	[CHECK_MISSING] = "missing",
};

static void check_print_line(const struct check_feature *f)
{
	printf("%-8s  %-19s  %s%s%s\n", state_names[f->state], f->name, f->why,
		f->fix[0] ? "; to do: " : "", f->fix);
}

static void check_print_json(const struct check_feature *features, int count)
{
	autocall(buffer_deinit) struct buffer text;
	struct json j;

	buffer_init(&text, JSON_BYTES);
	json_init(&j, &text, JSON_SPACED);
	json_array_by_line(&j, NULL);
	for (int i = 0; i < count; i++) {
		json_object(&j, NULL);
		json_text(&j, "feature", features[i].name);
		json_text(&j, "state", state_names[features[i].state]);
		json_text(&j, "why", features[i].why);
		json_text(&j, "fix", features[i].fix);
		json_close(&j);
	}
	json_close(&j);
	json_finish(&j);
	buffer_string(&text, "\n");
	fwrite(text.bytes, 1, text.size, stdout);
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
	for (int i = 0; i < count; i++)
		utf8_clean(features[i].why, strlen(features[i].why));
	if (config_flag(config, SETTING_json))
		check_print_json(features, count);
	for (int i = 0; i < count && !config_flag(config, SETTING_json); i++)
		check_print_line(&features[i]);
	if (fflush(stdout) || ferror(stdout)) {
		perror("fathom check: standard output");
		return EXIT_FAILED;
	}
	return can_sample(features, count) ? EXIT_DONE : EXIT_FAILED;
}
