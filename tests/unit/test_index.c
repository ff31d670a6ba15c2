/* SPDX-License-Identifier: Apache-2.0 */
/* The writer and the reader of module indexes together: lookups find what was written. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/index/format.h"
#include "symbolizer/index/index.h"
#include "tests/unit/small_index.h"

static void test_function_and_its_line(void **)
{
	struct index_writer *w = create();
	struct index_frame frame;
	struct index *index;

	function(w, "main", 0x10, 0x20);
	sequence(w, 0, 0x10, 0x20, "/src/main.c", 12);
	index = finish(w);
	assert_int_equal(index_lookup(index, TEXT + 0x1f, &frame, 1), 1);
	assert_string_equal(frame.name, "main");
	assert_string_equal(frame.linkage, "main");
	assert_string_equal(frame.file, "/src/main.c");
	assert_int_equal(frame.line, 12);
	assert_int_equal(frame.column, 13);
	assert_int_equal(frame.start_line, 5);
	assert_int_equal(index_lookup(index, TEXT + 0xf, &frame, 1), 0);
	assert_int_equal(index_lookup(index, TEXT + 0x20, &frame, 1), 0);
	assert_int_equal(index_lookup(index, 0, &frame, 1), 0);
	assert_int_equal(index_lookup(index, UINT64_MAX, &frame, 1), 0);
	index_destroy(index);
}

static void test_inline_chain_shifts_locations_by_one(void **)
{
	struct index_writer *w = create();
	uint32_t outer = function(w, "outer", 0, 0x100);
	uint32_t middle = inlined(w, outer, "middle", 0x10, 0x40);
	struct index_frame frames[3];
	struct index *index;

	inlined(w, middle, "inner", 0x20, 0x30);
	sequence(w, 0, 0, 0x100, "/src/inner.h", 3);
	index = finish(w);
	assert_string_equal(names(index, 0x20), "inner<middle<outer");
	assert_string_equal(names(index, 0x30), "middle<outer");
	assert_string_equal(names(index, 0x40), "outer");
	assert_int_equal(index_lookup(index, TEXT + 0x20, frames, 3), 3);
	assert_string_equal(frames[0].file, "/src/inner.h");
	assert_int_equal(frames[0].line, 3);
	assert_string_equal(frames[1].file, "/src/caller.c");
	assert_int_equal(frames[1].line, 77);
	assert_int_equal(frames[2].column, 7);
	assert_int_equal(index_lookup(index, TEXT + 0x20, frames, 2), 2);
	index_destroy(index);
}

static void test_deepest_node_wins_unsorted_and_sticking_out(void **)
{
	struct index_writer *w = create();
	uint32_t outer = node_of_unit(w, WRITER_NONE, "outer", 0);
	uint32_t late = inlined(w, outer, "late", 0x60, 0x80);
	struct index *index;

	inlined(w, outer, "early", 0x20, 0x40);
	inlined(w, late, "out", 0x70, 0x90);
	assert_int_equal(writer_range(w, outer, TEXT + 0x10, TEXT + 0x88), 0);
	index = finish(w);
	assert_string_equal(names(index, 0x10), "outer");
	assert_string_equal(names(index, 0x20), "early<outer");
	assert_string_equal(names(index, 0x40), "outer");
	assert_string_equal(names(index, 0x60), "late<outer");
	assert_string_equal(names(index, 0x7f), "out<late<outer");
	assert_string_equal(names(index, 0x80), "out<late<outer");
	assert_string_equal(names(index, 0x8f), "out<late<outer");
	assert_string_equal(names(index, 0x90), "");
	index_destroy(index);
}

static void test_cold_part_is_a_range_of_its_own(void **)
{
	struct index_writer *w = create();
	uint32_t split = function(w, "split", 0x10, 0x20);
	struct index *index;

	function(w, "between", 0x20, 0x30);
	assert_int_equal(writer_range(w, split, TEXT + 0x100, TEXT + 0x110), 0);
	index = finish(w);
	assert_string_equal(names(index, 0x1f), "split");
	assert_string_equal(names(index, 0x20), "between");
	assert_string_equal(names(index, 0x30), "");
	assert_string_equal(names(index, 0x100), "split");
	index_destroy(index);
}

static void test_folded_functions_take_the_line_of_their_own_unit(void **)
{
	struct index_writer *w = create();
	uint32_t first = node_of_unit(w, WRITER_NONE, "first", 3);
	uint32_t second = node_of_unit(w, WRITER_NONE, "second", 4);
	struct index *index;

	assert_int_equal(writer_range(w, first, TEXT + 0x10, TEXT + 0x20), 0);
	assert_int_equal(writer_range(w, second, TEXT + 0x10, TEXT + 0x28), 0);
	sequence(w, 4, 0x10, 0x28, "/src/four.c", 40);
	sequence(w, 3, 0x10, 0x20, "/src/three.c", 30);
	index = finish(w);
	assert_string_equal(names(index, 0x10), "first");
	assert_string_equal(place(index, 0x10), "/src/three.c:30:31");
	assert_string_equal(names(index, 0x20), "second");
	assert_string_equal(place(index, 0x20), "/src/four.c:40:41");
	index_destroy(index);
}

static void test_no_line_of_another_unit(void **)
{
	struct index_writer *w = create();
	uint32_t node = node_of_unit(w, WRITER_NONE, "f", 3);
	struct index *index;

	assert_int_equal(writer_range(w, node, TEXT + 0x10, TEXT + 0x20), 0);
	sequence(w, 4, 0x10, 0x20, "/src/four.c", 40);
	index = finish(w);
	assert_string_equal(place(index, 0x10), ":0:0");
	index_destroy(index);
}

static void test_symbol_takes_the_line_of_any_unit(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x10, 0x10, "assembly", WRITER_SYMBOL_GLOBAL);
	sequence(w, 9, 0x10, 0x20, "/src/a.S", 4);
	index = finish(w);
	assert_string_equal(names(index, 0x18), "assembly");
	assert_string_equal(place(index, 0x18), "/src/a.S:4:5");
	index_destroy(index);
}

static void test_tombstones_are_dropped(void **)
{
	static const uint64_t addresses[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, TEXT - 1 };
	struct index_writer *w = create();
	struct index *index;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		uint32_t node = node_of_unit(w, WRITER_NONE, "dead", 0);

		assert_int_equal(writer_range(w, node, addresses[i], addresses[i] + 0x800), 0);
		assert_int_equal(writer_range(w, node, addresses[i], TEXT + 0x100), 0);
		assert_int_equal(writer_sequence_begin(w, 0), 0);
		assert_int_equal(writer_row(w, addresses[i], string(w, "/dead.c"), 1, 1), 0);
		assert_int_equal(writer_row(w, TEXT, string(w, "/dead.c"), 1, 1), 0);
		assert_int_equal(writer_sequence_end(w, TEXT + 0x100), 0);
	}
	function(w, "alive", 0x10, 0x20);
	sequence(w, 0, 0x14, 0x20, "/src/alive.c", 9);
	index = finish(w);
	assert_string_equal(names(index, 0), "");
	assert_string_equal(names(index, 0x10), "alive");
	assert_string_equal(place(index, 0x10), ":0:0");
	assert_string_equal(place(index, 0x14), "/src/alive.c:9:10");
	assert_string_equal(names(index, 0x80), "");
	index_destroy(index);
}

static void test_end_sequence_ends_coverage(void **)
{
	struct index_writer *w = create();
	struct index *index;

	function(w, "f", 0x10, 0x40);
	sequence(w, 0, 0x10, 0x18, "/a.c", 1);
	sequence(w, 0, 0x20, 0x28, "/b.c", 2);
	index = finish(w);
	assert_string_equal(place(index, 0x17), "/a.c:1:2");
	assert_string_equal(place(index, 0x18), ":0:0");
	assert_string_equal(place(index, 0x1f), ":0:0");
	assert_string_equal(place(index, 0x20), "/b.c:2:3");
	assert_string_equal(place(index, 0x28), ":0:0");
	index_destroy(index);
}

static void test_last_row_at_an_address_wins(void **)
{
	struct index_writer *w = create();
	struct index *index;

	function(w, "f", 0x10, 0x40);
	assert_int_equal(writer_sequence_begin(w, 0), 0);
	row(w, 0x10, "/a.c", 1);
	row(w, 0x10, "/a.c", 2);
	row(w, 0x20, "/a.c", 0);
	row(w, 0x18, "/a.c", 9); /* backwards: not a row */
	row(w, 0x30, "/a.c", 3);
	assert_int_equal(writer_sequence_end(w, TEXT + 0x40), 0);
	index = finish(w);
	assert_string_equal(place(index, 0x10), "/a.c:2:3");
	assert_string_equal(place(index, 0x1f), "/a.c:2:3");
	assert_string_equal(place(index, 0x20), "/a.c:0:1");
	assert_string_equal(place(index, 0x30), "/a.c:3:4");
	index_destroy(index);
}

static void test_sequence_that_never_ends_is_dropped(void **)
{
	struct index_writer *w = create();
	struct index *index;

	function(w, "f", 0x10, 0x40);
	assert_int_equal(writer_sequence_begin(w, 0), 0);
	row(w, 0x10, "/lost.c", 1);
	sequence(w, 0, 0x20, 0x30, "/kept.c", 2);
	index = finish(w);
	assert_string_equal(place(index, 0x10), ":0:0");
	assert_string_equal(place(index, 0x20), "/kept.c:2:3");
	index_destroy(index);
}

static void test_wide_column_is_unknown(void **)
{
	struct index_writer *w = create();
	struct index *index;

	function(w, "f", 0x10, 0x40);
	assert_int_equal(writer_sequence_begin(w, 0), 0);
	assert_int_equal(writer_row(w, TEXT + 0x10, string(w, "/a.js"), 1, 4095), 0);
	assert_int_equal(writer_row(w, TEXT + 0x20, string(w, "/a.js"), 1, 4096), 0);
	/* Its lower bits are not 0, as those of 4096 are. */
	assert_int_equal(writer_row(w, TEXT + 0x30, string(w, "/a.js"), 1, 5000), 0);
	assert_int_equal(writer_sequence_end(w, TEXT + 0x40), 0);
	index = finish(w);
	assert_string_equal(place(index, 0x10), "/a.js:1:4095");
	assert_string_equal(place(index, 0x20), "/a.js:1:0");
	assert_string_equal(place(index, 0x30), "/a.js:1:0");
	index_destroy(index);
}

static void test_padding_has_no_function(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x10, 0x0d, "a", WRITER_SYMBOL_GLOBAL);
	symbol(w, 0x20, 0x10, "b", WRITER_SYMBOL_GLOBAL);
	sequence(w, 0, 0x10, 0x30, "/a.c", 1);
	index = finish(w);
	assert_string_equal(names(index, 0x1c), "a");
	assert_string_equal(names(index, 0x1d), "");
	assert_string_equal(names(index, 0x20), "b");
	index_destroy(index);
}

static void test_symbol_without_size_reaches_to_the_next(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x10, 0, "assembly", WRITER_SYMBOL_GLOBAL);
	symbol(w, 0x20, 0x10, "sized", WRITER_SYMBOL_GLOBAL);
	assert_int_equal(writer_symbol(w, TEXT + 0x40, 0, TEXT + 0x48, string(w, "last"),
				 WRITER_SYMBOL_NOTYPE),
		0);
	index = finish(w);
	assert_string_equal(names(index, 0x1f), "assembly");
	assert_string_equal(names(index, 0x2f), "sized");
	assert_string_equal(names(index, 0x30), "");
	assert_string_equal(names(index, 0x47), "last");
	assert_string_equal(names(index, 0x48), "");
	index_destroy(index);
}

static void test_label_inside_a_sized_symbol_is_no_function(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x10, 0x20, "function", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x18, 0, "label", WRITER_SYMBOL_NOTYPE);
	index = finish(w);
	assert_string_equal(names(index, 0x18), "function");
	assert_string_equal(names(index, 0x2f), "function");
	index_destroy(index);
}

static void test_nested_symbols_give_the_code_back(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x20, 0x08, "inner", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x10, 0x30, "outer", WRITER_SYMBOL_GLOBAL);
	index = finish(w);
	assert_string_equal(names(index, 0x1f), "outer");
	assert_string_equal(names(index, 0x27), "inner");
	assert_string_equal(names(index, 0x28), "outer");
	assert_string_equal(names(index, 0x3f), "outer");
	assert_string_equal(names(index, 0x40), "");
	index_destroy(index);
}

static void test_best_of_several_symbols_at_one_address(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x10, 0x10, "notype", WRITER_SYMBOL_NOTYPE);
	symbol(w, 0x10, 0x10, "global", WRITER_SYMBOL_GLOBAL);
	symbol(w, 0x10, 0x20, "weak", WRITER_SYMBOL_WEAK);
	index = finish(w);
	assert_string_equal(names(index, 0x10), "global");
	assert_string_equal(names(index, 0x1f), "global");
	assert_string_equal(names(index, 0x20), "weak");
	index_destroy(index);
}

static void test_functions_come_before_symbols(void **)
{
	struct index_writer *w = create();
	struct index *index;

	symbol(w, 0x18, 0x10, "_Z1fv.cold", WRITER_SYMBOL_GLOBAL);
	function(w, "f", 0x10, 0x20);
	index = finish(w);
	assert_string_equal(names(index, 0x18), "f");
	assert_string_equal(names(index, 0x20), "f()");
	index_destroy(index);
}

static void test_code_sections_bound_everything(void **)
{
	struct index_writer *w = index_writer_create();
	struct index *index;

	assert_int_equal(writer_segment(w, &(struct writer_segment){ TEXT, 0x1000, 0 }), 0);
	assert_int_equal(writer_code(w, TEXT + 0x100, 0x10), 0);
	assert_int_equal(writer_code(w, TEXT + 0x20, 0x20), 0);
	assert_int_equal(writer_code(w, TEXT + 0x10, 0x10), 0);
	function(w, "over", 0x18, 0x100);
	function(w, "outside", 0x50, 0x60);
	symbol(w, 0x100, 0x1000, "symbol", WRITER_SYMBOL_GLOBAL);
	index = finish(w);
	assert_string_equal(names(index, 0x10), "");
	assert_string_equal(names(index, 0x3f), "over");
	assert_string_equal(names(index, 0x40), "");
	assert_string_equal(names(index, 0x50), "");
	assert_string_equal(names(index, 0x10f), "symbol");
	assert_string_equal(names(index, 0x110), "");
	index_destroy(index);
}

static void test_code_beyond_4_gib_is_left_out(void **)
{
	struct index_writer *w = create();
	struct index *index;

	assert_int_equal(writer_code(w, TEXT + (UINT64_C(1) << 32), 0x1000), 0);
	function(w, "near", 0, 0x10);
	function(w, "far", UINT64_C(1) << 32, (UINT64_C(1) << 32) + 0x10);
	index = finish(w);
	assert_string_equal(names(index, 0), "near");
	assert_string_equal(names(index, UINT64_C(1) << 32), "");
	index_destroy(index);
}

static void assert_display(const char *linkage, const char *display)
{
	struct index_writer *w = create();
	struct index_frame frame;
	struct index *index;

	function(w, linkage, 0, 0x10);
	index = finish(w);
	assert_int_equal(index_lookup(index, TEXT, &frame, 1), 1);
	assert_string_equal(frame.name, display);
	assert_string_equal(frame.linkage, linkage);
	index_destroy(index);
}

static void test_names_for_people(void **)
{
	assert_display("_ZN3foo3barEi", "foo::bar(int)");
	assert_display("_ZNK4llvm5Twine3strEv", "llvm::Twine::str() const");
	assert_display(
		"_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str");
	assert_display("_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar");
	assert_display("_ZN3foo3barEi.isra.0.cold", "foo::bar(int)");
	assert_display("sort.constprop.12", "sort");
	assert_display("fold.part.0.isra.1", "fold");
	assert_display("runtime.memmove.abi0", "runtime.memmove");
	assert_display("main.run.func1", "main.run.func1");
	assert_display("main.partial", "main.partial");
	assert_display("vendor.cold.start", "vendor.cold.start");
	assert_display("_Zwrong", "_Zwrong");
	assert_display("_Rust_is_not_this", "_Rust_is_not_this");
	assert_display(".cold", ".cold");
}

static void assert_linked(const char *name, const char *mangled, const char *linkage)
{
	struct index_writer *w = create();
	struct index_frame frame;
	struct index *index;

	function(w, name, 0x10, 0x20);
	symbol(w, 0x10, 0x10, mangled, WRITER_SYMBOL_LOCAL);
	index = finish(w);
	assert_int_equal(index_lookup(index, TEXT + 0x10, &frame, 1), 1);
	assert_string_equal(frame.linkage, linkage);
	index_destroy(index);
}

static void test_local_functions_take_their_linkage_name_from_the_symbol(void **)
{
	assert_linked("(anonymous namespace)::fill<2>", "_ZN12_GLOBAL__N_14fillILi2EEEvv",
		"_ZN12_GLOBAL__N_14fillILi2EEEvv");
	assert_linked("Poly<2>::~Poly", "_ZN4PolyILi2EED2Ev", "_ZN4PolyILi2EED2Ev");
	assert_linked("area", "_Z4areav.isra.0", "_Z4areav");
	assert_linked(
		"main::<lambda(int)>::operator()", "_ZZ4mainENKUliE_clEi", "_ZZ4mainENKUliE_clEi");
	/* Another function's symbol, in folded code. */
	assert_linked("area", "_Z6volumev", "area");
	assert_linked("plain", "plain_alias", "plain");
}

static void test_function_without_a_name_takes_the_best_symbol(void **)
{
	struct index_writer *w = create();
	struct index *index;

	function(w, "", 0x10, 0x20);
	symbol(w, 0x10, 0x10, "global", WRITER_SYMBOL_GLOBAL);
	symbol(w, 0x10, 0x10, "local", WRITER_SYMBOL_LOCAL);
	function(w, "", 0x20, 0x30);
	symbol(w, 0x20, 0x10, "_Z1fv", WRITER_SYMBOL_LOCAL);
	inlined(w, function(w, "", 0x30, 0x40), "inlined", 0x34, 0x38);
	symbol(w, 0x30, 0x10, "around", WRITER_SYMBOL_LOCAL);
	symbol(w, 0x41, 0x10, "elsewhere", WRITER_SYMBOL_LOCAL);
	function(w, "", 0x40, 0x50);
	index = finish(w);
	assert_string_equal(names(index, 0x1f), "global");
	assert_string_equal(names(index, 0x2f), "f()");
	assert_string_equal(names(index, 0x34), "inlined<around");
	assert_string_equal(names(index, 0x48), "?");
	index_destroy(index);
}

static void test_given_name_is_kept(void **)
{
	struct index_writer *w = create();
	struct index_frame frame;
	struct index *index;
	uint32_t number;

	assert_int_equal(writer_node(w,
				 &(struct writer_node){
					 .parent = WRITER_NONE,
					 .linkage = string(w, "_Z1fv"),
					 .name = string(w, "a name of its own"),
				 },
				 &number),
		0);
	assert_int_equal(writer_range(w, number, TEXT, TEXT + 1), 0);
	index = finish(w);
	assert_int_equal(index_lookup(index, TEXT, &frame, 1), 1);
	assert_string_equal(frame.name, "a name of its own");
	assert_string_equal(frame.linkage, "_Z1fv");
	index_destroy(index);
}

static void test_very_long_names(void **)
{
	static char name[200000];
	struct index_writer *w = create();
	struct index *index;
	struct index_frame frame;

	memset(name, 'x', sizeof(name) - 1);
	memcpy(name, "_Z", 2);
	function(w, name, 0, 0x10);
	index = finish(w);
	assert_int_equal(index_lookup(index, TEXT, &frame, 1), 1);
	assert_string_equal(frame.name, name);
	index_destroy(index);
}

static void test_chain_is_bounded(void **)
{
	struct index_frame frames[2 * INDEX_MAX_FRAMES];
	struct index_writer *w = create();
	uint32_t parent = function(w, "f", 0, 0x10);
	struct index *index;

	for (int i = 0; i < 1000; i++)
		parent = inlined(w, parent, "g", 0, 0x10);
	index = finish(w);
	assert_int_equal(index_lookup(index, TEXT, frames, 2 * INDEX_MAX_FRAMES), INDEX_MAX_FRAMES);
	assert_string_equal(frames[INDEX_MAX_FRAMES - 1].name, "f");
	index_destroy(index);
}

/* Compares the spans with a linear search, on pseudo-random intervals. */
static void test_overlaps_as_by_exhaustive_search(void **)
{
	enum { COUNT = 60, EXTENT = 256 };
	uint32_t low[COUNT], high[COUNT], nodes[COUNT], depth[COUNT], root[COUNT], seed = 1;
	char expected[32];

	for (int round = 0; round < 50; round++) {
		struct index_writer *w = create();
		struct index *index;

		for (uint32_t i = 0; i < COUNT; i++) {
			uint32_t parent = i % 5 ? (seed >> 8) % i : WRITER_NONE;

			seed = seed * 1103515245 + 12345;
			low[i] = (seed >> 16) % EXTENT;
			high[i] = low[i] + 1 + (seed >> 8) % 64;
			depth[i] = parent == WRITER_NONE ? 0 : depth[parent] + 1;
			root[i] = parent == WRITER_NONE ? i : root[parent];
			snprintf(expected, sizeof(expected), "n%u", i);
			nodes[i] = inlined(w, parent == WRITER_NONE ? parent : nodes[parent],
				expected, low[i], high[i]);
		}
		index = finish(w);
		for (uint32_t at = 0; at < EXTENT + 64; at++) {
			struct index_frame frame = { .name = "" };
			int best = -1;

			for (int i = 0; i < COUNT; i++)
				if (low[i] <= at && at < high[i] &&
					(best < 0 || root[i] < root[best] ||
						(root[i] == root[best] && depth[i] > depth[best])))
					best = i;
			index_lookup(index, TEXT + at, &frame, 1);
			snprintf(expected, sizeof(expected), "n%d", best);
			assert_string_equal(frame.name, best < 0 ? "" : expected);
		}
		index_destroy(index);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function_and_its_line),
		cmocka_unit_test(test_inline_chain_shifts_locations_by_one),
		cmocka_unit_test(test_deepest_node_wins_unsorted_and_sticking_out),
		cmocka_unit_test(test_cold_part_is_a_range_of_its_own),
		cmocka_unit_test(test_folded_functions_take_the_line_of_their_own_unit),
		cmocka_unit_test(test_no_line_of_another_unit),
		cmocka_unit_test(test_symbol_takes_the_line_of_any_unit),
		cmocka_unit_test(test_tombstones_are_dropped),
		cmocka_unit_test(test_end_sequence_ends_coverage),
		cmocka_unit_test(test_last_row_at_an_address_wins),
		cmocka_unit_test(test_sequence_that_never_ends_is_dropped),
		cmocka_unit_test(test_wide_column_is_unknown),
		cmocka_unit_test(test_padding_has_no_function),
		cmocka_unit_test(test_symbol_without_size_reaches_to_the_next),
		cmocka_unit_test(test_label_inside_a_sized_symbol_is_no_function),
		cmocka_unit_test(test_nested_symbols_give_the_code_back),
		cmocka_unit_test(test_best_of_several_symbols_at_one_address),
		cmocka_unit_test(test_functions_come_before_symbols),
		cmocka_unit_test(test_code_sections_bound_everything),
		cmocka_unit_test(test_code_beyond_4_gib_is_left_out),
		cmocka_unit_test(test_names_for_people),
		cmocka_unit_test(test_local_functions_take_their_linkage_name_from_the_symbol),
		cmocka_unit_test(test_function_without_a_name_takes_the_best_symbol),
		cmocka_unit_test(test_given_name_is_kept),
		cmocka_unit_test(test_very_long_names),
		cmocka_unit_test(test_chain_is_bounded),
		cmocka_unit_test(test_overlaps_as_by_exhaustive_search),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
