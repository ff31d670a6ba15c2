/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Pipes and devices are written in place; regular files are replaced atomically. */
static bool output_file_is_special(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

int output_file_check(const char *path)
{
	char directory[4096];
	const char *slash = strrchr(path, '/');
	struct stat info;

	if (!strcmp(path, "-"))
		return 0;
	if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
		return -EISDIR; /* which root may write */
	if (output_file_is_special(path))
		return access(path, W_OK) ? -errno : 0;
	if (slash && (size_t)(slash - path) >= sizeof(directory))
		return -ENAMETOOLONG;
	snprintf(directory, sizeof(directory), "%.*s", slash ? MAX((int)(slash - path), 1) : 1,
		slash ? path : ".");
	return access(directory, W_OK | X_OK) ? -errno : 0;
}

int output_file_write(const char *path, const struct buffer *bytes)
{
	autoclose int fd = -1;

	if (!strcmp(path, "-"))
		return io_write_all(STDOUT_FILENO, bytes->bytes, bytes->size);
	if (!output_file_is_special(path))
		return io_replace_file(AT_FDCWD, path, bytes->bytes, bytes->size, 0644);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	return io_write_all(fd, bytes->bytes, bytes->size);
}
