/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Containers as runtimes tell of them, with their pods as the API server does: its labels and
 * annotations, which are all there are now, and the owner. Made once, then it does not change; any
 * thread may read it and hold references.
 */
#include <stddef.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/kubernetes/api_pods.h"

struct joined;

/* TABLES, COUNT of them, are finished; each may be NULL. -ENOMEM. */
int joined_create(struct containers *const *tables, size_t count, const struct api_pods *pods,
	struct joined **ret_joined);
struct joined *joined_ref(struct joined *j);
void joined_unref(struct joined *j); /* J may be NULL */
/* FACTS, of one of the tables, with what the API server told; FACTS itself if it told nothing. */
const struct container_facts *joined_find(
	const struct joined *j, const struct container_facts *facts);
