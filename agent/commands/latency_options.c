/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/function_options.h"
#include "agent/commands/latency.h"
#include "agent/latency/latency_report.h"
#include "agent/settings/cache_directory.h"
#include "base/cleanup.h"

static const uint64_t MS = 1000000;
static const uint64_t MIN_INTERVAL_MS = 100, MAX_INTERVAL_MS = 3600000;

static int latency_options_refuse(const char *message)
{
	fprintf(stderr, "fathom latency: %s\n", message);
	return -EINVAL;
}

/* ---- patterns -------------------------------------------------------------------------------- */

static int latency_options_check_patterns(const struct latency_plan *plan)
{
	bool targeted = plan->command || plan->sampling.targeted;

	if (!plan->wanted.count && !plan->kernel_wanted.count)
		return latency_options_refuse("-u or -k must name the functions to measure, for "
					      "example -u 'main.*' or -k vfs_read");
	for (size_t i = 0; i < plan->wanted.count && !targeted; i++) {
		const struct function_pattern *pattern = &plan->wanted.items[i];

		if (!pattern->binary)
			return function_options_refuse("latency", "-u", pattern->text,
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
	plan->quiet = config_flag(config, SETTING_quiet);
	plan->openmetrics = config_text(config, SETTING_openmetrics);
	if (plan->openmetrics && (!*plan->openmetrics || !strcmp(plan->openmetrics, "-")))
		return latency_options_refuse(
			"--openmetrics needs a file: standard output has the report");
	plan->profile = config_text(config, SETTING_latency_output);
	if (plan->profile && (!*plan->profile || !strcmp(plan->profile, "-")))
		return latency_options_refuse("-o needs a file: standard output has the report");
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
		err = function_options_patterns(
			config, SETTING_function, "latency", "-u", &plan->wanted);
	if (!err)
		err = function_options_kernel(config, "latency", &plan->kernel_wanted);
	if (!err)
		err = function_options_patterns(
			config, SETTING_unwanted_function, "latency", "--exclude", &plan->unwanted);
	if (!err)
		err = sampling_options_processes(config, "latency", &plan->sampling);
	if (!err)
		err = latency_options_check_patterns(plan);
	return err ? err : cache_directory(config, &plan->cache_directory);
}

void latency_plan_sampler(const struct config *config, struct latency_plan *plan)
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
		.name = "latency",
		.exclude_vendor = config_flag(config, SETTING_exclude_vendor),
		.dry_run = config_flag(config, SETTING_dry_run),
	};
	int err = latency_options_read(config, &plan);

	if (err) {
		latency_plan_deinit(&plan);
		return err;
	}
	latency_plan_sampler(config, &plan);
	*ret_plan = plan;
	return 0;
}

void latency_plan_deinit(struct latency_plan *plan)
{
	sampling_options_deinit(&plan->sampling);
	function_patterns_deinit(&plan->wanted);
	function_patterns_deinit(&plan->unwanted);
	function_patterns_deinit(&plan->kernel_wanted);
	free(plan->cache_directory);
	*plan = (struct latency_plan){ 0 };
}
