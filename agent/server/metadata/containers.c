/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/containers_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/utf8.h"

enum {
	ID_DIGITS = 64,
	IMAGE_LIMIT = 2048,
	ARENA_BYTES = 96 << 20,
};

/* ---- life ----------------------------------------------------------------------------------- */

int containers_create(const char *runtime, struct containers **ret_containers)
{
	struct containers *c = calloc(1, sizeof(*c));
	char *name;

	if (!c)
		return -ENOMEM;
	atomic_init(&c->references, 1);
	arena_init(&c->arena, ARENA_BYTES);
	map_init(&c->containers.by_id, CONTAINERS_LIMIT);
	map_init(&c->pods.by_id, CONTAINERS_LIMIT);
	name = arena_strndup(&c->arena, runtime, strnlen(runtime, CONTAINER_NAME_LIMIT));
	if (!name) {
		containers_unref(c);
		return -ENOMEM;
	}
	utf8_clean(name, strlen(name));
	c->runtime = name;
	*ret_containers = c;
	return 0;
}

struct containers *containers_ref(struct containers *c)
{
	atomic_fetch_add(&c->references, 1);
	return c;
}

static void containers_table_deinit(struct table *t)
{
	map_deinit(&t->by_id);
	free(t->all);
}

void containers_unref(struct containers *c)
{
	if (!c || atomic_fetch_sub(&c->references, 1) > 1)
		return;
	containers_table_deinit(&c->containers);
	containers_table_deinit(&c->pods);
	arena_deinit(&c->arena);
	free(c);
}

/* ---- the tables ----------------------------------------------------------------------------- */

/* *RET_CHAIN: how many entries have the ID's hash. */
struct entry *containers_table_find(const struct table *t, const char *id, unsigned int *ret_chain)
{
	uint64_t at;

	*ret_chain = 0;
	if (!map_get(&t->by_id, hash_bytes(id, strlen(id)), &at))
		return NULL;
	for (; at; at = t->all[at - 1]->next, ++*ret_chain) {
		if (!strcmp(t->all[at - 1]->id, id))
			return t->all[at - 1];
	}
	return NULL;
}

int containers_table_add(struct table *t, struct entry *entry)
{
	uint64_t key = hash_bytes(entry->id, strlen(entry->id)), first = 0;
	int err = array_reserve(t->all, t->capacity, t->count + 1, CONTAINERS_LIMIT);

	if (err)
		return err;
	(void)map_get(&t->by_id, key, &first);
	err = map_set(&t->by_id, key, t->count + 1);
	if (err)
		return err;
	entry->next = (uint32_t)first;
	t->all[t->count++] = entry;
	return 0;
}

/* Only memory stops the caller; what is over a limit is counted and left out. */
int containers_count_limit(struct containers *c, int err)
{
	if (err != -E2BIG)
		return err;
	c->refused.over_limit++;
	return 0;
}

/* ---- texts ---------------------------------------------------------------------------------- */

static bool containers_is_id(const char *text)
{
	return text && strlen(text) == ID_DIGITS && strspn(text, "0123456789abcdef") == ID_DIGITS;
}

bool container_is_name(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return length && length <= CONTAINER_NAME_LIMIT && utf8_is_clean(text, length);
}

static bool containers_is_name_or_none(const char *text)
{
	return !text || !*text || container_is_name(text);
}

int containers_copy(struct containers *c, const char *text, const char **ret_copy)
{
	char *copy = arena_strndup(&c->arena, text ? text : "", text ? strlen(text) : 0);

	if (!copy)
		return c->arena.error;
	*ret_copy = copy;
	return 0;
}

static bool containers_same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

/* ---- adding --------------------------------------------------------------------------------- */

/* A new entry in T, or NULL: ID is known, which is a conflict unless IS_SAME, or cannot be added.
 */
struct entry *containers_entry(struct containers *c, const char *id, int *ret_err)
{
	struct entry *entry = arena_zalloc(&c->arena, sizeof(*entry));

	*ret_err = entry ? containers_copy(c, id, &entry->id) : c->arena.error;
	return *ret_err ? NULL : entry;
}

static bool containers_is_same_pod(const struct entry *entry, const struct containers_pod *pod)
{
	return containers_same_text(entry->pod.name, pod->name) &&
	       containers_same_text(entry->pod.namespace, pod->namespace) &&
	       containers_same_text(entry->pod.uid, pod->uid);
}

/* True if ID is known, or cannot be: then nothing is to be added. */
static bool containers_has_pod(struct containers *c, const struct containers_pod *pod)
{
	unsigned int chain;
	struct entry *known = containers_table_find(&c->pods, pod->id, &chain);

	if (known && !known->conflict && !containers_is_same_pod(known, pod)) {
		known->conflict = true;
		c->refused.conflicts++;
	}
	if (!known && chain >= CONTAINERS_CHAIN_LIMIT)
		c->refused.invalid++;
	return known || chain >= CONTAINERS_CHAIN_LIMIT;
}

static int containers_fill_pod(
	struct containers *c, const struct containers_pod *pod, struct entry *entry)
{
	struct container_pod *to = &entry->pod;
	int err = containers_copy(c, pod->name, &to->name);

	to->id = entry->id;
	to->is_claim = pod->is_claim;
	if (!err)
		err = containers_copy(c, pod->namespace, &to->namespace);
	if (!err)
		err = containers_copy(c, pod->uid, &to->uid);
	if (!err)
		err = container_pairs_copy(
			&c->arena, pod->labels, pod->label_count, &to->labels, &c->refused.pairs);
	return err ? err
		   : container_pairs_copy(&c->arena, pod->annotations, pod->annotation_count,
			     &to->annotations, &c->refused.pairs);
}

int containers_add_pod(struct containers *c, const struct containers_pod *pod)
{
	struct entry *entry;
	int err;

	if (!containers_is_id(pod->id) || !container_is_name(pod->name) ||
		!containers_is_name_or_none(pod->namespace) ||
		!containers_is_name_or_none(pod->uid)) {
		c->refused.invalid++;
		return 0;
	}
	if (containers_has_pod(c, pod))
		return 0;
	entry = containers_entry(c, pod->id, &err);
	if (entry)
		err = containers_fill_pod(c, pod, entry);
	return containers_count_limit(c, err ? err : containers_table_add(&c->pods, entry));
}

bool containers_has(struct containers *c, const char *id, const char *pod_id, const char *name)
{
	unsigned int chain;
	struct entry *known = containers_table_find(&c->containers, id, &chain);
	bool same = known && containers_same_text(known->pod_id, pod_id) &&
		    containers_same_text(known->facts.name, name);

	if (known && !known->conflict && !same) {
		known->conflict = true;
		c->refused.conflicts++;
	}
	if (!known && chain >= CONTAINERS_CHAIN_LIMIT)
		c->refused.invalid++;
	return known || chain >= CONTAINERS_CHAIN_LIMIT;
}

static bool containers_is_valid(const struct containers_container *container)
{
	return containers_is_id(container->id) && container_is_name(container->name) &&
	       (container->is_alone || containers_is_id(container->pod_id));
}

static int containers_fill(
	struct containers *c, const struct containers_container *from, struct entry *entry)
{
	size_t image_length = from->image ? strlen(from->image) : 0;
	bool clean = image_length <= IMAGE_LIMIT && utf8_is_clean(from->image, image_length);
	int err = containers_copy(c, from->is_alone ? "" : from->pod_id, &entry->pod_id);

	entry->is_alone = from->is_alone;
	if (!err)
		err = containers_copy(c, from->name, &entry->facts.name);
	if (!err)
		err = containers_copy(c, clean ? from->image : "", &entry->facts.image);
	return err ? err
		   : container_pairs_copy(&c->arena, from->labels, from->label_count,
			     &entry->facts.labels, &c->refused.pairs);
}

int containers_add(struct containers *c, const struct containers_container *container)
{
	struct entry *entry;
	int err;

	if (!containers_is_valid(container)) {
		c->refused.invalid++;
		return 0;
	}
	if (containers_has(c, container->id, container->is_alone ? "" : container->pod_id,
		    container->name))
		return 0;
	entry = containers_entry(c, container->id, &err);
	if (entry)
		err = containers_fill(c, container, entry);
	return containers_count_limit(c, err ? err : containers_table_add(&c->containers, entry));
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool containers_is_told(const struct entry *entry)
{
	return !entry->conflict && entry->facts.pod;
}

const struct container_facts *containers_find(const struct containers *c, const char *id)
{
	unsigned int chain;
	const struct entry *entry = containers_table_find(&c->containers, id, &chain);

	return entry && containers_is_told(entry) ? &entry->facts : NULL;
}

const struct container_facts *containers_next(const struct containers *c, size_t *at)
{
	while (*at < c->containers.count) {
		const struct entry *entry = c->containers.all[(*at)++];

		if (containers_is_told(entry))
			return &entry->facts;
	}
	return NULL;
}

bool container_is_in_pod(const struct container_facts *facts)
{
	return *facts->pod->name != 0;
}

bool container_is_of_pod(const struct container_facts *facts, const char *uid)
{
	const struct container_pod *pod = facts->pod;

	if (!uid || !*uid)
		return !pod->is_claim;
	if (!*pod->uid)
		return *pod->name && !pod->is_claim;
	return !strcmp(pod->uid, uid);
}

const char *containers_next_id(const struct containers *c, size_t *iterator)
{
	return *iterator < c->containers.count ? c->containers.all[(*iterator)++]->id : NULL;
}

void containers_set_times(struct containers *c, struct containers_times times)
{
	c->times = times;
}

struct containers_times containers_times(const struct containers *c)
{
	return c->times;
}

size_t containers_count(const struct containers *c)
{
	return c->containers.count - c->kept_containers;
}

size_t containers_pod_count(const struct containers *c)
{
	return c->pods.count - c->kept_pods;
}

const struct containers_refused *containers_refused(const struct containers *c)
{
	return &c->refused;
}
