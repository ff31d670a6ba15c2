/* SPDX-License-Identifier: Apache-2.0 */
#include "base/private_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int private_mount_open(const char *kind, const char *path)
{
	autoclose int context = (int)syscall(SYS_fsopen, kind, FSOPEN_CLOEXEC), mount = -1;
	int fd;

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (mount < 0)
		return -errno;
	fd = openat(mount, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
