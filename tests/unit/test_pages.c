/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of several modules, and which part of a mapping a segment covers. */
#include "agent/sampler/unwind/pages.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/unwind/ranges.h"
#include "symbolizer/index/unwind.h"
#include "tests/unit/small_index.h"
#include "tests/unit/unwind_page_writer.h"

enum { BASE = 0x400000, MODULES = 3 }; /* small_index.h's segment has two pages of code */

struct fixture {
	struct abi_unwind_slot slots[ABI_UNWIND_SLOTS];
	uint8_t pool[ABI_UNWIND_REGIONS * ABI_UNWIND_REGION_BYTES];
	int write_error;
	struct unwind_target target;
	struct metrics metrics;
	struct index *index;
	struct pages pages;
	uint32_t units; /* free units at the beginning */
	const struct page_module *modules[MODULES];
};

static int write_pool(void *context, uint32_t offset, const void *bytes, size_t size)
{
	struct fixture *f = context;

	assert_true(offset + size <= sizeof(f->pool));
	if (!f->write_error)
		memcpy(f->pool + offset, bytes, size);
	return f->write_error;
}

static void set_number(void *context, uint32_t number)
{
	(void)context;
	(void)number;
}

static struct index *make_index(uint64_t page_count)
{
	struct page_writer *writer = calloc(1, sizeof(*writer));
	struct index_writer *w = create();

	page_begin(writer, rule_sp(16));
	for (uint64_t i = 0; i < page_count; i++) {
		const struct abi_unwind_page *page = page_finish(writer);

		assert_int_equal(writer_unwind_page(w, BASE + (i << 16), page, page->size), 0);
	}
	free(writer);
	return finish(w);
}

static uint32_t free_units(const struct fixture *f)
{
	uint32_t left = 0;

	for (size_t i = 0; i < ABI_UNWIND_REGIONS; i++)
		left += space_left(&f->pages.regions[i]);
	return left;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->target = (struct unwind_target){ .slots = f->slots,
		.write_pool = write_pool,
		.set_epoch = set_number,
		.set_rules_epoch = set_number,
		.context = f };
	f->index = make_index(2);
	assert_int_equal(pages_init(&f->pages, &f->target, &f->metrics), 0);
	f->units = free_units(f);
	for (uint32_t i = 0; i < MODULES; i++)
		assert_int_equal(pages_module(&f->pages, i + 1, f->index, &f->modules[i]), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pages_deinit(&f->pages);
	index_destroy(f->index);
	free(f);
	return 0;
}

static bool is_loaded(const struct fixture *f, uint32_t slot)
{
	uint32_t where = f->slots[slot].where;

	return where != ABI_UNWIND_ABSENT && where != ABI_UNWIND_NO_TABLE;
}

static void want_all(struct fixture *f)
{
	for (uint32_t i = 0; i < MODULES; i++)
		for (uint32_t slot = 0; slot < f->modules[i]->slot_count; slot++)
			pages_want(&f->pages, f->modules[i]->first_slot + slot);
}

static void modules_have_slots_of_their_own(void **state)
{
	struct fixture *f = *state;
	const struct page_module *again;

	for (uint32_t i = 0; i < MODULES; i++) {
		assert_int_equal(f->modules[i]->slot_count, 2);
		assert_int_equal(f->modules[i]->first_page, BASE >> 16);
		for (uint32_t j = 0; j < i; j++)
			assert_true(f->modules[i]->first_slot >= f->modules[j]->first_slot + 2 ||
				    f->modules[j]->first_slot >= f->modules[i]->first_slot + 2);
	}
	assert_int_equal(pages_module(&f->pages, 2, f->index, &again), 0);
	assert_ptr_equal(again, f->modules[1]);
}

/* Dropping any module frees its pages and keeps those of the others. */
static void dropped_module_takes_no_other_with_it(void **state)
{
	struct fixture *f = *state;

	for (uint32_t dropped = 0; dropped < MODULES; dropped++) {
		uint32_t first = f->modules[dropped]->first_slot;

		want_all(f);
		pages_drop(&f->pages, dropped + 1);
		assert_int_equal(f->slots[first].where, ABI_UNWIND_NO_TABLE);
		assert_int_equal(f->slots[first + 1].where, ABI_UNWIND_NO_TABLE);
		assert_int_equal(f->pages.loaded_count, 2 * (MODULES - 1));
		for (uint32_t i = 0; i < MODULES; i++) {
			if (i == dropped)
				continue;
			assert_true(is_loaded(f, f->modules[i]->first_slot));
			assert_true(is_loaded(f, f->modules[i]->first_slot + 1));
		}
		for (int i = 0; i < 3; i++)
			pages_tick(&f->pages);
		assert_int_equal(
			pages_module(&f->pages, dropped + 1, f->index, &f->modules[dropped]), 0);
	}
}

static void dropped_modules_give_their_room_back(void **state)
{
	struct fixture *f = *state;

	want_all(f);
	assert_true(free_units(f) < f->units);
	for (uint32_t i = MODULES; i > 0; i--)
		pages_drop(&f->pages, i);
	for (int i = 0; i < 3; i++)
		pages_tick(&f->pages);
	assert_int_equal(free_units(f), f->units);
	assert_int_equal(f->pages.loaded_count, 0);
	assert_int_equal(space_left(&f->pages.slots), ABI_UNWIND_SLOTS);
}

static void pages_beside_the_wanted_one_come_along(void **state)
{
	struct fixture *f = *state;
	uint32_t first = f->modules[1]->first_slot;

	pages_want(&f->pages, first + 1);
	assert_true(is_loaded(f, first));
	assert_true(is_loaded(f, first + 1));
	assert_int_equal(f->pages.loaded_count, 2);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGE_LOADS), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGES_AHEAD), 1);
	pages_want(&f->pages, first);
	assert_int_equal(f->pages.loaded_count, 2);
}

/* Rings are to be read in between, so only the nearest ones come at once. */
static void pages_further_away_come_after_the_rings_were_read(void **state)
{
	enum { PAGES = 40, WANTED = 20, NUMBER = MODULES + 1 };
	struct fixture *f = *state;
	struct index *index = make_index(PAGES);
	const struct page_module *module;

	assert_int_equal(pages_module(&f->pages, NUMBER, index, &module), 0);
	pages_load_ahead(&f->pages);
	assert_int_equal(f->pages.loaded_count, 0);
	pages_want(&f->pages, module->first_slot + WANTED);
	assert_int_equal(f->pages.loaded_count, 5);
	for (uint32_t i = WANTED - 2; i <= WANTED + 2; i++)
		assert_true(is_loaded(f, module->first_slot + i));
	pages_load_ahead(&f->pages);
	assert_int_equal(f->pages.loaded_count, PAGES);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGES_AHEAD), PAGES - 1);
	assert_int_equal(f->pages.ahead_count, 0);
	pages_drop(&f->pages, NUMBER);
	index_destroy(index);
}

static void nothing_comes_along_of_a_module_that_is_gone(void **state)
{
	enum { PAGES = 40, NUMBER = MODULES + 1 };
	struct fixture *f = *state;
	struct index *index = make_index(PAGES);
	const struct page_module *module;

	assert_int_equal(pages_module(&f->pages, NUMBER, index, &module), 0);
	pages_want(&f->pages, module->first_slot);
	assert_int_equal(f->pages.ahead_count, 1);
	pages_drop(&f->pages, NUMBER);
	index_destroy(index);
	pages_load_ahead(&f->pages);
	assert_int_equal(f->pages.loaded_count, 0);
	assert_int_equal(f->pages.ahead_count, 0);
}

/* What nobody asked for must not lead to evictions. */
static void no_page_comes_along_into_the_second_half_of_the_pool(void **state)
{
	struct fixture *f = *state;
	uint32_t slot = f->modules[1]->first_slot, first;

	for (uint32_t i = 0; i < ABI_UNWIND_REGIONS && free_units(f) >= f->units / 2; i++)
		assert_int_equal(
			space_take(&f->pages.regions[i], space_left(&f->pages.regions[i]), &first),
			0);
	pages_want(&f->pages, slot);
	assert_true(is_loaded(f, slot));
	assert_false(is_loaded(f, slot + 1));
	pages_want(&f->pages, slot + 1);
	assert_true(is_loaded(f, slot + 1));
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGES_AHEAD), 0);
}

/* A refused page is counted, takes no space, and may be requested again. */
static void page_that_cannot_be_written_is_refused(void **state)
{
	struct fixture *f = *state;
	uint32_t slot = f->modules[1]->first_slot;

	f->write_error = -E2BIG;
	pages_want(&f->pages, slot);
	assert_false(is_loaded(f, slot));
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGES_REFUSED), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGE_LOADS), 0);
	assert_int_equal(f->pages.loaded_count, 0);
	for (int i = 0; i < 3; i++)
		pages_tick(&f->pages);
	assert_int_equal(free_units(f), f->units);
	f->write_error = 0;
	pages_want(&f->pages, slot);
	assert_true(is_loaded(f, slot));
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_PAGE_LOADS), 1);
}

/* ---- parts of mappings ---------------------------------------------------------------------- */

static const struct index_segment segment = { .address = BASE, .size = 0x1000, .file_off = 0x1000 };

/* Maps 0x1000 bytes from FILE_OFF at 0x10000; returns the segment's part of the mapping. */
static bool part_at(uint64_t file_off, struct ranges_part *ret_part)
{
	const struct mapping mapping = { .start = 0x10000, .end = 0x11000, .file_off = file_off };

	return ranges_part_of(&mapping, &segment, ret_part);
}

static void mapping_beside_the_segment_has_no_part_of_it(void **state)
{
	struct ranges_part part = { 0 };

	(void)state;
	assert_false(part_at(0, &part)); /* ends where the segment begins */
	assert_false(part_at(0x2000, &part)); /* begins where it ends */
	assert_false(part_at(0x5000, &part));
	assert_false(part_at(UINT64_MAX - 0x800, &part)); /* no such file */
	assert_int_equal(part.end, 0);
}

static void mapping_has_the_part_that_is_in_both(void **state)
{
	struct ranges_part part;

	(void)state;
	assert_true(part_at(0x1000, &part));
	assert_int_equal(part.start, 0x10000);
	assert_int_equal(part.end, 0x11000);
	assert_int_equal(part.elf_addr, BASE);
	assert_true(part_at(0x1000 - 0xff0, &part));
	assert_int_equal(part.start, 0x10ff0);
	assert_int_equal(part.end, 0x11000);
	assert_int_equal(part.elf_addr, BASE);
	assert_true(part_at(0x1ff0, &part));
	assert_int_equal(part.start, 0x10000);
	assert_int_equal(part.end, 0x10010);
	assert_int_equal(part.elf_addr, BASE + 0xff0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(modules_have_slots_of_their_own),
		CASE(dropped_module_takes_no_other_with_it),
		CASE(dropped_modules_give_their_room_back),
		CASE(pages_beside_the_wanted_one_come_along),
		CASE(pages_further_away_come_after_the_rings_were_read),
		CASE(nothing_comes_along_of_a_module_that_is_gone),
		CASE(no_page_comes_along_into_the_second_half_of_the_pool),
		CASE(page_that_cannot_be_written_is_refused),
		cmocka_unit_test(mapping_beside_the_segment_has_no_part_of_it),
		cmocka_unit_test(mapping_has_the_part_that_is_in_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
