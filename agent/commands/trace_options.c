/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/function_options.h"
#include "agent/commands/trace.h"
#include "agent/settings/cache_directory.h"
#include "base/cleanup.h"

static const uint64_t MAX_EVENTS_PER_SECOND = 200000;

static int trace_options_refuse(const char *message)
{
	fprintf(stderr, "fathom trace: %s\n", message);
	return -EINVAL;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* BIN as part of a pattern: what is a wildcard there is none in a path. */
static int trace_options_escape(const char *binary, char **ret_escaped)
{
	char *escaped = malloc(2 * strlen(binary) + 1), *to = escaped;

	if (!escaped)
		return -ENOMEM;
	for (; *binary; binary++) {
		if (strchr("*?[]\\", *binary))
			*to++ = '\\';
		*to++ = *binary;
	}
	*to = 0;
	*ret_escaped = escaped;
	return 0;
}

/* Gives the patterns that have no BIN that of -x. */
static int trace_options_bind(
	const char *binary, const char *option, struct function_patterns *patterns)
{
	struct function_patterns bound = { 0 };
	autofree char *escaped = NULL;
	int err = trace_options_escape(binary, &escaped);

	for (size_t i = 0; i < patterns->count && !err; i++) {
		const struct function_pattern *pattern = &patterns->items[i];
		autofree char *text = NULL;

		if (asprintf(&text, "%s%s%s", pattern->binary ? "" : escaped,
			    pattern->binary ? "" : ":", pattern->text) < 0)
			err = -ENOMEM;
		else
			err = function_options_add("trace", option, text, &bound);
	}
	if (err) {
		function_patterns_deinit(&bound);
		return err;
	}
	function_patterns_deinit(patterns);
	*patterns = bound;
	return 0;
}

static int trace_options_bind_all(const struct config *config, struct trace_plan *plan)
{
	const char *binary = config_text(config, SETTING_trace_binary);
	int err;

	if (!binary)
		return 0;
	if (!*binary || strchr(binary, ':'))
		return trace_options_refuse("-x needs the path or the name of a file, without ':'");
	err = function_options_add("trace", "-x", "*", &plan->program);
	if (!err)
		err = trace_options_bind(binary, "-x", &plan->program);
	if (!err)
		err = trace_options_bind(binary, "-u", &plan->probing.wanted);
	return err ? err : trace_options_bind(binary, "--drilldown", &plan->drilldown);
}

static int trace_options_add(const struct function_patterns *from, struct function_patterns *to)
{
	int err = 0;

	for (size_t i = 0; i < from->count && !err; i++)
		err = function_options_add("trace", "--drilldown", from->items[i].text, to);
	return err;
}

/* Functions of --drilldown are probed even if -u or -k does not name them. */
static int trace_options_add_drilldown(struct trace_plan *plan)
{
	struct latency_plan *probing = &plan->probing;
	bool user = probing->wanted.count > 0, kernel = probing->kernel_wanted.count > 0;
	int err = 0;

	plan->named = probing->wanted.count;
	plan->kernel_named = probing->kernel_wanted.count;
	if (user)
		err = trace_options_add(&plan->drilldown, &probing->wanted);
	if (!err && kernel)
		err = trace_options_add(&plan->kernel_drilldown, &probing->kernel_wanted);
	/* It is enough if a function of that name is in one of them. */
	if (user && kernel) {
		probing->optional = plan->drilldown.count;
		probing->kernel_optional = plan->kernel_drilldown.count;
	}
	return err;
}

/* A function of --drilldown without BIN may be the kernel's. */
static int trace_options_kernel(const struct config *config, struct trace_plan *plan)
{
	int err = function_options_kernel(config, "trace", &plan->probing.kernel_wanted);

	for (size_t i = 0; i < plan->drilldown.count && !err; i++)
		if (!plan->drilldown.items[i].binary)
			err = function_options_add("trace", "--drilldown",
				plan->drilldown.items[i].text, &plan->kernel_drilldown);
	return err;
}

static int trace_options_check_functions(const struct config *config, const struct trace_plan *plan)
{
	bool user = plan->probing.wanted.count > 0, kernel = plan->probing.kernel_wanted.count > 0;

	if (!user && !kernel)
		return trace_options_refuse("-u or -k must name the functions to trace, for "
					    "example -u 'main.*' or -k 'vfs_*'");
	if (!user && trace_rules_any(&plan->rules))
		return trace_options_refuse(
			"-a and --args show arguments of the functions of -u, not of -k");
	if (kernel && config_given(config, SETTING_goid))
		return trace_options_refuse(
			"--goid and -k exclude each other: calls of kernel functions are threads'");
	if (!user && plan->drilldown.count && !plan->kernel_drilldown.count)
		return trace_options_refuse("--drilldown names a function of a file, but only "
					    "those of the kernel are traced (-k)");
	return 0;
}

static int trace_options_patterns(const struct config *config, struct trace_plan *plan)
{
	int err = function_options_patterns(
		config, SETTING_function, "trace", "-u", &plan->probing.wanted);

	if (!err)
		err = function_options_patterns(config, SETTING_unwanted_function, "trace",
			"--exclude", &plan->probing.unwanted);
	if (!err)
		err = function_options_patterns(
			config, SETTING_drilldown, "trace", "--drilldown", &plan->drilldown);
	if (!err)
		err = trace_options_kernel(config, plan);
	if (!err)
		err = trace_options_bind_all(config, plan);
	if (!err)
		err = trace_options_check_functions(config, plan);
	return err ? err : trace_options_add_drilldown(plan);
}

/* ---- processes ------------------------------------------------------------------------------- */

static int trace_options_command(const struct config *config, struct trace_plan *plan)
{
	bool dashes = !strcmp(config->rest[-1], "--");

	if (!config->rest_count && dashes)
		return trace_options_refuse("-- must be followed by a command");
	if (config->rest_count && !dashes) {
		fprintf(stderr,
			"fathom trace: unexpected argument '%s'; a command to run goes after --, a "
			"file to trace into -x\n",
			config->rest[0]);
		return -EINVAL;
	}
	plan->probing.command = config->rest_count ? config->rest : NULL;
	if ((config->rest_count > 0) + config_given(config, SETTING_pid) +
			config_given(config, SETTING_trace_binary) >
		1)
		return trace_options_refuse("-p, -x and a command exclude each other");
	return 0;
}

static int trace_options_check_targets(const struct trace_plan *plan)
{
	const struct latency_plan *probing = &plan->probing;

	if (probing->command || probing->sampling.targeted)
		return 0;
	if (probing->kernel_wanted.count && !plan->program.count)
		return trace_options_refuse(
			"-k needs processes whose calls are traced: -p PID, -x FILE, or -- CMD");
	for (size_t i = 0; i < probing->wanted.count; i++)
		if (!probing->wanted.items[i].binary)
			return function_options_refuse("trace",
				i < plan->named ? "-u" : "--drilldown",
				probing->wanted.items[i].text,
				"needs a program: -p PID, -x FILE, or -- CMD");
	return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static int trace_options_limits(const struct config *config, struct trace_plan *plan)
{
	uint64_t max_depth = config_number(config, SETTING_max_depth);

	plan->probing.duration_ns = config_number(config, SETTING_duration);
	if (config_given(config, SETTING_duration) && !plan->probing.duration_ns)
		return trace_options_refuse("-d must be more than 0 seconds");
	if (config_given(config, SETTING_max_depth) && (!max_depth || max_depth > UINT32_MAX))
		return trace_options_refuse("--max-depth must be 1 or more");
	plan->max_depth = (uint32_t)max_depth;
	plan->min_duration_ns = config_number(config, SETTING_min_duration);
	plan->max_events_per_second =
		config_given(config, SETTING_test_events_per_second)
			? config_number(config, SETTING_test_events_per_second)
			: MAX_EVENTS_PER_SECOND;
	return 0;
}

static int trace_options_outputs(const struct config *config, struct trace_plan *plan)
{
	plan->probing.json = config_flag(config, SETTING_json);
	plan->probing.quiet = config_flag(config, SETTING_quiet);
	plan->events = config_text(config, SETTING_trace_output);
	if (plan->events && (!*plan->events || !strcmp(plan->events, "-")))
		return trace_options_refuse("-o needs a file: standard output has the summary");
	if (plan->events && plan->probing.json && !plan->probing.dry_run)
		return trace_options_refuse("--json and -o exclude each other");
	return 0;
}

static int trace_options_read(const struct config *config, struct trace_plan *plan)
{
	struct latency_plan *probing = &plan->probing;
	int err = trace_options_command(config, plan);

	if (!err)
		err = trace_options_limits(config, plan);
	if (!err)
		err = trace_options_outputs(config, plan);
	if (!err)
		err = trace_rules_read(config, &plan->rules);
	if (!err)
		err = trace_options_patterns(config, plan);
	if (!err)
		err = sampling_options_processes(config, "trace", &probing->sampling);
	if (!err)
		err = trace_options_check_targets(plan);
	return err ? err : cache_directory(config, &probing->cache_directory);
}

int trace_plan(const struct config *config, struct trace_plan *ret_plan)
{
	struct trace_plan plan = {
		.probing = {
			.name = "trace",
			.exclude_vendor = config_flag(config, SETTING_exclude_vendor),
			.dry_run = config_flag(config, SETTING_dry_run),
		},
	};
	int err = trace_options_read(config, &plan);

	if (err) {
		trace_plan_deinit(&plan);
		return err;
	}
	latency_plan_sampler(config, &plan.probing);
	plan.probing.sampler.collect.filter.fiber_id = config_number(config, SETTING_goid);
	*ret_plan = plan;
	return 0;
}

void trace_plan_deinit(struct trace_plan *plan)
{
	trace_rules_deinit(&plan->rules);
	function_patterns_deinit(&plan->drilldown);
	function_patterns_deinit(&plan->kernel_drilldown);
	function_patterns_deinit(&plan->program);
	latency_plan_deinit(&plan->probing);
}
