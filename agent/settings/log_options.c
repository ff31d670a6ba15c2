/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/log_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

/* A level that the user names is stronger than -q and -v. */
static size_t level_number(const struct config *config)
{
	const char *level = config_text(config, SETTING_log_level);
	size_t number = 0;

	if (!config_given(config, SETTING_log_level) && config_flag(config, SETTING_quiet))
		return LOG_ERROR;
	if (!config_given(config, SETTING_log_level) && config_flag(config, SETTING_verbose))
		return LOG_INFO;
	while (number < ARRAY_SIZE(level_names) && strcmp(level, level_names[number]))
		number++;
	return number;
}

const char *log_options_problem(const struct config *config, enum setting *ret_setting)
{
	const char *format = config_text(config, SETTING_log_format);

	*ret_setting = SETTING_log_level;
	if (level_number(config) == ARRAY_SIZE(level_names))
		return "must be error, warn, info or debug";
	*ret_setting = SETTING_quiet;
	if (config_flag(config, SETTING_quiet) && config_flag(config, SETTING_verbose))
		return "excludes --verbose";
	*ret_setting = SETTING_log_format;
	return strcmp(format, "logfmt") && strcmp(format, "json") ? "must be logfmt or json" : NULL;
}

int log_options(const struct config *config)
{
	enum setting setting;
	const char *problem = log_options_problem(config, &setting);

	if (problem) {
		fprintf(stderr, "fathom: %s %s\n", config_name(setting), problem);
		return -EINVAL;
	}
	log_configure((enum log_level)level_number(config),
		!strcmp(config_text(config, SETTING_log_format), "json"));
	return 0;
}
