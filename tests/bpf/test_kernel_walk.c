/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's stacks as BPF walks them by the kernel's own tables, on the running kernel, as root.
 * The program itself compares the first walks, and some later ones, with the kernel's. One case
 * gives it wrong tables, which it must give up.
 */
#include "tests/bpf/seen.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "base/cleanup.h"
#include "bpf/abi/kernel_walk.h"

enum { BLOCK_BYTES = 1 << 16, WALKS = 300, MAX_TURNS = 40 };

static void read_zeros(void)
{
	static char block[BLOCK_BYTES];
	autoclose int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (read(zeros, block, sizeof(block)) > 0)
		;
}

/* Returns false if the kernel has no tables or does not show their addresses. */
static bool kernel_tables(struct abi_kernel_tables *ret_tables)
{
	autoclose int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct kernel_symbols *symbols;
	struct metrics metrics = { 0 };
	bool there;

	assert_int_equal(kernel_symbols_create(proc, &metrics, &symbols), 0);
	there = kernel_symbols_unwind_tables(symbols, ret_tables);
	kernel_symbols_destroy(symbols);
	return there;
}

/* Samples a child that is in the kernel most of its time by these tables. */
static struct burner sample_by(
	struct seen *s, const struct abi_kernel_tables *tables, uint32_t without)
{
	struct collect_options options = options_for(s);
	struct burner b = start_burner(read_zeros);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	options.frequency_hz = 999;
	options.without = without;
	open_with(s, &options);
	collect_set_kernel_tables(s->collect, tables);
	release_child(&b);
	return b;
}

static void own_walks_equal_the_kernels(void **state)
{
	struct seen *s = *state;
	struct abi_kernel_tables tables;
	uint64_t walks = 0;
	struct burner b;

	if (!kernel_tables(&tables))
		skip();
	b = sample_by(s, &tables, 0);
	for (size_t turn = 1; turn <= MAX_TURNS && walks < WALKS; turn++) {
		drain_until_samples(s, turn * 100);
		walks = collect_counter(s->collect, ABI_COUNT_KERNEL_WALKS);
		if (!walks)
			break;
	}
	stop_and_drain(s);
	end_burner(&b);
	print_message("%llu of %zu samples' kernel stacks were walked by the tables\n",
		(unsigned long long)walks, s->samples);
	assert_int_equal(collect_counter(s->collect, ABI_COUNT_KERNEL_WALKS_WRONG), 0);
	assert_int_equal(s->missing_stacks, 0);
	/* Before 6.4 the bits of the tables have another meaning, so the kernel walks. */
	if (!walks)
		skip();
	assert_true(walks >= WALKS);
}

static void wrong_tables_are_abandoned(void **state)
{
	struct seen *s = *state;
	struct abi_kernel_tables tables;
	uint64_t walks, wrong;
	struct burner b;

	if (!kernel_tables(&tables))
		skip();
	/* Each row gets the rule of the next one. */
	tables.rules += ABI_KERNEL_RULE_BYTES;
	tables.count--;
	b = sample_by(s, &tables, 0);
	drain_until_samples(s, 200);
	walks = collect_counter(s->collect, ABI_COUNT_KERNEL_WALKS);
	wrong = collect_counter(s->collect, ABI_COUNT_KERNEL_WALKS_WRONG);
	drain_until_samples(s, 400);
	stop_and_drain(s);
	end_burner(&b);
	assert_true(s->kernel_stacks > 0);
	assert_int_equal(s->missing_stacks, 0);
	/* With wrong rules most walks end nowhere, and the kernel repeats them. */
	if (wrong)
		assert_int_equal(collect_counter(s->collect, ABI_COUNT_KERNEL_WALKS), walks);
	else
		assert_true(walks == 0);
}

static void the_kernel_walks_without_the_mechanism(void **state)
{
	struct seen *s = *state;
	struct abi_kernel_tables tables;
	struct burner b;

	if (!kernel_tables(&tables))
		skip();
	b = sample_by(s, &tables, MECHANISM_KERNEL_WALK);
	drain_until_samples(s, 100);
	stop_and_drain(s);
	end_burner(&b);
	assert_true(s->kernel_stacks > 0);
	assert_int_equal(collect_counter(s->collect, ABI_COUNT_KERNEL_WALKS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		COLLECT_TEST(own_walks_equal_the_kernels),
		COLLECT_TEST(wrong_tables_are_abandoned),
		COLLECT_TEST(the_kernel_walks_without_the_mechanism),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
