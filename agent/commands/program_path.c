/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/program_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* That of execvp(3) if there is no $PATH. */
static const char DEFAULT_PATH[] = "/bin:/usr/bin";

static int program_path_try(const char *path, char **ret_path)
{
	struct stat info;

	if (stat(path, &info))
		return -errno;
	if (!S_ISREG(info.st_mode) || access(path, X_OK))
		return -EACCES;
	*ret_path = realpath(path, NULL);
	return *ret_path ? 0 : -errno;
}

int program_path(const char *name, char **ret_path)
{
	const char *path = getenv("PATH");
	autofree char *copy = strdup(path ? path : DEFAULT_PATH);
	char *rest = copy, *directory;
	int err = -ENOENT;

	if (strchr(name, '/'))
		return program_path_try(name, ret_path);
	if (!copy)
		return -ENOMEM;
	while ((directory = strsep(&rest, ":")) != NULL) {
		autofree char *file = NULL;
		int tried;

		if (asprintf(&file, "%s/%s", *directory ? directory : ".", name) < 0) {
			file = NULL;
			return -ENOMEM;
		}
		tried = program_path_try(file, ret_path);
		if (!tried || tried == -ENOMEM)
			return tried;
		if (tried == -EACCES)
			err = -EACCES;
	}
	return err;
}
