/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranges cover an address that is asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/writer/writer.h"

DEFINE_AUTO(index_writer);

static const uint64_t asked[] = { 0x1000, 0x1000, 0x2000, UINT64_MAX - 1 };

static bool covers_any(uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		if (asked[i] >= low && asked[i] < high)
			return true;
	return false;
}

static void a_range_is_asked_for_if_it_covers_an_address(void **state)
{
	static const uint64_t edges[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2001,
		UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX };
	autocall(auto_index_writer_destroy) struct index_writer *w = index_writer_create();

	(void)state;
	assert_non_null(w);
	assert_false(writer_asks(w));
	assert_true(writer_is_asked(w, 1, 2));
	writer_ask(w, asked, ARRAY_SIZE(asked));
	assert_true(writer_asks(w));
	/* In each order: what was found before makes the next one faster, and not wrong. */
	for (size_t low = 0; low < ARRAY_SIZE(edges); low++)
		for (size_t high = 0; high < ARRAY_SIZE(edges); high++) {
			assert_int_equal(writer_is_asked(w, edges[low], edges[high]),
				covers_any(edges[low], edges[high]));
			assert_int_equal(writer_is_asked(w, edges[high], edges[low]),
				covers_any(edges[high], edges[low]));
		}
}

static void a_symbol_matters_if_it_covers_an_address_or_names_what_does(void **state)
{
	static const struct writer_node node = { .parent = WRITER_NONE };
	autocall(auto_index_writer_destroy) struct index_writer *w = index_writer_create();
	uint32_t number;

	(void)state;
	assert_non_null(w);
	assert_int_equal(writer_code(w, 0x800, 0x4000), 0);
	assert_true(writer_asks_symbol(w, 0x900, 0));
	writer_ask(w, asked, ARRAY_SIZE(asked));
	assert_true(writer_asks_symbol(w, 0xf00, 0x101));
	assert_false(writer_asks_symbol(w, 0xf00, 0x100));
	assert_false(writer_asks_symbol(w, 0x1000, 0));
	assert_false(writer_asks_symbol(w, 0x1000, UINT64_MAX));
	assert_int_equal(writer_node(w, &node, &number), 0);
	assert_int_equal(writer_range(w, number, 0xf00, 0x1001), 0);
	assert_int_equal(writer_range(w, number, 0xe00, 0xf00), 0);
	assert_true(writer_asks_symbol(w, 0xf00, 0x10));
	assert_false(writer_asks_symbol(w, 0xe00, 0x10));
}

static void without_an_address_nothing_is_left_out(void **state)
{
	autocall(auto_index_writer_destroy) struct index_writer *w = index_writer_create();

	(void)state;
	assert_non_null(w);
	writer_ask(w, NULL, 0);
	assert_false(writer_asks(w));
	assert_true(writer_is_asked(w, 0, 1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_asked_for_if_it_covers_an_address),
		cmocka_unit_test(a_symbol_matters_if_it_covers_an_address_or_names_what_does),
		cmocka_unit_test(without_an_address_nothing_is_left_out),
	};

	return cmocka_run_group_tests_name("writer_asked", tests, NULL, NULL);
}
