/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths of control groups (version 2) by the id that BPF reports: the inode number in kernfs. */
#include <stddef.h>
#include <stdint.h>

/*
 * Writes the path of cgroup ID below the mounted cgroup2 file system, "/" for its root; it is cut
 * to SIZE. Returns -ENOENT if no cgroup2 file system is mounted or the cgroup is gone, -EPERM
 * without CAP_DAC_READ_SEARCH (open_by_handle_at(2)), or another negative errno.
 */
int cgroup_path(uint64_t id, char *path, size_t size);
