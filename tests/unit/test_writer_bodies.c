/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions the writer passes on for decoding: their names and parts. */
#include "base/buffer.h"
#include "symbolizer/indexer/writer/writer_bodies.h"
#include "tests/unit/small_index.h"

/* Appends `entry-end,low-high…:name,name… ` to the buffer CONTEXT. */
static int describe(void *context, const struct writer_body *body)
{
	struct buffer *text = context;

	assert_int_equal(body->entry, body->parts[0].low);
	for (size_t i = 0; i < body->part_count; i++)
		buffer_printf(text, "%s%x-%x", i ? "," : "",
			(unsigned int)(body->parts[i].low - TEXT),
			(unsigned int)(body->parts[i].high - TEXT));
	buffer_printf(text, "%s%s:", body->has_end ? "" : "?", body->is_confirmed ? "" : "!");
	for (size_t i = 0; i < body->name_count; i++)
		buffer_printf(text, "%s%u", i ? "," : "", body->names[i].linkage);
	return buffer_printf(text, " ");
}

/* The functions of W, names as numbers of strings; destroys W. */
static void assert_bodies_of(struct index_writer *w, const struct writer_part *described,
	size_t count, const char *expected)
{
	struct writer_bodies *bodies;
	struct buffer text;

	buffer_init(&text, 4096);
	assert_int_equal(writer_bodies_create(w, described, count, &bodies), 0);
	assert_int_equal(writer_bodies_each(bodies, describe, &text), 0);
	assert_int_equal(buffer_append(&text, "", 1), 0);
	assert_string_equal((const char *)text.bytes, expected);
	buffer_deinit(&text);
	writer_bodies_destroy(bodies);
	index_writer_destroy(w);
}

static void assert_bodies(struct index_writer *w, const char *expected)
{
	assert_bodies_of(w, NULL, 0, expected);
}

static void test_debug_information_knows_the_parts(void **)
{
	struct index_writer *w = create();
	uint32_t f = string(w, "f"), number;

	assert_int_equal(f, 1);
	symbol(w, 0x10, 0x40, "f", WRITER_SYMBOL_GLOBAL); /* a larger symbol does not count */
	number = function(w, "f", 0x10, 0x20);
	assert_int_equal(writer_range(w, number, TEXT + 0x100, TEXT + 0x110), 0);
	inlined(w, number, "inner", 0x14, 0x18); /* no function */
	assert_bodies(w, "10-20,100-110:1,1 ");
}

static void test_the_entry_is_not_in_the_moved_part(void **)
{
	struct index_writer *w = create();
	uint32_t number;

	symbol(w, 0x10, 0x10, "f.cold", WRITER_SYMBOL_LOCAL); /* string 1 */
	number = function(w, "f", 0x10, 0x20); /* 2 */
	assert_int_equal(writer_range(w, number, TEXT + 0x100, TEXT + 0x110), 0);
	assert_bodies(w, "100-110,10-20:2 ");
}

/* Debug information calls f.part.0 by the name of f, which is another function. */
static void test_a_clone_has_its_own_name_only(void **)
{
	struct index_writer *w = create();

	symbol(w, 0x10, 0x10, "f", WRITER_SYMBOL_LOCAL); /* 1 */
	symbol(w, 0x20, 0x10, "f.part.0", WRITER_SYMBOL_LOCAL); /* 2 */
	function(w, "f", 0x10, 0x20);
	function(w, "f", 0x20, 0x30);
	assert_bodies(w, "10-20:1,1 20-30:2 ");
}

/* Folded code: all names are its names. */
static void test_a_clone_at_the_address_of_its_origin_has_both(void **)
{
	struct index_writer *w = create();

	symbol(w, 0x10, 0x10, "f", WRITER_SYMBOL_LOCAL); /* 1 */
	symbol(w, 0x10, 0x10, "f.constprop.0", WRITER_SYMBOL_LOCAL); /* 2 */
	function(w, "f", 0x10, 0x20);
	assert_bodies(w, "10-20:1,1,2 ");
}

static void test_stubs_and_labels_are_no_functions(void **)
{
	struct index_writer *w = create();

	symbol(w, 0x10, 0x10, "puts@plt", WRITER_SYMBOL_LOCAL | WRITER_SYMBOL_STUB);
	symbol(w, 0x20, 0, "table", WRITER_SYMBOL_NOTYPE);
	symbol(w, 0x30, 0, "f", WRITER_SYMBOL_GLOBAL); /* 3; up to the next function */
	symbol(w, 0x34, 0, "label", WRITER_SYMBOL_NOTYPE);
	symbol(w, 0x40, 8, "g", WRITER_SYMBOL_GLOBAL); /* 5 */
	assert_bodies(w, "30-40?:3 40-48:5 ");
}

static void test_moved_parts_are_found_by_address(void **)
{
	struct index_writer *w = create();
	struct writer_bodies *bodies;
	struct writer_part part;

	symbol(w, 0x20, 0x10, "f.cold", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x10, 0x10, "g.part.1.cold.2", WRITER_SYMBOL_LOCAL);
	assert_int_equal(writer_bodies_create(w, NULL, 0, &bodies), 0);
	assert_true(writer_bodies_cold(bodies, TEXT + 0x1f, &part));
	assert_int_equal(part.low, TEXT + 0x10);
	assert_int_equal(part.high, TEXT + 0x20);
	assert_true(writer_bodies_cold(bodies, TEXT + 0x20, &part));
	assert_int_equal(part.high, TEXT + 0x30);
	assert_false(writer_bodies_cold(bodies, TEXT + 0xf, &part));
	assert_false(writer_bodies_cold(bodies, TEXT + 0x30, &part));
	writer_bodies_destroy(bodies);
	index_writer_destroy(w);
}

static const struct writer_part described[] = {
	{ TEXT + 0x100, TEXT + 0x110 },
	{ TEXT + 0x10, TEXT + 0x20 },
	{ TEXT + 0x40, TEXT + 0x60 },
};

/* The file's own description says where they end. */
static void test_a_debug_file_has_to_be_confirmed(void **)
{
	struct index_writer *w = create();

	writer_foreign(w, true);
	symbol(w, 0x10, 0x80, "longer", WRITER_SYMBOL_GLOBAL); /* 1 */
	symbol(w, 0x14, 8, "inside", WRITER_SYMBOL_GLOBAL); /* 2 */
	function(w, "shorter", 0x40, 0x50); /* 3 */
	function(w, "unknown", 0x70, 0x78); /* 4 */
	symbol(w, 0x100, 0, "sizeless", WRITER_SYMBOL_GLOBAL); /* 5 */
	assert_bodies_of(w, described, ARRAY_SIZE(described),
		"10-20:1 14-1c!:2 40-60:3 70-78!:4 100-110?:5 ");
}

static void test_each_part_has_to_be_confirmed(void **)
{
	struct index_writer *w = create();
	uint32_t number;

	writer_foreign(w, true);
	number = function(w, "good", 0x10, 0x20); /* 1 */
	assert_int_equal(writer_range(w, number, TEXT + 0x100, TEXT + 0x180), 0);
	number = function(w, "bad", 0x40, 0x60); /* 2 */
	assert_int_equal(writer_range(w, number, TEXT + 0x104, TEXT + 0x110), 0);
	assert_bodies_of(w, described, ARRAY_SIZE(described), "10-20,100-110:1 40-60,104-110!:2 ");
}

/* A debug file may give names to what the file knows, but no parts. */
static void test_the_files_own_symbols_come_first(void **)
{
	struct index_writer *w = create();
	uint32_t number;

	symbol(w, 0x14, 8, "own", WRITER_SYMBOL_LOCAL); /* 1 */
	symbol(w, 0x30, 0, "label", WRITER_SYMBOL_NOTYPE); /* 2: it may mark data */
	writer_foreign(w, true);
	number = function(w, "forged", 0x14, 0x18); /* 3 */
	assert_int_equal(writer_range(w, number, TEXT + 0x105, TEXT + 0x108), 0);
	symbol(w, 0x30, 8, "table", WRITER_SYMBOL_GLOBAL); /* 4 */
	assert_bodies_of(w, described, ARRAY_SIZE(described), "14-1c:1,3 30-38!:4,2 ");
}

static void test_moved_parts_have_to_be_confirmed(void **)
{
	struct index_writer *w = create();
	struct writer_bodies *bodies;
	struct writer_part part;

	symbol(w, 0x24, 4, "own.cold", WRITER_SYMBOL_LOCAL);
	writer_foreign(w, true);
	symbol(w, 0x44, 0x10, "f.cold", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x100, 0x20, "g.cold", WRITER_SYMBOL_LOCAL);
	assert_int_equal(writer_bodies_create(w, described, ARRAY_SIZE(described), &bodies), 0);
	assert_true(writer_bodies_cold(bodies, TEXT + 0x24, &part));
	assert_false(writer_bodies_cold(bodies, TEXT + 0x44, &part));
	assert_true(writer_bodies_cold(bodies, TEXT + 0x100, &part));
	assert_int_equal(part.high, TEXT + 0x110);
	writer_bodies_destroy(bodies);
	index_writer_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_information_knows_the_parts),
		cmocka_unit_test(test_the_entry_is_not_in_the_moved_part),
		cmocka_unit_test(test_a_clone_has_its_own_name_only),
		cmocka_unit_test(test_a_clone_at_the_address_of_its_origin_has_both),
		cmocka_unit_test(test_stubs_and_labels_are_no_functions),
		cmocka_unit_test(test_moved_parts_are_found_by_address),
		cmocka_unit_test(test_a_debug_file_has_to_be_confirmed),
		cmocka_unit_test(test_each_part_has_to_be_confirmed),
		cmocka_unit_test(test_the_files_own_symbols_come_first),
		cmocka_unit_test(test_moved_parts_have_to_be_confirmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
