/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Labels and annotations of a pod: foreign pairs in any order, made a sorted list of valid ones. */
#include "agent/server/metadata/containers.h"
#include "base/arena.h"

/*
 * Copies COUNT pairs of FROM into ARENA. Of several with one name the last counts, as in protobuf's
 * maps. Values lose control characters and bytes that are not UTF-8. Adds to *REFUSED how many
 * pairs were left out: values over the limit, which are no use cut, invalid names, pairs over the
 * limit.
 */
int container_pairs_copy(struct arena *arena, const struct container_pair *from, size_t count,
	struct container_pairs *ret_pairs, uint64_t *refused);
/* NULL = none */
const char *container_pairs_get(const struct container_pairs *pairs, const char *name);
