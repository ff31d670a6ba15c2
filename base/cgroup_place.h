/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which cgroup (version 2) a user means by a path. Version 2 is mounted at /sys/fs/cgroup or,
 * beside version 1 (systemd's hybrid layout), at /sys/fs/cgroup/unified.
 */
#include <stdint.h>

#define CGROUP_PLACES "/sys/fs/cgroup or /sys/fs/cgroup/unified"

struct cgroup_place {
	uint64_t id; /* of the cgroup: inode number of its directory */
	uint32_t level; /* 1 = the root of its file system: selects the ancestor to compare */
};

/*
 * TEXT is absolute, or relative to where version 2 is mounted; an absolute path may leave the mount
 * point out (/system.slice/x). -ENOENT: there is no such cgroup.
 */
int cgroup_place_find(const char *text, struct cgroup_place *ret_place);
