/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of unwind tables: lookups find what was packed, and malformed pages are rejected. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/unwind/wide_page.h"
#include "base/cleanup.h"
#include "bpf/unwind/step.bpf.h"
#include "symbolizer/index/unwind.h"
#include "symbolizer/indexer/cfi/unwind_pages.h"

enum {
	MAX_PAGES = 64,
	PAGE_BYTES = 1 << ABI_UNWIND_PAGE_SHIFT,
	PLACE = 0x54340, /* address of a page in BPF's pool */
};

/* The packer's output. */
struct made {
	struct unwind_pages *packer;
	uint64_t addresses[MAX_PAGES];
	struct abi_unwind_page *pages[MAX_PAGES];
	size_t count;
	int error; /* returned instead of 0 */
	struct unwind_counts counts;
};

static struct made made;
static uint8_t region[ABI_UNWIND_REGION_BYTES], wide_region[ABI_UNWIND_REGION_BYTES];
static const struct abi_unwind_page *in_region; /* the page that is copied there */

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
	in_region = NULL;
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

/* Adds a rule that is recognized by its CFA's offset. */
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

/* Copies PAGE, and the same page without packed rules, to where BPF reads them. */
static void copy_to_regions(const struct abi_unwind_page *page)
{
	autofree struct abi_unwind_page *wide = wide_page_of(page);

	assert_non_null(wide);
	assert_int_equal(wide->wide_count, wide->rule_count);
	assert_true(unwind_page_check(wide, wide->size));
	memcpy(region + PLACE, page, page->size);
	memcpy(wide_region + PLACE, wide, wide->size);
	in_region = page;
}

/* User space and BPF also find RULE at OFFSET of the page without packed rules. */
static void assert_wide(uint32_t offset, const struct abi_unwind_rule *rule)
{
	const struct abi_unwind_page *wide = (const void *)(wide_region + PLACE);
	struct abi_unwind_rule there;

	assert_true(unwind_rule_at(wide, wide->size, offset, &there));
	assert_memory_equal(&there, rule, sizeof(there));
	unwind_rule_of(wide_region, PLACE,
		unwind_row_number(unwind_row_at(wide_region, PLACE, offset)), &there);
	assert_memory_equal(&there, rule, sizeof(there));
}

/* The rule at ADDRESS, which user space and BPF must agree on. */
static struct abi_unwind_rule rule_at(uint64_t address)
{
	struct abi_unwind_rule here = { 0 }, there;
	const uint32_t offset = address & (PAGE_BYTES - 1);

	for (size_t i = 0; i < made.count; i++) {
		if (made.addresses[i] != (address & -(uint64_t)PAGE_BYTES))
			continue;
		assert_true(unwind_rule_at(made.pages[i], made.pages[i]->size, offset, &here));
		if (in_region != made.pages[i])
			copy_to_regions(made.pages[i]);
		unwind_rule_of(region, PLACE,
			unwind_row_number(unwind_row_at(region, PLACE, offset)), &there);
		assert_memory_equal(&here, &there, sizeof(here));
		assert_wide(offset, &here);
		return here;
	}
	return here;
}

/* The offset at ADDRESS; 0 = nothing. */
static int at(uint64_t address)
{
	struct abi_unwind_rule rule = rule_at(address);

	assert_true(rule.cfa == ABI_CFA_NONE || rule.cfa == ABI_CFA_SP);
	return rule.cfa_off;
}

static void page_is_framed_if_all_of_its_rules_are(void **)
{
	struct abi_unwind_rule framed = {
		.cfa = ABI_CFA_SP, .cfa_off = 8, .extra = ABI_UNWIND_FRAMED
	};

	unwind_pages_row(made.packer, 0x10100, 0x10110, &framed);
	unwind_pages_row(made.packer, 0x20100, 0x2ff00, &framed);
	row(0x2ff00, 0x30100, 8);
	/* The page begins with the rule of the row before. */
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
	assert_int_equal(made.pages[0]->rule_count, 3); /* `none` included */
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
	assert_int_equal(made.pages[1]->rule_count, 1);
	/* The header, 16 buckets' offsets and their end, a rule, and its number for each bucket. */
	assert_int_equal(made.pages[1]->size, 44 + 2 * 16 + 4 + 4 + 16);
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

/* ---- rows come back unchanged --------------------------------------------------------------- */

enum { SHADOW_LOW = 0x10000, SHADOW_END = 0x60000, SHADOW_RULES = 200 };

/* The number of the rule + 1 for each address. */
static uint8_t shadow[SHADOW_END - SHADOW_LOW];
static struct abi_unwind_rule shadow_rules[SHADOW_RULES];

static void begin_shadow(void)
{
	memset(shadow, 0, sizeof(shadow));
	for (int i = 0; i < SHADOW_RULES; i++)
		shadow_rules[i] =
			(struct abi_unwind_rule){ .cfa = ABI_CFA_SP, .cfa_off = 8 * (i + 1) };
}

static uint64_t shadow_row(uint64_t low, uint64_t size, int rule)
{
	if (low + size > SHADOW_END)
		return SHADOW_END;
	memset(shadow + low - SHADOW_LOW, rule + 1, size);
	unwind_pages_row(made.packer, low, low + size, &shadow_rules[rule]);
	return low + size;
}

static void compare_shadow(void)
{
	const struct abi_unwind_rule nothing = { 0 };

	finish();
	assert_int_equal(made.counts.left_out, 0);
	for (uint64_t i = SHADOW_LOW; i < SHADOW_END; i++) {
		uint8_t number = shadow[i - SHADOW_LOW];
		struct abi_unwind_rule rule = rule_at(i);

		assert_memory_equal(
			&rule, number ? &shadow_rules[number - 1] : &nothing, sizeof(rule));
	}
}

/* Adds several rows; the first begins before, at or after END. Returns the new end. */
static uint64_t shadow_batch(uint64_t end, unsigned int *seed)
{
	struct unwind_row rows[40];
	const size_t count = 1 + (size_t)rand_r(seed) % ARRAY_SIZE(rows);
	uint64_t at = end - MIN(end - SHADOW_LOW, (uint64_t)(rand_r(seed) % 3) * 20), high;

	at = rand_r(seed) % 4 ? at : end + 100;
	for (size_t i = 0; i < count; i++, at = high) {
		const int rule = rand_r(seed) % (rand_r(seed) % 50 ? 8 : SHADOW_RULES);

		high = at + 1 + (unsigned int)rand_r(seed) % (rand_r(seed) % 20 ? 9 : 3000);
		rows[i] = (struct unwind_row){ .low = at, .rule = shadow_rules[rule] };
		for (uint64_t byte = MAX(at, end); byte < high; byte++)
			shadow[byte - SHADOW_LOW] = (uint8_t)(rule + 1);
	}
	unwind_pages_rows(made.packer, rows, count, at);
	return MAX(at, end);
}

static void many_rows_at_once(void **)
{
	const uint64_t last = SHADOW_END - 41 * 3000;
	unsigned int seed = 5;

	begin_shadow();
	for (uint64_t at = SHADOW_LOW; at < last;)
		at = shadow_batch(at, &seed);
	compare_shadow();
}

/* Typical functions: entered, pushes, pops and return, one of them twice. */
static void what_compilers_make_takes_little_room(void **)
{
	uint64_t at = SHADOW_LOW;
	unsigned int seed = 1;
	size_t bytes = 0;

	begin_shadow();
	while (at < SHADOW_END) {
		const int pushes = rand_r(&seed) % 7, frame = pushes + 1 + rand_r(&seed) % 20;

		for (int i = 0; i < pushes; i++)
			at = shadow_row(at, 2, i);
		for (int part = 0; part < 2; part++) {
			at = shadow_row(at, 1 + (unsigned int)rand_r(&seed) % 300, frame);
			for (int i = pushes; i >= 0; i--)
				at = shadow_row(at, 2, i);
		}
		at = (at + 15) & ~15ULL;
	}
	compare_shadow();
	for (size_t i = 0; i < made.count; i++)
		bytes += made.pages[i]->size;
	assert_true(made.counts.rows > 4000);
	assert_true(bytes * 10 < made.counts.rows * 17ULL);
}

static struct abi_unwind_rule random_rule(unsigned int *seed)
{
	static const int offsets[] = { 0, 8, 16, 11, -8, 16376, 16384, 1 << 20, INT32_MIN };
	static const short places[] = { 0, -8, -16, -24, 8, 3, -2040, -2048, INT16_MIN };
	struct abi_unwind_rule rule = {
		.cfa = (uint8_t)(1 + rand_r(seed) % (ABI_CFA_KINDS - 1)),
		.fp = (uint8_t)(rand_r(seed) % ABI_REG_KINDS),
		.ra = (uint8_t)(rand_r(seed) % (ABI_REG_UNSUPPORTED + 1)),
		.extra = (uint8_t)(rand_r(seed) % 3 ? 0 : rand_r(seed)),
		.cfa_off = offsets[rand_r(seed) % (int)ARRAY_SIZE(offsets)],
		.fp_off = places[rand_r(seed) % (int)ARRAY_SIZE(places)],
		.ra_off = places[rand_r(seed) % (int)ARRAY_SIZE(places)],
	};

	return rule;
}

/* Rules of all kinds, rows from dense to sparse, gaps between them. */
static void rows_at_random(void **)
{
	for (unsigned int seed = 1; seed < 12; seed++) {
		unsigned int state_of_random = seed;
		uint64_t at = SHADOW_LOW + seed;

		begin_shadow();
		for (int i = 0; i < SHADOW_RULES; i++)
			shadow_rules[i] = random_rule(&state_of_random);
		while (at < SHADOW_END) {
			unsigned int size =
				4 + (unsigned int)rand_r(&state_of_random) % (1U << (seed + 3));
			int rule = rand_r(&state_of_random) % (int)(20 * seed % SHADOW_RULES + 1);

			at = shadow_row(at, size, rule);
			at += rand_r(&state_of_random) % 8
				      ? 0
				      : (unsigned int)rand_r(&state_of_random) % size;
		}
		compare_shadow();
		end(NULL);
		begin(NULL);
	}
}

/* Only where a row begins at each byte do buckets have to be small. */
static void rows_at_each_byte_in_one_place(void **)
{
	uint64_t at = SHADOW_LOW;

	begin_shadow();
	at = shadow_row(at, 0x7ff0, 1);
	for (int i = 0; i < 1000; i++)
		at = shadow_row(at, 1, i * 7 % 150);
	at = shadow_row(at, 0x18000, 1);
	shadow_row(at, 0x10, 2);
	compare_shadow();
	assert_true(made.pages[0]->bucket_shift <= 7);
	assert_int_equal(made.pages[1]->bucket_shift, ABI_UNWIND_BUCKET_SHIFT_MAX);
}

/* No change repeats: most have their longest form. */
static void the_densest_pages(void **)
{
	uint64_t at = SHADOW_LOW;
	unsigned int seed = 1;
	int before = 0;

	begin_shadow();
	while (at < SHADOW_END) {
		int rule = (before + 3 + rand_r(&seed) % 190) % 200;

		at = shadow_row(at, 4 + (unsigned int)(rand_r(&seed) % 64 == 0), rule);
		before = rule;
	}
	compare_shadow();
	assert_true(made.counts.rows > 5 * 16000);
}

/* ---- malformed pages ------------------------------------------------------------------------ */

/* Rows at 0x100, 0x110, 0x5000 and 0x5010 in buckets of 4 KiB; rules: nothing, 8, 16. */
static struct abi_unwind_page *small_page(void)
{
	row(0x100, 0x110, 8);
	row(0x5000, 0x5010, 16);
	finish();
	return made.pages[0];
}

static uint16_t *buckets_of(struct abi_unwind_page *page)
{
	return (uint16_t *)(page + 1);
}

static uint32_t *rules_of(struct abi_unwind_page *page)
{
	return (uint32_t *)(void *)(buckets_of(page) + (0x10000 >> page->bucket_shift) + 2);
}

static uint8_t *changes_of(struct abi_unwind_page *page)
{
	return (uint8_t *)(rules_of(page) + page->rule_count) +
	       page->wide_count * sizeof(struct abi_unwind_rule);
}

/* The page is rejected, and lookups stay inside of it. */
static void assert_refused(struct abi_unwind_page *page)
{
	autofree struct abi_unwind_page *copy = malloc(page->size);
	struct abi_unwind_rule rule;

	assert_false(unwind_page_check(page, page->size));
	memcpy(copy, page, page->size);
	for (uint32_t offset = 0; offset < PAGE_BYTES; offset += 8)
		(void)unwind_rule_at(copy, page->size, offset, &rule);
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
	*page = good;
	page->rule_count = 0;
	assert_refused(page);
	*page = good;
	page->wide_count = (uint8_t)(page->rule_count + 1);
	assert_refused(page);
	*page = good;
	page->rule_count = ABI_UNWIND_PAGE_RULES;
	assert_refused(page);
	*page = good;
	page->entry = page->rule_count;
	assert_refused(page);
	*page = good;
	page->bucket_shift = ABI_UNWIND_BUCKET_SHIFT_MIN - 1;
	assert_refused(page);
	page->bucket_shift = ABI_UNWIND_BUCKET_SHIFT_MAX + 1;
	assert_refused(page);
	page->bucket_shift = UINT8_MAX;
	assert_refused(page);
	*page = good;
	page->size -= 4;
	assert_refused(page);
	*page = good;
	assert_true(unwind_page_check(page, page->size));
}

static void buckets_that_lie(void **)
{
	struct abi_unwind_page *page = small_page();
	const int count = 0x10000 >> page->bucket_shift;

	for (int i = 0; i <= count; i++) {
		uint16_t good = buckets_of(page)[i];

		buckets_of(page)[i] = UINT16_MAX;
		assert_refused(page);
		buckets_of(page)[i] = i ? 0 : 1;
		assert_refused(page);
		buckets_of(page)[i] = good;
	}
	assert_true(unwind_page_check(page, page->size));
}

static void rule_numbers_outside(void **)
{
	struct abi_unwind_page *page = small_page();
	uint8_t *start = changes_of(page) + buckets_of(page)[5];
	struct abi_unwind_rule rule;

	*start = page->rule_count;
	assert_refused(page);
	assert_false(unwind_rule_at(page, page->size, 0x5000, &rule));
	assert_true(unwind_rule_at(page, page->size, 0x100, &rule));
}

/* The first bucket's first change gets each code. */
static void changes_that_lie(void **)
{
	const struct {
		int kind, nibbles, least;
	} codes[] = {
		{ ABI_CHANGE_TO, 0, 1 }, /* the next nibbles are no valid rule number */
		{ ABI_CHANGE_DOWN, 0, 1 }, /* below rule 0 */
		{ ABI_CHANGE_DOWN_2, 0, 1 }, { ABI_CHANGE_UP, 0, 0 }, /* no distance */
		{ ABI_CHANGE_UP, 3, 255 }, /* beyond the bucket's end */
	};
	struct abi_unwind_page *page = small_page();
	uint8_t *change = changes_of(page) + buckets_of(page)[0] + 1;

	memset(change, 0xf0, (size_t)buckets_of(page)[1] - 1);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		page->codes[0] =
			(uint16_t)(codes[i].kind | codes[i].nibbles << ABI_CODE_NIBBLES_SHIFT |
				   codes[i].least << ABI_CODE_LEAST_SHIFT);
		assert_refused(page);
	}
}

static void changes_that_end_in_the_middle(void **)
{
	struct abi_unwind_page *page = small_page();
	uint8_t *change = changes_of(page) + buckets_of(page)[0] + 1;

	memset(change, ABI_CHANGE_OTHER << 4 | ABI_CHANGE_OTHER, (size_t)buckets_of(page)[1] - 1);
	assert_refused(page);
}

static void a_bucket_with_too_many_changes(void **)
{
	struct abi_unwind_page *page;

	for (uint64_t i = 0; i < 20; i++)
		row(0x1000 + i * 0x200, 0x1100 + i * 0x200, 8);
	for (uint64_t i = 0; i < 100; i++)
		row(0x8000 + i * 2, 0x8001 + i * 2, 16);
	finish();
	page = made.pages[0];
	assert_true(page->bucket_shift <= 7);
	/* The buckets seem larger, with the same offsets. */
	page->bucket_shift = ABI_UNWIND_BUCKET_SHIFT_MAX;
	assert_refused(page);
}

static void rules_of_unknown_kinds(void **)
{
	struct abi_unwind_page *page = small_page();
	uint32_t good = rules_of(page)[1];

	rules_of(page)[1] = good | ABI_REG_KINDS << ABI_RULE_FP_SHIFT;
	assert_refused(page);
	/* The page has no wide rules. */
	rules_of(page)[1] = ABI_RULE_WIDE;
	assert_refused(page);
	rules_of(page)[1] = good;
	assert_true(unwind_page_check(page, page->size));
}

static void wide_rules_of_unknown_kinds(void **)
{
	struct abi_unwind_rule *wide, good;
	struct abi_unwind_page *page;

	row(0x100, 0x110, 11);
	finish();
	page = made.pages[0];
	assert_int_equal(page->wide_count, 1);
	wide = (struct abi_unwind_rule *)(rules_of(page) + page->rule_count);
	good = *wide;
	wide->cfa = ABI_CFA_KINDS;
	assert_refused(page);
	*wide = good;
	wide->fp = ABI_REG_KINDS;
	assert_refused(page);
	*wide = good;
	wide->ra = ABI_REG_AT_FP;
	assert_refused(page);
	*wide = good;
	assert_true(unwind_page_check(page, page->size));
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
		CASE(what_compilers_make_takes_little_room),
		CASE(many_rows_at_once),
		CASE(rows_at_random),
		CASE(rows_at_each_byte_in_one_place),
		CASE(the_densest_pages),
		CASE(buckets_that_lie),
		CASE(rule_numbers_outside),
		CASE(changes_that_lie),
		CASE(changes_that_end_in_the_middle),
		CASE(a_bucket_with_too_many_changes),
		CASE(rules_of_unknown_kinds),
		CASE(wide_rules_of_unknown_kinds),
		CASE(offsets_outside_of_a_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
