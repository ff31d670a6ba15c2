/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "tests/unit/bytes.h"
#include "tests/unit/dwarf_writer.h"

/* Reads the DWARF in W, then frees W. */
static struct dwarf_result read_result(struct dwarf_writer *w)
{
	struct dwarf_result result;

	dwarf_writer_read(w, true, &result);
	dwarf_writer_deinit(w);
	assert_int_equal(result.error, 0);
	return result;
}

static struct dwarf_result read_all(struct dwarf_writer *w)
{
	struct dwarf_result result = read_result(w);

	assert_int_equal(result.broken, 0);
	return result;
}

static void assert_frames(const struct dwarf_result *result, uint64_t address, const char *expected)
{
	char frames[4096];

	dwarf_result_frames(result, address, frames, sizeof(frames));
	assert_string_equal(frames, expected);
}

static void begin(struct dwarf_writer *w, unsigned int version, unsigned int language)
{
	dwarf_writer_init(w);
	dwarf_writer_unit(w, version);
	DIE(w, DW_TAG_compile_unit, true, TEXT(DW_AT_name, "a.c"),
		NUMBER(DW_AT_language, DW_FORM_data2, language), LOW(0));
}

static void end(struct dwarf_writer *w)
{
	dwarf_writer_up(w);
	dwarf_writer_unit_end(w);
}

static const char *const directories[] = { "/src", NULL };
static const struct dwarf_file_spec files[] = { { "a.c", 1 }, { "b.h", 1 }, { NULL } };
static const struct dwarf_row_spec rows[] = {
	{ 0x1000, 1, 20, 1 },
	{ 0x1010, 2, 7, 3 },
	{ 0x1020, 1, 24, 2 },
	{ 0x1100, .end = true },
};
static const struct dwarf_lines_spec lines = { 4, directories, files, rows, ARRAY_SIZE(rows) };

/* Each outer frame takes its location from the entry inside it. */
static void inline_chain_lines_and_order(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t leaf, middle;

	(void)state;
	dwarf_writer_init(&w);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, true, LOW(0),
		NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, dwarf_writer_lines(&w, &lines)));
	leaf = DIE(
		&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "leaf"), LINE(DW_AT_decl_line, 6));
	middle = DIE(
		&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "middle"), LINE(DW_AT_decl_line, 9));
	DIE(&w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "top"), LOW(0x1000), SIZE(0x100));
	DIE(&w, DW_TAG_lexical_block, true, LOW(0x1008), SIZE(0x40));
	DIE(&w, DW_TAG_inlined_subroutine, true, ORIGIN(middle), LOW(0x1008), SIZE(0x18),
		LINE(DW_AT_call_file, 1), LINE(DW_AT_call_line, 22), LINE(DW_AT_call_column, 5));
	DIE(&w, DW_TAG_inlined_subroutine, false, ORIGIN(leaf), LOW(0x1010), SIZE(8),
		LINE(DW_AT_call_file, 2), LINE(DW_AT_call_line, 11), LINE(DW_AT_call_column, 4));
	dwarf_writer_up(&w);
	dwarf_writer_up(&w);
	dwarf_writer_up(&w);
	end(&w);
	result = read_all(&w);
	assert_frames(
		&result, 0x1012, "leaf /src/b.h:7:3 < middle /src/b.h:11:4 < top /src/a.c:22:5");
	assert_frames(&result, 0x1018, "middle /src/b.h:7:3 < top /src/a.c:22:5");
	assert_frames(&result, 0x1004, "top /src/a.c:20:1");
	index_destroy(result.index);
}

static void start_line_is_the_abstract_function(void **state)
{
	struct index_frame frames[4];
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t abstract;

	(void)state;
	begin(&w, 4, DW_LANG_C99);
	abstract =
		DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LINE(DW_AT_decl_line, 42));
	DIE(&w, DW_TAG_subprogram, false, ORIGIN(abstract), LOW(0x1000), SIZE(0x10));
	end(&w);
	result = read_all(&w);
	assert_int_equal(index_lookup(result.index, 0x1000, frames, 4), 1);
	assert_int_equal(frames[0].start_line, 42);
	index_destroy(result.index);
}

/* Link-time optimization: the other unit has its own abbreviations and string base. */
static void abstract_origin_in_another_unit(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t abstract;

	(void)state;
	dwarf_writer_init(&w);
	put_zeros(&w.str_offsets, 8);
	put_u32(&w.str_offsets, (uint32_t)dwarf_writer_string(&w.str, "wrong"));
	put_u32(&w.str_offsets, (uint32_t)dwarf_writer_string(&w.str, "right"));
	dwarf_writer_unit(&w, 5);
	DIE(&w, DW_TAG_compile_unit, true, NUMBER(DW_AT_str_offsets_base, DW_FORM_sec_offset, 12));
	DIE(&w, DW_TAG_base_type, false, TEXT(DW_AT_name, "int"));
	abstract = DIE(&w, DW_TAG_subprogram, false, NUMBER(DW_AT_name, DW_FORM_strx1, 0));
	end(&w);
	dwarf_writer_unit(&w, 5);
	DIE(&w, DW_TAG_compile_unit, true, NUMBER(DW_AT_str_offsets_base, DW_FORM_sec_offset, 8),
		LOW(0));
	DIE(&w, DW_TAG_subprogram, true, NUMBER(DW_AT_name, DW_FORM_strx1, 0), LOW(0x1000),
		SIZE(0x40));
	DIE(&w, DW_TAG_inlined_subroutine, false,
		NUMBER(DW_AT_abstract_origin, DW_FORM_ref_addr, abstract), LOW(0x1010), SIZE(0x10));
	dwarf_writer_up(&w);
	end(&w);
	result = read_all(&w);
	assert_int_equal(result.units, 2);
	assert_frames(&result, 0x1010, "right :0:0 < wrong :0:0");
	index_destroy(result.index);
}

static void put_pair(struct buffer *b, uint64_t low, uint64_t high)
{
	put_u64(b, low);
	put_u64(b, high);
}

/* The cold part is a range of its own; what lies in between is another function's. */
static void cold_part_by_base_selection(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;

	(void)state;
	begin(&w, 4, DW_LANG_C99);
	put_pair(&w.ranges, 0x1000, 0x1010);
	put_pair(&w.ranges, UINT64_MAX, 0x2000);
	put_pair(&w.ranges, 0x100, 0x108);
	put_pair(&w.ranges, 0x200, 0x200); /* empty */
	put_pair(&w.ranges, 0, 0);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "split"),
		NUMBER(DW_AT_ranges, DW_FORM_sec_offset, 0));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "between"), LOW(0x1010), SIZE(0x100));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x100f, "split :0:0");
	assert_frames(&result, 0x1010, "between :0:0");
	assert_frames(&result, 0x1800, "");
	assert_frames(&result, 0x2107, "split :0:0");
	assert_frames(&result, 0x2108, "");
	index_destroy(result.index);
}

static void put_rle(struct buffer *b, uint8_t kind, uint64_t first, uint64_t second)
{
	put_u8(b, kind);
	put_uleb128(b, first);
	put_uleb128(b, second);
}

/* Every kind of DW_RLE_*, found by its number in the unit's table. */
static void range_lists_of_version_5(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	struct buffer *b = &w.rnglists;

	(void)state;
	dwarf_writer_init(&w);
	put_zeros(&w.addr, 8);
	put_pair(&w.addr, 0x1100, 0x1110);
	put_zeros(b, 12);
	put_u32(b, 4); /* offset 0 of the table: right behind it */
	put_u8(b, DW_RLE_start_length);
	put_u64(b, 0x1000);
	put_uleb128(b, 0x10);
	put_u8(b, DW_RLE_start_end);
	put_pair(b, 0x1020, 0x1030);
	put_u8(b, DW_RLE_base_address);
	put_u64(b, 0x1040);
	put_rle(b, DW_RLE_offset_pair, 0, 0x10);
	put_rle(b, DW_RLE_startx_endx, 0, 1);
	put_rle(b, DW_RLE_startx_length, 1, 0x200 - 0x110);
	put_u8(b, DW_RLE_base_addressx);
	put_uleb128(b, 0);
	put_rle(b, DW_RLE_offset_pair, 0x200, 0x210);
	put_u8(b, DW_RLE_end_of_list);
	dwarf_writer_unit(&w, 5);
	DIE(&w, DW_TAG_compile_unit, true, NUMBER(DW_AT_rnglists_base, DW_FORM_sec_offset, 12),
		NUMBER(DW_AT_addr_base, DW_FORM_sec_offset, 8), LOW(0));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"),
		NUMBER(DW_AT_ranges, DW_FORM_rnglistx, 0));
	end(&w);
	result = read_all(&w);
	for (uint64_t start = 0x1000; start <= 0x1040; start += 0x20) {
		assert_frames(&result, start, "f :0:0");
		assert_frames(&result, start + 0xf, "f :0:0");
		assert_frames(&result, start + 0x10, "");
	}
	assert_frames(&result, 0x1100, "f :0:0");
	assert_frames(&result, 0x1110, "f :0:0");
	assert_frames(&result, 0x11ff, "f :0:0");
	assert_frames(&result, 0x1200, "");
	assert_frames(&result, 0x130f, "f :0:0");
	assert_frames(&result, 0x1310, "");
	index_destroy(result.index);
}

static void one_function_unit(struct dwarf_writer *w, const char *name, unsigned int line)
{
	const struct dwarf_row_spec unit_rows[] = {
		{ 0x1000, 1, line, 1 },
		{ 0x1100, .end = true },
	};
	const struct dwarf_lines_spec unit_lines = { 4, directories, files, unit_rows, 2 };

	dwarf_writer_unit(w, 4);
	DIE(w, DW_TAG_compile_unit, true, LOW(0),
		NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, dwarf_writer_lines(w, &unit_lines)));
	DIE(w, DW_TAG_subprogram, false, TEXT(DW_AT_name, name), LOW(0x1000), SIZE(0x100));
	end(w);
}

/* Identical code folding: function and line must come from the same unit, either one. */
static void folded_functions_agree_with_their_line(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	char frames[256];

	(void)state;
	dwarf_writer_init(&w);
	one_function_unit(&w, "first", 10);
	one_function_unit(&w, "second", 20);
	result = read_all(&w);
	dwarf_result_frames(&result, 0x1050, frames, sizeof(frames));
	if (strcmp(frames, "first /src/a.c:10:1"))
		assert_string_equal(frames, "second /src/a.c:20:1");
	index_destroy(result.index);
}

static void discarded(struct dwarf_writer *w, uint64_t tombstone, uint64_t inlined)
{
	DIE(w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "discarded"), LOW(tombstone),
		SIZE(0x2800));
	/* An offset from the discarded base that happens to fall into code. */
	DIE(w, DW_TAG_inlined_subroutine, false, ORIGIN(inlined), LOW(tombstone + 0x1010),
		SIZE(0x10));
	dwarf_writer_up(w);
}

static void tombstones_leave_no_trace(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t inlined;

	(void)state;
	begin(&w, 4, DW_LANG_C_plus_plus);
	inlined = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "inlined"));
	discarded(&w, 0, inlined);
	discarded(&w, 1, inlined);
	discarded(&w, UINT64_MAX, inlined);
	discarded(&w, UINT64_MAX - 1, inlined);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "kept"), LOW(0x1000), SIZE(0x100));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1000, "kept :0:0");
	assert_frames(&result, 0x1018, "kept :0:0");
	assert_frames(&result, 0x1200, "");
	index_destroy(result.index);
}

/* Children out of order, one without a range, one that extends beyond its parent. */
static void untidy_children(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t a, b, c;

	(void)state;
	begin(&w, 4, DW_LANG_C99);
	a = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "a"));
	b = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "b"));
	c = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "c"));
	DIE(&w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x100));
	DIE(&w, DW_TAG_inlined_subroutine, false, ORIGIN(a), LOW(0x1080), SIZE(0x10));
	DIE(&w, DW_TAG_inlined_subroutine, true, ORIGIN(b));
	DIE(&w, DW_TAG_inlined_subroutine, false, ORIGIN(c), LOW(0x1040), SIZE(0x10));
	dwarf_writer_up(&w);
	DIE(&w, DW_TAG_inlined_subroutine, true, ORIGIN(b), LOW(0x1010), SIZE(0x10));
	DIE(&w, DW_TAG_inlined_subroutine, false, ORIGIN(c), LOW(0x1018), SIZE(0x10));
	dwarf_writer_up(&w);
	dwarf_writer_up(&w);
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1088, "a :0:0 < f :0:0");
	assert_frames(&result, 0x1044, "c :0:0 < b :0:0 < f :0:0");
	assert_frames(&result, 0x1010, "b :0:0 < f :0:0");
	assert_frames(&result, 0x101f, "c :0:0 < b :0:0 < f :0:0");
	assert_frames(&result, 0x1024, "c :0:0 < b :0:0 < f :0:0");
	assert_frames(&result, 0x1028, "f :0:0");
	index_destroy(result.index);
}

/* Out of line: code → abstract instance → declaration in the class. */
static void specification_chain(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t declared, linked, abstract, abstract_linked;

	(void)state;
	begin(&w, 4, DW_LANG_C_plus_plus_11);
	DIE(&w, DW_TAG_namespace, true, TEXT(DW_AT_name, "space"));
	DIE(&w, DW_TAG_class_type, true, TEXT(DW_AT_name, "Class"));
	declared = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "method"));
	linked = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "other"),
		TEXT(DW_AT_linkage_name, "_ZN5space5Class5otherEv"));
	dwarf_writer_up(&w);
	dwarf_writer_up(&w);
	abstract = DIE(
		&w, DW_TAG_subprogram, false, NUMBER(DW_AT_specification, DW_FORM_ref4, declared));
	abstract_linked = DIE(
		&w, DW_TAG_subprogram, false, NUMBER(DW_AT_specification, DW_FORM_ref4, linked));
	DIE(&w, DW_TAG_subprogram, false, ORIGIN(abstract), LOW(0x1000), SIZE(0x10));
	DIE(&w, DW_TAG_subprogram, false, ORIGIN(abstract_linked), LOW(0x1010), SIZE(0x10));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1000, "space::Class::method :0:0");
	assert_frames(&result, 0x1010, "space::Class::other() :0:0");
	index_destroy(result.index);
}

/* Never the enclosing function's name: the scopes around it, with their own names. */
static void names_without_linkage(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t lambda;

	(void)state;
	begin(&w, 5, DW_LANG_C_plus_plus_14);
	DIE(&w, DW_TAG_namespace, true, TEXT(DW_AT_name, "space"));
	DIE(&w, DW_TAG_namespace, true, NUMBER(DW_AT_export_symbols, DW_FORM_flag_present, 0));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "hidden"), LOW(0x1000), SIZE(0x10));
	DIE(&w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "outer"), LOW(0x1010), SIZE(0x10));
	DIE(&w, DW_TAG_lexical_block, true, LOW(0x1010), SIZE(0x10));
	DIE(&w, DW_TAG_class_type, true, NUMBER(DW_AT_byte_size, DW_FORM_data1, 1));
	lambda = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "operator()"));
	for (int i = 0; i < 5; i++)
		dwarf_writer_up(&w);
	DIE(&w, DW_TAG_subprogram, false, NUMBER(DW_AT_specification, DW_FORM_ref4, lambda),
		LOW(0x1020), SIZE(0x10));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1000, "space::(anonymous namespace)::hidden :0:0");
	assert_frames(&result, 0x1010, "space::(anonymous namespace)::outer :0:0");
	assert_frames(&result, 0x1020,
		"space::(anonymous namespace)::outer::(anonymous class)::operator() :0:0");
	index_destroy(result.index);
}

/* C++ has code inside classes; in C a sibling reference jumps over the type. */
static void code_inside_a_type(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t sibling;

	(void)state;
	begin(&w, 4, DW_LANG_C_plus_plus);
	DIE(&w, DW_TAG_structure_type, true,
		NUMBER(DW_AT_name, DW_FORM_strp, dwarf_writer_string(&w.str, "S")),
		NUMBER(DW_AT_sibling, DW_FORM_ref4, 0));
	sibling = w.last_value;
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x10));
	dwarf_writer_up(&w);
	set_u32(&w.info, sibling, (uint32_t)(w.info.size - w.unit));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "g"), LOW(0x1010), SIZE(0x10));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1000, "S::f :0:0");
	assert_frames(&result, 0x1010, "g :0:0");
	index_destroy(result.index);
}

static void types_of_c_are_skipped(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;
	uint64_t sibling;

	(void)state;
	begin(&w, 4, DW_LANG_C11);
	DIE(&w, DW_TAG_structure_type, true, NUMBER(DW_AT_byte_size, DW_FORM_data1, 8),
		NUMBER(DW_AT_sibling, DW_FORM_ref4, 0));
	sibling = w.last_value;
	put_uleb128(&w.info, 99); /* no such abbreviation: reading this fails */
	dwarf_writer_up(&w);
	set_u32(&w.info, sibling, (uint32_t)(w.info.size - w.unit));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "g"), LOW(0x1010), SIZE(0x10));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1010, "g :0:0");
	index_destroy(result.index);
}

static void units_of_go_are_skipped_on_request(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	begin(&w, 4, DW_LANG_Go);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "main.main"), LOW(0x1000), SIZE(0x10));
	end(&w);
	dwarf_writer_read(&w, false, &result);
	assert_frames(&result, 0x1000, "main.main :0:0");
	index_destroy(result.index);
	result = read_all(&w);
	assert_frames(&result, 0x1000, "");
	index_destroy(result.index);
}

/* Each version, both offset sizes, and alternative forms with the same meaning. */
static void versions_and_forms(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		struct dwarf_writer w;
		struct dwarf_result result;
		unsigned int version = 2 + i / 2;
		uint64_t abstract;

		dwarf_writer_init(&w);
		w.wide = i % 2;
		dwarf_writer_unit(&w, version);
		DIE(&w, DW_TAG_compile_unit, true, LOW(0));
		abstract = DIE(&w, DW_TAG_subprogram, false,
			NUMBER(DW_AT_frame_base, DW_FORM_exprloc, 5),
			NUMBER(DW_AT_name, DW_FORM_strp, dwarf_writer_string(&w.str, "inner")));
		DIE(&w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "outer"), LOW(0x1000),
			NUMBER(DW_AT_high_pc, DW_FORM_addr, 0x1100));
		DIE(&w, DW_TAG_inlined_subroutine, false,
			NUMBER(DW_AT_abstract_origin, DW_FORM_ref_addr, abstract), LOW(0x1010),
			NUMBER(DW_AT_high_pc, DW_FORM_udata, 0x10),
			NUMBER(DW_AT_call_line, DW_FORM_indirect, 300),
			NUMBER(DW_AT_call_column, DW_FORM_implicit_const, 17));
		dwarf_writer_up(&w);
		end(&w);
		result = read_all(&w);
		assert_frames(&result, 0x101f, "inner :0:0 < outer :300:17");
		assert_frames(&result, 0x1020, "outer :0:0");
		index_destroy(result.index);
	}
}

static void indexed_addresses(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;

	(void)state;
	dwarf_writer_init(&w);
	put_zeros(&w.addr, 8);
	put_pair(&w.addr, 0x1000, 0x1040);
	dwarf_writer_unit(&w, 5);
	DIE(&w, DW_TAG_compile_unit, true, NUMBER(DW_AT_low_pc, DW_FORM_addrx, 0),
		NUMBER(DW_AT_addr_base, DW_FORM_sec_offset, 8));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"),
		NUMBER(DW_AT_low_pc, DW_FORM_addrx1, 0), SIZE(0x10));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "g"),
		NUMBER(DW_AT_low_pc, DW_FORM_addrx3, 1), NUMBER(DW_AT_high_pc, DW_FORM_data8, 8));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x100f, "f :0:0");
	assert_frames(&result, 0x1010, "");
	assert_frames(&result, 0x1047, "g :0:0");
	index_destroy(result.index);
}

/* A name in a supplementary file is not known; the attributes after it are still read. */
static void names_in_a_supplementary_file(void **state)
{
	struct dwarf_writer w;
	struct dwarf_result result;

	(void)state;
	begin(&w, 4, DW_LANG_C99);
	DIE(&w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "outer"), LOW(0x1000), SIZE(0x100));
	DIE(&w, DW_TAG_inlined_subroutine, false,
		NUMBER(DW_AT_abstract_origin, DW_FORM_GNU_ref_alt, 0x1234), LOW(0x1010),
		SIZE(0x10));
	DIE(&w, DW_TAG_formal_parameter, false, NUMBER(DW_AT_name, DW_FORM_GNU_strp_alt, 0x99));
	dwarf_writer_up(&w);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "next"), LOW(0x1100), SIZE(0x10));
	end(&w);
	result = read_all(&w);
	assert_frames(&result, 0x1000, "outer :0:0");
	assert_frames(&result, 0x1100, "next :0:0");
	index_destroy(result.index);
}

static void members_of_structures(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	for (int i = 0; i < 2; i++) {
		dwarf_writer_unit(&w, 4);
		DIE(&w, DW_TAG_compile_unit, true, TEXT(DW_AT_name, i ? "runtime" : "main"));
		DIE(&w, DW_TAG_structure_type, true, TEXT(DW_AT_name, "runtime.m"));
		DIE(&w, DW_TAG_member, false, TEXT(DW_AT_name, "goid"),
			NUMBER(DW_AT_data_member_location, DW_FORM_udata, 8));
		dwarf_writer_up(&w);
		DIE(&w, DW_TAG_structure_type, true, TEXT(DW_AT_name, i ? "runtime.g" : "main.g"));
		DIE(&w, DW_TAG_member, false, TEXT(DW_AT_name, "sched"),
			NUMBER(DW_AT_data_member_location, DW_FORM_udata, 56));
		DIE(&w, DW_TAG_member, false, TEXT(DW_AT_name, "goid"),
			NUMBER(DW_AT_data_member_location, DW_FORM_udata, 152));
		dwarf_writer_up(&w);
		end(&w);
	}
	assert_int_equal(dwarf_writer_member(&w, "runtime.g", "goid"), 152);
	assert_int_equal(dwarf_writer_member(&w, "runtime.m", "goid"), 8);
	assert_int_equal(dwarf_writer_member(&w, "main.g", "sched"), 56);
	assert_int_equal(dwarf_writer_member(&w, "runtime.g", "labels"), -ENOENT);
	assert_int_equal(dwarf_writer_member(&w, "runtime.p", "goid"), -ENOENT);
	dwarf_writer_deinit(&w);
}

/* A malformed unit before it neither hides it nor answers for it. */
static void member_after_a_broken_unit(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, true, TEXT(DW_AT_name, "runtime"));
	put_uleb128(&w.info, 77); /* no such abbreviation */
	end(&w);
	assert_int_equal(dwarf_writer_member(&w, "runtime.g", "goid"), -ENOENT);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, true, TEXT(DW_AT_name, "runtime"));
	DIE(&w, DW_TAG_structure_type, true, TEXT(DW_AT_name, "runtime.g"));
	DIE(&w, DW_TAG_member, false, TEXT(DW_AT_name, "goid"),
		NUMBER(DW_AT_data_member_location, DW_FORM_udata, 152));
	dwarf_writer_up(&w);
	end(&w);
	assert_int_equal(dwarf_writer_member(&w, "runtime.g", "goid"), 152);
	dwarf_writer_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_chain_lines_and_order),
		cmocka_unit_test(start_line_is_the_abstract_function),
		cmocka_unit_test(abstract_origin_in_another_unit),
		cmocka_unit_test(cold_part_by_base_selection),
		cmocka_unit_test(range_lists_of_version_5),
		cmocka_unit_test(folded_functions_agree_with_their_line),
		cmocka_unit_test(tombstones_leave_no_trace),
		cmocka_unit_test(untidy_children),
		cmocka_unit_test(specification_chain),
		cmocka_unit_test(names_without_linkage),
		cmocka_unit_test(code_inside_a_type),
		cmocka_unit_test(types_of_c_are_skipped),
		cmocka_unit_test(units_of_go_are_skipped_on_request),
		cmocka_unit_test(versions_and_forms),
		cmocka_unit_test(indexed_addresses),
		cmocka_unit_test(names_in_a_supplementary_file),
		cmocka_unit_test(members_of_structures),
		cmocka_unit_test(member_after_a_broken_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
