/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/cgroup_paths.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct cgroup_paths {
	unsigned int references;
	bool unified;
	size_t bytes; /* of `text` */
	char text[]; /* the paths, each with its NUL */
};

/* The path of LINE, `NUMBER:CONTROLLERS:PATH`, which may contain colons; NULL = it is none. */
static const char *cgroup_paths_of_line(const char *line, const char *end)
{
	const char *colon = memchr(line, ':', (size_t)(end - line));

	colon = colon ? memchr(colon + 1, ':', (size_t)(end - colon - 1)) : NULL;
	return colon ? colon + 1 : NULL;
}

static bool cgroup_paths_has(const struct cgroup_paths *c, const char *path, size_t length)
{
	for (const char *p = c->text; p < c->text + c->bytes; p += strlen(p) + 1) {
		if (strlen(p) == length && !memcmp(p, path, length))
			return true;
	}
	return false;
}

static void cgroup_paths_add(struct cgroup_paths *c, const char *path, size_t length)
{
	if (memchr(path, 0, length) || cgroup_paths_has(c, path, length))
		return;
	memcpy(c->text + c->bytes, path, length);
	c->text[c->bytes + length] = 0;
	c->bytes += length + 1;
}

int cgroup_paths_read(const char *text, size_t length, struct cgroup_paths **ret_paths)
{
	/* Each path replaces its own newline, or the end, by NUL. */
	struct cgroup_paths *c = calloc(1, sizeof(*c) + length + 1);
	const char *line = text, *end = text + length;
	unsigned int lines = 0;

	if (!c)
		return -ENOMEM;
	c->references = 1;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline ? newline : end;
		const char *path = cgroup_paths_of_line(line, line_end);

		if (path)
			cgroup_paths_add(c, path, (size_t)(line_end - path));
		c->unified = !lines++ && path && line_end - line > 3 && !memcmp(line, "0::", 3);
		line = line_end + 1;
	}
	*ret_paths = c;
	return 0;
}

struct cgroup_paths *cgroup_paths_ref(struct cgroup_paths *c)
{
	if (c)
		c->references++;
	return c;
}

void cgroup_paths_unref(struct cgroup_paths *c)
{
	if (c && !--c->references)
		free(c);
}

bool cgroup_paths_match(const struct cgroup_paths *c, const char *glob)
{
	for (const char *p = c ? c->text : NULL; p && p < c->text + c->bytes; p += strlen(p) + 1) {
		if (!fnmatch(glob, p, 0))
			return true;
	}
	return false;
}

bool cgroup_paths_have(const struct cgroup_paths *c, const char *path)
{
	return c && cgroup_paths_has(c, path, strlen(path));
}

bool cgroup_paths_are_unified(const struct cgroup_paths *c)
{
	return c && c->unified;
}
