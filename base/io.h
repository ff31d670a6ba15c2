/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whole-file reading and writing with limits, below a directory fd where one is given. */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"

/*
 * Appends all of the file PATH (relative to DIR_FD, or AT_FDCWD) to B; good for /proc, whose files
 * have no size. -E2BIG over B's limit, else the system call's error.
 */
int io_read_file(int dir_fd, const char *path, struct buffer *b);
/* The first line or SIZE-1 bytes of a file, NUL-terminated, the newline cut. Length or an error. */
ssize_t io_read_line(int dir_fd, const char *path, char *line, size_t size);
/* Up to SIZE bytes at OFF of a file, whole but for its end. How many, or a negative errno. */
ssize_t io_read_at(int fd, uint64_t off, void *bytes, size_t size);
/* Writes it all, through EINTR and short writes. */
int io_write_all(int fd, const void *bytes, size_t size);
/*
 * Replaces PATH atomically: a temporary file beside it, fsync, rename. MODE as for open(). On
 * failure nothing of it stays and the old file is as it was.
 */
int io_replace_file(int dir_fd, const char *path, const void *bytes, size_t size, mode_t mode);
/* The next entry of DIRECTORY; NULL at its end, which readdir() does not tell from an error. */
int io_next_entry(DIR *directory, struct dirent **ret_entry);
/* mkdir -p; existing directories are fine. */
int io_make_directories(const char *path, mode_t mode);
