/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/latency_probes/probe_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* ---- copies --------------------------------------------------------------------------------- */

static void spec_free_list(const char *const *list, size_t count)
{
	for (size_t i = 0; list && i < count; i++)
		free((char *)list[i]);
	free((void *)list);
}

static int spec_copy_list(const char *const *list, size_t count, const char *const **ret_list)
{
	char **copy = calloc(count + 1, sizeof(*copy));
	bool whole = copy != NULL;

	for (size_t i = 0; whole && i < count; i++) {
		copy[i] = strdup(list[i]);
		whole = copy[i] != NULL;
	}
	if (!whole) {
		spec_free_list((const char *const *)copy, copy ? count : 0);
		return -ENOMEM;
	}
	*ret_list = (const char *const *)copy;
	return 0;
}

static int spec_copy_text(struct probe_spec *spec, const struct latency_probe *probe)
{
	int err;

	spec->of = (struct latency_probe){
		.name = strdup(probe->name),
		.processes = strdup(probe->processes ? probe->processes : ""),
		.exclude_vendor = probe->exclude_vendor,
		.kernel = probe->kernel,
		.by = probe->by,
	};
	if (!spec->of.name || !spec->of.processes)
		return -ENOMEM;
	err = spec_copy_list(probe->functions, probe->function_count, &spec->of.functions);
	if (err)
		return err;
	spec->of.function_count = probe->function_count;
	err = spec_copy_list(probe->unwanted, probe->unwanted_count, &spec->of.unwanted);
	if (!err)
		spec->of.unwanted_count = probe->unwanted_count;
	return err;
}

/* ---- what is made of them ------------------------------------------------------------------- */

static int spec_parse_patterns(
	const char *const *list, size_t count, struct function_patterns *patterns)
{
	const char *problem;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		err = function_patterns_add(patterns, list[i], &problem);
		if (!err && patterns->items[i].binary && strchr(patterns->items[i].binary, '/'))
			patterns->items[i].resolved = realpath(patterns->items[i].binary, NULL);
	}
	return err;
}

static int spec_parse(struct probe_spec *spec)
{
	const struct latency_probe *of = &spec->of;
	bool second;
	int err = selection_create(of->processes, NULL, &spec->selection, &second);

	if (!err)
		err = spec_parse_patterns(of->functions, of->function_count, &spec->wanted);
	if (!err)
		err = spec_parse_patterns(of->unwanted, of->unwanted_count, &spec->unwanted);
	return err;
}

int probe_spec_init(struct probe_spec *spec, const struct latency_probe *probe)
{
	int err;

	*spec = (struct probe_spec){ 0 };
	err = spec_copy_text(spec, probe);
	if (!err)
		err = spec_parse(spec);
	if (err)
		probe_spec_deinit(spec);
	return err;
}

void probe_spec_deinit(struct probe_spec *spec)
{
	free((char *)spec->of.name);
	free((char *)spec->of.processes);
	spec_free_list(spec->of.functions, spec->of.function_count);
	spec_free_list(spec->of.unwanted, spec->of.unwanted_count);
	selection_destroy(spec->selection);
	function_patterns_deinit(&spec->wanted);
	function_patterns_deinit(&spec->unwanted);
	*spec = (struct probe_spec){ 0 };
}

/* ---- comparing ------------------------------------------------------------------------------ */

static bool spec_same_list(
	const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
	if (a_count != b_count)
		return false;
	for (size_t i = 0; i < a_count; i++)
		if (strcmp(a[i], b[i]))
			return false;
	return true;
}

bool probe_spec_is(const struct probe_spec *spec, const struct latency_probe *probe)
{
	const struct latency_probe *of = &spec->of;

	return !strcmp(of->name, probe->name) &&
	       !strcmp(of->processes, probe->processes ? probe->processes : "") &&
	       spec_same_list(of->functions, of->function_count, probe->functions,
		       probe->function_count) &&
	       spec_same_list(
		       of->unwanted, of->unwanted_count, probe->unwanted, probe->unwanted_count) &&
	       of->exclude_vendor == probe->exclude_vendor && of->kernel == probe->kernel &&
	       of->by == probe->by;
}
