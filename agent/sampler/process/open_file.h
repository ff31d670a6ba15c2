/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opening of files that other people named. Only regular files are opened for reading: a path that
 * leads to a FIFO or a device is refused before anything is done to it (-ESTALE: no such file can
 * have been mapped there as code).
 */
#include <stdint.h>

/* /proc/PID/map_files/START-END below PROC_PID_FD: the mapped file, even when it was deleted. */
int open_map_file(int proc_pid_fd, uint64_t start, uint64_t end, int *ret_fd);
/*
 * PATH as the process sees it: symbolic links lead nowhere outside its root directory. Fails with
 * -EOPNOTSUPP before Linux 5.6 where the path holds links.
 */
int open_in_root(int proc_pid_fd, const char *path, int *ret_fd);
/* PATH as we see it. */
int open_here(const char *path, int *ret_fd);
/*
 * The perf map of process PID, which its JIT writes under the pid of its own namespace: found below
 * its root as open_in_root() does, and no link itself. Only a file of the process's user, or root's
 * (-EPERM): nobody else may name its frames.
 */
int open_perf_map(int proc_fd, uint32_t pid, uint32_t namespace_pid, int *ret_fd);
