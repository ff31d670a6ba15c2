/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running kernel's types can be reduced, and with what is left libbpf makes the same programs
 * as with all of them.
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

#include "agent/sampler/collect/kernel_types.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "bpf/abi/sampler.h"
#include "bpf/sampler.skel.h"

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

static struct sampler_bpf *load(struct kernel_types *types, bool tables)
{
	LIBBPF_OPTS(bpf_object_open_opts, how, .btf_custom_path = kernel_types_path(types));
	struct sampler_bpf *skeleton = sampler_bpf__open_opts(&how);

	assert_non_null(skeleton);
	assert_int_equal(kernel_types_reduce(types, bpf_object__btf(skeleton->obj)), 0);
	bpf_program__set_autoload(skeleton->progs.take_sample, !tables);
	bpf_program__set_autoload(skeleton->progs.take_switch, !tables);
	bpf_program__set_autoload(skeleton->progs.take_sample_by_tables, tables);
	bpf_program__set_autoload(skeleton->progs.take_switch_by_tables, tables);
	skeleton->rodata->unwind_by_mapping = tables;
	assert_int_equal(sampler_bpf__load(skeleton), 0);
	return skeleton;
}

/* But for the numbers of maps, which are each object's own. */
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

static void programs_are_the_same(struct kernel_types *types, bool tables)
{
	struct sampler_bpf *by_all = load(NULL, tables), *by_reduced = load(types, tables);
	struct bpf_program *program, *other;
	int loaded = 0;

	bpf_object__for_each_program(program, by_all->obj)
	{
		other = bpf_object__find_program_by_name(
			by_reduced->obj, bpf_program__name(program));
		if (bpf_program__fd(program) < 0)
			continue;
		assert_same(program, other);
		loaded++;
	}
	assert_int_equal(loaded, 2);
	sampler_bpf__destroy(by_all);
	sampler_bpf__destroy(by_reduced);
}

static void by_tables(void **state)
{
	programs_are_the_same(*state, true);
}

static void by_frame_pointer(void **state)
{
	programs_are_the_same(*state, false);
}

/* One reduction after the other, as for the probe and the sampler. */
static void the_probe_says_the_same(void **state)
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
		cmocka_unit_test_setup_teardown(the_probe_says_the_same, setup, teardown),
	};

	if (geteuid() != 0) {
		puts("needs root: loading BPF programs");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
