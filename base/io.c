/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/host.h"

enum { READ_BYTES = 16 * 1024 };

int io_read_all(int fd, struct buffer *b)
{
	for (;;) {
		void *room = buffer_room(b, READ_BYTES);
		char probe;
		ssize_t got;

		if (!room && b->error == -E2BIG && b->size < b->limit) {
			/* A whole READ_BYTES does not fit below the limit: read what does. */
			b->error = 0;
			room = buffer_room(b, b->limit - b->size);
			got = room ? read(fd, room, b->limit - b->size) : -1;
		} else if (!room && b->error == -E2BIG) {
			/* B is full: -E2BIG only if the file goes on. */
			b->error = 0;
			got = read(fd, &probe, 1);
			if (got == 0)
				return 0;
			b->error = -E2BIG;
			return -E2BIG;
		} else {
			got = room ? read(fd, room, READ_BYTES) : -1;
		}
		if (!room)
			return b->error;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		b->size += (size_t)got;
	}
}

int io_read_file(int dir_fd, const char *path, struct buffer *b)
{
	autoclose int fd = host_openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return io_read_all(fd, b);
}

ssize_t io_read_line(int dir_fd, const char *path, char *line, size_t size)
{
	autoclose int fd = host_openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, line, size - 1);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	line[got] = 0;
	line[strcspn(line, "\n")] = 0;
	return (ssize_t)strlen(line);
}

ssize_t io_read_at(int fd, uint64_t off, void *bytes, size_t size)
{
	size_t done = 0;

	if (off > INT64_MAX - size)
		return -EBADMSG;
	while (done < size) {
		ssize_t got =
			host_pread(fd, (char *)bytes + done, size - done, (off_t)(off + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int io_fstat(int fd, struct stat *ret_stat)
{
	/* Zeroed for MemorySanitizer, which does not know what the call writes. */
	*ret_stat = (struct stat){ 0 };
	return syscall(SYS_fstat, fd, ret_stat) ? -errno : 0;
}

uint64_t io_known_bytes(int fd)
{
	struct statx stx = { 0 };

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &stx) ? 0
										   : stx.stx_size;
}

int io_write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size > 0) {
		ssize_t put = write(fd, at, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		at += put;
		size -= (size_t)put;
	}
	return 0;
}

int io_write_at(int fd, uint64_t off, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size > 0) {
		ssize_t put = pwrite(fd, at, size, (off_t)off);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -EIO;
		at += put;
		off += (uint64_t)put;
		size -= (size_t)put;
	}
	return 0;
}

int io_replace_file(int dir_fd, const char *path, const void *bytes, size_t size, mode_t mode)
{
	char temporary[PATH_MAX];
	autoclose int fd = -1;
	int err;

	if (snprintf(temporary, sizeof(temporary), "%s.%d.tmp", path, (int)getpid()) >=
		(int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	err = io_write_all(fd, bytes, size);
	if (!err && fsync(fd))
		err = -errno;
	if (!err && renameat(dir_fd, temporary, dir_fd, path))
		err = -errno;
	if (err)
		unlinkat(dir_fd, temporary, 0);
	return err;
}

int io_next_entry(DIR *directory, struct dirent **ret_entry)
{
	struct dirent *entry;

	errno = 0;
	entry = host_readdir(directory);
	if (!entry && errno)
		return -errno;
	*ret_entry = entry;
	return 0;
}

int io_make_directories(const char *path, mode_t mode)
{
	char partial[PATH_MAX];
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(partial))
		return -ENAMETOOLONG;
	memcpy(partial, path, length + 1);
	for (char *slash = partial + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = 0;
		if (mkdir(partial, mode) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(partial, mode) && errno != EEXIST)
		return -errno;
	return 0;
}

int io_open_own_directory(const char *path, mode_t mode, int *ret_fd)
{
	autoclose int fd = -1;
	struct stat st;
	int err = io_make_directories(path, mode);

	if (err)
		return err;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}
