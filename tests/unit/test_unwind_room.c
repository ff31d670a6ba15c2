/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/unwind with memory in place of the kernel's maps, read as BPF reads them. */
#include "agent/sampler/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "bpf/unwind/step.bpf.h"
#include "symbolizer/index/unwind.h"
#include "tests/unit/unwind_room_fixture.h"

/* ---- as BPF looks it up --------------------------------------------------------------------- */

static const struct abi_unwind_range *range_of(const struct fixture *f, uint64_t pc)
{
	const struct abi_unwind_process *process = &f->processes[PID];

	for (uint32_t i = 0; i < process->range_count; i++) {
		const struct abi_unwind_range *range = &f->ranges[process->first_range + i];

		if (pc >= range->start && pc < range->end)
			return range;
	}
	return NULL;
}

static uint32_t slot_of(const struct fixture *f, uint64_t pc)
{
	const struct abi_unwind_range *range = range_of(f, pc);
	uint64_t page;

	assert_non_null(range);
	page = (pc - range->start + range->address) >> ABI_UNWIND_PAGE_SHIFT;
	assert_true(page < range->slot_count);
	return range->first_slot + (uint32_t)page;
}

static struct abi_unwind_rule rule_at(const struct fixture *f, uint64_t pc)
{
	const struct abi_unwind_range *range = range_of(f, pc);
	uint32_t where = f->slots[slot_of(f, pc)].where;
	const uint8_t *region = f->pool + (where & ~(ABI_UNWIND_REGION_BYTES - 1U));
	uint64_t address = pc - range->start + range->address;
	struct abi_unwind_rule rule;

	assert_true(where != ABI_UNWIND_ABSENT && where != ABI_UNWIND_NO_TABLE);
	where &= ABI_UNWIND_REGION_BYTES - 1;
	unwind_rule_of(region, where,
		unwind_row_number(unwind_row_at(region, where, address & 0xffff)), &rule);
	return rule;
}

static void tell(struct fixture *f)
{
	assert_int_equal(unwind_sync(f->unwind, &f->process, EXEC_ID), 0);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void process_has_its_ranges_and_generation(void **state)
{
	struct fixture *f = *state;
	const struct abi_unwind_range *range;

	tell(f);
	assert_int_equal(f->processes[PID].generation, 7);
	assert_int_equal(f->processes[PID].range_count, 1);
	range = range_of(f, LOADED + 0x1000);
	assert_int_equal(range->start, LOADED);
	assert_int_equal(range->end, LOADED + MODULE_BYTES);
	assert_int_equal(range->kind, ABI_UNWIND_TABLES);
	/* Only the first page has a table. */
	assert_int_equal(range->slot_count, 1);
}

static void ranges_follow_the_mappings(void **state)
{
	struct fixture *f = *state;

	tell(f);
	map_module(f, LOADED + 0x1000000, 0, 0x8000);
	tell(f);
	assert_int_equal(f->processes[PID].range_count, 2);
	assert_int_equal(slot_of(f, LOADED + 0x1000000), slot_of(f, LOADED));
	assert_null(range_of(f, LOADED + 0x1008000));
}

static void without_a_change_nothing_is_written(void **state)
{
	struct fixture *f = *state;

	uint32_t version;

	tell(f);
	version = f->processes[PID].version += 99;
	tell(f);
	unwind_modules_changed(f->unwind);
	tell(f);
	assert_int_equal(f->processes[PID].version, version);
}

static void a_new_program_is_written_again(void **state)
{
	struct fixture *f = *state;

	uint32_t version;

	tell(f);
	assert_int_equal(f->processes[PID].exec_id, EXEC_ID);
	version = f->processes[PID].version;
	assert_int_equal(unwind_sync(f->unwind, &f->process, EXEC_ID + 1), 0);
	assert_int_equal(f->processes[PID].exec_id, EXEC_ID + 1);
	assert_int_not_equal(f->processes[PID].version, version);
}

static void memory_with_code_is_known(void **state)
{
	struct fixture *f = *state;

	f->module.kind = MODULE_ANON;
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_MEMORY);
	assert_int_equal(range_of(f, LOADED)->slot_count, 0);
}

static void unknown_code_is_requested_once(void **state)
{
	struct fixture *f = *state;

	unwind_settle(f->unwind, &f->process);
	assert_int_equal(f->processes[PID].settled, 0);
	tell(f);
	assert_int_equal(f->processes[PID].settled, 0);
	unwind_settle(f->unwind, &f->process);
	assert_int_equal(f->processes[PID].settled, 1);
	assert_int_equal(f->processes[PID].range_count, 1);
	/* The new mapping is not known yet. */
	map_module(f, LOADED + 0x1000000, 0x10000, 0x8000);
	unwind_settle(f->unwind, &f->process);
	tell(f);
	assert_int_equal(f->processes[PID].settled, 0);
	assert_int_equal(f->processes[PID].range_count, 2);
}

static void module_without_its_index_waits(void **state)
{
	struct fixture *f = *state;

	f->module_state = UNWIND_MODULE_WAITING;
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_WAITING);
	f->module_state = UNWIND_MODULE_READY;
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_WAITING);
	unwind_modules_changed(f->unwind);
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_TABLES);
	assert_int_equal(range_of(f, LOADED)->slot_count, 1);
}

static void module_without_tables_has_no_slots(void **state)
{
	struct fixture *f = *state;

	f->module_state = UNWIND_MODULE_NONE;
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_TABLES);
	assert_int_equal(range_of(f, LOADED)->slot_count, 0);
}

static void ended_process_is_removed(void **state)
{
	struct fixture *f = *state;

	tell(f);
	unwind_forget(f->unwind, &f->process);
	assert_int_equal(f->processes[PID].generation, 0);
	unwind_forget(f->unwind, &f->process);
}

static void too_many_processes_are_counted_and_logged(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ABI_UNWIND_PROCESSES; i++) {
		f->process.number = 1000 + i;
		tell(f);
	}
	assert_false(f->full);
	f->process.number = 999;
	assert_int_equal(unwind_sync(f->unwind, &f->process, EXEC_ID), -E2BIG);
	assert_true(f->full);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PROCESSES_REFUSED), 1);
	f->process.number = 1000;
	unwind_forget(f->unwind, &f->process);
	assert_false(f->full);
	f->process.number = 999;
	tell(f);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void page_is_loaded_when_it_is_wanted(void **state)
{
	struct fixture *f = *state;
	uint32_t slot;

	tell(f);
	slot = slot_of(f, LOADED + 0x1000);
	assert_int_equal(f->slots[slot].where, ABI_UNWIND_ABSENT);
	unwind_want(f->unwind, slot);
	assert_int_equal(rule_at(f, LOADED + 0xfff).cfa, ABI_CFA_NONE);
	assert_int_equal(rule_at(f, LOADED + 0x1000).cfa_off, 16);
	assert_int_equal(rule_at(f, LOADED + 0x2fff).cfa, ABI_CFA_END);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGE_LOADS), 1);
	unwind_want(f->unwind, slot);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGE_LOADS), 1);
}

static void unused_slot_is_ignored(void **state)
{
	struct fixture *f = *state;

	unwind_want(f->unwind, 5);
	unwind_want(f->unwind, ABI_UNWIND_SLOTS);
	unwind_want(f->unwind, UINT32_MAX);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGES_REFUSED), 0);
}

static void forgotten_module_gives_its_slots_back(void **state)
{
	struct fixture *f = *state;
	uint32_t slot;

	tell(f);
	slot = slot_of(f, LOADED);
	unwind_want(f->unwind, slot);
	unwind_forget_module(f->unwind, &f->module);
	assert_int_equal(f->slots[slot].where, ABI_UNWIND_NO_TABLE);
	unwind_forget_module(f->unwind, &f->module);
}

/* Otherwise walks through the next module in these slots would use the cached rules. */
static void cached_rules_of_a_forgotten_module_are_invalidated(void **state)
{
	struct fixture *f = *state;
	uint32_t before;

	tell(f);
	unwind_want(f->unwind, slot_of(f, LOADED));
	before = f->rules_epoch;
	unwind_forget_module(f->unwind, &f->module);
	assert_int_not_equal(f->rules_epoch, before);
	assert_int_not_equal(f->rules_epoch, 0);
}

/* Otherwise walks with cached rules would not mark the page as used. */
static void cached_rules_are_invalidated_from_time_to_time(void **state)
{
	struct fixture *f = *state;
	uint32_t before = f->rules_epoch;

	unwind_tick(f->unwind);
	assert_int_equal(f->rules_epoch, before);
	for (int i = 0; i < 16; i++)
		unwind_tick(f->unwind);
	assert_int_not_equal(f->rules_epoch, before);
}

/* ---- pages that do not fit ------------------------------------------------------------------ */

enum { BIG_PAGES = 900, BIG_ROWS = 1200 /* 7 KiB */ };

/* A module whose tables are larger than the pool; returns its first slot. */
static uint32_t make_big(struct fixture *f)
{
	struct index_writer *w = index_writer_create();
	const struct abi_unwind_page *page;

	assert_int_equal(writer_segment(w, &(struct writer_segment){ 0, BIG_PAGES << 16, 0 }), 0);
	assert_int_equal(writer_code(w, 0, BIG_PAGES << 16), 0);
	page_begin(&f->page, rule_sp(8));
	for (uint32_t i = 0; i < BIG_ROWS; i++)
		page_row(&f->page, (uint16_t)(i * 8), rule_sp(8 * (int)(1 + i % 5)));
	page = page_finish(&f->page);
	for (uint64_t i = 0; i < BIG_PAGES; i++)
		assert_int_equal(writer_unwind_page(w, i << 16, page, page->size), 0);
	index_destroy(f->index);
	f->index = finish(w);
	map_module(f, LOADED, 0, (uint64_t)BIG_PAGES << 16);
	tell(f);
	return slot_of(f, LOADED);
}

static uint32_t count_loaded(const struct fixture *f, uint32_t first)
{
	uint32_t loaded = 0;

	for (uint32_t i = 0; i < BIG_PAGES; i++)
		loaded += f->slots[first + i].where != ABI_UNWIND_ABSENT;
	return loaded;
}

/* Requests all pages; returns how many found room. */
static uint32_t want_all(struct fixture *f, uint32_t first)
{
	for (uint32_t i = 0; i < BIG_PAGES; i++)
		unwind_want(f->unwind, first + i);
	return count_loaded(f, first);
}

static void oldest_pages_make_room_for_new_ones(void **state)
{
	struct fixture *f = *state;
	uint32_t first = make_big(f), before = want_all(f, first);

	assert_true(before > 500 && before < BIG_PAGES);
	assert_int_equal(
		metrics_get(&f->metrics, METRIC_UNWIND_PAGES_DEFERRED), BIG_PAGES - before);
	/* A second request in the same epoch does not count, and nothing is refused. */
	unwind_want(f->unwind, first + before);
	assert_int_equal(
		metrics_get(&f->metrics, METRIC_UNWIND_PAGES_DEFERRED), BIG_PAGES - before);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGES_REFUSED), 0);

	/* 300 of them are in use. */
	unwind_tick(f->unwind);
	for (uint32_t i = 0; i < 300; i++)
		f->slots[first + i].used = f->epoch;
	for (int i = 0; i < 3; i++)
		unwind_tick(f->unwind);
	for (uint32_t i = before; i < before + 50; i++)
		unwind_want(f->unwind, first + i);
	assert_true(metrics_get(&f->metrics, METRIC_UNWIND_EVICTIONS) >= 50);
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(rule_at(f, LOADED + ((uint64_t)i << 16)).cfa, ABI_CFA_SP);
		assert_int_equal(
			rule_at(f, LOADED + ((uint64_t)(before + i) << 16)).cfa, ABI_CFA_SP);
	}
}

/* For them more is evicted than the share that is always kept free. */
static void pages_without_room_are_loaded_some_epochs_later(void **state)
{
	struct fixture *f = *state;
	uint32_t first = make_big(f), before = want_all(f, first);

	for (int i = 0; i < 3; i++)
		unwind_tick(f->unwind);
	assert_true(metrics_get(&f->metrics, METRIC_UNWIND_EVICTIONS) > before / 4);
	for (uint32_t i = before; i < before + before / 4; i++)
		unwind_want(f->unwind, first + i);
	assert_int_equal(
		metrics_get(&f->metrics, METRIC_UNWIND_PAGES_DEFERRED), BIG_PAGES - before);
	for (uint32_t i = before; i < before + before / 4; i++)
		assert_int_equal(rule_at(f, LOADED + ((uint64_t)i << 16)).cfa, ABI_CFA_SP);
}

/* Finishes the walk from REST, whose piece of stack is WORDS. */
/* Finishes the walk from PC on the fixture's stack. */
static const struct mapping *finish_walk(
	struct fixture *f, uint64_t pc, bool force, struct unwind_stack *stack)
{
	const struct abi_unwind_rest rest = {
		.pc = pc, .sp = STACK, .stack_address = STACK, .stack_bytes = sizeof(f->stack)
	};

	return finish_rest(f, &rest, f->stack, force, stack);
}

/* A page without room does not stop walks in user space. */
static void walk_is_finished_where_a_page_found_no_room(void **state)
{
	struct fixture *f = *state;
	struct unwind_stack stack;
	uint32_t first = make_big(f), before = want_all(f, first);
	uint64_t pc = LOADED + ((uint64_t)before << 16);

	f->stack[0] = pc + 1;
	assert_null(finish_walk(f, pc, false, &stack));
	assert_int_equal(f->slots[first + before].where, ABI_UNWIND_ABSENT);
	assert_int_equal(stack.frames[1], pc + 1);
}

/* A module with code of BYTES and a table on each STEP-th page of it, and on the last one. */
static void make_module_of(struct fixture *f, uint64_t bytes, uint64_t step)
{
	const uint64_t last = (bytes >> 16) - 1;
	struct index_writer *w = index_writer_create();
	const struct abi_unwind_page *page;

	assert_int_equal(writer_segment(w, &(struct writer_segment){ 0, bytes, 0 }), 0);
	assert_int_equal(writer_code(w, 0, bytes), 0);
	page_begin(&f->page, rule_sp(8));
	page = page_finish(&f->page);
	for (uint64_t i = 0; i < last; i += step)
		assert_int_equal(writer_unwind_page(w, i << 16, page, page->size), 0);
	assert_int_equal(writer_unwind_page(w, last << 16, page, page->size), 0);
	index_destroy(f->index);
	f->index = finish(w);
}

static void module_without_slots_is_finished_until_it_has_them(void **state)
{
	struct fixture *f = *state;

	make_module_of(f, (uint64_t)ABI_UNWIND_SLOTS / 3 << 16, 3);
	for (uint32_t i = 1; i <= 3; i++) {
		f->module.number = f->process.number = i;
		tell(f);
		assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_TABLES);
	}
	f->module.number = f->process.number = 4;
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_WAITING);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_MODULES_DEFERRED), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_MODULES_REFUSED), 0);
	for (int i = 0; i < 3; i++)
		unwind_tick(f->unwind);
	tell(f);
	assert_int_equal(range_of(f, LOADED)->kind, ABI_UNWIND_TABLES);
	assert_int_equal(range_of(f, LOADED)->slot_count, ABI_UNWIND_SLOTS / 3);
}

static void module_with_too_much_code_goes_without(void **state)
{
	struct fixture *f = *state;

	make_module_of(f, (uint64_t)ABI_UNWIND_SLOTS << 16, 3);
	tell(f);
	assert_int_equal(range_of(f, LOADED)->slot_count, 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_MODULES_REFUSED), 1);
}

static void page_that_the_module_lacks_is_recorded(void **state)
{
	struct fixture *f = *state;
	uint32_t slot;

	make_module_of(f, 3 << 16, 2);
	tell(f);
	assert_int_equal(range_of(f, LOADED)->slot_count, 3);
	slot = slot_of(f, LOADED + 0x10000);
	unwind_want(f->unwind, slot);
	assert_int_equal(f->slots[slot].where, ABI_UNWIND_NO_TABLE);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGE_LOADS), 0);
}

/* Programs of 230 MB, mostly without tables; then a file of gaps, of which it claims a gigabyte. */
static void modules_with_few_tables_share_a_quarter_of_the_slots(void **state)
{
	struct fixture *f = *state;

	make_module_of(f, 230 << 20, 27);
	for (uint32_t i = 1; i <= 5; i++) {
		for (int tick = 0; i == 4 && tick < 3; tick++)
			unwind_tick(f->unwind);
		if (i == 5)
			make_module_of(f, 1 << 30, 1 << 20);
		f->module.number = f->process.number = i;
		tell(f);
		assert_int_equal(range_of(f, LOADED)->slot_count, i == 3 || i == 5 ? 0 : 230 << 4);
		f->module.number = f->process.number = 2;
		if (i == 3)
			unwind_forget_module(f->unwind, &f->module);
	}
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_MODULES_REFUSED), 2);
}

/* The same file without the function at the far end: what counts is where its tables are. */
static void claimed_memory_costs_no_slots(void **state)
{
	struct fixture *f = *state;
	struct index_writer *w = index_writer_create();
	const struct abi_unwind_page *page;

	assert_int_equal(writer_segment(w, &(struct writer_segment){ 0, 1 << 30, 0 }), 0);
	assert_int_equal(writer_code(w, 0, 1 << 30), 0);
	page_begin(&f->page, rule_sp(8));
	page = page_finish(&f->page);
	assert_int_equal(writer_unwind_page(w, 3 << 16, page, page->size), 0);
	assert_int_equal(writer_unwind_page(w, 5 << 16, page, page->size), 0);
	index_destroy(f->index);
	f->index = finish(w);
	tell(f);
	assert_int_equal(range_of(f, LOADED)->slot_count, 3);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_MODULES_REFUSED), 0);
}

/* ---- finishing ------------------------------------------------------------------------------ */

static void walk_is_finished_and_its_pages_are_loaded(void **state)
{
	struct fixture *f = *state;
	struct unwind_stack stack;

	tell(f);
	f->stack[1] = LOADED + 0x1800;
	f->stack[3] = LOADED + 0x2001;
	assert_null(finish_walk(f, LOADED + 0x1004, false, &stack));
	assert_int_equal(stack.count, 3);
	assert_int_equal(stack.frames[1], LOADED + 0x1800);
	assert_int_equal(stack.frames[2], LOADED + 0x2001);
	assert_int_equal(stack.end, ABI_UNWIND_ROOT);
	assert_int_equal(rule_at(f, LOADED + 0x1000).cfa_off, 16);
}

static void walk_waits_for_a_module(void **state)
{
	struct fixture *f = *state;
	struct unwind_stack stack;

	f->module_state = UNWIND_MODULE_WAITING;
	assert_ptr_equal(finish_walk(f, LOADED + 0x1004, false, &stack)->module, &f->module);
	assert_int_equal(stack.count, 1);
	assert_int_equal(stack.end, ABI_UNWIND_MISSED);
	assert_null(finish_walk(f, LOADED + 0x1004, true, &stack));
	assert_int_equal(stack.count, 1);
	assert_int_equal(stack.end, ABI_UNWIND_NOT_LOADED);
}

/* A leaf on aarch64 has not saved its caller: by frame pointer the walk would skip it. */
static void walk_that_may_not_wait_does_not_guess_the_caller(void **state)
{
	struct fixture *f = *state;
	const struct abi_unwind_rest rest = {
		.pc = LOADED + 0x1004,
		.sp = STACK,
		.fp = STACK + 16,
		.lr = LOADED + 0x1800,
		.stack_address = STACK,
		.stack_bytes = sizeof(f->stack),
	};
	struct unwind_stack stack;

	f->module_state = UNWIND_MODULE_WAITING;
	f->stack[2] = STACK + 64;
	f->stack[3] = LOADED + 0x2001; /* where its caller returns to */
	assert_null(finish_rest(f, &rest, f->stack, true, &stack));
	assert_int_equal(stack.count, 1);
	assert_int_equal(stack.end, ABI_UNWIND_NOT_LOADED);
}

static void walk_ends_where_the_piece_of_stack_does(void **state)
{
	struct fixture *f = *state;
	struct unwind_stack stack;

	tell(f);
	for (size_t i = 1; i < STACK_WORDS; i += 2)
		f->stack[i] = LOADED + 0x1800;
	assert_null(finish_walk(f, LOADED + 0x1004, false, &stack));
	assert_int_equal(stack.count, 1 + STACK_WORDS / 2);
	assert_int_equal(stack.end, ABI_UNWIND_UNREADABLE);
}

/* The other stack is copied to a piece of its own, in front of the first one. */
static void walk_goes_on_in_the_piece_of_the_other_stack(void **state)
{
	struct fixture *f = *state;
	uint64_t words[32] = { 0 };
	struct abi_unwind_rest rest = { .pc = 0x1234567,
		.sp = STACK,
		.fp = STACK + 16,
		.stack_address = STACK,
		.stack_bytes = sizeof(words),
		.other_address = STACK + 0x8000,
		.other_room = 128,
		.other_bytes = 128 };
	struct unwind_stack stack;

	tell(f);
	words[16 + 2] = STACK + 0x8010;
	words[16 + 3] = 0x1234568;
	words[3] = LOADED + 0x2001;
	assert_null(finish_rest(f, &rest, words, false, &stack));
	assert_int_equal(stack.count, 3);
	assert_int_equal(stack.frames[2], LOADED + 0x2001);
	assert_int_equal(stack.end, ABI_UNWIND_ROOT);
	/* Unread bytes do not count; a piece that is larger than the whole copy is rejected. */
	rest.other_bytes = 0;
	assert_null(finish_rest(f, &rest, words, false, &stack));
	assert_int_equal(stack.count, 2);
	rest.other_room = rest.other_bytes = 1 << 20;
	assert_null(finish_rest(f, &rest, words, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_UNREADABLE);
}

static void code_outside_of_all_files_needs_a_frame_pointer(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rest rest = { .pc = 0x1234567,
		.sp = STACK,
		.fp = STACK + 64,
		.stack_address = STACK,
		.stack_bytes = sizeof(f->stack) };
	struct unwind_stack stack;

	f->stack[9] = LOADED + 0x2001;
	assert_null(finish_rest(f, &rest, f->stack, false, &stack));
	assert_int_equal(stack.count, 2);
	assert_int_equal(stack.end, ABI_UNWIND_ROOT);
	rest.fp = 3;
	assert_null(finish_rest(f, &rest, f->stack, false, &stack));
	assert_int_equal(stack.end, ABI_UNWIND_UNKNOWN_MAPPING);
}

#define UNWIND_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNWIND_TEST(process_has_its_ranges_and_generation),
		UNWIND_TEST(ranges_follow_the_mappings),
		UNWIND_TEST(without_a_change_nothing_is_written),
		UNWIND_TEST(a_new_program_is_written_again),
		UNWIND_TEST(memory_with_code_is_known),
		UNWIND_TEST(unknown_code_is_requested_once),
		UNWIND_TEST(module_without_its_index_waits),
		UNWIND_TEST(module_without_tables_has_no_slots),
		UNWIND_TEST(ended_process_is_removed),
		UNWIND_TEST(too_many_processes_are_counted_and_logged),
		UNWIND_TEST(page_is_loaded_when_it_is_wanted),
		UNWIND_TEST(page_that_the_module_lacks_is_recorded),
		UNWIND_TEST(unused_slot_is_ignored),
		UNWIND_TEST(forgotten_module_gives_its_slots_back),
		UNWIND_TEST(cached_rules_of_a_forgotten_module_are_invalidated),
		UNWIND_TEST(cached_rules_are_invalidated_from_time_to_time),
		UNWIND_TEST(oldest_pages_make_room_for_new_ones),
		UNWIND_TEST(pages_without_room_are_loaded_some_epochs_later),
		UNWIND_TEST(walk_is_finished_where_a_page_found_no_room),
		UNWIND_TEST(module_without_slots_is_finished_until_it_has_them),
		UNWIND_TEST(module_with_too_much_code_goes_without),
		UNWIND_TEST(modules_with_few_tables_share_a_quarter_of_the_slots),
		UNWIND_TEST(claimed_memory_costs_no_slots),
		UNWIND_TEST(walk_is_finished_and_its_pages_are_loaded),
		UNWIND_TEST(walk_waits_for_a_module),
		UNWIND_TEST(walk_that_may_not_wait_does_not_guess_the_caller),
		UNWIND_TEST(walk_ends_where_the_piece_of_stack_does),
		UNWIND_TEST(walk_goes_on_in_the_piece_of_the_other_stack),
		UNWIND_TEST(code_outside_of_all_files_needs_a_frame_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
