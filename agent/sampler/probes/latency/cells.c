/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and forgets the histograms. */
#include <bpf/bpf.h>
#include <errno.h>

#include "agent/sampler/probes/latency/latency_internal.h"
#include "agent/sampler/probes/latency/map_scan.h"
#include "base/cleanup.h"

static struct latency_cell cells_sum(
	const struct abi_latency_cell_key *key, const struct abi_latency_cell *of, size_t cpus)
{
	struct latency_cell sum = { .function = key->function,
		.bucket = key->bucket,
		.by = key->by,
		.process = key->process };

	for (size_t cpu = 0; cpu < cpus; cpu++) {
		sum.count += of[cpu].count;
		sum.sum_ns += of[cpu].sum_ns;
		sum.max_ns = MAX(sum.max_ns, of[cpu].max_ns);
	}
	return sum;
}

int latency_read(const struct latency *l,
	void (*fn)(void *context, const struct latency_cell *cell), void *context)
{
	autocall(map_scan_deinit) struct map_scan scan = { 0 };
	int err = map_scan_init(&scan, l->cells_map, sizeof(struct abi_latency_cell_key),
		sizeof(struct abi_latency_cell), l->cpus);

	while (!err && !scan.done) {
		err = map_scan_next(&scan);
		for (uint32_t i = 0; !err && i < scan.count; i++) {
			struct latency_cell cell = cells_sum(
				map_scan_key(&scan, i), map_scan_value(&scan, i), l->cpus);

			/* Another CPU's value may not have been filled in yet. */
			if (cell.count)
				fn(context, &cell);
		}
	}
	return err;
}

/* Deletes the elements of MAP whose function, at FUNCTION_OFF in the key, is not used. */
static int cells_forget_in(
	const struct latency *l, int map, size_t key_bytes, size_t value_bytes, size_t function_off)
{
	autocall(map_scan_deinit) struct map_scan scan = { 0 };
	size_t cpus = map == l->cells_map ? l->cpus : 0;
	int err = map_scan_init(&scan, map, key_bytes, value_bytes, cpus);

	while (!err && !scan.done) {
		err = map_scan_next(&scan);
		for (uint32_t i = 0; !err && i < scan.count; i++) {
			const char *key = map_scan_key(&scan, i);
			const uint32_t *function = (const void *)(key + function_off);

			if (*function < l->count && !l->functions[*function].used)
				(void)bpf_map_delete_elem(map, key);
		}
	}
	return err;
}

int latency_forget_unused(const struct latency *l)
{
	int err = cells_forget_in(l, l->cells_map, sizeof(struct abi_latency_cell_key),
		sizeof(struct abi_latency_cell), offsetof(struct abi_latency_cell_key, function));

	return err ? err
		   : cells_forget_in(l, l->open_map, sizeof(struct abi_open_call_key),
			     sizeof(struct abi_open_call),
			     offsetof(struct abi_open_call_key, function));
}

void latency_forget_cell(struct latency *l, const struct latency_cell *cell)
{
	const struct abi_latency_cell_key key = {
		.function = cell->function,
		.bucket = cell->bucket,
		.by = cell->by,
		.process = cell->process,
	};

	(void)bpf_map_delete_elem(l->cells_map, &key);
}

uint32_t latency_max_cells(const struct latency *l)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(l->cells_map, &info, &size) ? ABI_LATENCY_CELLS
								  : info.max_entries;
}
