/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does this kernel's verifier take every program in every configuration? Settings are read-only
 * data, so that each combination is another program to it. With --counts: how many instructions the
 * verifier went through, one line a configuration (kernels from 5.16 on tell).
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

#include "base/cleanup.h"
#include "bpf/abi/sample_ring.h"
#include "bpf/abi/sampler.h"
#include "bpf/sampler.skel.h"

struct variant {
	const char *name;
	struct abi_sampler_config config;
	uint32_t pidns_inode;
	bool perf_rings; /* samples go into the rings of perf events alone */
};

static const struct variant variants[] = {
	{ "plain", { 0 } },
	{ "perf_rings", { 0 }, .perf_rings = true },
	{ "user_only", { .stacks = ABI_STACKS_USER } },
	{ "kernel_only", { .stacks = ABI_STACKS_KERNEL } },
	{ "pid_namespace", { .pidns_level = 1 }, 4711 },
	{ "goids", { .read_fibers = 1 } },
	{ "one_goroutine", { .read_fibers = 1, .fiber_id = 7 } },
	{ "processes", { .filter_tgids = 1 } },
	{ "threads", { .filter_tids = 1 } },
	{ "comm", { .filter_comm = 1, .comm = "0123456789abcde" } },
	{ "cgroup", { .cgroup_level = 3, .cgroup_id = 99 } },
	{ "everything",
		{ .pidns_level = 1,
			.filter_tgids = 1,
			.filter_tids = 1,
			.filter_comm = 1,
			.comm = "sh",
			.cgroup_level = 3,
			.cgroup_id = 99,
			.fiber_id = 7,
			.self_tgid = 1,
			.read_fibers = 1 },
		4711 },
};

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

static int loud(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, arguments);
}

/* By frame pointer, by tables and ranges, by tables and mappings. */
enum walk { FRAME_POINTER, RANGES, MAPPINGS, WALKS };

static const char *const walk_names[] = { "sampler", "tables", "mappings" };

/* What runs them. */
enum trigger { TICK, SWITCH, TRIGGERS };

static const char *const trigger_names[] = { "", "_switch" };

static struct bpf_program *program_of(
	const struct sampler_bpf *skeleton, enum walk walk, enum trigger trigger)
{
	if (trigger == SWITCH)
		return walk == FRAME_POINTER ? skeleton->progs.take_switch
					     : skeleton->progs.take_switch_by_tables;
	return walk == FRAME_POINTER ? skeleton->progs.take_sample
				     : skeleton->progs.take_sample_by_tables;
}

/* One of the programs of each trigger, as the agent does it. */
static struct sampler_bpf *load(const struct variant *variant, enum walk walk)
{
	struct sampler_bpf *skeleton = sampler_bpf__open();
	enum walk other = walk == FRAME_POINTER ? RANGES : FRAME_POINTER;

	if (!skeleton)
		return NULL;
	for (enum trigger trigger = 0; trigger < TRIGGERS; trigger++)
		bpf_program__set_autoload(program_of(skeleton, other, trigger), false);
	skeleton->rodata->unwind_by_mapping = walk == MAPPINGS;
	if (ABI_STORES_IN_ORDER && !variant->perf_rings)
		skeleton->rodata->sample_ring_bytes = ABI_RING_MIN_BYTES;
	skeleton->rodata->config = variant->config;
	skeleton->rodata->pidns_inode = variant->pidns_inode;
	if (sampler_bpf__load(skeleton)) {
		sampler_bpf__destroy(skeleton);
		return NULL;
	}
	return skeleton;
}

/* 0 where the kernel does not tell. */
static uint32_t verified_instructions(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 0;
	return info.verified_insns;
}

static void variant_loads(void **state)
{
	const struct variant *variant = *state;

	libbpf_set_print(loud);
	for (enum walk walk = 0; walk < WALKS; walk++) {
		struct sampler_bpf *skeleton = load(variant, walk);

		if (!skeleton)
			fail_msg("the kernel refuses %s/%s", walk_names[walk], variant->name);
		sampler_bpf__destroy(skeleton);
	}
}

static int print_counts(enum walk walk)
{
	libbpf_set_print(quiet);
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		struct sampler_bpf *skeleton = load(&variants[i], walk);

		if (!skeleton)
			return 1;
		for (enum trigger trigger = 0; trigger < TRIGGERS; trigger++)
			printf("%s%s/%s %u\n", walk_names[walk], trigger_names[trigger],
				variants[i].name,
				verified_instructions(program_of(skeleton, walk, trigger)));
		sampler_bpf__destroy(skeleton);
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
	if (argc > 1 && !strcmp(argv[1], "--counts"))
		return print_counts(FRAME_POINTER) ?: print_counts(RANGES) ?: print_counts(MAPPINGS);
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		tests[i] = (struct CMUnitTest){ .name = variants[i].name,
			.test_func = variant_loads,
			.initial_state = (void *)&variants[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
