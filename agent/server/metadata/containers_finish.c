/* SPDX-License-Identifier: Apache-2.0 */
/* A table becomes complete: containers get their pods, and what was known before is compared. */
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "agent/server/metadata/containers_internal.h"

/* Of what is in none. */
static const struct container_pod no_pod = { .id = "", .name = "", .namespace = "", .uid = "" };

/* The sandbox is a container, too: its processes are the pod's. */
static int containers_add_sandboxes(struct containers *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->pods.count; i++) {
		struct entry *pod = c->pods.all[i], *entry;

		if (pod->kept || containers_has(c, pod->id, pod->id, ""))
			continue;
		entry = containers_entry(c, pod->id, &err);
		if (entry) {
			entry->pod_id = entry->id;
			entry->facts.name = entry->facts.image = "";
			err = containers_table_add(&c->containers, entry);
		}
		err = containers_count_limit(c, err);
	}
	return err;
}

static void containers_connect(struct containers *c, uint64_t now_ns)
{
	for (size_t i = 0; i < c->containers.count; i++) {
		struct entry *entry = c->containers.all[i];
		unsigned int chain;
		struct entry *pod = containers_table_find(&c->pods, entry->pod_id, &chain);

		entry->told_ns = entry->told_ns ? entry->told_ns : now_ns;
		entry->facts.id = entry->id;
		entry->facts.runtime = c->runtime;
		entry->facts.pod = pod && !pod->conflict ? &pod->pod : NULL;
		if (entry->is_alone)
			entry->facts.pod = &no_pod;
	}
}

/*
 * An ID that was another pod's before is believed neither time. What is in no pod can be renamed
 * (`docker rename`).
 */
static void containers_compare(
	struct containers *c, struct entry *entry, const struct entry *before)
{
	const struct container_pod *now = entry->facts.pod, *then = before->facts.pod;

	entry->conflict |= before->conflict;
	if (entry->conflict || !now || !then)
		return;
	if (strcmp(now->uid, then->uid) || strcmp(now->name, then->name) ||
		strcmp(now->namespace, then->namespace) ||
		(!entry->is_alone && strcmp(entry->facts.name, before->facts.name) != 0)) {
		entry->conflict = true;
		c->refused.conflicts++;
	}
}

static int containers_keep_pod(struct containers *c, const struct container_pod *pod)
{
	const struct containers_pod copy = {
		.id = pod->id,
		.name = pod->name,
		.namespace = pod->namespace,
		.uid = pod->uid,
		.labels = pod->labels.items,
		.label_count = pod->labels.count,
		.annotations = pod->annotations.items,
		.annotation_count = pod->annotations.count,
		.is_claim = pod->is_claim,
	};
	size_t count = c->pods.count;
	int err = containers_add_pod(c, &copy);

	if (!err && c->pods.count > count) {
		c->pods.all[count]->kept = true;
		c->kept_pods++;
	}
	return err;
}

static int containers_keep_entry(
	struct containers *c, const struct entry *before, struct entry *entry)
{
	const struct container_pairs *labels = &before->facts.labels;
	uint64_t refused = 0; /* all are valid */
	int err = containers_copy(c, before->pod_id, &entry->pod_id);

	entry->is_alone = before->is_alone;
	if (!err)
		err = containers_copy(c, before->facts.name, &entry->facts.name);
	if (!err)
		err = containers_copy(c, before->facts.image, &entry->facts.image);
	if (!err)
		err = container_pairs_copy(
			&c->arena, labels->items, labels->count, &entry->facts.labels, &refused);
	return err ? err : containers_table_add(&c->containers, entry);
}

static int containers_keep(struct containers *c, const struct entry *before)
{
	size_t count = c->containers.count;
	struct entry *entry;
	int err = before->is_alone ? 0 : containers_keep_pod(c, before->facts.pod);

	if (!err)
		entry = containers_entry(c, before->id, &err);
	if (!err)
		err = containers_keep_entry(c, before, entry);
	if (err)
		return containers_count_limit(c, err);
	c->containers.all[count]->told_ns = before->told_ns;
	c->containers.all[count]->conflict = before->conflict;
	c->containers.all[count]->kept = true;
	c->kept_containers++;
	return 0;
}

int containers_finish(
	struct containers *c, const struct containers *old, uint64_t now_ns, uint64_t keep_since_ns)
{
	int err = containers_add_sandboxes(c);

	if (err)
		return err;
	containers_connect(c, now_ns);
	for (size_t i = 0; old && !err && i < old->containers.count; i++) {
		const struct entry *before = old->containers.all[i];
		unsigned int chain;
		struct entry *entry = containers_table_find(&c->containers, before->id, &chain);

		if (entry)
			containers_compare(c, entry, before);
		else if (before->told_ns >= keep_since_ns && before->facts.pod &&
			 chain < CONTAINERS_CHAIN_LIMIT)
			err = containers_keep(c, before);
	}
	containers_connect(c, now_ns);
	return err;
}
