/* SPDX-License-Identifier: Apache-2.0 */
/* Code without a symbol, and symbols without a size: what entries for unwinding say about them. */
#include "tests/unit/small_index.h"

static void extent(struct index_writer *w, uint64_t low, uint64_t high)
{
	assert_int_equal(writer_extent(w, TEXT + low, TEXT + high), 0);
}

/* Returns the start of the function without a name at OFFSET, relative to TEXT; -1 = none. */
static int64_t start(const struct index *index, uint64_t offset)
{
	uint64_t at;

	if (!index_nameless(index, TEXT + offset, &at))
		return -1;
	/* Never both. */
	assert_string_equal(names(index, offset), "");
	return (int64_t)(at - TEXT);
}

static void test_code_without_a_symbol_has_the_start_of_its_function(void **)
{
	struct index_writer *w = create();
	struct index *index;

	extent(w, 0x140, 0x181);
	extent(w, 0x100, 0x140);
	symbol(w, 0x200, 0x40, "named", WRITER_SYMBOL_LOCAL);
	extent(w, 0x200, 0x240);
	index = finish(w);
	assert_int_equal(start(index, 0xff), -1);
	assert_int_equal(start(index, 0x100), 0x100);
	assert_int_equal(start(index, 0x13f), 0x100);
	assert_int_equal(start(index, 0x140), 0x140);
	assert_int_equal(start(index, 0x180), 0x140);
	assert_int_equal(start(index, 0x181), -1);
	assert_int_equal(start(index, 0x1ff), -1);
	assert_int_equal(start(index, 0x200), -1);
	assert_string_equal(names(index, 0x200), "named");
	assert_int_equal(start(index, 0x240), -1);
	assert_int_equal(start(index, 0), -1);
	assert_false(index_nameless(index, 0, &(uint64_t){ 0 }));
	assert_false(index_nameless(index, UINT64_MAX, &(uint64_t){ 0 }));
	index_destroy(index);
}

/* One entry may cover several functions of assembly, of which some have symbols. */
static void test_symbol_in_the_middle_of_a_function_without_a_name(void **)
{
	struct index_writer *w = create();
	struct index *index;

	extent(w, 0x100, 0x200);
	symbol(w, 0x140, 0x10, "inside", WRITER_SYMBOL_LOCAL);
	index = finish(w);
	assert_int_equal(start(index, 0x13f), 0x100);
	assert_string_equal(names(index, 0x140), "inside");
	assert_int_equal(start(index, 0x150), 0x100);
	assert_int_equal(start(index, 0x1ff), 0x100);
	index_destroy(index);
}

/* As glibc's __restore_rt, without a size: a return address of 0x141 is looked up at 0x140. */
static void test_function_that_handlers_return_to(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x100, 0x40, "before", WRITER_SYMBOL_LOCAL);
	extent(w, 0x100, 0x140);
	symbol(w, 0x141, 0, "restore", WRITER_SYMBOL_LOCAL);
	extent(w, 0x140, 0x149);
	symbol(w, 0x1a2, 0, "inside", WRITER_SYMBOL_LOCAL);
	extent(w, 0x1a0, 0x1b0);
	index = finish(w);
	assert_string_equal(names(index, 0x13f), "before");
	assert_string_equal(names(index, 0x140), "restore");
	assert_string_equal(names(index, 0x148), "restore");
	assert_string_equal(names(index, 0x149), "");
	assert_int_equal(start(index, 0x1a1), 0x1a0);
	index_destroy(index);
}

/* The end of an entry behind its symbol's is no second function of the same start. */
static void test_rest_of_a_named_function_stays_unknown(void **)
{
	struct index_writer *w = create();
	struct index *index;

	extent(w, 0x100, 0x200);
	symbol(w, 0x100, 0x80, "named", WRITER_SYMBOL_LOCAL);
	function(w, "described", 0x300, 0x340);
	extent(w, 0x300, 0x350);
	index = finish(w);
	assert_string_equal(names(index, 0x17f), "named");
	assert_string_equal(names(index, 0x180), "");
	assert_int_equal(start(index, 0x180), -1);
	assert_string_equal(names(index, 0x33f), "described");
	assert_int_equal(start(index, 0x340), -1);
	index_destroy(index);
}

static void test_of_nested_and_crossing_entries_the_last_to_start_counts(void **)
{
	struct index_writer *w = create();
	struct index *index;

	extent(w, 0x100, 0x200);
	extent(w, 0x120, 0x130);
	extent(w, 0x1f0, 0x220);
	extent(w, 0x220, TEXT_SIZE + 0x1000);
	index = finish(w);
	assert_int_equal(start(index, 0x11f), 0x100);
	assert_int_equal(start(index, 0x120), 0x120);
	assert_int_equal(start(index, 0x130), 0x100);
	assert_int_equal(start(index, 0x1f0), 0x1f0);
	assert_int_equal(start(index, 0x21f), 0x1f0);
	assert_int_equal(start(index, TEXT_SIZE - 1), 0x220);
	assert_int_equal(start(index, TEXT_SIZE), -1);
	index_destroy(index);
}

/* Padding is never executed; counting it in makes the index smaller. */
static void test_padding_up_to_the_next_function_is_counted_in(void **)
{
	struct index_writer *w = create();
	struct index *index;

	extent(w, 0x100, 0x131);
	extent(w, 0x140, 0x150); /* 15 bytes later, aligned */
	extent(w, 0x15f, 0x160); /* not aligned */
	extent(w, 0x170, 0x180); /* 16 bytes later */
	index = finish(w);
	assert_int_equal(start(index, 0x13f), 0x100);
	assert_int_equal(start(index, 0x150), -1);
	assert_int_equal(start(index, 0x160), -1);
	index_destroy(index);
}

static void test_symbol_without_a_size_ends_with_its_entry(void **)
{
	struct index_writer *w = create();
	struct index *index;

	extent(w, 0x100, 0x140);
	symbol(w, 0x100, 0, "whole", WRITER_SYMBOL_NOTYPE);
	extent(w, 0x200, 0x240);
	symbol(w, 0x210, 0, "second_entry", WRITER_SYMBOL_NOTYPE);
	index = finish(w);
	assert_string_equal(names(index, 0x13f), "whole");
	assert_string_equal(names(index, 0x140), "");
	assert_int_equal(start(index, 0x20f), 0x200);
	assert_string_equal(names(index, 0x210), "second_entry");
	assert_string_equal(names(index, 0x23f), "second_entry");
	assert_string_equal(names(index, 0x240), "");
	index_destroy(index);
}

static void test_symbol_without_a_size_ends_before_the_next_entry(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x100, 0, "assembly", WRITER_SYMBOL_NOTYPE);
	extent(w, 0x180, 0x1a0);
	symbol(w, 0x300, 0, "first", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x310, 0, "second", WRITER_SYMBOL_LOCAL);
	extent(w, 0x400, 0x410);
	index = finish(w);
	assert_string_equal(names(index, 0x17f), "assembly");
	assert_int_equal(start(index, 0x180), 0x180);
	assert_string_equal(names(index, 0x1a0), "");
	assert_string_equal(names(index, 0x30f), "first");
	assert_string_equal(names(index, 0x3ff), "second");
	assert_int_equal(start(index, 0x400), 0x400);
	index_destroy(index);
}

/* x264 exports six labels; the functions behind them are hundreds of KB without symbols. */
static void test_label_of_a_stripped_file_without_an_entry_names_nothing(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x100, 0, "exported", WRITER_SYMBOL_NOTYPE | WRITER_SYMBOL_LABEL);
	symbol(w, 0x200, 0, "described", WRITER_SYMBOL_NOTYPE | WRITER_SYMBOL_LABEL);
	extent(w, 0x200, 0x240);
	symbol(w, 0x300, 0, "exported_twice", WRITER_SYMBOL_NOTYPE | WRITER_SYMBOL_LABEL);
	symbol(w, 0x300, 0, "exported_twice", WRITER_SYMBOL_NOTYPE);
	symbol(w, 0x340, 0x10, "next", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x400, 0x10, "sized", WRITER_SYMBOL_NOTYPE | WRITER_SYMBOL_LABEL);
	index = finish(w);
	assert_string_equal(names(index, 0x100), "");
	assert_string_equal(names(index, 0x1ff), "");
	assert_string_equal(names(index, 0x23f), "described");
	assert_string_equal(names(index, 0x33f), "exported_twice");
	assert_string_equal(names(index, 0x40f), "sized");
	index_destroy(index);
}

static void test_entries_outside_of_code_are_dropped(void **)
{
	struct index_writer *w = create();
	struct index *index;

	assert_int_equal(writer_extent(w, 0, 0x10), 0);
	assert_int_equal(writer_extent(w, TEXT + 0x20, TEXT + 0x10), 0);
	assert_int_equal(writer_extent(w, UINT64_MAX - 1, UINT64_MAX), 0);
	extent(w, TEXT_SIZE, TEXT_SIZE + 0x10);
	index = finish(w);
	assert_int_equal(start(index, 0x10), -1);
	assert_int_equal(start(index, TEXT_SIZE), -1);
	index_destroy(index);
}

/* What looks like a function, in code without an entry. */
static void test_code_extents(void **)
{
	struct index_writer *w = create();
	struct index *index;

	assert_int_equal(writer_code_extent(w, TEXT + 0x100, TEXT + 0x140), 0);
	assert_int_equal(writer_code_extent(w, TEXT + 0x140, TEXT + 0x180), 0);
	assert_int_equal(writer_code_extent(w, TEXT + 0x180, TEXT + 0x1c0), 0);
	symbol(w, 0x120, 0, "sizeless", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x160, 0x10, "sized", WRITER_SYMBOL_LOCAL);
	extent(w, 0x1a0, 0x200);
	index = finish(w);
	assert_int_equal(start(index, 0x100), 0x100);
	/* Up to the next symbol: it may have several parts. */
	assert_string_equal(names(index, 0x120), "sizeless");
	assert_string_equal(names(index, 0x15f), "sizeless");
	assert_string_equal(names(index, 0x160), "sized");
	assert_int_equal(start(index, 0x170), -1);
	assert_int_equal(start(index, 0x180), 0x180);
	assert_int_equal(start(index, 0x19f), 0x180);
	assert_int_equal(start(index, 0x1a0), 0x1a0);
	assert_int_equal(start(index, 0x1c0), 0x1a0);
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_without_a_symbol_has_the_start_of_its_function),
		cmocka_unit_test(test_symbol_in_the_middle_of_a_function_without_a_name),
		cmocka_unit_test(test_function_that_handlers_return_to),
		cmocka_unit_test(test_rest_of_a_named_function_stays_unknown),
		cmocka_unit_test(test_of_nested_and_crossing_entries_the_last_to_start_counts),
		cmocka_unit_test(test_padding_up_to_the_next_function_is_counted_in),
		cmocka_unit_test(test_symbol_without_a_size_ends_with_its_entry),
		cmocka_unit_test(test_symbol_without_a_size_ends_before_the_next_entry),
		cmocka_unit_test(test_label_of_a_stripped_file_without_an_entry_names_nothing),
		cmocka_unit_test(test_entries_outside_of_code_are_dropped),
		cmocka_unit_test(test_code_extents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
