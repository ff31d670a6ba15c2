/* SPDX-License-Identifier: Apache-2.0 */
/* How long functions take: the row. What it measures is read from its maps (latency.h). */
#include <bpf/libbpf.h>
#include <errno.h>

#include "agent/sampler/collect/attach_probe.h"
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/uprobe_multi.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/latency.skel.h"

/* Kernel memory that the histograms may take by default. */
enum { MAX_CELL_BYTES = 32 << 20, CELL_OVERHEAD_BYTES = 80 };

static bool latency_is_wanted(const struct collect_options *options)
{
	return options->latency != NULL;
}

static uint32_t latency_max_cells(const struct latency_options *options)
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
	uint32_t open_calls = options->max_open_calls ? options->max_open_calls
						      : (uint32_t)ABI_LATENCY_OPEN_CALLS;
	int err = latency_size_map(object, "latency_functions", functions);

	if (!err)
		err = latency_size_map(object, "latency_entries", functions);
	if (!err)
		err = latency_size_map(object, "latency_open", open_calls);
	if (!err)
		err = latency_size_map(object, "latency_cells", latency_max_cells(options));
	return err;
}

/* Loads the program for one link to many sites, if the kernel has that, else the other one. */
static int latency_choose_program(const struct collect_options *options, struct bpf_object *object)
{
	struct bpf_program *many = bpf_object__find_program_by_name(object, "latency_at_sites");
	struct bpf_program *one = bpf_object__find_program_by_name(object, "latency_at_site");
	bool multi = !(options->without & MECHANISM_UPROBE_MULTI) && !attach_probe_uprobe_multi();

	if (!many || !one)
		return -EBADMSG;
	bpf_program__set_autoload(multi ? one : many, false);
	return bpf_program__set_expected_attach_type(many, (enum bpf_attach_type)UPROBE_MULTI_TYPE);
}

static int latency_configure(const struct collect_options *options, struct bpf_object *object)
{
	struct bpf_map *settings = bpf_object__find_map_by_name(object, ".rodata.probe");
	struct abi_latency_config *config;
	size_t size = 0;
	int err;

	config = settings ? (void *)bpf_map__initial_value(settings, &size) : NULL;
	if (size < sizeof(*config))
		return -EBADMSG;
	config->by = options->latency->by;
	err = latency_size_maps(options->latency, object);
	return err ? err : latency_choose_program(options, object);
}

const struct probe probe_latency = {
	.name = "latency",
	.object = latency_bpf__elf_bytes,
	.is_wanted = latency_is_wanted,
	.configure = latency_configure,
};
