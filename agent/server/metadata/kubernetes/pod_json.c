/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/kubernetes/pod_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "agent/server/metadata/json_value.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/utf8.h"

enum {
	ARENA_BYTES = 8 << 20,
	OWNERS_LIMIT = 64, /* looked at */
};

static const char mirror_annotation[] = "kubernetes.io/config.mirror";

/* ---- texts ---------------------------------------------------------------------------------- */

/* False if it is too long, or not plain text. */
static bool pod_json_token(const json_t *object, const char *key, char *token, size_t size)
{
	const char *text = json_value_text(object, key);

	if (strlen(text) >= size || !utf8_is_clean(text, strlen(text)))
		return false;
	snprintf(token, size, "%s", text);
	return true;
}

static void pod_json_message(const json_t *status, char message[POD_JSON_MESSAGE_BYTES])
{
	json_value_printable(status, "message", message, POD_JSON_MESSAGE_BYTES);
}

static int pod_json_number(const json_t *object, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(object, key));

	return number > 0 && number < 1000 ? (int)number : 0;
}

/* ---- a pod ---------------------------------------------------------------------------------- */

static int pod_json_pairs(
	struct arena *arena, json_t *object, struct container_pairs *ret_pairs, uint64_t *refused)
{
	const struct container_pair *pairs;
	size_t count;
	int err = json_value_pairs(arena, object, &pairs, &count, refused);

	return err ? err : container_pairs_copy(arena, pairs, count, ret_pairs, refused);
}

/* The owner that controls it: there is one at most (OwnerReference in meta/v1). */
static void pod_json_controller(const json_t *metadata, struct api_pod *pod)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences");
	size_t count = MIN(json_array_size(owners), (size_t)OWNERS_LIMIT);

	for (size_t i = 0; i < count; i++) {
		const json_t *owner = json_array_get(owners, i);
		const char *kind = json_value_text(owner, "kind");
		const char *name = json_value_text(owner, "name");

		if (!json_is_true(json_object_get(owner, "controller")) ||
			!container_is_name(kind) || !container_is_name(name))
			continue;
		pod->controller_kind = kind;
		pod->controller_name = name;
		return;
	}
}

static int pod_json_fill(
	struct arena *arena, const json_t *object, struct api_pod *pod, uint64_t *refused)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const char *mirrored;
	int err;

	*pod = (struct api_pod){
		.uid = json_value_text(metadata, "uid"),
		.name = json_value_text(metadata, "name"),
		.namespace = json_value_text(metadata, "namespace"),
		.controller_kind = "",
		.controller_name = "",
	};
	err = pod_json_pairs(arena, json_object_get(metadata, "labels"), &pod->labels, refused);
	if (!err)
		err = pod_json_pairs(arena, json_object_get(metadata, "annotations"),
			&pod->annotations, refused);
	if (err)
		return err;
	pod_json_controller(metadata, pod);
	mirrored = container_pairs_get(&pod->annotations, mirror_annotation);
	pod->uid = mirrored ? mirrored : pod->uid;
	return container_is_name(pod->uid) && container_is_name(pod->name) &&
			       container_is_name(pod->namespace)
		       ? 0
		       : -EBADMSG;
}

static int pod_json_take(const json_t *object, struct api_pod **ret_pod, uint64_t *refused)
{
	autocall(arena_deinit) struct arena arena;
	struct api_pod pod;
	int err;

	arena_init(&arena, ARENA_BYTES);
	err = pod_json_fill(&arena, object, &pod, refused);
	return err ? err : api_pod_copy(&pod, ret_pod);
}

int pod_json_pod(const void *bytes, size_t size, struct api_pod **ret_pod, uint64_t *refused_pairs)
{
	autocall(json_value_free) json_t *object = NULL;
	int err = json_value_load(bytes, size, &object);

	return err ? err : pod_json_take(object, ret_pod, refused_pairs);
}

/* ---- an event ------------------------------------------------------------------------------- */

static bool pod_json_event_type(const char *text, enum pod_json_event_type *ret_type)
{
	static const struct {
		const char *text;
		enum pod_json_event_type type;
	} types[] = {
		{ "ADDED", POD_JSON_IS },
		{ "MODIFIED", POD_JSON_IS },
		{ "DELETED", POD_JSON_DELETED },
		{ "BOOKMARK", POD_JSON_BOOKMARK },
		{ "ERROR", POD_JSON_ERROR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (!strcmp(text, types[i].text)) {
			*ret_type = types[i].type;
			return true;
		}
	}
	return false;
}

int pod_json_event(
	const void *bytes, size_t size, struct pod_json_event *ret_event, uint64_t *refused_pairs)
{
	autocall(json_value_free) json_t *event = NULL;
	struct pod_json_event e = { 0 };
	const json_t *object;
	int err = json_value_load(bytes, size, &event);

	if (err)
		return err;
	object = json_object_get(event, "object");
	if (!object || !pod_json_event_type(json_value_text(event, "type"), &e.type))
		return -EBADMSG;
	if (e.type == POD_JSON_ERROR) {
		e.code = pod_json_number(object, "code");
		pod_json_message(object, e.message);
	} else if (!pod_json_token(json_object_get(object, "metadata"), "resourceVersion",
			   e.version, sizeof(e.version))) {
		return -EBADMSG;
	} else if (e.type != POD_JSON_BOOKMARK) {
		e.pod_error = pod_json_take(object, &e.pod, refused_pairs);
	}
	*ret_event = e;
	return 0;
}

/* ---- the rest of an answer ------------------------------------------------------------------- */

/* PodList; with the metadata only: PartialObjectMetadataList. */
static bool pod_json_is_list(const char *kind)
{
	size_t length = strlen(kind);

	return length >= 4 && !strcmp(kind + length - 4, "List");
}

int pod_json_answer(const void *bytes, size_t size, struct pod_json_answer *ret_answer)
{
	autocall(json_value_free) json_t *object = NULL;
	struct pod_json_answer answer = { 0 };
	const json_t *metadata;
	const char *kind;
	int err = json_value_load(bytes, size, &object);

	if (err)
		return err;
	kind = json_value_text(object, "kind");
	metadata = json_object_get(object, "metadata");
	answer.is_list = pod_json_is_list(kind);
	if (!answer.is_list && strcmp(kind, "Status") != 0)
		return -EBADMSG;
	if (!answer.is_list)
		pod_json_message(object, answer.message);
	else if (!pod_json_token(
			 metadata, "resourceVersion", answer.version, sizeof(answer.version)) ||
		 !pod_json_token(metadata, "continue", answer.next, sizeof(answer.next)))
		return -EBADMSG;
	*ret_answer = answer;
	return 0;
}
