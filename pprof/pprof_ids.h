/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the object with an ID is in a table of a profile. Most tools number from 1 on, without
 * gaps.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* id → index. */
struct pprof_ids {
	size_t counted; /* the first so many IDs are 1, 2, 3, … */
	struct map others;
};

static inline bool pprof_ids_get(const struct pprof_ids *ids, uint64_t id, uint64_t *ret_index)
{
	if (id - 1 >= ids->counted)
		return map_get(&ids->others, id, ret_index);
	*ret_index = id - 1;
	return true;
}
