/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/joined.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/map.h"

struct joined_item {
	struct container_facts facts;
	struct container_pod pod;
	struct api_pod *told; /* has the texts; a reference */
};

struct joined {
	atomic_uint references;
	struct containers **tables; /* references: items point into them */
	size_t table_count;
	struct joined_item *items;
	size_t count, capacity;
	struct map by_facts; /* address of a table's facts → index + 1 */
};

static int joined_add(
	struct joined *j, const struct container_facts *facts, struct api_pod *told, size_t limit)
{
	int err = array_reserve(j->items, j->capacity, j->count + 1, limit);
	struct joined_item *item;

	if (!err)
		err = map_set(&j->by_facts, (uintptr_t)facts, j->count + 1);
	if (err)
		return err;
	item = &j->items[j->count++];
	*item = (struct joined_item){ .facts = *facts, .pod = *facts->pod };
	item->told = api_pod_ref(told);
	item->pod.labels = told->labels;
	item->pod.annotations = told->annotations;
	item->pod.controller_kind = told->controller_kind;
	item->pod.controller_name = told->controller_name;
	return 0;
}

static int joined_add_table(
	struct joined *j, const struct containers *table, const struct api_pods *pods, size_t limit)
{
	const struct container_facts *facts;
	size_t at = 0;
	int err = 0;

	while (!err && (facts = containers_next(table, &at)) != NULL) {
		struct api_pod *told = api_pods_find(pods, facts->pod);

		if (told)
			err = joined_add(j, facts, told, limit);
	}
	return err;
}

static int joined_fill(struct joined *j, struct containers *const *tables, size_t count,
	const struct api_pods *pods)
{
	const size_t limit = MAX(count, 1) * CONTAINERS_LIMIT;
	int err = 0;

	j->tables = calloc(MAX(count, 1), sizeof(*j->tables));
	if (!j->tables)
		return -ENOMEM;
	map_init(&j->by_facts, limit);
	for (size_t i = 0; !err && i < count; i++) {
		if (!tables[i])
			continue;
		j->tables[j->table_count++] = containers_ref(tables[i]);
		err = joined_add_table(j, tables[i], pods, limit);
	}
	/* Now that they no longer move. */
	for (size_t i = 0; i < j->count; i++)
		j->items[i].facts.pod = &j->items[i].pod;
	return err;
}

int joined_create(struct containers *const *tables, size_t count, const struct api_pods *pods,
	struct joined **ret_joined)
{
	struct joined *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return -ENOMEM;
	atomic_init(&j->references, 1);
	err = joined_fill(j, tables, count, pods);
	if (err) {
		joined_unref(j);
		return err;
	}
	*ret_joined = j;
	return 0;
}

struct joined *joined_ref(struct joined *j)
{
	atomic_fetch_add(&j->references, 1);
	return j;
}

void joined_unref(struct joined *j)
{
	if (!j || atomic_fetch_sub(&j->references, 1) > 1)
		return;
	for (size_t i = 0; i < j->count; i++)
		api_pod_unref(j->items[i].told);
	for (size_t i = 0; i < j->table_count; i++)
		containers_unref(j->tables[i]);
	map_deinit(&j->by_facts);
	free(j->items);
	free(j->tables);
	free(j);
}

const struct container_facts *joined_find(
	const struct joined *j, const struct container_facts *facts)
{
	uint64_t at;

	return map_get(&j->by_facts, (uintptr_t)facts, &at) ? &j->items[at - 1].facts : facts;
}
