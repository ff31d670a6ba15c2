/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/vendored.h"

#include <ctype.h>
#include <string.h>

/* PATH after the toolchain's directory if that is in the module cache, PATH itself otherwise. */
static const char *path_after_toolchain(const char *path)
{
	static const char module[] = "golang.org/toolchain@";
	const char *at = strstr(path, module), *end;

	end = at ? strchr(at + strlen(module), '/') : NULL;
	return end ? end : path;
}

/* A directory like `m@v1.2.3`: the version of a module. */
static bool path_has_version(const char *path)
{
	for (const char *at = path; (at = strstr(at, "@v")) != NULL; at++) {
		if (isdigit((unsigned char)at[2]) && strchr(at, '/'))
			return true;
	}
	return false;
}

bool path_is_vendored(const char *path)
{
	const char *rest = path_after_toolchain(path);

	return !strncmp(rest, "vendor/", strlen("vendor/")) || strstr(rest, "/vendor/") ||
	       strstr(rest, "/pkg/mod/") || path_has_version(rest);
}

bool function_is_vendored(const struct index *index, const struct index_function *f)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	size_t count;

	if (!(f->flags & INDEX_FUNCTION_FIBER))
		return false;
	count = index_lookup(index, f->address, frames, INDEX_MAX_FRAMES);
	return count && path_is_vendored(frames[count - 1].file);
}
