/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/object_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

int object_counters_init(struct object_counters *ret_counters, const struct bpf_object *object)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, "cpu_counters");
	int cpus = libbpf_num_possible_cpus();
	struct object_counters c = { 0 };

	if (cpus < 0)
		return cpus;
	if (!map || bpf_map__value_size(map) != ABI_COUNTERS * sizeof(*c.of_cpus))
		return -EBADMSG;
	c.map_fd = bpf_map__fd(map);
	c.slots = bpf_map__max_entries(map);
	c.cpus = (size_t)cpus;
	c.of_cpus = calloc(c.cpus * ABI_COUNTERS, sizeof(*c.of_cpus));
	if (!c.of_cpus)
		return -ENOMEM;
	*ret_counters = c;
	return 0;
}

void object_counters_deinit(struct object_counters *c)
{
	free(c->of_cpus);
	*c = (struct object_counters){ 0 };
}

int object_counters_add(const struct object_counters *c, uint64_t counts[ABI_COUNTERS])
{
	for (uint32_t slot = 0; slot < c->slots; slot++) {
		if (bpf_map_lookup_elem(c->map_fd, &slot, c->of_cpus))
			return -errno;
		for (size_t cpu = 0; cpu < c->cpus; cpu++)
			for (size_t i = 0; i < ABI_COUNTERS; i++)
				counts[i] += c->of_cpus[cpu * ABI_COUNTERS + i];
	}
	return 0;
}

uint64_t object_counters_of_cpu(const struct object_counters *c, int cpu, enum abi_counter counter)
{
	if (cpu < 0 || (size_t)cpu >= c->cpus)
		return 0;
	return c->of_cpus[(size_t)cpu * ABI_COUNTERS + counter];
}
