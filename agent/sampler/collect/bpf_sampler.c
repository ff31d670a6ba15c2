/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/bpf_sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sampler/collect/runtime_hints.h"
#include "agent/sampler/collect/kernel_types.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "bpf/abi/sample_ring.h"
#include "bpf/abi/sampler.h"
#include "bpf/sampler.skel.h"

enum {
	INITIAL_PID_NAMESPACE = 0xEFFFFFFC, /* PROC_PID_INIT_INO, the same on every kernel */
	/* Pieces of stack may take a third of a ring. It is read then; on a busy machine not at
	   once. */
	ALLOWED_PART = 3,
};

/* Of so many times that a thread leaves the CPU, BPF takes off_cpu_chance. */
static const uint64_t OFF_CPU_ALL = UINT64_C(1) << 32;

struct bpf_sampler {
	struct sampler_bpf *skeleton;
	struct kernel_types *types; /* while it is loaded */
	struct tables *tables; /* NULL: user stacks by frame pointer */
	struct ring_sizes sizes;
	struct sample_rings rings;
	struct bpf_link *switches; /* NULL: threads that leave the CPU are not sampled */
	bool off_cpu; /* they are to be */
	uint64_t *scratch; /* room for that of each possible CPU; it begins with the counters */
	size_t scratch_words; /* of one */
	size_t possible_cpus;
	struct runtime_hints runtime_hints;
};

/* libbpf's messages, the verifier's log among them: for those who ask for them. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	autofree char *text = NULL;
	char *rest, *line;

	if (level == LIBBPF_DEBUG || !log_enabled(LOG_DEBUG))
		return 0;
	if (vasprintf(&text, format, arguments) < 0) {
		text = NULL;
		return 0;
	}
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		for (char *c = line; *c; c++)
			if (*c == '"' || (unsigned char)*c < ' ')
				*c = '\'';
		log_debug("libbpf", "text=\"%s\"", line);
	}
	return 0;
}

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

/* How user stacks are walked. */
enum walk { WALK_BY_FRAME_POINTER, WALK_BY_RANGES, WALK_BY_MAPPINGS };

/* Where a pc lies is found in one of two ways; the maps of the other take next to no memory. */
static void choose_look_up(struct sampler_bpf *skeleton, bool mappings)
{
	skeleton->rodata->unwind_by_mapping = mappings;
	skeleton->rodata->vma_page_shift = mapping_probe_page_shift();
	if (mappings) {
		bpf_map__set_max_entries(skeleton->maps.unwind_processes, 1);
		bpf_map__set_max_entries(skeleton->maps.unwind_ranges, ABI_UNWIND_FILE_RANGES);
	} else {
		bpf_map__set_max_entries(skeleton->maps.unwind_files, 1);
		bpf_map__set_max_entries(skeleton->maps.sightings_told, 1);
	}
}

/* Of each two programs one is loaded at most, and the maps of the others take no memory. */
static void choose_walk(struct sampler_bpf *skeleton, enum walk walk, bool off_cpu)
{
	bool tables = walk != WALK_BY_FRAME_POINTER;

	bpf_program__set_autoload(skeleton->progs.take_sample_by_tables, tables);
	bpf_program__set_autoload(skeleton->progs.take_sample, !tables);
	bpf_program__set_autoload(skeleton->progs.take_switch_by_tables, off_cpu && tables);
	bpf_program__set_autoload(skeleton->progs.take_switch, off_cpu && !tables);
	if (tables) {
		choose_look_up(skeleton, walk == WALK_BY_MAPPINGS);
		return;
	}
	bpf_map__set_autocreate(skeleton->maps.unwind_files, false);
	bpf_map__set_autocreate(skeleton->maps.sightings_told, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_near_processes, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_near_rules, false);
	bpf_map__set_autocreate(skeleton->maps.unfinished_records, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_processes, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_ranges, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_slots, false);
	bpf_map__set_autocreate(skeleton->maps.unwind_pool, false);
}

/* The programs of the sampling events and of switches have scratch memory of their own. */
static void configure_off_cpu(struct sampler_bpf *skeleton, double share)
{
	struct bpf_map *scratches[] = {
		skeleton->maps.scratches,
		skeleton->maps.unwind_near_processes,
		skeleton->maps.unwind_near_rules,
		skeleton->maps.unfinished_records,
	};

	if (share > 0 && share < 1)
		skeleton->rodata->off_cpu_chance = (uint32_t)MAX(share * (double)OFF_CPU_ALL, 1.0);
	if (share > 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(scratches); i++)
		bpf_map__set_max_entries(scratches[i], 1);
	bpf_map__set_autocreate(skeleton->maps.waits, false);
}

static void configure_rings(struct sampler_bpf *skeleton, const struct ring_sizes *sizes)
{
	if (!sizes->own_bytes)
		return;
	skeleton->rodata->sample_ring_bytes = sizes->own_bytes;
	bpf_map__set_value_size(skeleton->maps.sample_rings,
		ABI_RING_DATA + sizes->own_bytes + ABI_RING_BEHIND_BYTES);
	bpf_map__set_max_entries(skeleton->maps.sample_rings, (uint32_t)sizes->own_count);
}

static void configure(const struct bpf_sampler *s, const struct collect_options *options)
{
	struct sampler_bpf *skeleton = s->skeleton;
	struct abi_sampler_config *config = &skeleton->rodata->config;
	struct stat own;

	*config = options->filter;
	config->stacks = stack_choice(options);
	config->pidns_level = 0;
	if (!stat("/proc/self/ns/pid", &own) && own.st_ino != INITIAL_PID_NAMESPACE) {
		config->pidns_level = 1;
		skeleton->rodata->pidns_inode = (uint32_t)own.st_ino;
	}
	skeleton->rodata->max_frames = max_frames();
	skeleton->rodata->unfinished_allowance = s->sizes.pages * RING_SIZES_PAGE_BYTES /
						 ALLOWED_PART /
						 (options->off_cpu_share > 0 ? 2 : 1);
	configure_rings(skeleton, &s->sizes);
	configure_off_cpu(skeleton, options->off_cpu_share);
	if (!config->filter_tgids)
		bpf_map__set_max_entries(skeleton->maps.tgids, 1);
	if (!config->filter_tids)
		bpf_map__set_max_entries(skeleton->maps.tids, 1);
	if (!config->read_fibers)
		bpf_map__set_max_entries(skeleton->maps.runtime_processes, 1);
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

/* What the failed load means for the user. */
static int explain_load(int err, const char **ret_step)
{
	/* -EPERM comes from the system call's own check, -EACCES from the verifier. */
	if (err == -EPERM || err == -ENOMEM)
		return err;
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		*ret_step = "find the kernel's type information (/sys/kernel/btf/vmlinux)";
	return -EOPNOTSUPP;
}

static int map_tables(struct bpf_sampler *s, enum walk walk)
{
	const struct sampler_bpf *skeleton = s->skeleton;

	return tables_create(
		&(struct tables_maps){
			.processes = bpf_map__fd(skeleton->maps.unwind_processes),
			.ranges = bpf_map__fd(skeleton->maps.unwind_ranges),
			.slots = bpf_map__fd(skeleton->maps.unwind_slots),
			.pool = bpf_map__fd(skeleton->maps.unwind_pool),
			.files = walk == WALK_BY_MAPPINGS ? bpf_map__fd(skeleton->maps.unwind_files)
							  : -1,
			.epoch = (uint32_t *)&skeleton->data->unwind_epoch,
			.full = (uint32_t *)&skeleton->data->unwind_full,
			.files_turn = (uint32_t *)&skeleton->data->unwind_files_turn,
			.rules_turn = (uint32_t *)&skeleton->data->unwind_rules_turn,
			.left_out = (uint32_t *)skeleton->bss->left_out,
		},
		&s->tables);
}

static int load_program(
	struct bpf_sampler *s, const struct collect_options *options, enum walk walk)
{
	LIBBPF_OPTS(bpf_object_open_opts, how, .btf_custom_path = kernel_types_path(s->types));
	int err;

	s->skeleton = sampler_bpf__open_opts(&how);
	if (!s->skeleton)
		return -ENOMEM;
	configure(s, options);
	choose_walk(s->skeleton, walk, s->off_cpu);
	err = kernel_types_reduce(s->types, bpf_object__btf(s->skeleton->obj));
	if (!err)
		err = sampler_bpf__load(s->skeleton);
	if (!err && walk != WALK_BY_FRAME_POINTER)
		err = map_tables(s, walk);
	if (!err && s->sizes.own_bytes)
		err = sample_rings_init(&s->rings, bpf_map__fd(s->skeleton->maps.sample_rings),
			s->sizes.own_bytes, s->sizes.own_count);
	if (err) {
		tables_destroy(take(s->tables));
		sampler_bpf__destroy(s->skeleton);
		s->skeleton = NULL;
	}
	return err;
}

static bool try_mappings(const struct bpf_sampler *s, const struct collect_options *options)
{
	return !(options->without & MECHANISM_VMA_LOOKUP) && !mapping_probe(s->types);
}

/*
 * With rings of its own, else with those of perf events; by tables, else (an older verifier, too
 * little memory) as the kernel walks.
 */
static int load_one(struct bpf_sampler *s, const struct collect_options *options)
{
	static const char *const names[] = {
		[WALK_BY_FRAME_POINTER] = "frame_pointer",
		[WALK_BY_RANGES] = "tables look_up=ranges",
		[WALK_BY_MAPPINGS] = "tables look_up=mappings",
	};
	enum walk walk = WALK_BY_FRAME_POINTER;
	int err;

	if (stack_choice(options) != ABI_STACKS_KERNEL)
		walk = try_mappings(s, options) ? WALK_BY_MAPPINGS : WALK_BY_RANGES;
	for (;;) {
		err = load_program(s, options, walk);
		if (!err)
			log_info("the sampler is loaded", "walk=%s rings=%s", names[walk],
				s->rings.count ? "own" : "perf");
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

/*
 * With the kernel's types as we make them ready; should that not do on some kernel, as libbpf reads
 * them.
 */
static int load_by_types(struct bpf_sampler *s, const struct collect_options *options)
{
	int err;

	if (kernel_types_create(&s->types))
		return load_one(s, options);
	err = load_one(s, options);
	kernel_types_destroy(take(s->types));
	return err && err != -EPERM ? load_one(s, options) : err;
}

static int load(struct bpf_sampler *s, const struct collect_options *options, const char **ret_step)
{
	int cpus = libbpf_num_possible_cpus();
	int err;

	*ret_step = "open the BPF program";
	if (cpus < 0)
		return cpus;
	s->off_cpu = options->off_cpu_share > 0;
	s->possible_cpus = (size_t)cpus;
	*ret_step = "load the BPF program";
	err = load_by_types(s, options);
	if (err)
		return explain_load(err, ret_step);
	s->runtime_hints.words = (uint64_t *)&s->skeleton->data->runtime_hints[0];
	s->scratch_words = (bpf_map__value_size(s->skeleton->maps.scratches) + 7) / 8;
	s->scratch = calloc(s->possible_cpus, s->scratch_words * sizeof(*s->scratch));
	if (!s->scratch)
		return -ENOMEM;
	*ret_step = "set the process filter";
	if (options->filter.filter_tgids)
		err = put_pids(s->skeleton->maps.tgids, options->tgids, options->tgid_count);
	if (!err && options->filter.filter_tids)
		err = put_pids(s->skeleton->maps.tids, options->tids, options->tid_count);
	return err;
}

int bpf_sampler_load(const struct collect_options *options, const struct ring_sizes *sizes,
	struct bpf_sampler **ret_sampler, const char **ret_step)
{
	struct bpf_sampler *s = calloc(1, sizeof(*s));
	int err;

	*ret_step = "load the BPF program";
	if (!s)
		return -ENOMEM;
	s->sizes = *sizes;
	libbpf_set_print(print_libbpf);
	err = load(s, options, ret_step);
	if (err) {
		bpf_sampler_unload(s);
		return err;
	}
	*ret_sampler = s;
	return 0;
}

void bpf_sampler_unload(struct bpf_sampler *s)
{
	if (!s)
		return;
	bpf_link__destroy(s->switches);
	tables_destroy(s->tables);
	sample_rings_deinit(&s->rings);
	sampler_bpf__destroy(s->skeleton);
	free(s->scratch);
	free(s);
}

int bpf_sampler_program_fd(const struct bpf_sampler *s)
{
	return bpf_program__fd(s->tables ? s->skeleton->progs.take_sample_by_tables
					 : s->skeleton->progs.take_sample);
}

int bpf_sampler_watch_switches(struct bpf_sampler *s, bool on)
{
	if (!s->off_cpu || on == (s->switches != NULL))
		return 0;
	if (!on) {
		bpf_link__destroy(take(s->switches));
		return 0;
	}
	s->switches = bpf_program__attach_raw_tracepoint(
		s->tables ? s->skeleton->progs.take_switch_by_tables
			  : s->skeleton->progs.take_switch,
		"sched_switch");
	return s->switches ? 0 : -errno;
}

struct sample_rings *bpf_sampler_rings(struct bpf_sampler *s)
{
	return &s->rings;
}

struct tables *bpf_sampler_tables(const struct bpf_sampler *s)
{
	return s->tables;
}

int bpf_sampler_set_output(struct bpf_sampler *s, int cpu, int output_fd)
{
	int map = bpf_map__fd(s->skeleton->maps.output);
	int err = output_fd < 0 ? bpf_map_delete_elem(map, &cpu)
				: bpf_map_update_elem(map, &cpu, &output_fd, BPF_ANY);

	return err ? -errno : 0;
}

void bpf_sampler_set_window(struct bpf_sampler *s, uint32_t window)
{
	__atomic_store_n(&s->skeleton->data->window, window, __ATOMIC_RELAXED);
}

void bpf_sampler_rings_read(struct bpf_sampler *s)
{
	uint32_t *readings = (uint32_t *)&s->skeleton->data->ring_readings;

	__atomic_add_fetch(readings, 1, __ATOMIC_RELAXED);
}

void bpf_sampler_set_period(struct bpf_sampler *s, uint64_t period_ns)
{
	__atomic_store_n(&s->skeleton->data->changed_period, period_ns, __ATOMIC_RELAXED);
}

void bpf_sampler_set_kernel_tables(struct bpf_sampler *s, const struct abi_kernel_tables *tables)
{
	struct abi_kernel_tables *to = (void *)&s->skeleton->data->kernel_tables;

	__atomic_store_n(&to->count, 0, __ATOMIC_RELEASE);
	to->text = tables->text;
	to->text_end = tables->text_end;
	to->addresses = tables->addresses;
	to->rules = tables->rules;
	to->index = tables->index;
	memcpy(to->trampolines, tables->trampolines, sizeof(to->trampolines));
	__atomic_store_n(&to->count, tables->count, __ATOMIC_RELEASE);
}

int bpf_sampler_set_runtime(
	struct bpf_sampler *s, uint32_t tgid, const struct abi_runtime_process *how)
{
	int map = bpf_map__fd(s->skeleton->maps.runtime_processes);

	if (!bpf_map_update_elem(map, &tgid, how, BPF_NOEXIST)) {
		runtime_hints_add(&s->runtime_hints, tgid);
		return 0;
	}
	if (errno != EEXIST)
		return -errno;
	return bpf_map_update_elem(map, &tgid, how, BPF_EXIST) ? -errno : 0;
}

void bpf_sampler_remove_runtime(struct bpf_sampler *s, uint32_t tgid)
{
	if (!bpf_map_delete_elem(bpf_map__fd(s->skeleton->maps.runtime_processes), &tgid))
		runtime_hints_remove(&s->runtime_hints, tgid);
}

int bpf_sampler_counters(const struct bpf_sampler *s, uint64_t ret_counts[ABI_COUNTERS])
{
	const struct bpf_map *scratches = s->skeleton->maps.scratches;
	uint64_t counts[ABI_COUNTERS] = { 0 };

	/* An element for each kind of program. */
	for (uint32_t whose = 0; whose < bpf_map__max_entries(scratches); whose++) {
		if (bpf_map_lookup_elem(bpf_map__fd(scratches), &whose, s->scratch))
			return -errno;
		for (size_t cpu = 0; cpu < s->possible_cpus; cpu++)
			for (size_t i = 0; i < ABI_COUNTERS; i++)
				counts[i] += s->scratch[cpu * s->scratch_words + i];
	}
	memcpy(ret_counts, counts, sizeof(counts));
	return 0;
}

int bpf_sampler_stats(const struct bpf_sampler *s, uint64_t *ret_ns, uint64_t *ret_runs)
{
	uint64_t counts[ABI_COUNTERS];
	int err = bpf_sampler_counters(s, counts);

	if (err)
		return err;
	*ret_ns = counts[ABI_COUNT_RUN_NS];
	*ret_runs = counts[ABI_COUNT_RUNS];
	return 0;
}

/* The `memlock:` line of a map's fdinfo, in bytes. */
static uint64_t map_memlock(int fd)
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

uint64_t bpf_sampler_map_bytes(const struct bpf_sampler *s)
{
	const struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map(map, s->skeleton->obj) bytes += map_memlock(bpf_map__fd(map));
	return bytes;
}
