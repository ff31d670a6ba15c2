/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting by address is stable for equal addresses, whichever bits differ. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/writer/address_sort.h"

enum { MANY = 5000 };

static void assert_order(const struct address_item *items, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		assert_true(items[i - 1].address <= items[i].address);
		if (items[i - 1].address == items[i].address)
			assert_true(items[i - 1].number < items[i].number);
	}
}

static void empty_and_single_input(void **state)
{
	struct address_item one = { 42, 7 };

	(void)state;
	assert_int_equal(address_sort(&one, 0), 0);
	assert_int_equal(address_sort(&one, 1), 0);
	assert_int_equal(one.address, 42);
	assert_int_equal(one.number, 7);
}

/* Passes over other digits than those that differ, and an odd number of them. */
static void addresses_that_differ_in_one_digit(void **state)
{
	(void)state;
	for (unsigned int bit = 0; bit < 32; bit++) {
		struct address_item items[] = {
			{ UINT32_C(1) << bit, 0 },
			{ 0, 1 },
			{ UINT32_C(1) << bit, 2 },
			{ 0, 3 },
		};

		assert_int_equal(address_sort(items, ARRAY_SIZE(items)), 0);
		assert_order(items, ARRAY_SIZE(items));
		assert_int_equal(items[0].number, 1);
		assert_int_equal(items[3].number, 2);
		assert_int_equal(items[3].address, UINT32_C(1) << bit);
	}
}

static void extremes(void **state)
{
	struct address_item items[] = { { UINT32_MAX, 0 }, { 1, 1 }, { UINT32_MAX - 1, 2 },
		{ 0, 3 }, { UINT32_C(1) << 31, 4 }, { UINT32_MAX, 5 } };
	static const uint32_t expected[] = { 3, 1, 4, 2, 0, 5 };

	(void)state;
	assert_int_equal(address_sort(items, ARRAY_SIZE(items)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		assert_int_equal(items[i].number, expected[i]);
}

/* Addresses from the whole range, from a few pages, and hardly any different ones. */
static void many_of_each_kind(void **state)
{
	static const uint32_t masks[] = { UINT32_MAX, 0x3ffff, 7 };

	(void)state;
	for (size_t kind = 0; kind < ARRAY_SIZE(masks); kind++) {
		struct address_item *items = calloc(MANY, sizeof(*items));
		uint64_t random = 1, sum = 0, numbers = 0;

		assert_non_null(items);
		for (uint32_t i = 0; i < MANY; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			items[i].address = (uint32_t)(random ^ random >> 32) & masks[kind];
			items[i].number = i;
			sum += (uint64_t)items[i].address * (i + 1);
		}
		assert_int_equal(address_sort(items, MANY), 0);
		assert_order(items, MANY);
		for (uint32_t i = 0; i < MANY; i++) {
			sum -= items[i].address * (items[i].number + UINT64_C(1));
			numbers += items[i].number;
		}
		/* Each address has kept its number. */
		assert_int_equal(sum, 0);
		assert_int_equal(numbers, (uint64_t)MANY * (MANY - 1) / 2);
		free(items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_and_single_input),
		cmocka_unit_test(addresses_that_differ_in_one_digit),
		cmocka_unit_test(extremes),
		cmocka_unit_test(many_of_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
