/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions as they happen: the row. */
#include <bpf/libbpf.h>
#include <errno.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/object_constants.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/probes/trace/trace.h"
#include "bpf/abi/shared.h"
#include "bpf/abi/trace.h"
#include "bpf/probes/trace.skel.h"

static bool trace_is_wanted(const struct collect_options *options)
{
	return options->latency && options->trace;
}

int trace_configure_settings(const struct collect_options *options, struct bpf_object *object)
{
	struct abi_trace_config *config =
		object_constants(object, ".rodata.trace", sizeof(*config));

	if (!config)
		return -EBADMSG;
	*config = (struct abi_trace_config){
		.max_depth = options->trace->max_depth,
		.drilldown = options->trace->drilldown,
		.events_per_second = options->trace->max_events_per_second,
		.fetches = options->trace->max_fetches > 0,
	};
	return 0;
}

/* Where only kernel functions are traced, these hold nothing. */
static int trace_shrink_maps(struct bpf_object *object)
{
	struct bpf_map *tasks = bpf_object__find_map_by_name(object, "trace_tasks");
	struct bpf_map *levels = bpf_object__find_map_by_name(object, "trace_levels");
	int err = tasks && levels ? bpf_map__set_max_entries(tasks, 1) : -EBADMSG;

	return err ? err : bpf_map__set_max_entries(levels, 1);
}

/* Without arguments the maps are there, but hold nothing. */
static int trace_set_map_sizes(const struct collect_options *options, struct bpf_object *object)
{
	uint32_t fetches = options->trace->max_fetches;
	struct bpf_map *all = bpf_object__find_map_by_name(object, "fetches");
	struct bpf_map *sets = bpf_object__find_map_by_name(object, "trace_fetches");
	int err;

	if (!all || !sets)
		return -EBADMSG;
	err = bpf_map__set_max_entries(all, fetches ? fetches : 1);
	return err || fetches ? err : bpf_map__set_max_entries(sets, 1);
}

static int trace_configure(const struct collect_options *options, struct bpf_object *object)
{
	int err = trace_configure_settings(options, object);

	if (!err)
		err = trace_set_map_sizes(options, object);
	if (!err && options->latency->kernel_only)
		err = trace_shrink_maps(object);
	return err ? err : latency_configure_object(options, object);
}

static void trace_deliver_event(
	const struct collect_handlers *handlers, uint64_t time_ns, const void *record)
{
	const struct abi_trace_event *event = record;

	(void)time_ns;
	if (handlers->trace && event->payload_bytes <= ABI_TRACE_PAYLOAD_BYTES)
		handlers->trace(handlers->context, event);
}

const char *trace_probe_name(void)
{
	return probe_trace.name;
}

void trace_read_counts(const struct collect *collect, struct trace_counts *ret_counts)
{
	*ret_counts = (struct trace_counts){
		.calls = collect_counter(collect, ABI_COUNT_CALLS),
		.trees_left_out = collect_counter(collect, ABI_COUNT_CALLS_UNMEASURED),
		.events_lost = collect_counter(collect, ABI_COUNT_OUTPUT_FULL) +
			       collect_counter(collect, ABI_COUNT_OUTPUT_ERROR),
		.not_followed = collect_counter(collect, ABI_COUNT_CALLS_OPEN_FULL) +
				collect_counter(collect, ABI_COUNT_CALLS_STACK_BUSY),
		.unmatched = collect_counter(collect, ABI_COUNT_RETURNS_UNMATCHED),
		.fiber_errors = collect_counter(collect, ABI_COUNT_CALLS_FIBER_ERROR),
		.missed = collect_counter(collect, ABI_COUNT_CALLS_MISSED),
	};
}

const struct probe probe_trace = {
	.name = "trace",
	.object = trace_bpf__elf_bytes,
	.is_wanted = trace_is_wanted,
	.configure = trace_configure,
	.records = {
		{ ABI_TRACE, false, sizeof(struct abi_trace_event), trace_deliver_event,
			ABI_TRACE_PAYLOAD_BYTES },
	},
};
