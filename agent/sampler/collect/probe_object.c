/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/probe_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/embedded_object.h"
#include "agent/sampler/collect/kernel_types.h"
#include "agent/sampler/collect/object_constants.h"
#include "base/cleanup.h"

static const char CONFIG_SECTION[] = ".rodata.config";
static const char SCRATCH_TAKEN_MAP[] = "scratch_taken"; /* bpf/scratch_slots.bpf.h */

static int write_config(
	struct bpf_object *object, const struct probe *probe, const struct abi_sampler_config *from)
{
	struct abi_sampler_config *config =
		object_constants(object, CONFIG_SECTION, sizeof(*config));

	if (!config)
		return -EBADMSG;
	*config = *from;
	if (!probe->own_rings)
		config->sample_ring_bytes = 0;
	return 0;
}

/* Does not create the scratch maps that only a walk by tables needs. */
static void leave_out_walk(struct bpf_object *object)
{
	static const char *const names[] = { "unwind_cache_processes", "unwind_cache_rules",
		"unfinished_records" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, names[i]);

		if (map)
			bpf_map__set_autocreate(map, false);
	}
}

/* Chooses which of the probe's two programs is loaded. There may be only one to be attached. */
static int choose_program(struct probe_object *o, bool tables)
{
	const struct probe *probe = o->probe;
	const char *chosen = tables ? probe->by_tables : probe->by_frame_pointer;
	const char *other = tables ? probe->by_frame_pointer : probe->by_tables;
	struct bpf_program *idle;

	if (!chosen) {
		if (probe->attach)
			o->program = bpf_object__next_program(o->object, NULL);
		return 0;
	}
	idle = bpf_object__find_program_by_name(o->object, other);
	o->program = bpf_object__find_program_by_name(o->object, chosen);
	if (!o->program || !idle)
		return -EBADMSG;
	bpf_program__set_autoload(idle, false);
	return 0;
}

static int find_lender(struct probe_object *o, const struct probe_load *how)
{
	for (size_t i = 0; o->probe->lender && i < how->loaded_count; i++)
		if (!strcmp(how->loaded[i].probe->name, o->probe->lender))
			o->lender = how->loaded[i].object;
	return o->probe->lender && !o->lender ? -ENOENT : 0;
}

/* The lender's map of this name; NULL = none. Each object has its own read-only data. */
static const struct bpf_map *lent_map(const struct probe_object *o, const char *name)
{
	const struct bpf_map *map =
		o->lender ? bpf_object__find_map_by_name(o->lender, name) : NULL;

	return map && !bpf_map__is_internal(map) ? map : NULL;
}

static int borrow_maps(struct probe_object *o, const struct probe_load *how)
{
	struct bpf_map *map;
	int err = find_lender(o, how);

	bpf_object__for_each_map(map, o->object)
	{
		const struct bpf_map *lent = lent_map(o, bpf_map__name(map));

		if (!err && lent && !shared_maps_has(how->maps, bpf_map__name(map)))
			err = bpf_map__reuse_fd(map, bpf_map__fd(lent));
	}
	return err;
}

/* Programs that can be preempted have several slots of scratch memory on each CPU. */
static int size_scratch(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, SCRATCH_TAKEN_MAP);
	int cpus = map ? libbpf_num_possible_cpus() : 0;

	if (cpus < 0)
		return cpus;
	return map ? bpf_map__set_max_entries(map, bpf_map__max_entries(map) * (uint32_t)cpus) : 0;
}

static int probe_object_prepare(struct probe_object *o, const struct probe_load *how)
{
	bool tables = how->walk != WALK_BY_FRAME_POINTER;
	int err = write_config(o->object, o->probe, how->config);

	if (!err)
		err = choose_program(o, tables);
	if (!err && o->probe->configure)
		err = o->probe->configure(how->options, o->object);
	if (!tables)
		leave_out_walk(o->object);
	if (!err)
		err = size_scratch(o->object);
	if (!err)
		err = shared_maps_lend(how->maps, o->object);
	if (!err)
		err = borrow_maps(o, how);
	return err ? err : kernel_types_reduce(how->types, bpf_object__btf(o->object));
}

int probe_object_load(
	const struct probe *probe, const struct probe_load *how, struct probe_object *ret_object)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = probe->name,
		.btf_custom_path = kernel_types_path(how->types));
	struct probe_object o = { .probe = probe };
	size_t size = 0;
	autofree const void *bytes = probe->object(&size);
	int err;

	if (!bytes)
		return -ENOMEM;
	o.object = bpf_object__open_mem(bytes, size, &opts);
	if (!o.object)
		return -ENOMEM;
	err = probe_object_prepare(&o, how);
	if (!err)
		err = bpf_object__load(o.object);
	if (!err)
		err = object_counters_init(&o.counters, o.object);
	if (err) {
		probe_object_unload(&o);
		return err;
	}
	if (!probe->keeps_types)
		embedded_object_close_types(o.object);
	*ret_object = o;
	return 0;
}

void probe_object_unload(struct probe_object *o)
{
	bpf_link__destroy(o->link);
	bpf_object__close(o->object);
	object_counters_deinit(&o->counters);
	*o = (struct probe_object){ 0 };
}

int probe_object_program_fd(const struct probe_object *o)
{
	return bpf_program__fd(o->program);
}

int probe_object_attach(struct probe_object *o, bool on)
{
	if (!o->probe->attach || on == (o->link != NULL))
		return 0;
	if (on)
		return o->probe->attach(o->probe, o->program, &o->link);
	bpf_link__destroy(take(o->link));
	return 0;
}

int probe_object_count(const struct probe_object *o, uint64_t counts[ABI_COUNTERS])
{
	return o->lender ? 0 : object_counters_add(&o->counters, counts);
}

uint64_t probe_object_runs(const struct probe_object *o, int cpu)
{
	return object_counters_of_cpu(&o->counters, cpu, ABI_COUNT_RUNS);
}

uint64_t probe_object_memory(const struct probe_object *o, const struct shared_maps *maps)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map(map, o->object)
	{
		if (!shared_maps_has(maps, bpf_map__name(map)) && !lent_map(o, bpf_map__name(map)))
			bytes += shared_maps_memory_of(bpf_map__fd(map));
	}
	return bytes;
}
