/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Turns an O_PATH descriptor into one for reading, if it is a regular file. */
static int reopen_regular(int path_fd, int *ret_fd)
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

int open_map_file(int proc_pid_fd, uint64_t start, uint64_t end, int *ret_fd)
{
	char name[64];
	autoclose int path_fd = -1;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	path_fd = openat(proc_pid_fd, name, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	return reopen_regular(path_fd, ret_fd);
}

/*
 * Without openat2(): one component after the other and no symbolic link at all, so that nothing
 * leads out of the root.
 */
static int walk_without_links(int root_fd, const char *path)
{
	autoclose int at = dup(root_fd);

	while (at >= 0 && *path) {
		size_t length = strcspn(path, "/");
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
		if (!fstat(at, &st) && S_ISLNK(st.st_mode))
			return -EOPNOTSUPP;
	}
	return at < 0 ? -errno : take_fd(&at);
}

int open_in_root(int proc_pid_fd, const char *path, int *ret_fd)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	autoclose int root_fd = openat(proc_pid_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int path_fd = -1;

	if (root_fd < 0)
		return -errno;
	path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (path_fd < 0 && errno != ENOSYS && errno != EPERM)
		return -errno;
	/* Old kernels have no openat2(), old container runtimes answer EPERM for it. */
	if (path_fd < 0)
		path_fd = walk_without_links(root_fd, path);
	return path_fd < 0 ? path_fd : reopen_regular(path_fd, ret_fd);
}

int open_here(const char *path, int *ret_fd)
{
	autoclose int path_fd = open(path, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	return reopen_regular(path_fd, ret_fd);
}

int open_perf_map(int proc_fd, uint32_t pid, uint32_t namespace_pid, int *ret_fd)
{
	char path[80], pid_text[16];
	struct stat map, process;
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%u/root/tmp/perf-%u.map", pid, namespace_pid);
	snprintf(pid_text, sizeof(pid_text), "%u", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &map) || fstatat(proc_fd, pid_text, &process, 0))
		return -errno;
	if (!S_ISREG(map.st_mode))
		return -ESTALE;
	if (map.st_uid != 0 && map.st_uid != process.st_uid)
		return -EPERM;
	*ret_fd = take_fd(&fd);
	return 0;
}
