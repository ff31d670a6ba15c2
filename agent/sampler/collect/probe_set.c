/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/probe_set.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sampler/collect/kernel_types.h"
#include "agent/sampler/collect/libbpf_log.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/collect/probe_object.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "bpf/abi/sampler.h"

enum {
	MAX_PROBES = 8,
	INITIAL_PID_NAMESPACE = 0xEFFFFFFC, /* PROC_PID_INIT_INO, the same on every kernel */
};

struct probe_set {
	struct kernel_types *types; /* while it is loaded */
	struct shared_maps *maps;
	struct ring_sizes sizes;
	struct abi_sampler_config config; /* of what is loaded */
	enum walk walk;
	struct probe_object objects[MAX_PROBES];
	size_t count;
	uint64_t gone[ABI_COUNTERS]; /* what removed objects have counted */
};

/* ---- settings ------------------------------------------------------------------------------- */

static uint32_t stack_choice(const struct collect_options *options)
{
	if (options->user && !options->kernel)
		return ABI_STACKS_USER;
	if (options->kernel && !options->user)
		return ABI_STACKS_KERNEL;
	return options->filter.stacks;
}

static uint32_t max_frames(void)
{
	char line[32];
	unsigned long allowed;

	if (io_read_line(AT_FDCWD, "/proc/sys/kernel/perf_event_max_stack", line, sizeof(line)) < 0)
		return ABI_MAX_FRAMES;
	allowed = strtoul(line, NULL, 10);
	return allowed && allowed < ABI_MAX_FRAMES ? (uint32_t)allowed : ABI_MAX_FRAMES;
}

/* SHARERS is the number of probes that ship unfinished walks. */
static struct abi_sampler_config config_for(const struct collect_options *options,
	const struct ring_sizes *sizes, enum walk walk, uint32_t sharers)
{
	struct abi_sampler_config config = options->filter;
	struct stat own;

	config.stacks = stack_choice(options);
	config.pidns_level = 0;
	config.pidns_inode = 0;
	if (!stat("/proc/self/ns/pid", &own) && own.st_ino != INITIAL_PID_NAMESPACE) {
		config.pidns_level = 1;
		config.pidns_inode = (uint32_t)own.st_ino;
	}
	config.max_frames = max_frames();
	config.unfinished_allowance = sizes->stack_bytes / MAX(sharers, 1U);
	config.sample_ring_bytes = sizes->own_bytes;
	config.unwind_by_mapping = walk == WALK_BY_MAPPINGS;
	config.unwind_by_tables = walk != WALK_BY_FRAME_POINTER;
	config.page_shift = mapping_probe_page_shift();
	return config;
}

/* ---- loading -------------------------------------------------------------------------------- */

static void unload_all(struct probe_set *s)
{
	while (s->count)
		probe_object_unload(&s->objects[--s->count]);
	shared_maps_destroy(take(s->maps));
}

/* Those that write records. */
static uint32_t count_wanted(const struct collect_options *options)
{
	uint32_t count = 0;

	for (const struct probe *const *probe = options->probes; *probe; probe++)
		count += (*probe)->records[0].kind && (*probe)->is_wanted(options);
	return count;
}

static int load_objects(struct probe_set *s, struct probe_load *how)
{
	for (const struct probe *const *probe = how->options->probes; *probe; probe++) {
		int err;

		if (!(*probe)->is_wanted(how->options))
			continue;
		if (s->count == MAX_PROBES)
			return -E2BIG;
		how->loaded_count = s->count;
		err = probe_object_load(*probe, how, &s->objects[s->count]);
		if (err)
			return err;
		s->count++;
	}
	return 0;
}

static int load_all(struct probe_set *s, const struct collect_options *options, enum walk walk)
{
	struct abi_sampler_config config =
		config_for(options, &s->sizes, walk, count_wanted(options));
	struct probe_load how = {
		.options = options,
		.config = &config,
		.loaded = s->objects,
		.types = s->types,
		.walk = walk,
	};
	int err = shared_maps_create(options, &s->sizes, walk, &s->maps);

	if (!err) {
		how.maps = s->maps;
		err = load_objects(s, &how);
	}
	if (err)
		unload_all(s);
	s->config = config;
	s->walk = walk;
	return err;
}

static bool try_mappings(const struct probe_set *s, const struct collect_options *options)
{
	return !(options->without & MECHANISM_VMA_LOOKUP) && !mapping_probe(s->types);
}

static bool walk_stacks(const struct collect_options *options)
{
	for (const struct probe *const *probe = options->probes; *probe; probe++)
		if ((*probe)->by_tables && (*probe)->is_wanted(options))
			return true;
	return false;
}

/*
 * Tries the sampler's own rings, then those of perf events; walks by tables, then (older verifier,
 * too little memory) the kernel's walk.
 */
static int load_by_walk(struct probe_set *s, const struct collect_options *options)
{
	static const char *const names[] = {
		[WALK_BY_FRAME_POINTER] = "frame_pointer",
		[WALK_BY_RANGES] = "tables look_up=ranges",
		[WALK_BY_MAPPINGS] = "tables look_up=mappings",
	};
	enum walk walk = WALK_BY_FRAME_POINTER;
	int err;

	if (stack_choice(options) != ABI_STACKS_KERNEL && walk_stacks(options))
		walk = try_mappings(s, options) ? WALK_BY_MAPPINGS : WALK_BY_RANGES;
	for (;;) {
		err = load_all(s, options, walk);
		if (!err)
			log_info("the BPF programs are loaded", "walk=%s rings=%s", names[walk],
				s->sizes.own_bytes ? "own" : "perf");
		if (!err || err == -EPERM)
			return err;
		if (s->sizes.own_bytes)
			s->sizes.own_bytes = 0;
		else if (walk == WALK_BY_FRAME_POINTER)
			return err;
		else
			walk--;
	}
}

/* Tries our reduced kernel types first, then libbpf's own reading of them. */
static int load_by_types(struct probe_set *s, const struct collect_options *options)
{
	int err;

	if (kernel_types_create(&s->types))
		return load_by_walk(s, options);
	err = load_by_walk(s, options);
	kernel_types_destroy(take(s->types));
	return err && err != -EPERM ? load_by_walk(s, options) : err;
}

/* Turns a load's failure into the error and step that the user sees. */
static int explain_load(int err, const char **ret_step)
{
	/* -EPERM comes from the system call's own check, -EACCES from the verifier. */
	if (err == -EPERM || err == -ENOMEM)
		return err;
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		*ret_step = "find the kernel's type information (/sys/kernel/btf/vmlinux)";
	return -EOPNOTSUPP;
}

int probe_set_load(const struct collect_options *options, const struct ring_sizes *sizes,
	struct probe_set **ret_set, const char **ret_step)
{
	struct probe_set *s = calloc(1, sizeof(*s));
	int err;

	*ret_step = "load the BPF program";
	if (!s)
		return -ENOMEM;
	s->sizes = *sizes;
	libbpf_log_init();
	err = load_by_types(s, options);
	if (err) {
		err = explain_load(err, ret_step);
	} else {
		*ret_step = "set the process filter";
		err = shared_maps_set_pids(s->maps, options);
	}
	if (err) {
		probe_set_unload(s);
		return err;
	}
	*ret_set = s;
	return 0;
}

void probe_set_unload(struct probe_set *s)
{
	if (!s)
		return;
	unload_all(s);
	free(s);
}

/* ---- one more, one less --------------------------------------------------------------------- */

static const struct probe *find_probe(const struct collect_options *options, const char *name)
{
	for (const struct probe *const *probe = options->probes; *probe; probe++)
		if (!strcmp((*probe)->name, name))
			return *probe;
	return NULL;
}

static int add_object(struct probe_set *s, const struct probe_load *how, const char *name)
{
	const struct probe *probe = find_probe(how->options, name);
	int err;

	if (!probe)
		return -ENOENT;
	if (s->count == MAX_PROBES)
		return -E2BIG;
	err = probe_object_load(probe, how, &s->objects[s->count]);
	if (!err)
		s->count++;
	return err;
}

int probe_set_add(struct probe_set *s, const struct collect_options *options, const char *name,
	const char **ret_step)
{
	struct probe_load how = {
		.options = options,
		.config = &s->config,
		.maps = s->maps,
		.loaded = s->objects,
		.loaded_count = s->count,
		.walk = s->walk,
	};
	int err;

	*ret_step = "load the BPF program";
	if (kernel_types_create(&s->types))
		s->types = NULL;
	how.types = s->types;
	err = add_object(s, &how, name);
	kernel_types_destroy(take(s->types));
	how.types = NULL;
	/* libbpf may read what our reduced types lack. */
	if (err && err != -EPERM)
		err = add_object(s, &how, name);
	return err ? explain_load(err, ret_step) : 0;
}

void probe_set_remove(struct probe_set *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++) {
		if (strcmp(s->objects[i].probe->name, name))
			continue;
		(void)probe_object_count(&s->objects[i], s->gone);
		probe_object_unload(&s->objects[i]);
		s->objects[i] = s->objects[--s->count];
		return;
	}
}

/* ---- while they run ------------------------------------------------------------------------- */

struct shared_maps *probe_set_maps(const struct probe_set *s)
{
	return s->maps;
}

/* NULL if samples are not taken at ticks. */
static const struct probe_object *probe_set_of_event(const struct probe_set *s)
{
	for (size_t i = 0; i < s->count; i++) {
		if (s->objects[i].probe->sampling_event)
			return &s->objects[i];
	}
	return NULL;
}

int probe_set_event_program(const struct probe_set *s)
{
	const struct probe_object *object = probe_set_of_event(s);

	return object ? probe_object_program_fd(object) : -ENOENT;
}

uint64_t probe_set_event_runs(const struct probe_set *s, int cpu)
{
	const struct probe_object *object = probe_set_of_event(s);

	return object ? probe_object_runs(object, cpu) : 0;
}

int probe_set_attach(struct probe_set *s, bool on)
{
	int first_error = 0;

	for (size_t i = 0; i < s->count; i++) {
		int err = probe_object_attach(&s->objects[i], on);

		if (err && !first_error)
			first_error = err;
	}
	return first_error;
}

int probe_set_counters(const struct probe_set *s, uint64_t ret_counts[ABI_COUNTERS])
{
	uint64_t counts[ABI_COUNTERS];

	memcpy(counts, s->gone, sizeof(counts));
	for (size_t i = 0; i < s->count; i++) {
		int err = probe_object_count(&s->objects[i], counts);

		if (err)
			return err;
	}
	memcpy(ret_counts, counts, sizeof(counts));
	return 0;
}

void probe_set_count_losses(
	const struct probe_set *s, const uint64_t counts[ABI_COUNTERS], struct metrics *metrics)
{
	for (size_t i = 0; i < s->count; i++)
		probe_count_losses(s->objects[i].probe, counts, metrics);
}

uint64_t probe_set_memory(const struct probe_set *s)
{
	uint64_t bytes = shared_maps_memory(s->maps);

	for (size_t i = 0; i < s->count; i++)
		bytes += probe_object_memory(&s->objects[i], s->maps);
	return bytes;
}

struct bpf_object *probe_set_object(const struct probe_set *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++) {
		if (!strcmp(s->objects[i].probe->name, name))
			return s->objects[i].object;
	}
	return NULL;
}
