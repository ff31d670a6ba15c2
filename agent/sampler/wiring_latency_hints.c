/* SPDX-License-Identifier: Apache-2.0 */
/* What a pattern that names no function may have meant, by the indexes that are there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "agent/sampler/functions/nearest.h"
#include "agent/sampler/sampler_internal.h"
#include "base/cleanup.h"

enum { MAX_LIBRARIES = 64 };

/* Whether patterns apply to MODULE. */
static bool is_probed(const struct sampler *sampler, const struct module *module)
{
	for (size_t i = 0; i < probed_files_count(sampler->probed_files); i++)
		if (!strcmp(probed_files_at(sampler->probed_files, i).path, module->path))
			return true;
	return false;
}

static bool has_function(const struct index *index, const struct function_pattern *pattern)
{
	struct index_function f;
	struct name_forms forms;

	for (size_t i = 0; i < index_function_count(index); i++) {
		if (!index_function(index, i, &f))
			continue;
		name_forms_of(f.name, f.linkage, &forms);
		if (function_pattern_match(pattern, &forms) != FUNCTION_DIFFERS)
			return true;
	}
	return false;
}

struct hint_search {
	const struct sampler *sampler;
	const struct function_patterns *wanted;
	const struct function_pattern *pattern;
	struct nearest_name nearest;
	const char *library; /* NULL = none so far */
};

/* Looks in one file for what the pattern may have meant. */
static int hint_search_look(
	struct hint_search *s, const struct module *module, const struct index *index)
{
	const struct function_pattern *pattern = s->pattern;
	bool concerned;

	if (pattern->binary)
		concerned = function_pattern_names_file(pattern, module->path);
	else
		concerned = is_probed(s->sampler, module) &&
			    !choose_concerns(s->wanted, module->path, false);
	if (!concerned) {
		if (!pattern->binary && !s->library && has_function(index, pattern))
			s->library = module->path;
		return 0;
	}
	return glob_has_wildcards(pattern->glob)
		       ? 0
		       : nearest_name_find(index, pattern->glob, &s->nearest);
}

static void hint_search_deinit(struct hint_search *s)
{
	nearest_name_deinit(&s->nearest);
}

int sampler_latency_hint(const struct sampler *sampler, const struct function_patterns *wanted,
	size_t pattern, char **ret_name, char **ret_library)
{
	autocall(hint_search_deinit) struct hint_search search = {
		.sampler = sampler, .wanted = wanted, .pattern = &wanted->items[pattern]
	};
	autofree char *library = NULL;
	const struct module *module;
	size_t iterator = 0;
	int err = 0;

	while (!err && (module = modules_next(sampler->modules, &iterator))) {
		const struct index *index = module_indexes_get(sampler->module_indexes, module);

		if (module->kind == MODULE_FILE && module->path && index &&
			index_has_functions(index))
			err = hint_search_look(&search, module, index);
	}
	if (!err && search.library && !(library = strdup(search.library)))
		err = -ENOMEM;
	if (err)
		return err;
	*ret_name = take(search.nearest.text);
	*ret_library = take(library);
	return 0;
}

void sampler_latency_want_libraries(struct sampler *sampler)
{
	const struct process *p;
	size_t iterator = 0, count = 0;

	while ((p = processes_next(sampler->processes, &iterator)))
		for (size_t i = 0; i < mappings_count(p->mappings) && count < MAX_LIBRARIES; i++) {
			const struct mapping *mapping = mappings_at(p->mappings, i);

			if (mapping->module->kind != MODULE_FILE ||
				mapping->module == p->executable ||
				!sampler_latency_selects(sampler, p))
				continue;
			count++;
			(void)module_indexes_want_functions(sampler->module_indexes, p, mapping);
		}
}
