/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opens files at untrusted paths for reading, only if they are regular: a FIFO or a device is
 * refused (-ESTALE) without being opened.
 */
#include <stdbool.h>

/* Reopens the file of an O_PATH descriptor. */
int open_regular_again(int path_fd, int *ret_fd);
/* Whether FD is a mere path (O_PATH), to be reopened before anything can be read from it. */
bool open_regular_is_path(int fd);
/*
 * Opens PATH as if the directory ROOT_FD were `/`: symbolic links cannot lead outside. Without
 * openat2() (before Linux 5.6), returns -EOPNOTSUPP if the path has symbolic links.
 */
int open_regular_below(int root_fd, const char *path, int *ret_fd);
/* Like open_regular_below(), but -ESTALE if the last component of PATH is a symbolic link. */
int open_regular_itself_below(int root_fd, const char *path, int *ret_fd);
/* Finds what these two would open: *RET_PATH_FD is an O_PATH descriptor of a file of any kind. */
int open_regular_find_below(int root_fd, const char *path, int *ret_path_fd);
int open_regular_find_itself_below(int root_fd, const char *path, int *ret_path_fd);
