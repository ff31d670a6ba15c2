/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/containers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/utf8.h"

enum {
	ID_DIGITS = 64,
	IMAGE_LIMIT = 2048,
	ARENA_BYTES = 96 << 20,
	CHAIN_LIMIT = 16, /* entries with one hash: somebody makes collisions */
};

/* A container, or a pod: the sandbox has an ID of the same kind. */
struct entry {
	const char *id, *pod_id; /* of a pod: "" */
	struct container_facts facts;
	struct container_pod pod;
	uint64_t told_ns;
	uint32_t next; /* with the same hash, index + 1 */
	bool conflict, kept; /* kept: of the table before */
};

struct table {
	struct map by_id; /* hash → index + 1 */
	struct entry **all;
	size_t count, capacity;
};

struct containers {
	atomic_uint references;
	struct arena arena;
	const char *runtime;
	struct table containers, pods;
	size_t kept_containers, kept_pods;
	struct containers_refused refused;
	struct containers_times times;
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
static struct entry *containers_table_find(
	const struct table *t, const char *id, unsigned int *ret_chain)
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

static int containers_table_add(struct table *t, struct entry *entry)
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
static int containers_count_limit(struct containers *c, int err)
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

static int containers_copy(struct containers *c, const char *text, const char **ret_copy)
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
static struct entry *containers_entry(struct containers *c, const char *id, int *ret_err)
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
	if (!known && chain >= CHAIN_LIMIT)
		c->refused.invalid++;
	return known || chain >= CHAIN_LIMIT;
}

static int containers_fill_pod(
	struct containers *c, const struct containers_pod *pod, struct entry *entry)
{
	struct container_pod *to = &entry->pod;
	int err = containers_copy(c, pod->name, &to->name);

	to->id = entry->id;
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

static bool containers_has(
	struct containers *c, const char *id, const char *pod_id, const char *name)
{
	unsigned int chain;
	struct entry *known = containers_table_find(&c->containers, id, &chain);
	bool same = known && containers_same_text(known->pod_id, pod_id) &&
		    containers_same_text(known->facts.name, name);

	if (known && !known->conflict && !same) {
		known->conflict = true;
		c->refused.conflicts++;
	}
	if (!known && chain >= CHAIN_LIMIT)
		c->refused.invalid++;
	return known || chain >= CHAIN_LIMIT;
}

int containers_add(struct containers *c, const char *id, const char *pod_id, const char *name,
	const char *image)
{
	size_t image_length = image ? strlen(image) : 0;
	bool clean = image_length <= IMAGE_LIMIT && utf8_is_clean(image, image_length);
	struct entry *entry;
	int err;

	if (!containers_is_id(id) || !containers_is_id(pod_id) || !container_is_name(name)) {
		c->refused.invalid++;
		return 0;
	}
	if (containers_has(c, id, pod_id, name))
		return 0;
	entry = containers_entry(c, id, &err);
	if (entry)
		err = containers_copy(c, pod_id, &entry->pod_id);
	if (!err)
		err = containers_copy(c, name, &entry->facts.name);
	if (!err)
		err = containers_copy(c, clean ? image : "", &entry->facts.image);
	return containers_count_limit(c, err ? err : containers_table_add(&c->containers, entry));
}

/* ---- finishing ------------------------------------------------------------------------------ */

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
	}
}

/* An ID that was another pod's before is believed neither time. */
static void containers_compare(
	struct containers *c, struct entry *entry, const struct entry *before)
{
	const struct container_pod *now = entry->facts.pod, *then = before->facts.pod;

	entry->conflict |= before->conflict;
	if (entry->conflict || !now || !then)
		return;
	if (strcmp(now->uid, then->uid) || strcmp(now->name, then->name) ||
		strcmp(now->namespace, then->namespace) ||
		strcmp(entry->facts.name, before->facts.name)) {
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
	};
	size_t count = c->pods.count;
	int err = containers_add_pod(c, &copy);

	if (!err && c->pods.count > count) {
		c->pods.all[count]->kept = true;
		c->kept_pods++;
	}
	return err;
}

static int containers_keep(struct containers *c, const struct entry *before)
{
	size_t count = c->containers.count;
	struct entry *entry;
	int err = containers_keep_pod(c, before->facts.pod);

	if (!err)
		entry = containers_entry(c, before->id, &err);
	if (!err)
		err = containers_copy(c, before->pod_id, &entry->pod_id);
	if (!err)
		err = containers_copy(c, before->facts.name, &entry->facts.name);
	if (!err)
		err = containers_copy(c, before->facts.image, &entry->facts.image);
	if (!err)
		err = containers_table_add(&c->containers, entry);
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
			 chain < CHAIN_LIMIT)
			err = containers_keep(c, before);
	}
	containers_connect(c, now_ns);
	return err;
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

bool container_is_of_pod(const struct container_facts *facts, const char *uid)
{
	return !uid || !*uid || !*facts->pod->uid || !strcmp(facts->pod->uid, uid);
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
