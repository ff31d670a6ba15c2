/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Answers of the API server as JSON (https://kubernetes.io/docs/reference/using-api/api-concepts/),
 * which may hold anything: pods, of which only the metadata is looked at, events of a watch, and
 * what a list or a refusal says besides. One value is parsed at a time, within 16 MB of memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/metadata/kubernetes/api_pod.h"

enum {
	POD_JSON_VALUE_BYTES = 2 << 20, /* a pod's annotations have 256 KiB at most */
	POD_JSON_VERSION_BYTES = 64,
	POD_JSON_CONTINUE_BYTES = 4096,
	POD_JSON_MESSAGE_BYTES = 200,
};

/*
 * A pod, or only its metadata. Adds to *REFUSED_PAIRS the labels and annotations that are left out.
 * -EBADMSG: no JSON, or no pod with a valid UID, name and namespace; -E2BIG: too large when parsed;
 * -ENOMEM.
 */
int pod_json_pod(const void *bytes, size_t size, struct api_pod **ret_pod, uint64_t *refused_pairs);

enum pod_json_event_type {
	POD_JSON_IS, /* ADDED and MODIFIED */
	POD_JSON_DELETED,
	POD_JSON_BOOKMARK,
	POD_JSON_ERROR, /* the watch has ended */
};

struct pod_json_event {
	enum pod_json_event_type type;
	struct api_pod *pod; /* the caller's; NULL unless there is one that is valid */
	int pod_error; /* why not: as pod_json_pod() returns it */
	char version[POD_JSON_VERSION_BYTES]; /* of the object; "" = none */
	int code; /* of an error: an HTTP status; 0 = none */
	char message[POD_JSON_MESSAGE_BYTES]; /* of an error, printable */
};

/* -EBADMSG if it is no event, -E2BIG, -ENOMEM. */
int pod_json_event(
	const void *bytes, size_t size, struct pod_json_event *ret_event, uint64_t *refused_pairs);

/* What an answer says besides its pods. */
struct pod_json_answer {
	bool is_list; /* else a refusal */
	char version[POD_JSON_VERSION_BYTES]; /* of the list; "" = none */
	char next[POD_JSON_CONTINUE_BYTES]; /* where the list goes on; "" = it is complete */
	char message[POD_JSON_MESSAGE_BYTES]; /* of a refusal, printable; "" = none */
};

/* -EBADMSG if it is neither a list nor a refusal, -E2BIG, -ENOMEM. */
int pod_json_answer(const void *bytes, size_t size, struct pod_json_answer *ret_answer);
