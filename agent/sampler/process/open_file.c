/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/open_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/host.h"

int open_map_file(int proc_pid_fd, uint64_t start, uint64_t end, uint64_t device, int *ret_fd)
{
	char name[64];
	const struct foreign_path path = {
		.place = FOREIGN_MAPPED, .dir_fd = proc_pid_fd, .name = name, .device = device
	};

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	return foreign_open(&path, ret_fd);
}

int open_in_root(int proc_pid_fd, const char *path, int *ret_fd)
{
	return foreign_open(
		&(struct foreign_path){
			.place = FOREIGN_ROOT,
			.dir_fd = proc_pid_fd,
			.name = "root",
			.path = path,
		},
		ret_fd);
}

int open_here(const char *path, int *ret_fd)
{
	return foreign_open(&(struct foreign_path){ .place = FOREIGN_HERE, .path = path }, ret_fd);
}

int open_perf_map(int proc_fd, uint32_t pid, uint32_t namespace_pid, int *ret_fd)
{
	char path[80], root[32], pid_text[16];
	struct stat map, process;
	autoclose int fd = -1;
	int err;

	snprintf(path, sizeof(path), "tmp/perf-%u.map", namespace_pid);
	snprintf(root, sizeof(root), "%u/root", pid);
	snprintf(pid_text, sizeof(pid_text), "%u", pid);
	/* Anybody may put a link into /tmp. */
	err = foreign_open(
		&(struct foreign_path){
			.place = FOREIGN_ROOT_ITSELF,
			.dir_fd = proc_fd,
			.name = root,
			.path = path,
		},
		&fd);
	if (!err)
		err = foreign_stat(fd, &map);
	if (!err && host_fstatat(proc_fd, pid_text, &process))
		err = -errno;
	if (err)
		return err;
	if (map.st_uid != 0 && map.st_uid != process.st_uid)
		return -EPERM;
	*ret_fd = take_fd(&fd);
	return 0;
}
