/* SPDX-License-Identifier: Apache-2.0 */
/* How long functions take: the row. What it measures is read from its maps (latency.h). */
#include <bpf/libbpf.h>
#include <errno.h>

#include "agent/sampler/collect/attach_probe.h"
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/object_constants.h"
#include "agent/sampler/collect/uprobe_multi.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/profile/sample_type.h"
#include "base/cleanup.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/latency.skel.h"
#include "bpf/probes/latency_stacks.skel.h"

/* Kernel memory that the histograms may take by default. */
enum { MAX_CELL_BYTES = 32 << 20, CELL_OVERHEAD_BYTES = 80 };

static bool latency_is_wanted(const struct collect_options *options)
{
	return options->latency && !options->call_stacks && !options->trace;
}

static uint32_t latency_cells_for(const struct latency_options *options)
{
	int cpus = MAX(libbpf_num_possible_cpus(), 1);
	uint32_t bytes = CELL_OVERHEAD_BYTES + (uint32_t)cpus * sizeof(struct abi_latency_cell);

	if (options->max_cells)
		return options->max_cells;
	return MIN((uint32_t)ABI_LATENCY_CELLS, MAX_CELL_BYTES / bytes);
}

static int latency_size_map(struct bpf_object *object, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__set_max_entries(map, entries) : -EBADMSG;
}

static int latency_size_maps(const struct latency_options *options, struct bpf_object *object)
{
	uint32_t functions =
		options->max_functions ? options->max_functions : (uint32_t)ABI_LATENCY_FUNCTIONS;
	uint32_t processes =
		options->max_processes ? options->max_processes : (uint32_t)ABI_LATENCY_PROCESSES;
	uint32_t open_calls = options->max_open_calls ? options->max_open_calls
						      : (uint32_t)ABI_LATENCY_OPEN_CALLS;
	int err = latency_size_map(object, "latency_functions", functions);

	if (!err)
		err = latency_size_map(object, "latency_entries", functions);
	if (!err)
		err = latency_size_map(object, "latency_processes",
			options->by_sets || options->kernel_by_sets ? processes : 1);
	if (!err)
		err = latency_size_map(object, "latency_open", open_calls);
	if (!err)
		err = latency_size_map(object, "latency_cells", latency_cells_for(options));
	return err;
}

/* Whether one link can have many sites. */
static bool latency_has_multi(const struct collect_options *options)
{
	const uint32_t needed = MECHANISM_UPROBE_MULTI | MECHANISM_ATTACH_COOKIE;

	return !(options->without & needed) && !attach_probe_uprobe_multi();
}

/* Loads the program for one link to many sites, if the kernel has that, else the other one. */
static int latency_choose_program(const struct collect_options *options, struct bpf_object *object)
{
	struct bpf_program *many = bpf_object__find_program_by_name(object, "latency_at_sites");
	struct bpf_program *one = bpf_object__find_program_by_name(object, "latency_at_site");
	bool multi = latency_has_multi(options);

	if (!many || !one)
		return -EBADMSG;
	bpf_program__set_autoload(multi ? one : many, false);
	if (options->latency->kernel_only)
		bpf_program__set_autoload(multi ? many : one, false);
	return bpf_program__set_expected_attach_type(many, (enum bpf_attach_type)UPROBE_MULTI_TYPE);
}

/* Linux 5.15. */
static bool latency_has_cookies(const struct collect_options *options)
{
	return !(options->without & MECHANISM_ATTACH_COOKIE) &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) == 1;
}

static int latency_configure_maps(const struct collect_options *options, struct bpf_object *object)
{
	struct abi_latency_config *config =
		object_constants(object, ".rodata.probe", sizeof(*config));

	if (!config)
		return -EBADMSG;
	config->by_sets = options->latency->by_sets;
	config->follow = options->follow;
	config->own_env_end = options->latency->own_env_end;
	config->cookie_in_path = !latency_has_cookies(options);
	return latency_size_maps(options->latency, object);
}

static int latency_configure(const struct collect_options *options, struct bpf_object *object)
{
	int err = latency_configure_maps(options, object);

	return err ? err : latency_choose_program(options, object);
}

/* ---- with the callers' stacks ---------------------------------------------------------------- */

static bool latency_stacks_is_wanted(const struct collect_options *options)
{
	return options->latency && options->call_stacks;
}

int latency_configure_object(const struct collect_options *options, struct bpf_object *object)
{
	bool multi = latency_has_multi(options);
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		int err = multi ? bpf_program__set_expected_attach_type(
					  program, (enum bpf_attach_type)UPROBE_MULTI_TYPE)
				: 0;

		if (!err && options->latency->kernel_only)
			err = bpf_program__set_autoload(program, false);
		if (err)
			return err;
	}
	return latency_configure_maps(options, object);
}

static void latency_deliver_call(
	const struct collect_handlers *handlers, uint64_t time_ns, const void *record)
{
	if (handlers->call)
		handlers->call(handlers->context, time_ns, record);
}

static const struct sample_type *latency_sample_type(const struct collect_options *options)
{
	static const struct sample_type calls = {
		.count = { "calls", "count" },
		.weight = { "latency", "nanoseconds" },
		.is_time = true,
		.labels = SAMPLE_LABELS_OF_RECORD,
	};

	(void)options;
	return &calls;
}

const char *latency_probe_name(bool stacks)
{
	return stacks ? probe_latency_stacks.name : probe_latency.name;
}

const struct probe probe_latency = {
	.name = "latency",
	.object = latency_bpf__elf_bytes,
	.is_wanted = latency_is_wanted,
	.configure = latency_configure,
};

const struct probe probe_latency_stacks = {
	.name = "latency_stacks",
	.object = latency_stacks_bpf__elf_bytes,
	.by_tables = "latency_stacks_by_tables",
	.by_frame_pointer = "latency_stacks",
	.is_wanted = latency_stacks_is_wanted,
	/* Collect has chosen how stacks are walked. */
	.configure = latency_configure_object,
	.records = {
		{ ABI_CALL, true, ABI_SAMPLE_BYTES, latency_deliver_call, 0 },
	},
	.sample_type = latency_sample_type,
};
