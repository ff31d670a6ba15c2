/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/host.h"

int open_map_file(int proc_pid_fd, uint64_t start, uint64_t end, int *ret_fd)
{
	char name[64];
	autoclose int path_fd = -1;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	path_fd = host_openat(proc_pid_fd, name, O_PATH | O_CLOEXEC);
	if (path_fd < 0)
		return -errno;
	return host_open_regular(path_fd, NULL, HOST_RESOLVE_AGAIN, ret_fd);
}

int open_in_root(int proc_pid_fd, const char *path, int *ret_fd)
{
	autoclose int root_fd = host_openat(proc_pid_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root_fd < 0 ? -errno : host_open_regular(root_fd, path, HOST_RESOLVE_BELOW, ret_fd);
}

int open_here(const char *path, int *ret_fd)
{
	autoclose int path_fd = host_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	return host_open_regular(path_fd, NULL, HOST_RESOLVE_AGAIN, ret_fd);
}

int open_perf_map(int proc_fd, uint32_t pid, uint32_t namespace_pid, int *ret_fd)
{
	char path[80], root[32], pid_text[16];
	struct stat map, process;
	autoclose int root_fd = -1, fd = -1;
	int err;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", namespace_pid);
	snprintf(root, sizeof(root), "%u/root", pid);
	snprintf(pid_text, sizeof(pid_text), "%u", pid);
	root_fd = host_openat(proc_fd, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	/* Anybody may put a link into /tmp. */
	err = host_open_regular(root_fd, path, HOST_RESOLVE_ITSELF_BELOW, &fd);
	if (err)
		return err;
	if (host_fstat(fd, &map) || host_fstatat(proc_fd, pid_text, &process))
		return -errno;
	if (map.st_uid != 0 && map.st_uid != process.st_uid)
		return -EPERM;
	*ret_fd = take_fd(&fd);
	return 0;
}
