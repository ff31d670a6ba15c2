/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the API server told of one pod at one time: what a container runtime does not know, or only
 * as it was when the pod began. Does not change; any thread may hold references.
 */
#include <stddef.h>

#include "agent/server/metadata/containers.h"

struct api_pod {
	_Atomic unsigned int references;
	/*
	 * As container runtimes tell it: of a static pod, whose object at the server has a UID of
	 * its own, the value of its annotation kubernetes.io/config.mirror.
	 */
	const char *uid;
	const char *name, *namespace;
	struct container_pairs labels, annotations;
	const char *controller_kind, *controller_name; /* "" = none */
	size_t bytes; /* of memory, all of it */
};

/* Copies FROM, whose texts must be valid already. The new pod has one reference. -ENOMEM. */
int api_pod_copy(const struct api_pod *from, struct api_pod **ret_pod);
struct api_pod *api_pod_ref(struct api_pod *pod);
void api_pod_unref(struct api_pod *pod); /* POD may be NULL */
