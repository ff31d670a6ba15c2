/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/log_options.h"

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

int log_options(const struct config *config)
{
	const char *level = config_text(config, SETTING_log_level);
	const char *format = config_text(config, SETTING_log_format);
	size_t number = 0;

	while (number < ARRAY_SIZE(level_names) && strcmp(level, level_names[number]))
		number++;
	if (number == ARRAY_SIZE(level_names)) {
		fprintf(stderr, "fathom: --log-level knows error, warn, info and debug\n");
		return -EINVAL;
	}
	if (strcmp(format, "logfmt") && strcmp(format, "json")) {
		fprintf(stderr, "fathom: --log-format knows logfmt and json\n");
		return -EINVAL;
	}
	log_configure((enum log_level)number, !strcmp(format, "json"));
	return 0;
}
