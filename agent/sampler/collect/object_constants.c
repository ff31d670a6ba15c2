/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/object_constants.h"

#include <bpf/libbpf.h>

void *object_constants(const struct bpf_object *object, const char *section, size_t size)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, section);
	size_t has = 0;
	void *constants = map ? (void *)bpf_map__initial_value(map, &has) : NULL;

	return has < size ? NULL : constants;
}
