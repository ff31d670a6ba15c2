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
	buffer_printf(text, "%s:", body->has_end ? "" : "?");
	for (size_t i = 0; i < body->name_count; i++)
		buffer_printf(text, "%s%u", i ? "," : "", body->names[i].linkage);
	return buffer_printf(text, " ");
}

/* The functions of W, names as numbers of strings; destroys W. */
static void assert_bodies(struct index_writer *w, const char *expected)
{
	struct writer_bodies *bodies;
	struct buffer text;

	buffer_init(&text, 4096);
	assert_int_equal(writer_bodies_create(w, &bodies), 0);
	assert_int_equal(writer_bodies_each(bodies, describe, &text), 0);
	assert_int_equal(buffer_append(&text, "", 1), 0);
	assert_string_equal((const char *)text.bytes, expected);
	buffer_deinit(&text);
	writer_bodies_destroy(bodies);
	index_writer_destroy(w);
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
	assert_int_equal(writer_bodies_create(w, &bodies), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_information_knows_the_parts),
		cmocka_unit_test(test_the_entry_is_not_in_the_moved_part),
		cmocka_unit_test(test_a_clone_has_its_own_name_only),
		cmocka_unit_test(test_a_clone_at_the_address_of_its_origin_has_both),
		cmocka_unit_test(test_stubs_and_labels_are_no_functions),
		cmocka_unit_test(test_moved_parts_are_found_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
