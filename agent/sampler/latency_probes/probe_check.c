/* SPDX-License-Identifier: Apache-2.0 */
/* Whether probes are well-formed, before anything is made of them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/seam/latency_probes.h"
#include "base/cleanup.h"

__attribute__((format(printf, 3, 4))) static int probe_check_refuse(
	struct latency_probes_problem *problem, int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem->text, sizeof(problem->text), format, arguments);
	va_end(arguments);
	return err;
}

static int probe_check_name(
	const struct latency_probe *probes, size_t number, struct latency_probes_problem *problem)
{
	const char *name = probes[number].name;

	if (!name || !*name)
		return probe_check_refuse(problem, -EINVAL, "it has no name");
	if (strlen(name) > LATENCY_PROBE_NAME_BYTES)
		return probe_check_refuse(problem, -EINVAL, "its name is longer than %d bytes",
			LATENCY_PROBE_NAME_BYTES);
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return probe_check_refuse(
				problem, -EINVAL, "its name has a control character");
	for (size_t i = 0; i < number; i++)
		if (!strcmp(probes[i].name, name))
			return probe_check_refuse(
				problem, -EINVAL, "another probe is called '%s' too", name);
	return 0;
}

static int probe_check_processes(
	const struct latency_probe *probe, struct latency_probes_problem *problem)
{
	struct selection *selection = NULL;
	bool second;
	int err = selection_create(probe->processes, NULL, &selection, &second);
	bool pods = !err && selection_needs_pods(selection);

	selection_destroy(selection);
	if (err == -E2BIG)
		return probe_check_refuse(
			problem, err, "it has more than %d selectors of processes", SELECTION_MAX);
	if (err == -EINVAL || pods)
		return probe_check_refuse(problem, -EINVAL,
			"processes '%s': a selector is pid=, comm=, executable=, container_id= or "
			"cgroup= and a glob",
			probe->processes);
	return err;
}

static int probe_check_pattern(struct function_patterns *patterns, const char *text,
	struct latency_probes_problem *problem)
{
	const char *what = "";
	int err = function_patterns_add(patterns, text, &what);

	if (err == -EINVAL)
		return probe_check_refuse(problem, err, "function '%s' %s", text, what);
	if (err == -E2BIG)
		return probe_check_refuse(
			problem, err, "it has too many functions, or one that is too long");
	return err;
}

static int probe_check_binary(const struct latency_probe *probe,
	const struct function_pattern *pattern, struct latency_probes_problem *problem)
{
	if (probe->kernel && pattern->binary)
		return probe_check_refuse(problem, -EINVAL,
			"function '%s' has a file, but the probe is of the kernel", pattern->text);
	if (!probe->kernel && !pattern->binary && (!probe->processes || !*probe->processes))
		return probe_check_refuse(problem, -EINVAL,
			"function '%s' needs a file before it (FILE:FUNCTION), as the probe is of "
			"all processes",
			pattern->text);
	return 0;
}

static int probe_check_functions(
	const struct latency_probe *probe, struct latency_probes_problem *problem)
{
	autocall(function_patterns_deinit) struct function_patterns wanted = { 0 };
	autocall(function_patterns_deinit) struct function_patterns unwanted = { 0 };
	int err = 0;

	if (!probe->function_count)
		return probe_check_refuse(problem, -EINVAL, "it names no function");
	for (size_t i = 0; i < probe->function_count && !err; i++) {
		err = probe_check_pattern(&wanted, probe->functions[i], problem);
		if (!err)
			err = probe_check_binary(probe, &wanted.items[i], problem);
	}
	for (size_t i = 0; i < probe->unwanted_count && !err; i++)
		err = probe_check_pattern(&unwanted, probe->unwanted[i], problem);
	return err;
}

int latency_probes_check(const struct latency_probe *probes, size_t count,
	struct latency_probes_problem *ret_problem)
{
	int err = 0;

	ret_problem->number = count;
	ret_problem->text[0] = 0;
	if (count > LATENCY_PROBES_MAX)
		return probe_check_refuse(
			ret_problem, -E2BIG, "there are more than %d probes", LATENCY_PROBES_MAX);
	for (size_t i = 0; i < count && !err; i++) {
		ret_problem->number = i;
		err = probe_check_name(probes, i, ret_problem);
		if (!err)
			err = probe_check_processes(&probes[i], ret_problem);
		if (!err)
			err = probe_check_functions(&probes[i], ret_problem);
	}
	return err;
}
