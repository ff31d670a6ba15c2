/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/function_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/glob.h"
#include "base/cleanup.h"

enum { SHOWN_BYTES = 200 }; /* of a pattern in a message */

int function_options_refuse(
	const char *command, const char *option, const char *pattern, const char *problem)
{
	bool long_one = strlen(pattern) > SHOWN_BYTES;

	fprintf(stderr, "fathom %s: %s '%.*s%s' %s\n", command, option, SHOWN_BYTES, pattern,
		long_one ? "…" : "", problem);
	return -EINVAL;
}

static void function_options_unescape(char *text)
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
static int function_options_resolve(
	const char *command, const char *option, struct function_pattern *pattern)
{
	autofree char *path = NULL;

	if (!pattern->binary || !strchr(pattern->binary, '/'))
		return 0;
	if (glob_has_wildcards(pattern->binary))
		return *pattern->binary == '/' || *pattern->binary == '*'
			       ? 0
			       : function_options_refuse(command, option, pattern->text,
					 "needs an absolute path before the colon, as the path has "
					 "wildcards");
	path = strdup(pattern->binary);
	if (!path)
		return -ENOMEM;
	function_options_unescape(path);
	pattern->resolved = realpath(path, NULL);
	if (pattern->resolved || (*path == '/' && errno == ENOENT))
		return 0;
	return errno == ENOMEM
		       ? -ENOMEM
		       : function_options_refuse(command, option, pattern->text, strerror(errno));
}

int function_options_add(const char *command, const char *option, const char *text,
	struct function_patterns *patterns)
{
	const char *problem = "is too long, or there are too many of them";
	int err = function_patterns_add(patterns, text, &problem);

	if (err == -EINVAL || err == -E2BIG)
		return function_options_refuse(command, option, text, problem);
	if (err)
		return err;
	return function_options_resolve(command, option, &patterns->items[patterns->count - 1]);
}

int function_options_patterns(const struct config *config, enum setting id, const char *command,
	const char *option, struct function_patterns *patterns)
{
	const char *text = config_text(config, id);
	autofree char *copy = text ? strdup(text) : NULL;
	char *next = copy, *line;
	int err = text && !copy ? -ENOMEM : 0;

	while (!err && (line = strsep(&next, "\n")) != NULL)
		err = function_options_add(command, option, line, patterns);
	return err;
}

int function_options_kernel(
	const struct config *config, const char *command, struct function_patterns *patterns)
{
	int err =
		function_options_patterns(config, SETTING_kernel_function, command, "-k", patterns);

	for (size_t i = 0; !err && i < patterns->count; i++)
		if (patterns->items[i].binary)
			err = function_options_refuse(command, "-k", patterns->items[i].text,
				"has a file before the colon, but -k names functions of the "
				"kernel");
	return err;
}
