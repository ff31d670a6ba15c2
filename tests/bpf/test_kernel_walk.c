/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's stacks as BPF walks them by the kernel's own tables, on the running kernel, as root.
 * The program itself compares the first walks, and some later ones, with the kernel's: of calls,
 * and of interrupted code. One case gives it wrong tables, which it must give up.
 */
#include "tests/bpf/seen.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "base/cleanup.h"
#include "bpf/abi/kernel_walk.h"

enum { BLOCK_BYTES = 1 << 16, WALKS = 300, MAX_TURNS = 40, MAX_PLACES = 64 };

/* Kernel code that page faults interrupted, as recorded. */
static struct {
	const struct kallsyms *symbols;
	void (*next)(void *context, const struct abi_stack *stack);
	uint64_t kaddrs[MAX_PLACES];
	size_t count;
} faulted;

static void read_zeros(void)
{
	static char block[BLOCK_BYTES];
	autoclose int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (read(zeros, block, sizeof(block)) > 0)
		;
}

/* The kernel faults at each page that it writes to. */
static void read_zeros_into_new_pages(void)
{
	autoclose int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *pages =
		mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (read(zeros, pages, BLOCK_BYTES) > 0)
		madvise(pages, BLOCK_BYTES, MADV_DONTNEED);
}

static void saw_fault_at(uint64_t kaddr)
{
	for (size_t i = 0; i < faulted.count; i++)
		if (faulted.kaddrs[i] == kaddr)
			return;
	assert_true(faulted.count < MAX_PLACES);
	faulted.kaddrs[faulted.count++] = kaddr;
}

static void saw_faults(void *context, const struct abi_stack *stack)
{
	struct ksymbol entry;

	faulted.next(context, stack);
	if (!(stack->flags & ABI_STACK_KERNEL))
		return;
	for (uint32_t i = 1; i + 1 < stack->frame_count; i++)
		if (kallsyms_lookup(faulted.symbols, stack->frames[i] - 1, &entry) &&
			!strcmp(entry.name, "asm_exc_page_fault"))
			saw_fault_at(stack->frames[i + 1]);
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

/* Samples a child that does WORK, in the kernel most of its time, by these tables. */
static struct burner sample_by(struct seen *s, const struct abi_kernel_tables *tables,
	uint32_t without, void (*work)(void))
{
	struct collect_options options = options_for(s);
	struct burner b = start_burner(work);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	options.frequency_hz = 999;
	options.without = without;
	if (faulted.symbols) {
		faulted.next = options.handlers.stack;
		options.handlers.stack = saw_faults;
	}
	open_with(s, &options);
	collect_set_kernel_tables(s->collect, tables);
	release_child(&b);
	return b;
}

/* Compares a child's stacks while it does WORK. */
static void compare_walks_of(struct seen *s, void (*work)(void))
{
	struct abi_kernel_tables tables;
	uint64_t walks = 0;
	struct burner b;

	if (!kernel_tables(&tables))
		skip();
	b = sample_by(s, &tables, 0, work);
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

static void own_walks_equal_the_kernels(void **state)
{
	compare_walks_of(*state, read_zeros);
}

static void walks_through_interrupted_code_equal_the_kernels(void **state)
{
	struct seen *s = *state;
	autoclose int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct kernel_symbols *symbols;

	assert_int_equal(kernel_symbols_create(proc, &s->metrics, &symbols), 0);
	faulted.symbols = kernel_symbols_table(symbols);
	compare_walks_of(s, read_zeros_into_new_pages);
	faulted.symbols = NULL;
	kernel_symbols_destroy(symbols);
	/* Compared walks are recorded like all others, whose interrupted code has 1 added. */
	assert_true(faulted.count > 0);
	for (size_t i = 0; i < faulted.count; i++)
		for (size_t j = 0; j < faulted.count; j++)
			assert_true(faulted.kaddrs[i] + 1 != faulted.kaddrs[j]);
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
	b = sample_by(s, &tables, 0, read_zeros);
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
	b = sample_by(s, &tables, MECHANISM_KERNEL_WALK, read_zeros);
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
		COLLECT_TEST(walks_through_interrupted_code_equal_the_kernels),
		COLLECT_TEST(wrong_tables_are_abandoned),
		COLLECT_TEST(the_kernel_walks_without_the_mechanism),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
