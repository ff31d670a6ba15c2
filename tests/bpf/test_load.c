/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This kernel's verifier accepts every program in every configuration. Settings are read-only data,
 * so the verifier sees another program for each combination. With --counts: also prints the number
 * of verified instructions, one line per configuration (Linux 5.16 and later). With the name of a
 * configuration, or a pattern, only that; with that of a walk behind it, only that walk.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/probes/trace/trace.h"
#include "base/cleanup.h"
#include "bpf/abi/sample_ring.h"
#include "bpf/abi/sampler.h"

struct variant {
	const char *name;
	struct abi_sampler_config config;
	bool perf_rings; /* samples go only into the rings of perf events */
};

static const struct variant variants[] = {
	{ "plain", { 0 } },
	{ "perf_rings", { 0 }, .perf_rings = true },
	{ "user_only", { .stacks = ABI_STACKS_USER } },
	{ "kernel_only", { .stacks = ABI_STACKS_KERNEL } },
	{ "pid_namespace", { .pidns_level = 1, .pidns_inode = 4711 } },
	{ "goids", { .read_fibers = 1 } },
	{ "one_goroutine", { .read_fibers = 1, .fiber_id = 7 } },
	{ "processes", { .filter_tgids = 1 } },
	{ "threads", { .filter_tids = 1 } },
	{ "comm", { .filter_comm = 1, .comm = "0123456789abcde" } },
	{ "cgroup", { .cgroup_level = 3, .cgroup_id = 99 } },
	{ "left_out_cgroups", { .choose_cgroups = 1 } },
	{ "everything", { .pidns_level = 1,
				.pidns_inode = 4711,
				.filter_tgids = 1,
				.filter_tids = 1,
				.filter_comm = 1,
				.comm = "sh",
				.cgroup_level = 3,
				.cgroup_id = 99,
				.fiber_id = 7,
				.self_tgid = 1,
				.choose_cgroups = 1,
				.read_fibers = 1 } },
};

static int loud(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, arguments);
}

/* By frame pointer, by tables and ranges, by tables and mappings. */
enum walk { FRAME_POINTER, RANGES, MAPPINGS, WALKS };

static const char *const walk_names[] = { "frame_pointer", "ranges", "mappings" };
static const char *only_walk; /* NULL: all */

/* Their programs walk no stacks, so that each walk would be the same to the verifier. */
static const char *const without_walks[] = { "latency", "kernel_latency", "trace", "kernel_trace",
	"descendants" };

static bool walks(const struct probe *probe)
{
	for (size_t i = 0; i < ARRAY_SIZE(without_walks); i++) {
		if (!strcmp(probe->name, without_walks[i]))
			return false;
	}
	return true;
}

/* Whether the programs are others, for the verifier, than with the other walks and variants. */
static bool is_of_its_own(const struct probe *probe, const struct variant *variant, enum walk walk)
{
	if (variant->perf_rings && !probe->own_rings)
		return false;
	return walk == FRAME_POINTER || walks(probe);
}

/* The probe's program that is loaded for WALK, or the one that is not; NULL = both are. */
static struct bpf_program *program_of(
	const struct bpf_object *object, const struct probe *probe, enum walk walk, bool loaded)
{
	bool tables = (walk != FRAME_POINTER) == loaded;

	if (!probe->by_tables)
		return loaded ? bpf_object__next_program(object, NULL) : NULL;
	return bpf_object__find_program_by_name(
		object, tables ? probe->by_tables : probe->by_frame_pointer);
}

/*
 * A probe that adds to another one's maps has programs that few kernels have all of: it chooses.
 * That of traced calls has code for each of its limits.
 */
static int configure(const struct probe *probe, struct bpf_object *object)
{
	const struct latency_options latency = { .kernel = true };
	const struct trace_options trace = {
		.max_depth = 3, .drilldown = true, .max_events_per_second = 1000
	};
	const struct collect_options options = { .latency = &latency, .trace = &trace };

	return probe->lender || probe == &probe_trace ? probe->configure(&options, object) : 0;
}

/* Loads the object of a probe alone, with maps of its own. */
static struct bpf_object *load(
	const struct probe *probe, const struct variant *variant, enum walk walk)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = probe->name);
	struct abi_sampler_config *config;
	struct bpf_program *idle;
	struct bpf_object *object;
	autofree const void *bytes = NULL;
	size_t size;

	bytes = probe->object(&size);
	object = bpf_object__open_mem(bytes, size, &opts);
	if (!object)
		return NULL;
	idle = program_of(object, probe, walk, false);
	if (idle)
		bpf_program__set_autoload(idle, false);
	config = (void *)bpf_map__initial_value(
		bpf_object__find_map_by_name(object, ".rodata.config"), &size);
	*config = variant->config;
	config->max_frames = ABI_MAX_FRAMES;
	config->unfinished_allowance = ABI_UNFINISHED_STACK_BYTES;
	config->page_shift = 12;
	config->unwind_by_tables = walk != FRAME_POINTER;
	config->unwind_by_mapping = walk == MAPPINGS;
	if (ABI_STORES_IN_ORDER && !variant->perf_rings && probe->own_rings)
		config->sample_ring_bytes = ABI_RING_MIN_BYTES;
	if (configure(probe, object) || bpf_object__load(object)) {
		bpf_object__close(object);
		return NULL;
	}
	return object;
}

/* 0 if the kernel does not report it. */
static uint32_t verified_instructions(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.verified_insns;
}

static struct bpf_object *load_or_say(
	const struct probe *probe, const struct variant *variant, enum walk walk)
{
	struct bpf_object *object = load(probe, variant, walk);

	if (!object)
		fprintf(stderr, "the kernel refuses %s/%s of %s\n", walk_names[walk], variant->name,
			probe->name);
	return object;
}

static void variant_loads(void **state)
{
	const struct variant *variant = *state;

	for (const struct probe *const *probe = probes_all; *probe; probe++) {
		for (enum walk walk = 0; walk < WALKS; walk++) {
			struct bpf_object *object;

			if (only_walk && strcmp(only_walk, walk_names[walk]))
				continue;
			if (!only_walk && !is_of_its_own(*probe, variant, walk))
				continue;
			object = load_or_say(*probe, variant, walk);
			assert_non_null(object);
			bpf_object__close(object);
		}
	}
}

/* Of all programs of the probe, with everything set. Returns false if the kernel refuses one. */
static bool all_instructions(const struct probe *probe, enum walk walk, uint64_t *ret_count)
{
	const struct variant *everything = &variants[ARRAY_SIZE(variants) - 1];
	struct bpf_object *object = load_or_say(probe, everything, walk);
	struct bpf_program *program;

	*ret_count = 0;
	if (!object)
		return false;
	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__fd(program) >= 0)
			*ret_count += verified_instructions(program);
	}
	bpf_object__close(object);
	return true;
}

/* Whether the verifier sees no difference between the walks of those that WITHOUT_WALKS names. */
static int check_without_walks(void)
{
	for (const struct probe *const *probe = probes_all; *probe; probe++) {
		uint64_t counts[WALKS] = { 0 };

		if (walks(*probe))
			continue;
		for (enum walk walk = 0; walk < WALKS; walk++) {
			if (!all_instructions(*probe, walk, &counts[walk]))
				return 1;
		}
		if (counts[RANGES] == counts[0] && counts[MAPPINGS] == counts[0])
			continue;
		fprintf(stderr, "%s walks stacks\n", (*probe)->name);
		return 1;
	}
	return 0;
}

static int print_counts(enum walk walk)
{
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		for (const struct probe *const *probe = probes_all; *probe; probe++) {
			struct bpf_object *object;

			if (!is_of_its_own(*probe, &variants[i], walk))
				continue;
			object = load_or_say(*probe, &variants[i], walk);
			if (!object)
				return 1;
			if (!(*probe)->lender)
				printf("%s/%s/%s %u\n", (*probe)->name, walk_names[walk],
					variants[i].name,
					verified_instructions(
						program_of(object, *probe, walk, true)));
			bpf_object__close(object);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[ARRAY_SIZE(variants)];

	if (geteuid() != 0) {
		puts("needs root: loading BPF programs");
		return 77;
	}
	libbpf_set_print(loud);
	if (argc > 1 && !strcmp(argv[1], "--counts"))
		return print_counts(FRAME_POINTER) ?: print_counts(RANGES) ?: print_counts(MAPPINGS)
			?: check_without_walks();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	only_walk = argc > 2 ? argv[2] : NULL;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		tests[i] = (struct CMUnitTest){ .name = variants[i].name,
			.test_func = variant_loads,
			.initial_state = (void *)&variants[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
