/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/daemon/daemon.h"
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

static int check_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	perror("fathom check: standard output");
	return -EIO;
}

/* As an agent with this file and our environment would have them. */
static int check_load_settings(const char *path, char **ret_message)
{
	char *argv[] = { (char *)"agent", NULL };
	struct config config;
	int err = config_parse(&config, IN_AGENT, 1, argv);

	if (err)
		return err;
	err = config_load(&config, path, ret_message);
	if (!err)
		err = daemon_check(&config, ret_message);
	config_deinit(&config);
	return err;
}

static int check_settings(const char *path, bool json)
{
	struct check_feature feature = { .name = "settings", .state = CHECK_OK };
	autofree char *message = NULL;
	int err = check_load_settings(path, &message);

	if (err)
		feature.state = CHECK_MISSING;
	snprintf(feature.why, sizeof(feature.why), "%s",
		!err      ? path
		: message ? message
			  : strerror(-err));
	utf8_clean(feature.why, strlen(feature.why));
	if (json)
		check_print_json(&feature, 1);
	else if (!err)
		check_print_line(&feature);
	else
		fprintf(stderr, "fathom check: %s\n", message ? message : strerror(-err));
	return check_flush() || err ? EXIT_FAILED : EXIT_DONE;
}

int command_check(struct invocation *call)
{
	struct check_feature features[CHECK_FEATURES];
	const struct config *config = &call->config;
	const char *path = config_text(config, SETTING_checked_file);
	int count;

	/* In an agent's environment, FATHOM_CONFIG_PATH is set for the agent. */
	if (path && config->values[SETTING_checked_file].source == CONFIG_COMMAND_LINE)
		return check_settings(path, config_flag(config, SETTING_json));
	count = check_features(features);
	for (int i = 0; i < count; i++)
		utf8_clean(features[i].why, strlen(features[i].why));
	if (config_flag(config, SETTING_json))
		check_print_json(features, count);
	for (int i = 0; i < count && !config_flag(config, SETTING_json); i++)
		check_print_line(&features[i]);
	if (check_flush())
		return EXIT_FAILED;
	return can_sample(features, count) ? EXIT_DONE : EXIT_FAILED;
}
