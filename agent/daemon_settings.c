/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/log_options.h"
#include "agent/daemon_internal.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { MAX_AGENT_HZ = 1000 };

static const uint64_t SECOND_NS = 1000000000;

static int refuse(char **ret_message, enum setting id, const char *why)
{
	if (asprintf(ret_message, "%s: %s", config_name(id), why) < 0)
		*ret_message = NULL;
	return -EINVAL;
}

static bool parse_percent(const char *text, double *ret_share)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%")) || !(percent >= 0 && percent <= 100000))
		return false;
	*ret_share = percent / 100;
	return true;
}

int daemon_settings_read(
	const struct config *config, struct daemon_settings *ret_settings, char **ret_message)
{
	struct daemon_settings s = {
		.frequency_hz = config_number(config, SETTING_sampling_frequency),
		.window_ns = config_number(config, SETTING_profiling_duration),
		.store_bytes = config_number(config, SETTING_local_store_max_bytes),
		.store_age_ns = config_number(config, SETTING_local_store_max_age),
	};

	*ret_message = NULL;
	if (s.frequency_hz < 1 || s.frequency_hz > MAX_AGENT_HZ)
		return refuse(ret_message, SETTING_sampling_frequency, "wants 1 to 1000");
	if (s.window_ns < SECOND_NS || s.window_ns > 3600 * SECOND_NS)
		return refuse(ret_message, SETTING_profiling_duration, "wants 1s to 1h");
	if (!parse_percent(config_text(config, SETTING_cpu_budget), &s.cpu_share))
		return refuse(ret_message, SETTING_cpu_budget,
			"wants a percentage of one CPU, 0 for no limit");
	*ret_settings = s;
	return 0;
}

/* What can only be set at the start, and differs. */
static const char *fixed_change(const struct config *old, const struct config *new)
{
	static const enum setting fixed[] = {
		SETTING_http_address,
		SETTING_http_token_file,
		SETTING_local_store_directory,
		SETTING_cache_directory,
		SETTING_cache_max_bytes,
		SETTING_memory_limit,
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		const char *a = config_text(old, fixed[i]), *b = config_text(new, fixed[i]);

		if (strcmp(a ? a : "", b ? b : ""))
			return config_name(fixed[i]);
	}
	return NULL;
}

static void apply(struct daemon *d, const struct daemon_settings *settings)
{
	bool frequency = settings->frequency_hz != d->settings.frequency_hz;
	bool window = settings->window_ns != d->settings.window_ns;

	d->settings = *settings;
	(void)log_options(&d->config);
	if (d->store)
		store_set_limits(d->store, settings->store_bytes, settings->store_age_ns);
	budget_init(&d->budget, settings->cpu_share, settings->frequency_hz);
	if (frequency && agent_set_frequency(d->agent, settings->frequency_hz))
		log_warn("the frequency could not be changed, ignoring", "%s", "");
	if (window && daemon_schedule_window(d))
		log_warn("the window's length could not be changed, ignoring", "%s", "");
}

static int read_again(const struct daemon *d, struct config *ret_config,
	struct daemon_settings *ret_settings, char **ret_message)
{
	struct config config;
	const char *path;
	int err = config_parse(&config, IN_AGENT, d->argc, d->argv);

	if (err)
		return err;
	path = config_text(&config, SETTING_config_path);
	if (path)
		err = config_load(&config, path, ret_message);
	if (!err)
		err = daemon_settings_read(&config, ret_settings, ret_message);
	if (err) {
		config_deinit(&config);
		return err;
	}
	*ret_config = config;
	return 0;
}

int daemon_reload(struct daemon *d, char **ret_message)
{
	struct daemon_settings settings;
	struct config config;
	const char *fixed;
	int err;

	*ret_message = NULL;
	err = read_again(d, &config, &settings, ret_message);
	if (err)
		return err;
	fixed = fixed_change(&d->config, &config);
	if (fixed && asprintf(ret_message, "%s takes effect at the next start", fixed) < 0)
		*ret_message = NULL;
	config_deinit(&d->config);
	d->config = config;
	apply(d, &settings);
	return 0;
}
