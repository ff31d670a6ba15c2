/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/kubernetes/api_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"

struct api_pods_entry {
	struct api_pod *pod;
	uint64_t gone_ns; /* 0 = it is there */
	uint32_t list; /* the last that had it */
};

enum { KEY_BYTES = 3 * (CONTAINER_NAME_LIMIT + 1) };

void api_pods_init(struct api_pods *p)
{
	*p = (struct api_pods){ 0 };
	map_init(&p->entries, API_PODS_LIMIT);
}

static void api_pods_free_entry(struct api_pods_entry *entry)
{
	api_pod_unref(entry->pod);
	free(entry);
}

void api_pods_deinit(struct api_pods *p)
{
	uint64_t key, value;
	size_t at = 0;

	while (map_next(&p->entries, &at, &key, &value))
		api_pods_free_entry((void *)(uintptr_t)value);
	map_deinit(&p->entries);
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Names that are valid have no NUL, which separates them. */
static uint64_t api_pods_key(const char *uid, const char *namespace, const char *name)
{
	const char *const parts[] = { uid, namespace, name };
	char text[KEY_BYTES];
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t length = strnlen(parts[i], CONTAINER_NAME_LIMIT);

		memcpy(text + size, parts[i], length);
		size += length;
		text[size++] = 0;
	}
	return hash_bytes(text, size);
}

static uint64_t api_pods_key_of(const struct api_pod *pod)
{
	return api_pods_key(pod->uid, pod->namespace, pod->name);
}

static bool api_pods_is(
	const struct api_pod *pod, const char *uid, const char *namespace, const char *name)
{
	return !strcmp(pod->uid, uid) && !strcmp(pod->namespace, namespace) &&
	       !strcmp(pod->name, name);
}

struct api_pod *api_pods_find(const struct api_pods *p, const struct container_pod *pod)
{
	const struct api_pods_entry *entry =
		map_get_pointer(&p->entries, api_pods_key(pod->uid, pod->namespace, pod->name));

	return entry && api_pods_is(entry->pod, pod->uid, pod->namespace, pod->name) ? entry->pod
										     : NULL;
}

size_t api_pods_count(const struct api_pods *p)
{
	return p->entries.count - p->gone;
}

/* ---- changing ------------------------------------------------------------------------------- */

static int api_pods_add(struct api_pods *p, struct api_pod *pod)
{
	struct api_pods_entry *entry = calloc(1, sizeof(*entry));
	int err = entry ? map_set_pointer(&p->entries, api_pods_key_of(pod), entry) : -ENOMEM;

	if (err) {
		p->over_limit += err == -E2BIG;
		free(entry);
		api_pod_unref(pod);
		return err == -E2BIG ? 0 : err;
	}
	entry->pod = pod;
	entry->list = p->list;
	p->bytes += pod->bytes;
	p->changes++;
	return 0;
}

static void api_pods_replace(struct api_pods *p, struct api_pods_entry *entry, struct api_pod *pod)
{
	p->bytes = p->bytes - entry->pod->bytes + pod->bytes;
	p->gone -= entry->gone_ns != 0;
	p->changes++;
	entry->gone_ns = 0;
	entry->list = p->list;
	api_pod_unref(entry->pod);
	entry->pod = pod;
}

int api_pods_set(struct api_pods *p, struct api_pod *pod)
{
	struct api_pods_entry *entry = map_get_pointer(&p->entries, api_pods_key_of(pod));
	size_t before = entry ? entry->pod->bytes : 0;

	if (p->bytes - before + pod->bytes > API_PODS_BYTES) {
		p->over_limit++;
	} else if (!entry) {
		return api_pods_add(p, pod);
	} else if (api_pods_is(entry->pod, pod->uid, pod->namespace, pod->name)) {
		api_pods_replace(p, entry, pod);
		return 0;
	} else {
		p->conflicts++;
	}
	api_pod_unref(pod);
	return 0;
}

static void api_pods_go(struct api_pods *p, struct api_pods_entry *entry, uint64_t now_ns)
{
	if (entry->gone_ns)
		return;
	entry->gone_ns = MAX(now_ns, UINT64_C(1));
	p->gone++;
}

void api_pods_delete(struct api_pods *p, const struct api_pod *pod, uint64_t now_ns)
{
	struct api_pods_entry *entry = map_get_pointer(&p->entries, api_pods_key_of(pod));

	if (entry && api_pods_is(entry->pod, pod->uid, pod->namespace, pod->name))
		api_pods_go(p, entry, now_ns);
}

void api_pods_begin_list(struct api_pods *p)
{
	p->list++;
}

void api_pods_end_list(struct api_pods *p, uint64_t now_ns)
{
	uint64_t key, value;
	size_t at = 0;

	while (map_next(&p->entries, &at, &key, &value)) {
		struct api_pods_entry *entry = (void *)(uintptr_t)value;

		if (entry->list != p->list)
			api_pods_go(p, entry, now_ns);
	}
}

/* The keys of what is to be forgotten: the map must not change while it is walked. */
static size_t api_pods_old(const struct api_pods *p, uint64_t since_ns, uint64_t *keys)
{
	uint64_t key, value;
	size_t at = 0, count = 0;

	while (map_next(&p->entries, &at, &key, &value)) {
		const struct api_pods_entry *entry = (void *)(uintptr_t)value;

		if (entry->gone_ns && entry->gone_ns < since_ns)
			keys[count++] = key;
	}
	return count;
}

int api_pods_forget(struct api_pods *p, uint64_t since_ns)
{
	autofree uint64_t *keys = NULL;
	size_t count;

	if (!p->gone)
		return 0;
	keys = calloc(p->entries.count, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	count = api_pods_old(p, since_ns, keys);
	for (size_t i = 0; i < count; i++) {
		struct api_pods_entry *entry = map_get_pointer(&p->entries, keys[i]);

		(void)map_remove(&p->entries, keys[i]);
		p->bytes -= entry->pod->bytes;
		p->gone--;
		p->changes++;
		api_pods_free_entry(entry);
	}
	if (count)
		map_trim(&p->entries);
	return 0;
}
