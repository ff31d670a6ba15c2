/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/debug_package.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { MAX_LISTS = 1 << 16 };

/* Before the merge of /usr, packages had /lib/x, which is /usr/lib/x now. */
static bool is_same_path(const char *line, const char *path)
{
	static const char usr[] = "/usr";

	if (!strcmp(line, path))
		return true;
	return !strncmp(path, usr, strlen(usr)) && !strcmp(line, path + strlen(usr));
}

static bool list_has(int directory, const char *list, const char *path)
{
	int fd = openat(directory, list, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	autofclose FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
	autofree char *line = NULL;
	size_t capacity = 0;
	bool found = false;

	if (!file && fd >= 0)
		close(fd);
	while (file && !found && getline(&line, &capacity, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = is_same_path(line, path);
	}
	return found;
}

/* `g++-12.list` and `libgcc-s1:amd64.list` → `g++-12-dbgsym`. The C library is an exception. */
static void name_package(const char *list, char *name, size_t size)
{
	int length = (int)(strcspn(list, ":") < strlen(list) ? strcspn(list, ":")
							     : strlen(list) - strlen(".list"));

	snprintf(name, size, "%.*s-%s", length, list,
		!strncmp(list, "libc6", (size_t)length) && length == 5 ? "dbg" : "dbgsym");
}

int debug_package_find(const char *lists, const char *path, char *name, size_t size)
{
	autoclosedir DIR *directory = opendir(lists);
	struct dirent *entry;
	unsigned int seen = 0;
	int err;

	if (!directory || *path != '/')
		return -ENOENT;
	while (!(err = io_next_entry(directory, &entry)) && entry && seen < MAX_LISTS) {
		const char *end = strstr(entry->d_name, ".list");

		if (!end || strcmp(end, ".list") != 0)
			continue;
		seen++;
		if (list_has(dirfd(directory), entry->d_name, path)) {
			name_package(entry->d_name, name, size);
			return 0;
		}
	}
	return err ? err : -ENOENT;
}
