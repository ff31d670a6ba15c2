/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads and writes whole files with limits. Relative paths start at DIR_FD, which may be AT_FDCWD.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buffer.h"

/*
 * Appends the contents of the file PATH to B. Works for /proc, where st_size is 0. Returns -E2BIG
 * over B's limit, else the system call's error.
 */
int io_read_file(int dir_fd, const char *path, struct buffer *b);
/* Likewise for what is left of the open file FD. */
int io_read_all(int fd, struct buffer *b);
/*
 * Reads the first line of a file, without its newline, cut to SIZE-1 bytes and NUL-terminated.
 * Returns its length or a negative errno.
 */
ssize_t io_read_line(int dir_fd, const char *path, char *line, size_t size);
/* Reads SIZE bytes at OFF; returns how many, fewer only at the end of the file, or negative errno.
 */
ssize_t io_read_at(int fd, uint64_t off, void *bytes, size_t size);
/*
 * fstat() by its own system call: glibc 2.33 to 2.38 makes it newfstatat(), which the sandbox
 * forbids because it takes paths.
 */
int io_fstat(int fd, struct stat *ret_stat);
/*
 * The size of a file as far as the kernel knows it, 0 = unknown. Unlike fstat() it asks no file
 * server, which might never answer. FD may be an O_PATH descriptor.
 */
uint64_t io_known_bytes(int fd);
/* Writes all SIZE bytes; retries on EINTR and after short writes. */
int io_write_all(int fd, const void *bytes, size_t size);
/* Like io_write_all(), at OFF; the file's position stays. */
int io_write_at(int fd, uint64_t off, const void *bytes, size_t size);
/*
 * Replaces PATH atomically: writes a temporary file next to it, fsyncs and renames. MODE as for
 * open(). On failure the temporary file is removed and the old file is unchanged.
 */
int io_replace_file(int dir_fd, const char *path, const void *bytes, size_t size, mode_t mode);
/* readdir() that tells the end (0, *RET_ENTRY is NULL) from an error (negative errno). */
int io_next_entry(DIR *directory, struct dirent **ret_entry);
/* mkdir -p; existing directories are fine. */
int io_make_directories(const char *path, mode_t mode);
/*
 * Makes PATH and its parents as needed, opens it and locks it for this process (flock, released
 * when *RET_FD is closed). Returns -EPERM if it belongs to another user or others may write to it,
 * -EBUSY if another process has the lock.
 */
int io_open_own_directory(const char *path, mode_t mode, int *ret_fd);
