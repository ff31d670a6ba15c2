/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * This node's pods as the API server tells of them: changed by one thread, by events and by lists.
 * A pod that is gone stays for as long as the caller wants, since its processes may still have
 * samples in a window.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/kubernetes/api_pod.h"
#include "base/map.h"

enum { API_PODS_LIMIT = 32768, API_PODS_BYTES = 64 << 20 };

struct api_pods {
	struct map entries; /* hash → struct api_pods_entry */
	size_t bytes; /* of all pods */
	size_t gone;
	uint32_t list; /* number of the list that is being received, or was last */
	uint64_t changes; /* so far */
	uint64_t conflicts, over_limit; /* pods that were not taken over, so far */
};

void api_pods_init(struct api_pods *p);
void api_pods_deinit(struct api_pods *p);
/* Takes POD, which the server has now told of. -ENOMEM only; what is over a limit is counted. */
int api_pods_set(struct api_pods *p, struct api_pod *pod);
/* The server has told that POD, which stays the caller's, is deleted. */
void api_pods_delete(struct api_pods *p, const struct api_pod *pod, uint64_t now_ns);
/* A list begins; what it has when it is complete is all there is. */
void api_pods_begin_list(struct api_pods *p);
void api_pods_end_list(struct api_pods *p, uint64_t now_ns);
/* Forgets pods that are gone since before SINCE_NS. -ENOMEM. */
int api_pods_forget(struct api_pods *p, uint64_t since_ns);
/* The pod as a container runtime tells of it: only if UID, name and namespace are the same.
 * Borrowed.
 */
struct api_pod *api_pods_find(const struct api_pods *p, const struct container_pod *pod);
size_t api_pods_count(const struct api_pods *p); /* without those that are gone */
