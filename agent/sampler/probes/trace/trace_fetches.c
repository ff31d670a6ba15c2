/* SPDX-License-Identifier: Apache-2.0 */
/* What is fetched of traced calls: from plans into the probe's maps. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/trace/trace.h"
#include "bpf/abi/trace.h"
#include "symbolizer/arguments/argument_plan.h"

static int trace_fetches_write(struct trace_fetches *fetches, const struct bpf_map *map,
	const struct argument_plan *plan, struct abi_fetch_set *ret_set)
{
	*ret_set = (struct abi_fetch_set){ .first = fetches->count };
	if (!plan)
		return 0;
	if (plan->fetch_count > bpf_map__max_entries(map) - fetches->count)
		return -E2BIG;
	for (uint32_t i = 0; i < plan->fetch_count; i++) {
		uint32_t key = fetches->count + i;

		if (bpf_map_update_elem(
			    bpf_map__fd(map), &key, &argument_plan_fetches(plan)[i], BPF_ANY))
			return -errno;
	}
	ret_set->count = plan->fetch_count;
	ret_set->bytes = plan->fetched_bytes;
	fetches->count += plan->fetch_count;
	return 0;
}

int trace_fetches_add(struct trace_fetches *fetches, const struct collect *collect, uint32_t number,
	const struct argument_plan *entry, const struct argument_plan *results)
{
	struct bpf_object *object = collect_probe_object(collect, trace_probe_name());
	const struct bpf_map *all = object ? bpf_object__find_map_by_name(object, "fetches") : NULL;
	const struct bpf_map *sets =
		object ? bpf_object__find_map_by_name(object, "trace_fetches") : NULL;
	struct abi_trace_fetches value = { 0 };
	int err = all && sets ? 0 : -EOPNOTSUPP;

	if (!err)
		err = trace_fetches_write(fetches, all, entry, &value.entry);
	if (!err)
		err = trace_fetches_write(fetches, all, results, &value.results);
	if (!err && bpf_map_update_elem(bpf_map__fd(sets), &number, &value, BPF_ANY))
		err = -errno;
	return err;
}
