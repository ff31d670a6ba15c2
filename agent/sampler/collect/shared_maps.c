/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/shared_maps.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/embedded_object.h"
#include "agent/sampler/collect/runtime_hints.h"
#include "base/cleanup.h"
#include "bpf/abi/sample_ring.h"
#include "bpf/abi/shared.h"
#include "bpf/shared.skel.h"

struct shared_maps {
	struct shared_bpf *skeleton;
	struct abi_shared *variables;
	struct tables *tables; /* NULL = user stacks by frame pointer */
	struct sample_rings rings;
	struct runtime_hints runtime_hints;
};

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Only one of the two lookups is used; the maps of the other one are made minimal. */
static void size_lookup(struct shared_bpf *skeleton, bool by_mapping)
{
	if (by_mapping) {
		bpf_map__set_max_entries(skeleton->maps.unwind_processes, 1);
		bpf_map__set_max_entries(skeleton->maps.unwind_ranges, ABI_UNWIND_FILE_RANGES);
	} else {
		bpf_map__set_max_entries(skeleton->maps.unwind_files, 1);
		bpf_map__set_max_entries(skeleton->maps.sightings_reported, 1);
	}
}

static void leave_out_tables(struct shared_bpf *skeleton)
{
	bpf_map__set_autocreate(skeleton->maps.unwind_files, false);
	bpf_map__set_autocreate(skeleton->maps.sightings_reported, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_processes, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_ranges, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_slots, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_pool, false);
}

static void size_rings(struct shared_bpf *skeleton, const struct ring_sizes *sizes)
{
	if (!sizes->own_bytes)
		return;
	bpf_map__set_value_size(skeleton->maps.sample_rings,
		ABI_RING_DATA + sizes->own_bytes + ABI_RING_BEHIND_BYTES);
	bpf_map__set_max_entries(skeleton->maps.sample_rings, (uint32_t)sizes->own_count);
}

static void size_filters(struct shared_bpf *skeleton, const struct collect_options *options)
{
	const struct abi_sampler_config *filter = &options->filter;

	if (!filter->filter_tgids)
		bpf_map__set_max_entries(skeleton->maps.tgids, 1);
	if (!options->follow)
		bpf_map__set_max_entries(skeleton->maps.descendants, 1);
	if (!filter->filter_tids)
		bpf_map__set_max_entries(skeleton->maps.tids, 1);
	if (!filter->choose_cgroups)
		bpf_map__set_max_entries(skeleton->maps.left_out_cgroups, 1);
	if (!filter->read_fibers)
		bpf_map__set_max_entries(skeleton->maps.runtime_processes, 1);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int map_tables(struct shared_maps *m, enum walk walk)
{
	const struct shared_bpf *skeleton = m->skeleton;

	return tables_create(
		&(struct tables_maps){
			.processes = bpf_map__fd(skeleton->maps.unwind_processes),
			.ranges = bpf_map__fd(skeleton->maps.unwind_ranges),
			.slots = bpf_map__fd(skeleton->maps.unwind_slots),
			.pool = bpf_map__fd(skeleton->maps.unwind_pool),
			.files = walk == WALK_BY_MAPPINGS ? bpf_map__fd(skeleton->maps.unwind_files)
							  : -1,
			.epoch = &m->variables->unwind_epoch,
			.full = &m->variables->unwind_full,
			.files_epoch = &m->variables->unwind_files_epoch,
			.rules_epoch = &m->variables->unwind_rules_epoch,
			.left_out = m->variables->left_out,
		},
		&m->tables);
}

static int load_maps(struct shared_maps *m, const struct collect_options *options,
	const struct ring_sizes *sizes, enum walk walk)
{
	int err;

	m->skeleton = shared_bpf__open();
	if (!m->skeleton)
		return -ENOMEM;
	if (walk == WALK_BY_FRAME_POINTER)
		leave_out_tables(m->skeleton);
	else
		size_lookup(m->skeleton, walk == WALK_BY_MAPPINGS);
	size_rings(m->skeleton, sizes);
	size_filters(m->skeleton, options);
	err = shared_bpf__load(m->skeleton);
	if (err)
		return err;
	embedded_object_close_types(m->skeleton->obj);
	m->variables = (struct abi_shared *)&m->skeleton->data_shared->shared;
	m->runtime_hints.words = m->variables->runtime_hints;
	if (walk != WALK_BY_FRAME_POINTER)
		err = map_tables(m, walk);
	if (!err && sizes->own_bytes)
		err = sample_rings_init(&m->rings, bpf_map__fd(m->skeleton->maps.sample_rings),
			sizes->own_bytes, sizes->own_count);
	return err;
}

int shared_maps_create(const struct collect_options *options, const struct ring_sizes *sizes,
	enum walk walk, struct shared_maps **ret_maps)
{
	struct shared_maps *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = load_maps(m, options, sizes, walk);
	if (err) {
		shared_maps_destroy(m);
		return err;
	}
	*ret_maps = m;
	return 0;
}

void shared_maps_destroy(struct shared_maps *m)
{
	if (!m)
		return;
	tables_destroy(m->tables);
	sample_rings_deinit(&m->rings);
	shared_bpf__destroy(m->skeleton);
	free(m);
}

/* ---- for BPF objects ------------------------------------------------------------------------ */

int shared_maps_lend(const struct shared_maps *m, struct bpf_object *object)
{
	const struct bpf_map *map;

	bpf_object__for_each_map(map, m->skeleton->obj)
	{
		struct bpf_map *theirs = bpf_object__find_map_by_name(object, bpf_map__name(map));
		int err = 0;

		if (!theirs)
			continue;
		if (bpf_map__autocreate(map))
			err = bpf_map__reuse_fd(theirs, bpf_map__fd(map));
		else
			bpf_map__set_autocreate(theirs, false);
		if (err)
			return err;
	}
	return 0;
}

bool shared_maps_has(const struct shared_maps *m, const char *name)
{
	return bpf_object__find_map_by_name(m->skeleton->obj, name) != NULL;
}

/* ---- their content -------------------------------------------------------------------------- */

struct sample_rings *shared_maps_rings(struct shared_maps *m)
{
	return &m->rings;
}

struct tables *shared_maps_tables(const struct shared_maps *m)
{
	return m->tables;
}

static int put_pids(const struct bpf_map *map, const uint32_t *pids, size_t count)
{
	uint8_t there = 1;

	if (count > ABI_MAX_PIDS)
		return -E2BIG;
	for (size_t i = 0; i < count; i++)
		if (bpf_map_update_elem(bpf_map__fd(map), &pids[i], &there, BPF_ANY))
			return -errno;
	return 0;
}

int shared_maps_set_pids(struct shared_maps *m, const struct collect_options *options)
{
	int err = 0;

	if (options->filter.filter_tgids)
		err = put_pids(m->skeleton->maps.tgids, options->tgids, options->tgid_count);
	if (!err && options->filter.filter_tids)
		err = put_pids(m->skeleton->maps.tids, options->tids, options->tid_count);
	return err;
}

static bool has_pid(const uint32_t *pids, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

int shared_maps_set_tgids(struct shared_maps *m, const uint32_t *tgids, size_t count)
{
	int map = bpf_map__fd(m->skeleton->maps.tgids);
	uint32_t old[ABI_MAX_PIDS], *last = NULL;
	size_t old_count = 0;

	if (count > ABI_MAX_PIDS)
		return -E2BIG;
	while (old_count < ABI_MAX_PIDS && !bpf_map_get_next_key(map, last, &old[old_count]))
		last = &old[old_count++];
	/* First, so that there is room; new ones are not among them. */
	for (size_t i = 0; i < old_count; i++)
		if (!has_pid(tgids, count, old[i]))
			bpf_map_delete_elem(map, &old[i]);
	return put_pids(m->skeleton->maps.tgids, tgids, count);
}

static uint32_t shared_maps_left_out_count(const struct shared_maps *m, int change)
{
	return __atomic_add_fetch(
		&m->variables->left_out_cgroups, (uint32_t)change, __ATOMIC_RELAXED);
}

int shared_maps_leave_out_cgroup(struct shared_maps *m, uint64_t id, bool out)
{
	int map = bpf_map__fd(m->skeleton->maps.left_out_cgroups);
	uint8_t there = 1;

	if (!out) {
		if (!bpf_map_delete_elem(map, &id))
			shared_maps_left_out_count(m, -1);
		return 0;
	}
	if (!bpf_map_update_elem(map, &id, &there, BPF_NOEXIST))
		shared_maps_left_out_count(m, 1);
	else if (errno != EEXIST)
		return -errno;
	return 0;
}

int shared_maps_set_output(struct shared_maps *m, int cpu, int output_fd)
{
	int map = bpf_map__fd(m->skeleton->maps.output);
	int err = output_fd < 0 ? bpf_map_delete_elem(map, &cpu)
				: bpf_map_update_elem(map, &cpu, &output_fd, BPF_ANY);

	return err ? -errno : 0;
}

void shared_maps_set_window(struct shared_maps *m, uint32_t window)
{
	__atomic_store_n(&m->variables->window, window, __ATOMIC_RELAXED);
}

void shared_maps_rings_read(struct shared_maps *m)
{
	__atomic_add_fetch(&m->variables->ring_readings, 1, __ATOMIC_RELAXED);
}

void shared_maps_set_period(struct shared_maps *m, uint64_t period_ns)
{
	__atomic_store_n(&m->variables->changed_period, period_ns, __ATOMIC_RELAXED);
}

void shared_maps_set_kernel_tables(struct shared_maps *m, const struct abi_kernel_tables *tables)
{
	struct abi_kernel_tables *to = &m->variables->kernel_tables;

	__atomic_store_n(&to->count, 0, __ATOMIC_RELEASE);
	to->text = tables->text;
	to->text_end = tables->text_end;
	to->addresses = tables->addresses;
	to->rules = tables->rules;
	to->index = tables->index;
	memcpy(to->trampolines, tables->trampolines, sizeof(to->trampolines));
	__atomic_store_n(&to->count, tables->count, __ATOMIC_RELEASE);
}

int shared_maps_set_runtime(
	struct shared_maps *m, uint32_t tgid, const struct abi_runtime_process *how)
{
	int map = bpf_map__fd(m->skeleton->maps.runtime_processes);

	if (!bpf_map_update_elem(map, &tgid, how, BPF_NOEXIST)) {
		runtime_hints_add(&m->runtime_hints, tgid);
		return 0;
	}
	if (errno != EEXIST)
		return -errno;
	return bpf_map_update_elem(map, &tgid, how, BPF_EXIST) ? -errno : 0;
}

void shared_maps_remove_runtime(struct shared_maps *m, uint32_t tgid)
{
	if (!bpf_map_delete_elem(bpf_map__fd(m->skeleton->maps.runtime_processes), &tgid))
		runtime_hints_remove(&m->runtime_hints, tgid);
}

/* The `memlock:` line of a map's fdinfo, in bytes. */
uint64_t shared_maps_memory_of(int fd)
{
	char path[64], line[128];
	uint64_t bytes = 0;
	autofclose FILE *info = NULL;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		if (!strncmp(line, "memlock:", 8))
			bytes = strtoull(line + 8, NULL, 10);
	return bytes;
}

uint64_t shared_maps_memory(const struct shared_maps *m)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map(map, m->skeleton->obj)
	{
		bytes += shared_maps_memory_of(bpf_map__fd(map));
	}
	return bytes;
}
