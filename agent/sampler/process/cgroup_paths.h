/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The paths of a process's control groups, as /proc/PID/cgroup shows them: one on cgroup v2, one
 * for each hierarchy on v1. Shared by processes that inherit them; does not change.
 */
#include <stdbool.h>
#include <stddef.h>

struct cgroup_paths;

/* Takes LENGTH bytes of /proc/PID/cgroup (cgroups(7)). Returns -ENOMEM. */
int cgroup_paths_read(const char *text, size_t length, struct cgroup_paths **ret_paths);
/* Both take NULL: nothing is known. */
struct cgroup_paths *cgroup_paths_ref(struct cgroup_paths *c);
void cgroup_paths_unref(struct cgroup_paths *c);
/* Whether GLOB, as in fnmatch(3), matches one of them whole. */
bool cgroup_paths_match(const struct cgroup_paths *c, const char *glob);
/* Whether PATH is one of them. */
bool cgroup_paths_have(const struct cgroup_paths *c, const char *path);
/* Whether cgroup v2 is the only hierarchy: then a thread's v2 group is all there is to know. */
bool cgroup_paths_are_unified(const struct cgroup_paths *c);
