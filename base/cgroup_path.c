/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	FILEID_KERNFS = 0xfe, /* include/linux/exportfs.h, Linux 5.5 */
	MAX_PATH_BYTES = 4096,
};

/* Where version 2 is mounted alone, and next to version 1. */
static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

struct cgroup_handle {
	struct file_handle head;
	uint64_t id;
};

static int open_root(const char **ret_path)
{
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		autoclose int fd = open(roots[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct statfs info;

		if (fd < 0 || fstatfs(fd, &info) || info.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		*ret_path = roots[i];
		return take_fd(&fd);
	}
	return -ENOENT;
}

static int open_by_id(int root_fd, uint64_t id)
{
	union {
		struct cgroup_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(id)];
	} h = { .handle = {
			.head = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } } };
	int fd;

	memcpy(h.handle.head.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(root_fd, &h.handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ESTALE ? -ENOENT : -errno;
	return fd;
}

int cgroup_path(uint64_t id, char *path, size_t size)
{
	const char *root = NULL;
	autoclose int root_fd = open_root(&root), fd = -1;
	char link[40], whole[MAX_PATH_BYTES];
	const char *below;
	ssize_t length;

	if (root_fd < 0)
		return root_fd;
	fd = open_by_id(root_fd, id);
	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, whole, sizeof(whole) - 1);
	if (length < 0)
		return -errno;
	whole[length] = 0;
	/* Another mount of it may be the one that is shown. */
	below = strncmp(whole, root, strlen(root)) ? whole : whole + strlen(root);
	snprintf(path, size, "%s", *below ? below : "/");
	return 0;
}
