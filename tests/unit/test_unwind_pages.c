/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of unwind tables: what is packed is found again, and pages that lie are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/index/unwind.h"
#include "symbolizer/index/unwind_pages.h"

enum { MAX_PAGES = 64, PAGE_BYTES = 1 << ABI_UNWIND_PAGE_SHIFT };

/* What the packer gave. */
struct made {
	struct unwind_pages *packer;
	uint64_t addresses[MAX_PAGES];
	struct abi_unwind_page *pages[MAX_PAGES];
	size_t count;
	int error; /* to be returned instead */
	struct unwind_counts counts;
};

static struct made made;

static int keep(void *context, uint64_t address, const struct abi_unwind_page *page)
{
	struct made *m = context;

	if (m->error)
		return m->error;
	assert_true(m->count < MAX_PAGES);
	assert_true(unwind_page_check(page, page->size));
	m->addresses[m->count] = address;
	m->pages[m->count] = malloc(page->size);
	memcpy(m->pages[m->count++], page, page->size);
	return 0;
}

static int begin(void **)
{
	made = (struct made){ .packer = unwind_pages_create(keep, &made) };
	return !made.packer;
}

static int end(void **)
{
	unwind_pages_destroy(made.packer);
	for (size_t i = 0; i < made.count; i++)
		free(made.pages[i]);
	return 0;
}

/* A rule that is told by its CFA's offset. */
static void row(uint64_t low, uint64_t high, int offset)
{
	unwind_pages_row(made.packer, low, high,
		&(struct abi_unwind_rule){ .cfa = ABI_CFA_SP, .cfa_off = offset });
}

static void finish(void)
{
	assert_int_equal(unwind_pages_finish(made.packer, &made.counts), 0);
	assert_int_equal(made.counts.pages, made.count);
}

/* The offset at ADDRESS; 0 = nothing. */
static int at(uint64_t address)
{
	struct abi_unwind_rule rule;

	for (size_t i = 0; i < made.count; i++) {
		if (made.addresses[i] != (address & -(uint64_t)PAGE_BYTES))
			continue;
		assert_true(unwind_rule_at(
			made.pages[i], made.pages[i]->size, address & (PAGE_BYTES - 1), &rule));
		assert_true(rule.cfa == ABI_CFA_NONE || rule.cfa == ABI_CFA_SP);
		return rule.cfa_off;
	}
	return 0;
}

static void page_is_framed_if_all_of_its_rules_are(void **)
{
	struct abi_unwind_rule framed = {
		.cfa = ABI_CFA_SP, .cfa_off = 8, .extra = ABI_UNWIND_FRAMED
	};

	unwind_pages_row(made.packer, 0x10100, 0x10110, &framed);
	unwind_pages_row(made.packer, 0x20100, 0x2ff00, &framed);
	row(0x2ff00, 0x30100, 8);
	/* The page's first rule is that of the row before. */
	unwind_pages_row(made.packer, 0x30100, 0x40010, &framed);
	unwind_pages_row(made.packer, 0x40020, 0x40030, &framed);
	finish();
	assert_int_equal(made.count, 4);
	assert_int_equal(made.pages[0]->flags, ABI_UNWIND_PAGE_FRAMED);
	assert_int_equal(made.pages[1]->flags, 0);
	assert_int_equal(made.pages[2]->flags, 0);
	assert_int_equal(made.pages[3]->flags, ABI_UNWIND_PAGE_FRAMED);
}

static void nothing_gives_no_page(void **)
{
	finish();
	assert_int_equal(made.count, 0);
}

static void rows_and_gaps(void **)
{
	row(0x10100, 0x10110, 8);
	row(0x10110, 0x10120, 16);
	row(0x10130, 0x10140, 8);
	finish();
	assert_int_equal(made.count, 1);
	assert_int_equal(made.addresses[0], 0x10000);
	assert_int_equal(made.pages[0]->row_count, 5);
	assert_int_equal(made.pages[0]->rule_count, 3); /* with `none` */
	assert_int_equal(at(0x100ff), 0);
	assert_int_equal(at(0x10100), 8);
	assert_int_equal(at(0x1010f), 8);
	assert_int_equal(at(0x10110), 16);
	assert_int_equal(at(0x10120), 0);
	assert_int_equal(at(0x10130), 8);
	assert_int_equal(at(0x10140), 0);
	assert_int_equal(at(0x1ffff), 0);
}

static void neighbours_with_one_rule_are_one_row(void **)
{
	for (uint64_t i = 0; i < 100; i++)
		row(0x100 + i * 8, 0x108 + i * 8, 8);
	finish();
	assert_int_equal(made.pages[0]->row_count, 2);
	assert_int_equal(made.counts.rows, 2);
}

static void a_row_that_goes_on_over_pages(void **)
{
	row(0x1ff00, 0x50010, 8);
	finish();
	assert_int_equal(made.count, 5);
	assert_int_equal(made.pages[1]->row_count, 0);
	assert_int_equal(made.pages[1]->size, sizeof(struct abi_unwind_page) + 12);
	assert_int_equal(at(0x1feff), 0);
	assert_int_equal(at(0x20000), 8);
	assert_int_equal(at(0x4ffff), 8);
	assert_int_equal(at(0x5000f), 8);
	assert_int_equal(at(0x50010), 0);
}

static void a_row_that_ends_with_its_page(void **)
{
	row(0x10000, 0x20000, 8);
	row(0x20000, 0x20010, 16);
	row(0x80000, 0x80001, 24);
	finish();
	assert_int_equal(made.count, 3);
	assert_int_equal(made.pages[0]->row_count, 0);
	assert_int_equal(at(0x1ffff), 8);
	assert_int_equal(at(0x20000), 16);
	assert_int_equal(at(0x20010), 0);
	assert_int_equal(at(0x80000), 24);
	assert_int_equal(at(0x80001), 0);
}

static void what_overlaps_is_cut_off(void **)
{
	row(0x100, 0x200, 8);
	row(0x180, 0x280, 16);
	row(0x110, 0x120, 24);
	row(0x300, 0x300, 32);
	finish();
	assert_int_equal(at(0x1ff), 8);
	assert_int_equal(at(0x200), 16);
	assert_int_equal(at(0x118), 8);
	assert_int_equal(at(0x300), 0);
}

static void every_address_of_a_dense_page(void **)
{
	for (uint64_t i = 0; i < ABI_UNWIND_PAGE_ROWS - 1; i++)
		row(0x10000 + i * 4, 0x10004 + i * 4, 8 + (int)(i * 7 % 250) * 8);
	finish();
	assert_int_equal(made.count, 1);
	for (uint64_t i = 0; i < (ABI_UNWIND_PAGE_ROWS - 1) * 4; i++)
		assert_int_equal(at(0x10000 + i), 8 + (int)(i / 4 * 7 % 250) * 8);
	assert_int_equal(made.counts.left_out, 0);
}

static void a_page_with_too_many_rows_is_left_out(void **)
{
	for (uint64_t i = 0; i < ABI_UNWIND_PAGE_ROWS + 10; i++)
		row(0x10000 + i * 2, 0x10002 + i * 2, 8 + (int)(i % 2) * 8);
	row(0x20010, 0x20020, 40);
	finish();
	assert_int_equal(made.count, 1);
	assert_int_equal(made.addresses[0], 0x20000);
	assert_int_equal(at(0x20010), 40);
	assert_int_equal(made.counts.left_out, 1);
}

static void rules_that_a_page_has_no_room_for_stop_a_walk(void **)
{
	struct abi_unwind_rule rule;

	for (uint64_t i = 0; i < 300; i++)
		row(0x10000 + i * 16, 0x10010 + i * 16, 8 + (int)i * 8);
	row(0x20000, 0x20010, 4000);
	finish();
	assert_int_equal(made.pages[0]->rule_count, ABI_UNWIND_PAGE_RULES);
	assert_int_equal(at(0x10000 + 253 * 16), 8 + 253 * 8);
	for (uint64_t i = 254; i < 300; i++) {
		assert_true(unwind_rule_at(
			made.pages[0], made.pages[0]->size, (uint32_t)i * 16, &rule));
		assert_int_equal(rule.cfa, ABI_CFA_UNSUPPORTED);
	}
	assert_int_equal(at(0x20000), 4000);
	assert_true(made.counts.left_out >= 46);
}

static void an_error_of_the_sink_ends_it(void **)
{
	made.error = -E2BIG;
	row(0x10000, 0x10010, 8);
	row(0x20000, 0x20010, 8);
	row(0x30000, 0x30010, 8);
	assert_int_equal(unwind_pages_finish(made.packer, &made.counts), -E2BIG);
	assert_int_equal(made.count, 0);
}

/* A small page, and what is wrong with it. */
static struct abi_unwind_page *small_page(void)
{
	row(0x100, 0x110, 8);
	row(0x5000, 0x5010, 16);
	finish();
	return made.pages[0];
}

static uint16_t *addresses_of(struct abi_unwind_page *page)
{
	return (uint16_t *)(page + 1);
}

static uint8_t *numbers_of(struct abi_unwind_page *page)
{
	return (uint8_t *)(addresses_of(page) + page->row_count);
}

static struct abi_unwind_rule *rules_of(struct abi_unwind_page *page)
{
	return (struct abi_unwind_rule *)((char *)page + page->size) - page->rule_count;
}

static void assert_refused(struct abi_unwind_page *page)
{
	assert_false(unwind_page_check(page, page->size));
}

static void a_page_cut_off(void **)
{
	struct abi_unwind_page *page = small_page();
	struct abi_unwind_rule rule;

	assert_true(unwind_page_check(page, page->size + 100));
	for (size_t size = 0; size < page->size; size++) {
		autofree char *copy = malloc(size + 1);

		memcpy(copy, page, size);
		assert_false(unwind_page_check((void *)copy, size));
		assert_false(unwind_rule_at((void *)copy, size, 0x100, &rule));
	}
}

static void counts_that_lie(void **)
{
	struct abi_unwind_page *page = small_page(), good = *page;

	page->row_count++;
	assert_refused(page);
	page->row_count = UINT16_MAX;
	assert_refused(page);
	*page = good;
	page->rule_count = 0;
	assert_refused(page);
	page->rule_count = ABI_UNWIND_PAGE_RULES + 1;
	assert_refused(page);
	*page = good;
	page->size -= 4;
	assert_refused(page);
	*page = good;
	assert_true(unwind_page_check(page, page->size));
}

static void rows_out_of_order(void **)
{
	struct abi_unwind_page *page = small_page();

	addresses_of(page)[1] = addresses_of(page)[0];
	assert_refused(page);
}

static void rule_numbers_outside(void **)
{
	struct abi_unwind_page *page = small_page();
	struct abi_unwind_rule rule;

	numbers_of(page)[0] = (uint8_t)page->rule_count;
	assert_refused(page);
	assert_false(unwind_rule_at(page, page->size, 0x100, &rule));
	assert_true(unwind_rule_at(page, page->size, 0x5000, &rule));
}

static void steps_that_lie(void **)
{
	struct abi_unwind_page *page = small_page();
	struct abi_unwind_rule rule;

	for (int i = 0; i < ABI_UNWIND_STEPS; i++) {
		uint16_t good = page->steps[i];

		page->steps[i] = UINT16_MAX;
		assert_refused(page);
		for (uint32_t offset = 0; offset < PAGE_BYTES; offset += 16)
			unwind_rule_at(page, page->size, offset, &rule);
		page->steps[i] = good;
	}
	assert_true(unwind_page_check(page, page->size));
}

static void rules_of_unknown_kinds(void **)
{
	struct abi_unwind_page *page = small_page();
	struct abi_unwind_rule good = rules_of(page)[1];

	rules_of(page)[1].cfa = ABI_CFA_KINDS;
	assert_refused(page);
	rules_of(page)[1] = good;
	rules_of(page)[1].fp = ABI_REG_KINDS;
	assert_refused(page);
	rules_of(page)[1] = good;
	rules_of(page)[1].ra = ABI_REG_AT_FP;
	assert_refused(page);
}

static void offsets_outside_of_a_page(void **)
{
	struct abi_unwind_page *page = small_page();
	struct abi_unwind_rule rule;

	assert_true(unwind_rule_at(page, page->size, PAGE_BYTES - 1, &rule));
	assert_false(unwind_rule_at(page, page->size, PAGE_BYTES, &rule));
	assert_false(unwind_rule_at(page, page->size, UINT32_MAX, &rule));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(page_is_framed_if_all_of_its_rules_are),
		CASE(nothing_gives_no_page),
		CASE(rows_and_gaps),
		CASE(neighbours_with_one_rule_are_one_row),
		CASE(a_row_that_goes_on_over_pages),
		CASE(a_row_that_ends_with_its_page),
		CASE(what_overlaps_is_cut_off),
		CASE(every_address_of_a_dense_page),
		CASE(a_page_with_too_many_rows_is_left_out),
		CASE(rules_that_a_page_has_no_room_for_stop_a_walk),
		CASE(an_error_of_the_sink_ends_it),
		CASE(a_page_cut_off),
		CASE(counts_that_lie),
		CASE(rows_out_of_order),
		CASE(rule_numbers_outside),
		CASE(steps_that_lie),
		CASE(rules_of_unknown_kinds),
		CASE(offsets_outside_of_a_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
