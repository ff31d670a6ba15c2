/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opens files whose names come from other processes. Only regular files are opened for reading: a
 * path that leads to a FIFO or a device is refused untouched (-ESTALE: no such file can have been
 * mapped there as code).
 */
#include <stdint.h>

/*
 * Opens map_files/START-END below PROC_PID_FD: the mapped file, even if it was deleted. DEVICE is
 * that of the mapping; 0 = unknown (base/foreign.h).
 */
int open_map_file(int proc_pid_fd, uint64_t start, uint64_t end, uint64_t device, int *ret_fd);
/*
 * Opens PATH as the process sees it: symbolic links cannot lead outside its root directory. Returns
 * -EOPNOTSUPP before Linux 5.6 if the path holds links.
 */
int open_in_root(int proc_pid_fd, const char *path, int *ret_fd);
/* Opens PATH as we see it. */
int open_here(const char *path, int *ret_fd);
/*
 * Opens the perf map of process PID, which its JIT names after the pid in its own namespace. The
 * path is resolved below the process's root as in open_in_root(), and the file itself must not be a
 * link. Returns -EPERM unless the process's user or root owns it: nobody else may name its frames.
 */
int open_perf_map(int proc_fd, uint32_t pid, uint32_t namespace_pid, int *ret_fd);
