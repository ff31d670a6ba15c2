/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/groups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	NAMES_BYTES = 1 << 20,
	PROCESSES_LIMIT = 1 << 20,
	SHORT_CONTAINER_ID = 12,
};

static void groups_describe(const struct process_facts *p, char *name, size_t size)
{
	const char *path = p ? p->program_path : "";
	const char *slash = strrchr(path, '/');

	if (!p)
		snprintf(name, size, "unknown");
	else if (*p->container_id)
		snprintf(name, size, "container-%.*s", SHORT_CONTAINER_ID, p->container_id);
	else if (p->kernel_thread)
		snprintf(name, size, "kernel");
	else if (*path)
		snprintf(name, size, "%s", slash && slash[1] ? slash + 1 : path);
	else
		snprintf(name, size, "%s", *p->comm ? p->comm : "unknown");
}

static int groups_add(struct groups *g, const struct window_processes *processes, uint32_t number)
{
	char name[256];
	uint64_t known;
	uint32_t group;
	int err;

	if (map_get(&g->of_process, number, &known))
		return 0;
	groups_describe(window_processes_find(processes, number), name, sizeof(name));
	err = intern_string(&g->names, name, &group);
	/* Over the limit: all further ones share the last group. */
	if (err == -E2BIG)
		group = groups_count(g);
	else if (err)
		return err;
	return map_set(&g->of_process, number, group);
}

int groups_init(
	struct groups *g, const struct profile *profile, const struct window_processes *processes)
{
	int err;

	*g = (struct groups){ 0 };
	err = intern_init(&g->names, GROUPS_LIMIT, NAMES_BYTES);
	map_init(&g->of_process, PROCESSES_LIMIT);
	for (size_t i = 0; !err && i < profile_sample_count(profile); i++)
		err = groups_add(g, processes, profile_sample_at(profile, i)->process);
	if (err)
		groups_deinit(g);
	return err;
}

void groups_deinit(struct groups *g)
{
	intern_deinit(&g->names);
	map_deinit(&g->of_process);
}

uint32_t groups_count(const struct groups *g)
{
	return (uint32_t)g->names.count - 1;
}

const char *groups_name(const struct groups *g, uint32_t group)
{
	return intern_text(&g->names, group);
}

uint32_t groups_of(const struct groups *g, uint32_t process_number)
{
	uint64_t group;

	return map_get(&g->of_process, process_number, &group) ? (uint32_t)group : 0;
}

const char *groups_label_of(void *context, const struct profile_sample *sample)
{
	struct groups_label *label = context;
	uint32_t group = groups_of(label->groups, sample->process);

	if (group != label->group)
		file_name_clean(groups_name(label->groups, group), label->name);
	label->group = group;
	return label->name;
}
