/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup_place.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

/*
 * How many levels PATH (absolute) is below the root of its cgroup v2 file system; -1 if it is on
 * another file system. Truncates PATH.
 */
static int cgroup_place_depth(char *path)
{
	struct statfs info;
	int depth = -1;

	while (*path && !statfs(path, &info) && info.f_type == CGROUP2_SUPER_MAGIC) {
		depth++;
		*strrchr(path, '/') = '\0';
	}
	return depth;
}

static int cgroup_place_at(const char *path, struct cgroup_place *ret_place)
{
	autofree char *resolved = realpath(path, NULL);
	struct stat info;
	int depth;

	if (!resolved || stat(resolved, &info) || !S_ISDIR(info.st_mode))
		return -ENOENT;
	depth = cgroup_place_depth(resolved);
	if (depth < 0)
		return -ENOENT;
	*ret_place = (struct cgroup_place){ .id = info.st_ino, .level = (uint32_t)depth + 1 };
	return 0;
}

int cgroup_place_find(const char *text, struct cgroup_place *ret_place)
{
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(mounts) && err == -ENOENT; i++) {
		bool whole = !strncmp(text, mounts[0], strlen(mounts[0]));
		autofree char *path = NULL;

		if (asprintf(&path, "%s%s%s", whole ? "" : mounts[i],
			    whole || *text == '/' ? "" : "/", text) < 0)
			return -ENOMEM;
		err = cgroup_place_at(path, ret_place);
	}
	return err;
}
