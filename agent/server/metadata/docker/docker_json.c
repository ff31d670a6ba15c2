/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/docker/docker_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/json_value.h"
#include "base/arena.h"
#include "base/cleanup.h"

enum {
	ARENA_BYTES = 8 << 20,
	NAMES_LIMIT = 64, /* looked at */
	COMPONENTS_LIMIT = 16, /* looked at */
};

/* ---- who it is ------------------------------------------------------------------------------ */

static bool docker_json_is_podman(const json_t *version)
{
	const json_t *components = json_object_get(version, "Components");
	size_t count = MIN(json_array_size(components), (size_t)COMPONENTS_LIMIT);

	for (size_t i = 0; i < count; i++) {
		if (strcasestr(json_value_text(json_array_get(components, i), "Name"), "podman"))
			return true;
	}
	return false;
}

int docker_json_version(const void *bytes, size_t size, char name[CONTAINER_RUNTIME_BYTES])
{
	autocall(json_value_free) json_t *version = NULL;
	int err = json_value_load(bytes, size, &version);

	if (err)
		return err == -ENOMEM ? err : -EBADMSG;
	if (!*json_value_text(version, "ApiVersion"))
		return -EBADMSG;
	snprintf(name, CONTAINER_RUNTIME_BYTES, "%s",
		docker_json_is_podman(version) ? "podman" : "docker");
	return 0;
}

/* ---- a container ---------------------------------------------------------------------------- */

/* Its own is `/NAME`; `/OTHER/ALIAS` is what a linked container calls it. "" = none. */
static const char *docker_json_name(const json_t *container)
{
	const json_t *names = json_object_get(container, "Names");
	size_t count = MIN(json_array_size(names), (size_t)NAMES_LIMIT);

	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_array_get(names, i);
		const char *name = json_string_value(value);

		if (!name || strlen(name) != json_string_length(value))
			continue;
		name += *name == '/';
		if (*name && !strchr(name, '/'))
			return name;
	}
	return "";
}

/* The labels of a pod's sandbox, without what cri-dockerd adds to tell its annotations. */
static int docker_json_sandbox(
	struct arena *arena, const json_t *container, struct containers *containers)
{
	static const char prefix[] = "annotation.";
	json_t *labels = json_object_get(container, "Labels");
	const struct container_pair *pairs;
	struct container_pair *sorted;
	struct containers_pod pod;
	uint64_t refused = 0;
	size_t count;
	int err = json_value_pairs(arena, labels, &pairs, &count, &refused);

	sorted = err ? NULL : arena_alloc(arena, (count + 1) * sizeof(*sorted));
	if (!sorted)
		return err ? err : arena->error;
	pod = (struct containers_pod){
		.id = json_value_text(container, "Id"),
		.name = json_value_text(labels, "io.kubernetes.pod.name"),
		.namespace = json_value_text(labels, "io.kubernetes.pod.namespace"),
		.uid = json_value_text(labels, "io.kubernetes.pod.uid"),
		.is_claim = true,
		.labels = sorted,
	};
	/* Labels from the front, annotations from the back. */
	for (size_t i = 0; i < count; i++) {
		if (strncmp(pairs[i].name, prefix, strlen(prefix)) != 0) {
			sorted[pod.label_count++] = pairs[i];
			continue;
		}
		sorted[count - ++pod.annotation_count] =
			(struct container_pair){ pairs[i].name + strlen(prefix), pairs[i].value };
	}
	pod.annotations = sorted + count - pod.annotation_count;
	return containers_add_pod(containers, &pod);
}

static int docker_json_in_pod(const json_t *container, struct containers *containers)
{
	const json_t *labels = json_object_get(container, "Labels");

	return containers_add(
		containers, &(struct containers_container){
				    .id = json_value_text(container, "Id"),
				    .pod_id = json_value_text(labels, "io.kubernetes.sandbox.id"),
				    .name = json_value_text(labels, "io.kubernetes.container.name"),
				    .image = json_value_text(container, "Image"),
			    });
}

static int docker_json_alone(
	struct arena *arena, const json_t *container, struct containers *containers)
{
	struct containers_container alone = {
		.id = json_value_text(container, "Id"),
		.name = docker_json_name(container),
		.image = json_value_text(container, "Image"),
		.is_alone = true,
	};
	uint64_t refused = 0;
	int err = json_value_pairs(arena, json_object_get(container, "Labels"), &alone.labels,
		&alone.label_count, &refused);

	return err ? err : containers_add(containers, &alone);
}

int docker_json_container(const void *bytes, size_t size, struct containers *containers)
{
	autocall(json_value_free) json_t *container = NULL;
	autocall(arena_deinit) struct arena arena;
	const char *type;
	int err;

	arena_init(&arena, ARENA_BYTES);
	err = json_value_load(bytes, size, &container);
	if (err)
		return err;
	type = json_value_text(json_object_get(container, "Labels"), "io.kubernetes.docker.type");
	if (!strcmp(type, "podsandbox"))
		return docker_json_sandbox(&arena, container, containers);
	if (!strcmp(type, "container"))
		return docker_json_in_pod(container, containers);
	return docker_json_alone(&arena, container, containers);
}

/* ---- an event ------------------------------------------------------------------------------- */

int docker_json_event(const void *bytes, size_t size, bool *ret_changes)
{
	autocall(json_value_free) json_t *event = NULL;
	const char *type;
	int err = json_value_load(bytes, size, &event);

	if (err)
		return err;
	type = json_value_text(event, "Type");
	*ret_changes = !strcmp(type, "container");
	return 0;
}
