/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/left_out_cgroups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/processes.h"
#include "agent/sampler/process/selection.h"
#include "base/array.h"

enum {
	CONSIDERED_LIMIT = 8192,
	PATH_BYTES = 4096,
	SWEPT_AT_ONCE = 64,
};

void left_out_cgroups_init(
	struct left_out_cgroups *l, const struct left_out_cgroups_options *options)
{
	*l = (struct left_out_cgroups){ .options = *options };
	map_init(&l->considered, CONSIDERED_LIMIT);
}

void left_out_cgroups_deinit(struct left_out_cgroups *l)
{
	map_deinit(&l->considered);
	free(l->swept);
}

/* ---- one group ------------------------------------------------------------------------------ */

/* Whether PATH, the group's with CONTAINER_ID in it, tells all that is known of P's groups. */
static bool left_out_cgroups_tells(const struct left_out_cgroups *l, const struct process *p,
	const char *path, const char *container_id)
{
	if (strcmp(container_id, p->container_id) != 0)
		return false;
	if (cgroup_paths_are_unified(p->cgroups) && cgroup_paths_have(p->cgroups, path))
		return true;
	return *container_id && !selection_needs_paths(l->options.choosing->selection);
}

static bool left_out_cgroups_refuses(
	const struct left_out_cgroups *l, const struct process *p, uint64_t id)
{
	char line[PATH_BYTES + 4] = "0::", *path = line + strlen(line);
	char container_id[CONTAINER_ID_BYTES] = "", pod_uid[POD_UID_BYTES] = "";
	struct cgroup_paths *paths = NULL;
	bool refuses;

	if (l->options.path_of(id, path, PATH_BYTES) || strlen(path) == PATH_BYTES - 1)
		return false;
	if (container_id_of_line(line, strlen(line), container_id))
		(void)container_pod_uid_of_line(line, strlen(line), pod_uid);
	if (!left_out_cgroups_tells(l, p, path, container_id) ||
		cgroup_paths_read(line, strlen(line), &paths))
		return false;
	refuses = choosing_refuses_cgroup(l->options.choosing, container_id, pod_uid, paths);
	cgroup_paths_unref(paths);
	return refuses;
}

void left_out_cgroups_consider(struct left_out_cgroups *l, const struct process *p, uint64_t id)
{
	uint64_t known;
	bool out;

	if (!id || p->kernel_thread || map_get(&l->considered, id, &known))
		return;
	out = l->considered.count < CONSIDERED_LIMIT && left_out_cgroups_refuses(l, p, id) &&
	      !l->options.leave_out(l->options.context, id, true);
	if (map_set(&l->considered, id, out) && out)
		(void)l->options.leave_out(l->options.context, id, false);
}

/* ---- all ------------------------------------------------------------------------------------ */

void left_out_cgroups_clear(struct left_out_cgroups *l)
{
	size_t iterator = 0;
	uint64_t id, out;

	while (map_next(&l->considered, &iterator, &id, &out)) {
		if (out)
			(void)l->options.leave_out(l->options.context, id, false);
	}
	map_clear(&l->considered);
	l->swept_count = 0;
}

static void left_out_cgroups_begin_round(struct left_out_cgroups *l)
{
	size_t iterator = 0;
	uint64_t id, out;

	if (array_reserve(l->swept, l->swept_capacity, l->considered.count, CONSIDERED_LIMIT))
		return;
	while (map_next(&l->considered, &iterator, &id, &out))
		l->swept[l->swept_count++] = id;
}

void left_out_cgroups_sweep(struct left_out_cgroups *l)
{
	char path[PATH_BYTES];
	uint64_t out;

	if (!l->considered.count)
		return;
	if (!l->swept_count)
		left_out_cgroups_begin_round(l);
	for (unsigned int i = 0; i < SWEPT_AT_ONCE && l->swept_count; i++) {
		uint64_t id = l->swept[--l->swept_count];

		if (l->options.path_of(id, path, sizeof(path)) != -ENOENT ||
			!map_get(&l->considered, id, &out))
			continue;
		if (out)
			(void)l->options.leave_out(l->options.context, id, false);
		(void)map_remove(&l->considered, id);
	}
}
