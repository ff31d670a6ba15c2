/* SPDX-License-Identifier: Apache-2.0 */
#include "base/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Tries of one openat2(): each fails only if something is renamed or mounted during it. */
enum { MAX_RACES = 256 };

int open_regular_again(int path_fd, int *ret_fd)
{
	char name[40];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

bool open_regular_is_path(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_PATH;
}

/*
 * Fallback without openat2(): opens one component at a time and refuses symbolic links and `..`, so
 * that the path cannot leave the root.
 */
static int walk_without_links(int root_fd, const char *path)
{
	autoclose int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);

	while (at >= 0 && *path) {
		size_t length = strcspn(path, "/");
		bool slash = path[length];
		char name[NAME_MAX + 1];
		struct stat st;
		int next;

		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, length);
		name[length] = 0;
		path += length + strspn(path + length, "/");
		if (length == 0)
			continue;
		if (!strcmp(name, ".."))
			return -ENOENT;
		next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
		if (fstat(at, &st))
			return -errno;
		if (S_ISLNK(st.st_mode))
			return -EOPNOTSUPP;
		if (slash && !S_ISDIR(st.st_mode))
			return -ENOTDIR;
	}
	return at < 0 ? -errno : take_fd(&at);
}

/*
 * The kernel returns EAGAIN if it cannot tell where a `..` leads, because something was renamed or
 * mounted meanwhile, anywhere on the machine.
 */
static int open_in_root(int root_fd, const char *path, uint64_t flags)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int fd, tries = 0;

	do
		fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && ++tries < MAX_RACES);
	return fd;
}

static int open_regular_find(int root_fd, const char *path, uint64_t flags, int *ret_path_fd)
{
	int path_fd = open_in_root(root_fd, path, flags);

	if (path_fd < 0 && errno != ENOSYS && errno != EPERM)
		return -errno;
	/* Old kernels have no openat2(); old container runtimes fail it with EPERM. */
	if (path_fd < 0)
		path_fd = walk_without_links(root_fd, path);
	if (path_fd < 0)
		return path_fd;
	*ret_path_fd = path_fd;
	return 0;
}

int open_regular_find_below(int root_fd, const char *path, int *ret_path_fd)
{
	return open_regular_find(root_fd, path, 0, ret_path_fd);
}

int open_regular_find_itself_below(int root_fd, const char *path, int *ret_path_fd)
{
	return open_regular_find(root_fd, path, O_NOFOLLOW, ret_path_fd);
}

static int open_regular_resolve(int root_fd, const char *path, uint64_t flags, int *ret_fd)
{
	autoclose int path_fd = -1;
	int err = open_regular_find(root_fd, path, flags, &path_fd);

	return err ? err : open_regular_again(path_fd, ret_fd);
}

int open_regular_below(int root_fd, const char *path, int *ret_fd)
{
	return open_regular_resolve(root_fd, path, 0, ret_fd);
}

int open_regular_itself_below(int root_fd, const char *path, int *ret_fd)
{
	return open_regular_resolve(root_fd, path, O_NOFOLLOW, ret_fd);
}
