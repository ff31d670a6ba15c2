/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/seam/runtime_functions.h"

#include <string.h>

#include "agent/sampler/runtimes/runtime.h"
#include "base/cleanup.h"

static const struct runtime_functions *const functions_all[] = {
#define RUNTIME(name) &runtime_##name##_functions,
#include "agent/sampler/runtimes/runtimes.def"
#undef RUNTIME
};

static size_t functions_length(const struct runtime_functions *f, const char *name)
{
	size_t length = strlen(name), suffix = f->suffix ? strlen(f->suffix) : 0;

	if (suffix && length > suffix && !strcmp(name + length - suffix, f->suffix))
		return length - suffix;
	return length;
}

static bool functions_listed(
	const struct runtime_functions *f, const char *const *names, const char *name)
{
	size_t length = functions_length(f, name);

	for (; names && *names; names++) {
		if (strlen(*names) == length && !memcmp(*names, name, length))
			return true;
	}
	return false;
}

static bool functions_begins(const char *const *prefixes, const char *name)
{
	for (; prefixes && *prefixes; prefixes++) {
		if (!strncmp(name, *prefixes, strlen(*prefixes)))
			return true;
	}
	return false;
}

bool runtime_function_is_root(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions_all); i++) {
		if (functions_listed(functions_all[i], functions_all[i]->roots, name))
			return true;
	}
	return false;
}

bool runtime_function_hides_callers(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions_all); i++) {
		if (functions_listed(functions_all[i], functions_all[i]->last, name))
			return true;
	}
	return false;
}

bool runtime_function_ends_fiber(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions_all); i++) {
		if (functions_all[i]->fiber_end && !strcmp(name, functions_all[i]->fiber_end))
			return true;
	}
	return false;
}

bool runtime_function_collects(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions_all); i++) {
		if (functions_listed(functions_all[i], functions_all[i]->collectors, name))
			return true;
	}
	return false;
}

bool runtime_function_is_idle(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions_all); i++) {
		if (functions_listed(functions_all[i], functions_all[i]->idle, name))
			return true;
	}
	return false;
}

bool runtime_function_is_own(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions_all); i++) {
		if (functions_begins(functions_all[i]->own_prefixes, name) ||
			functions_listed(functions_all[i], functions_all[i]->own, name))
			return true;
	}
	return false;
}
