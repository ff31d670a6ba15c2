/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/open_regular.h"

static int open_path(int dir_fd, const char *name, int flags, int *ret_fd)
{
	int fd = openat(dir_fd, name, O_PATH | O_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* The type of a file does not change: its server is not asked again. */
static int check_regular(int fd)
{
	struct statx stx = { 0 };

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx))
		return -errno;
	return S_ISREG(stx.stx_mode) ? 0 : -ESTALE;
}

int file_open_mapped(int dir_fd, const char *name, int *ret_fd)
{
	autoclose int fd = -1;
	int err = open_path(dir_fd, name, 0, &fd);

	if (!err)
		err = check_regular(fd);
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}

static int find_in_root(const struct foreign_path *p, int *ret_fd)
{
	autoclose int root_fd = -1;
	int err = open_path(p->dir_fd, p->name, O_DIRECTORY, &root_fd);

	if (err)
		return err;
	return p->place == FOREIGN_ROOT ? open_regular_find_below(root_fd, p->path, ret_fd)
					: open_regular_find_itself_below(root_fd, p->path, ret_fd);
}

static int find(const struct foreign_path *p, int *ret_fd)
{
	switch (p->place) {
	case FOREIGN_ROOT:
	case FOREIGN_ROOT_ITSELF:
		return find_in_root(p, ret_fd);
	case FOREIGN_BELOW:
		return open_regular_find_below(p->dir_fd, p->path, ret_fd);
	case FOREIGN_HERE:
		return open_path(AT_FDCWD, p->path, 0, ret_fd);
	case FOREIGN_MAPPED:
	case FOREIGN_TEXT:
	case FOREIGN_DIRECTORY:
	case FOREIGN_PLACES:
		break;
	}
	return -EINVAL;
}

int file_open_path(const struct foreign_path *p, int *ret_fd)
{
	autoclose int fd = -1, contents_fd = -1;
	int err;

	if (p->place == FOREIGN_DIRECTORY)
		return open_path(p->dir_fd, p->name, O_DIRECTORY, ret_fd);
	if (p->place == FOREIGN_MAPPED)
		return file_open_mapped(p->dir_fd, p->name, ret_fd);
	err = find(p, &fd);
	if (!err)
		err = open_regular_again(fd, &contents_fd);
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}

int file_open_contents(int fd, int *ret_fd)
{
	int err;

	if (!open_regular_is_path(fd))
		return fd;
	err = open_regular_again(fd, ret_fd);
	return err ? err : *ret_fd;
}
