/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/latency.h"
#include "agent/latency/latency_report.h"
#include "agent/sampler/functions/glob.h"
#include "agent/settings/cache_directory.h"
#include "base/cleanup.h"

enum { SHOWN_BYTES = 200 }; /* of a pattern in a message */

static const uint64_t MS = 1000000;
static const uint64_t MIN_INTERVAL_MS = 100, MAX_INTERVAL_MS = 3600000;

static int latency_options_refuse(const char *message)
{
	fprintf(stderr, "fathom latency: %s\n", message);
	return -EINVAL;
}

/* ---- patterns -------------------------------------------------------------------------------- */

static int latency_options_refuse_pattern(
	const char *option, const char *pattern, const char *problem)
{
	bool long_one = strlen(pattern) > SHOWN_BYTES;

	fprintf(stderr, "fathom latency: %s '%.*s%s' %s\n", option, SHOWN_BYTES, pattern,
		long_one ? "…" : "", problem);
	return -EINVAL;
}

static void latency_options_unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && text[1])
			text++;
		*to++ = *text;
	}
	*to = 0;
}

/*
 * Mappings have the paths of files, without symbolic links: /usr/bin/python3 is mapped as
 * /usr/bin/python3.11. An absolute path may exist only in a container.
 */
static int latency_options_resolve(const char *option, struct function_pattern *pattern)
{
	autofree char *path = NULL;

	if (!pattern->binary || !strchr(pattern->binary, '/'))
		return 0;
	if (glob_has_wildcards(pattern->binary))
		return *pattern->binary == '/' || *pattern->binary == '*'
			       ? 0
			       : latency_options_refuse_pattern(option, pattern->text,
					 "needs an absolute path before the colon, as the path has "
					 "wildcards");
	path = strdup(pattern->binary);
	if (!path)
		return -ENOMEM;
	latency_options_unescape(path);
	pattern->resolved = realpath(path, NULL);
	if (pattern->resolved || (*path == '/' && errno == ENOENT))
		return 0;
	return errno == ENOMEM
		       ? -ENOMEM
		       : latency_options_refuse_pattern(option, pattern->text, strerror(errno));
}

static int latency_options_add_pattern(
	const char *option, const char *text, struct function_patterns *patterns)
{
	const char *problem = "is too long, or there are too many of them";
	int err = function_patterns_add(patterns, text, &problem);

	if (err == -EINVAL || err == -E2BIG)
		return latency_options_refuse_pattern(option, text, problem);
	if (err)
		return err;
	return latency_options_resolve(option, &patterns->items[patterns->count - 1]);
}

static int latency_options_patterns(const struct config *config, enum setting id,
	const char *option, struct function_patterns *patterns)
{
	const char *text = config_text(config, id);
	autofree char *copy = text ? strdup(text) : NULL;
	char *next = copy, *line;
	int err = text && !copy ? -ENOMEM : 0;

	while (!err && (line = strsep(&next, "\n")) != NULL)
		err = latency_options_add_pattern(option, line, patterns);
	return err;
}

static int latency_options_check_patterns(const struct latency_plan *plan)
{
	bool targeted = plan->command || plan->sampling.targeted;

	if (!plan->wanted.count)
		return latency_options_refuse(
			"-u must name the functions to measure, for example -u 'main.*'");
	for (size_t i = 0; i < plan->wanted.count && !targeted; i++) {
		const struct function_pattern *pattern = &plan->wanted.items[i];

		if (!pattern->binary)
			return latency_options_refuse_pattern("-u", pattern->text,
				"needs a program: -p PID, -- CMD, or a file as in -u "
				"/usr/bin/app:PATTERN");
	}
	return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int latency_options_command(const struct config *config, char ***ret_command)
{
	bool dashes = !strcmp(config->rest[-1], "--");

	if (!config->rest_count && dashes)
		return latency_options_refuse("-- must be followed by a command");
	if (config->rest_count && !dashes) {
		fprintf(stderr,
			"fathom latency: unexpected argument '%s'; a command to run goes after --, "
			"a file to measure into -u %s:PATTERN\n",
			config->rest[0], config->rest[0]);
		return -EINVAL;
	}
	if (config->rest_count && config_given(config, SETTING_pid))
		return latency_options_refuse("-p and a command exclude each other");
	*ret_command = config->rest_count ? config->rest : NULL;
	return 0;
}

static int latency_options_times(const struct config *config, struct latency_plan *plan)
{
	plan->duration_ns = config_number(config, SETTING_duration);
	plan->interval_ns = config_number(config, SETTING_interval);
	if (config_given(config, SETTING_duration) && !plan->duration_ns)
		return latency_options_refuse("-d must be more than 0 seconds");
	if (!config_given(config, SETTING_interval))
		return 0;
	if (plan->interval_ns < MIN_INTERVAL_MS * MS || plan->interval_ns > MAX_INTERVAL_MS * MS)
		return latency_options_refuse("-i must be 0.1 to 3600 seconds");
	if (plan->duration_ns && plan->interval_ns > plan->duration_ns)
		return latency_options_refuse("-i must not be longer than -d");
	return 0;
}

static int latency_options_outputs(const struct config *config, struct latency_plan *plan)
{
	const char *by = config_text(config, SETTING_latency_by);

	if (by && latency_by_of_name(by, &plan->by))
		return latency_options_refuse("--by must be goid, pid or cgroup");
	plan->json = config_flag(config, SETTING_json);
	plan->openmetrics = config_text(config, SETTING_openmetrics);
	if (plan->openmetrics && (!*plan->openmetrics || !strcmp(plan->openmetrics, "-")))
		return latency_options_refuse(
			"--openmetrics needs a file: standard output has the report");
	return 0;
}

static int latency_options_read(const struct config *config, struct latency_plan *plan)
{
	int err = latency_options_command(config, &plan->command);

	if (!err)
		err = latency_options_times(config, plan);
	if (!err)
		err = latency_options_outputs(config, plan);
	if (!err)
		err = latency_options_patterns(config, SETTING_function, "-u", &plan->wanted);
	if (!err)
		err = latency_options_patterns(
			config, SETTING_unwanted_function, "--exclude", &plan->unwanted);
	if (!err)
		err = sampling_options_processes(config, "latency", &plan->sampling);
	if (!err)
		err = latency_options_check_patterns(plan);
	return err ? err : cache_directory(config, &plan->cache_directory);
}

static void latency_options_sampler(const struct config *config, struct latency_plan *plan)
{
	plan->sampler = (struct sampler_options){
		.collect = plan->sampling.collect,
		.cache_directory = plan->cache_directory,
		.debug_directories = config_text(config, SETTING_debuginfo_directories),
		.debuginfod_urls = config_text(config, SETTING_debuginfod_urls),
		.cache_limit_bytes = config_number(config, SETTING_cache_max_bytes),
		.profile_limit_bytes = config_number(config, SETTING_memory_limit),
		.memory_limit_bytes = config_number(config, SETTING_memory_limit),
	};
}

int latency_plan(const struct config *config, struct latency_plan *ret_plan)
{
	struct latency_plan plan = {
		.exclude_vendor = config_flag(config, SETTING_exclude_vendor),
		.dry_run = config_flag(config, SETTING_dry_run),
	};
	int err = latency_options_read(config, &plan);

	if (err) {
		latency_plan_deinit(&plan);
		return err;
	}
	latency_options_sampler(config, &plan);
	*ret_plan = plan;
	return 0;
}

void latency_plan_deinit(struct latency_plan *plan)
{
	sampling_options_deinit(&plan->sampling);
	function_patterns_deinit(&plan->wanted);
	function_patterns_deinit(&plan->unwanted);
	free(plan->cache_directory);
	*plan = (struct latency_plan){ 0 };
}
