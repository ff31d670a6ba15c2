/* SPDX-License-Identifier: Apache-2.0 */
#include "base/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/host.h"
#include "base/io.h"
#include "base/open_regular.h"

const struct foreign *foreign_current;

/* ---- here and now --------------------------------------------------------------------------- */

static int open_again(int dir_fd, const char *name, int *ret_fd)
{
	autoclose int path_fd = host_openat(dir_fd, name, O_PATH | O_CLOEXEC);

	return path_fd < 0 ? -errno : host_open_regular(path_fd, NULL, HOST_RESOLVE_AGAIN, ret_fd);
}

static int open_directory(int dir_fd, const char *name, int *ret_fd)
{
	int fd = host_openat(dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int open_in_root(const struct foreign_path *p, enum host_resolve how, int *ret_fd)
{
	autoclose int root_fd = -1;
	int err = open_directory(p->dir_fd, p->name, &root_fd);

	return err ? err : host_open_regular(root_fd, p->path, how, ret_fd);
}

static int open_text(int dir_fd, const char *name, int *ret_fd)
{
	int fd = host_openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int open_now(const struct foreign_path *p, int *ret_fd)
{
	switch (p->place) {
	case FOREIGN_MAPPED:
		return open_again(p->dir_fd, p->name, ret_fd);
	case FOREIGN_ROOT:
		return open_in_root(p, HOST_RESOLVE_BELOW, ret_fd);
	case FOREIGN_ROOT_ITSELF:
		return open_in_root(p, HOST_RESOLVE_ITSELF_BELOW, ret_fd);
	case FOREIGN_BELOW:
		return open_regular_below(p->dir_fd, p->path, ret_fd);
	case FOREIGN_HERE:
		return open_again(AT_FDCWD, p->path, ret_fd);
	case FOREIGN_TEXT:
		return open_text(p->dir_fd, p->name, ret_fd);
	case FOREIGN_DIRECTORY:
		return open_directory(p->dir_fd, p->name, ret_fd);
	case FOREIGN_PLACES:
		break;
	}
	return -EINVAL;
}

int foreign_send_now(int socket_fd, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
	union {
		char bytes[CMSG_SPACE(FOREIGN_SEND_FILES * sizeof(int))];
		struct cmsghdr header;
	} control = { { 0 } };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	size_t fds_bytes = fd_count * sizeof(*fds);
	ssize_t sent;

	if (fd_count > FOREIGN_SEND_FILES)
		return -E2BIG;
	if (fd_count) {
		control.header = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(fds_bytes),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), fds, fds_bytes);
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fds_bytes);
	}
	sent = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	return (size_t)sent == size ? 0 : -EIO;
}

/* ---- through the helper, if there is one ---------------------------------------------------- */

int foreign_open(const struct foreign_path *path, int *ret_fd)
{
	const struct foreign *f = foreign_current;

	return f ? f->open(f->context, path, ret_fd) : open_now(path, ret_fd);
}

int foreign_stat_at(int dir_fd, const char *name, struct stat *ret_stat)
{
	const struct foreign *f = foreign_current;

	if (f)
		return f->stat_at(f->context, dir_fd, name, ret_stat);
	return host_fstatat(dir_fd, name, ret_stat) ? -errno : 0;
}

static ssize_t read_text_now(int dir_fd, const char *name, char *text, size_t size)
{
	autoclose int fd = -1;
	int err = open_text(dir_fd, name, &fd);
	ssize_t got = err ? err : read(fd, text, size);

	return err || got >= 0 ? got : -errno;
}

ssize_t foreign_read_text(int dir_fd, const char *name, char *text, size_t size)
{
	const struct foreign *f = foreign_current;

	return f ? f->read_text(f->context, dir_fd, name, text, size)
		 : read_text_now(dir_fd, name, text, size);
}

ssize_t foreign_read_link(int dir_fd, const char *name, char *text, size_t size)
{
	const struct foreign *f = foreign_current;
	ssize_t length;

	if (f)
		return f->read_link(f->context, dir_fd, name, text, size);
	length = host_readlinkat(dir_fd, name, text, size);
	return length < 0 ? -errno : length;
}

int foreign_stat(int fd, struct stat *ret_stat)
{
	const struct foreign *f = foreign_current;

	if (f)
		return f->stat(f->context, fd, ret_stat);
	return host_fstat(fd, ret_stat) ? -errno : 0;
}

ssize_t foreign_read_at(int fd, uint64_t off, void *bytes, size_t size)
{
	const struct foreign *f = foreign_current;

	return f ? f->read_at(f->context, fd, off, bytes, size) : io_read_at(fd, off, bytes, size);
}

int foreign_state(int fd, struct file_id *ret_id)
{
	const struct foreign *f = foreign_current;

	return f ? f->state(f->context, fd, ret_id) : host_file_state(fd, ret_id);
}

int foreign_look(int fd, struct stat *ret_stat)
{
	const struct foreign *f = foreign_current;

	if (f)
		return f->stat(f->context, fd, ret_stat);
	return fstat(fd, ret_stat) ? -errno : 0;
}

int foreign_open_below(int root_fd, const char *path, struct stat *ret_stat, int *ret_fd)
{
	const struct foreign_path below = {
		.place = FOREIGN_BELOW, .dir_fd = root_fd, .path = path
	};
	autoclose int fd = -1;
	int err = foreign_open(&below, &fd);

	if (!err)
		err = foreign_look(fd, ret_stat);
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}

int foreign_send(int socket_fd, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
	const struct foreign *f = foreign_current;

	return f ? f->send(f->context, socket_fd, bytes, size, fds, fd_count)
		 : foreign_send_now(socket_fd, bytes, size, fds, fd_count);
}
