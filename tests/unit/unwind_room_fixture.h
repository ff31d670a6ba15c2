/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* agent/sampler/unwind with one process, one module and memory in place of the kernel's maps. */
#include "agent/sampler/unwind/unwind.h"

#include <stdlib.h>

#include "symbolizer/index/unwind.h"
#include "tests/unit/small_index.h"
#include "tests/unit/unwind_page_writer.h"

enum {
	BASE = 0x400000, /* of small_index.h's segment: two pages of code, file offset 0 */
	LOADED = 0x7f0000000000, /* where the module is mapped */
	MODULE_BYTES = 0x20000,
	STACK = 0x7ffd0000,
	STACK_WORDS = 128,
	PID = 42,
	EXEC_ID = 5,
	PIDS = 64,
};

struct fixture {
	struct unwind *unwind;
	struct metrics metrics;
	/* The kernel's side. */
	struct abi_unwind_slot slots[ABI_UNWIND_SLOTS];
	struct abi_unwind_range ranges[ABI_UNWIND_RANGES];
	uint8_t pool[ABI_UNWIND_REGIONS * ABI_UNWIND_REGION_BYTES];
	struct abi_unwind_process processes[PIDS];
	uint32_t epoch, rules_epoch;
	bool full;
	/* User space's side. */
	struct index *index; /* of module 1 */
	enum unwind_module module_state;
	struct module module;
	struct process process;
	struct page_writer page;
	uint64_t stack[STACK_WORDS];
};

static int write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count)
{
	struct fixture *f = context;

	assert_true(first + count <= ABI_UNWIND_RANGES);
	memcpy(f->ranges + first, ranges, count * sizeof(*ranges));
	return 0;
}

static int write_pool(void *context, uint32_t offset, const void *bytes, size_t size)
{
	struct fixture *f = context;

	assert_true(offset >= ABI_UNWIND_POOL_BEGIN && offset + size <= sizeof(f->pool));
	assert_int_equal(
		offset / ABI_UNWIND_REGION_BYTES, (offset + size - 1) / ABI_UNWIND_REGION_BYTES);
	memcpy(f->pool + offset, bytes, size);
	return 0;
}

static int set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process)
{
	struct fixture *f = context;

	f->processes[tgid % PIDS] = *process;
	return 0;
}

static void remove_process(void *context, uint32_t tgid)
{
	struct fixture *f = context;

	f->processes[tgid % PIDS] = (struct abi_unwind_process){ 0 };
}

static void set_epoch(void *context, uint32_t epoch)
{
	((struct fixture *)context)->epoch = epoch;
}

static void set_rules_epoch(void *context, uint32_t epoch)
{
	((struct fixture *)context)->rules_epoch = epoch;
}

static void set_full(void *context, bool full)
{
	((struct fixture *)context)->full = full;
}

static enum unwind_module module_state(
	void *context, const struct module *module, const struct index **ret_index)
{
	struct fixture *f = context;

	assert_ptr_equal(module, &f->module);
	if (f->module_state == UNWIND_MODULE_READY)
		*ret_index = f->index;
	return f->module_state;
}

/* Two pages: sp + 16 from 0x1000, the root from 0x2000; the second page has a single rule. */
static struct index *make_index(struct fixture *f)
{
	struct index_writer *w = create();
	const struct abi_unwind_page *page;

	/* At LOADED + 0x1100 and so on. */
	function(w, "inner", 0x100, 0x200);
	function(w, "outer", 0x200, 0x300);
	function(w, "stale", 0x300, 0x400);
	function(w, "leaf", 0x2000, 0x2100);
	function(w, "no_table", 0x2100, 0x2200);
	page_begin(&f->page, rule_none());
	page_row(&f->page, 0x1000, rule_sp(16));
	page_row(&f->page, 0x2000, rule_of(ABI_CFA_END));
	page_row(&f->page, 0x3000, rule_none());
	page = page_finish(&f->page);
	assert_int_equal(writer_unwind_page(w, BASE, page, page->size), 0);
	return finish(w);
}

static void map_module(struct fixture *f, uint64_t start, uint64_t file_off, uint64_t bytes)
{
	assert_int_equal(mappings_add(&f->process.mappings, &(struct mapping){ .start = start,
								    .end = start + bytes,
								    .file_off = file_off,
								    .module = &f->module }),
		0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->module = (struct module){ .number = 1, .kind = MODULE_FILE };
	f->process = (struct process){ .pid = PID, .number = 7, .mappings = mappings_create() };
	f->module_state = UNWIND_MODULE_READY;
	f->index = make_index(f);
	map_module(f, LOADED, 0, MODULE_BYTES);
	*state = f;
	return unwind_create(
		&(struct unwind_options){
			.target = { f->slots, write_ranges, write_pool, set_process, remove_process,
				NULL, NULL, NULL, set_epoch, set_rules_epoch, set_full, f },
			.metrics = &f->metrics,
			.module = module_state,
			.context = f,
		},
		&f->unwind);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unwind_destroy(f->unwind);
	mappings_unref(f->process.mappings);
	index_destroy(f->index);
	free(f);
	return 0;
}

/* Finishes the walk that REST describes, on the stack in WORDS. */
static inline const struct mapping *finish_rest(struct fixture *f,
	const struct abi_unwind_rest *rest, const uint64_t *words, bool force,
	struct unwind_stack *stack)
{
	stack->count = 1;
	stack->frames[0] = rest->pc;
	return unwind_finish(f->unwind, f->process.mappings,
		&(struct unwind_copied){ .rest = rest, .bytes = (const void *)words }, force,
		stack);
}
