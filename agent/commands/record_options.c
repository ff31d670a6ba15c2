/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/settings/cache_directory.h"
#include "agent/commands/record.h"

static int record_options_refuse(const char *message)
{
	fprintf(stderr, "fathom record: %s\n", message);
	return -EINVAL;
}

/* Rejects -C: a waiting thread is on no CPU. */
static int plan_off_cpu(const struct config *config, struct collect_options *collect)
{
	if (!config_flag(config, SETTING_off_cpu))
		return 0;
	if (config_given(config, SETTING_cpu))
		return record_options_refuse(
			"-C and --off-cpu exclude each other: a waiting thread is on no CPU");
	collect->off_cpu_share = 1;
	return 0;
}

static int plan_event(const struct config *config, struct collect_options *collect)
{
	const char *event = config_text(config, SETTING_event);
	bool rate = config_given(config, SETTING_frequency);
	bool period = config_given(config, SETTING_count);

	if (!strcmp(event, "cpu-clock"))
		collect->event = COLLECT_CPU_CLOCK;
	else if (!strcmp(event, "cycles"))
		collect->event = COLLECT_CYCLES;
	else
		return record_options_refuse("-e must be cpu-clock or cycles");
	if (!period)
		return 0;
	if (rate)
		return record_options_refuse(
			"-F and -c exclude each other: a rate, or a count of events");
	collect->period = config_number(config, SETTING_count);
	collect->frequency_hz = 0;
	/* Same limit as for -F. */
	if (collect->period < 1000000000 / SAMPLER_MAX_HZ || collect->period > INT64_MAX)
		return record_options_refuse("-c must be at least 100000, which is 10000 samples "
					     "per second of cpu-clock");
	return 0;
}

int record_plan(const struct config *config, struct record_plan *ret_plan)
{
	struct record_plan plan = { .folded = config_flag(config, SETTING_folded),
		.quiet = config_flag(config, SETTING_quiet) };
	int err;

	plan.duration_ns = config_number(config, SETTING_duration);
	if (config_given(config, SETTING_duration) && !plan.duration_ns)
		return record_options_refuse("-d must be more than 0 seconds");
	plan.output = config_text(config, SETTING_output);
	plan.created_by = config_flag(config, SETTING_go_created_by);
	plan.html = config_text(config, SETTING_html);
	if (!plan.output && !plan.html)
		plan.output = plan.folded ? "-" : "fathom.pb.gz";
	if (plan.folded && plan.html)
		return record_options_refuse("--folded and --html exclude each other");
	if (plan.output && plan.html && !strcmp(plan.output, plan.html))
		return record_options_refuse("-o and --html name the same file");
	err = cache_directory(config, &plan.cache_directory);
	if (!err)
		err = sampling_options(config, "record", &plan.sampling);
	if (!err)
		err = plan_event(config, &plan.sampling.collect);
	if (!err)
		err = plan_off_cpu(config, &plan.sampling.collect);
	if (err) {
		record_plan_deinit(&plan);
		return err;
	}
	plan.others = config_flag(config, SETTING_all) || plan.sampling.targeted ||
		      config_given(config, SETTING_cgroup);
	plan.sampling.collect.ends_soon = true;
	plan.sampler.collect = plan.sampling.collect;
	plan.sampler.cache_directory = plan.cache_directory;
	plan.sampler.debug_directories = config_text(config, SETTING_debuginfo_directories);
	plan.sampler.kernel_debuginfo = config_flag(config, SETTING_kernel_debuginfo);
	plan.sampler.debuginfod_urls = config_text(config, SETTING_debuginfod_urls);
	plan.sampler.cache_limit_bytes = config_number(config, SETTING_cache_max_bytes);
	plan.sampler.profile_limit_bytes = config_number(config, SETTING_memory_limit);
	plan.sampler.memory_limit_bytes = config_number(config, SETTING_memory_limit);
	*ret_plan = plan;
	return 0;
}

void record_plan_deinit(struct record_plan *plan)
{
	free(plan->cache_directory);
	sampling_options_deinit(&plan->sampling);
	*plan = (struct record_plan){ 0 };
}
