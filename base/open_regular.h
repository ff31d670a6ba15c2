/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opening of files that other people named, for reading and only if they are regular: a FIFO or a
 * device is refused (-ESTALE) before anything is done to it.
 */

/* The file of an O_PATH descriptor. */
int open_regular_again(int path_fd, int *ret_fd);
/*
 * PATH below the directory ROOT_FD as if that was `/`: symbolic links lead nowhere outside. Fails
 * with -EOPNOTSUPP before Linux 5.6 where the path holds links.
 */
int open_regular_below(int root_fd, const char *path, int *ret_fd);
/* The same, but PATH itself may be no link; one leads nowhere (-ESTALE). */
int open_regular_itself_below(int root_fd, const char *path, int *ret_fd);
