/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running kernel's types can be reduced, and libbpf makes the same programs with the reduced
 * types as with all of them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/kernel_types.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/probes/trace/trace.h"
#include "base/cleanup.h"
#include "bpf/abi/sampler.h"

static int setup(void **state)
{
	struct kernel_types *types = NULL;
	int err = kernel_types_create(&types);

	*state = types;
	return err;
}

static int teardown(void **state)
{
	kernel_types_destroy(*state);
	return 0;
}

static struct bpf_object *load(const struct probe *probe, struct kernel_types *types, bool tables)
{
	LIBBPF_OPTS(bpf_object_open_opts, how, .object_name = probe->name,
		.btf_custom_path = kernel_types_path(types));
	/* A probe that adds to another one's maps has programs that few kernels have all of. */
	const struct latency_options latency = { .kernel = true };
	const struct trace_options trace = { 0 };
	const struct collect_options options = { .latency = &latency, .trace = &trace };
	const char *idle = tables ? probe->by_frame_pointer : probe->by_tables;
	struct abi_sampler_config *config;
	struct bpf_object *object;
	autofree const void *bytes = NULL;
	size_t size;

	bytes = probe->object(&size);
	object = bpf_object__open_mem(bytes, size, &how);
	assert_non_null(object);
	assert_int_equal(kernel_types_reduce(types, bpf_object__btf(object)), 0);
	if (idle)
		bpf_program__set_autoload(bpf_object__find_program_by_name(object, idle), false);
	config = (void *)bpf_map__initial_value(
		bpf_object__find_map_by_name(object, ".rodata.config"), &size);
	config->unwind_by_tables = config->unwind_by_mapping = tables;
	if (probe->lender)
		assert_int_equal(probe->configure(&options, object), 0);
	assert_int_equal(bpf_object__load(object), 0);
	return object;
}

/* Compares the instructions, except for the numbers of maps, which each object has of its own. */
static void assert_same(const struct bpf_program *one, const struct bpf_program *other)
{
	const struct bpf_insn *a = bpf_program__insns(one), *b = bpf_program__insns(other);
	size_t count = bpf_program__insn_cnt(one);

	assert_int_equal(bpf_program__insn_cnt(other), count);
	for (size_t i = 0; i < count; i++) {
		bool map = a[i].code == (BPF_LD | BPF_IMM | BPF_DW) && a[i].src_reg;

		assert_int_equal(a[i].code, b[i].code);
		assert_int_equal(a[i].dst_reg, b[i].dst_reg);
		assert_int_equal(a[i].src_reg, b[i].src_reg);
		assert_int_equal(a[i].off, b[i].off);
		if (!map)
			assert_int_equal(a[i].imm, b[i].imm);
	}
}

static void objects_are_the_same(const struct probe *probe, struct kernel_types *types, bool tables)
{
	struct bpf_object *by_all = load(probe, NULL, tables);
	struct bpf_object *by_reduced = load(probe, types, tables);
	struct bpf_program *program, *other;
	int loaded = 0, wanted = 0;

	bpf_object__for_each_program(program, by_all)
	{
		wanted += bpf_program__autoload(program);
		other = bpf_object__find_program_by_name(by_reduced, bpf_program__name(program));
		if (bpf_program__fd(program) < 0)
			continue;
		assert_same(program, other);
		loaded++;
	}
	assert_true(loaded > 0 || probe->lender);
	assert_int_equal(loaded, wanted);
	bpf_object__close(by_all);
	bpf_object__close(by_reduced);
}

static void programs_are_the_same(struct kernel_types *types, bool tables)
{
	for (const struct probe *const *probe = probes_all; *probe; probe++)
		objects_are_the_same(*probe, types, tables);
}

static void by_tables(void **state)
{
	programs_are_the_same(*state, true);
}

static void by_frame_pointer(void **state)
{
	programs_are_the_same(*state, false);
}

/* Two reductions in sequence, as for the probe and the sampler. */
static void the_probe_agrees(void **state)
{
	int expected = mapping_probe(NULL);

	assert_int_equal(mapping_probe(*state), expected);
	programs_are_the_same(*state, false);
	assert_int_equal(mapping_probe(*state), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(by_frame_pointer, setup, teardown),
		cmocka_unit_test_setup_teardown(the_probe_agrees, setup, teardown),
	};

	if (geteuid() != 0) {
		puts("needs root: loading BPF programs");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
