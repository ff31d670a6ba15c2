/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/patterns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_PATTERNS = 4096,
	MAX_PATTERN_BYTES = 16384, /* names of templates are long */
};

/* ---- parsing -------------------------------------------------------------------------------- */

/*
 * The colon that ends BIN; NULL if there is none. Of three colons the first ends BIN, and the
 * others begin the name.
 */
static const char *function_pattern_colon(const char *text)
{
	size_t depth = 0;

	for (const char *at = text; *at; at++) {
		size_t colons = strspn(at, ":");

		if (*at == '\\' && at[1])
			at++;
		else if (strchr("([{<", *at))
			depth++;
		else if (strchr(")]}>", *at) && depth)
			depth--;
		else if (colons % 2 && !depth)
			return at;
		else if (colons)
			at += colons - 1;
	}
	return NULL;
}

static const char *function_pattern_problem(const char *text, const char *colon)
{
	if (!*text)
		return "names no function";
	if (colon == text)
		return "names no file before the colon";
	if (colon && !colon[1])
		return "names no function after the colon";
	return NULL;
}

static void function_pattern_deinit(struct function_pattern *pattern)
{
	free(pattern->text);
	free(pattern->binary);
	free(pattern->resolved);
}

static int function_pattern_parse(
	const char *text, const char *colon, struct function_pattern *ret_pattern)
{
	struct function_pattern pattern = { .text = strdup(text) };

	if (!pattern.text)
		return -ENOMEM;
	pattern.glob = colon ? pattern.text + (colon + 1 - text) : pattern.text;
	if (colon) {
		pattern.binary = strndup(text, (size_t)(colon - text));
		if (!pattern.binary) {
			function_pattern_deinit(&pattern);
			return -ENOMEM;
		}
	}
	*ret_pattern = pattern;
	return 0;
}

int function_patterns_add(
	struct function_patterns *patterns, const char *text, const char **ret_problem)
{
	const char *colon = function_pattern_colon(text),
		   *problem = function_pattern_problem(text, colon);
	int err;

	if (problem) {
		*ret_problem = problem;
		return -EINVAL;
	}
	if (strlen(text) > MAX_PATTERN_BYTES)
		return -E2BIG;
	err = array_reserve(patterns->items, patterns->capacity, patterns->count + 1, MAX_PATTERNS);
	if (!err)
		err = function_pattern_parse(text, colon, &patterns->items[patterns->count]);
	if (!err)
		patterns->count++;
	return err;
}

void function_patterns_deinit(struct function_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		function_pattern_deinit(&patterns->items[i]);
	free(patterns->items);
	*patterns = (struct function_patterns){ 0 };
}

/* ---- matching ------------------------------------------------------------------------------- */

/* The length of a shared library's NAME without `.so` and its version; all of another NAME. */
static size_t function_pattern_library_size(const char *name)
{
	const char *end = name;

	while ((end = strstr(end, ".so")) != NULL) {
		if (end[3] == 0 || end[3] == '.')
			return (size_t)(end - name);
		end++;
	}
	return strlen(name);
}

bool function_pattern_names_file(const struct function_pattern *pattern, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (strchr(pattern->binary, '/'))
		return glob_matches(pattern->binary, path, strlen(path)) ||
		       (pattern->resolved && !strcmp(pattern->resolved, path));
	return glob_matches(pattern->binary, name, strlen(name)) ||
	       glob_matches(pattern->binary, name, function_pattern_library_size(name));
}

enum function_match function_pattern_match(
	const struct function_pattern *pattern, const struct name_forms *forms)
{
	size_t size = strlen(pattern->glob);
	bool matches = false;

	for (size_t i = 0; i < forms->count; i++) {
		const struct name_form *form = &forms->forms[i];

		if (form->size == size && !memcmp(form->text, pattern->glob, size))
			return FUNCTION_EQUALS;
		matches = matches || glob_matches(pattern->glob, form->text, form->size);
	}
	return matches ? FUNCTION_MATCHES : FUNCTION_DIFFERS;
}
