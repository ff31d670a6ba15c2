/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/unit/bytes.h"
#include "tests/unit/dwarf_writer.h"

/* One unit with one function, `f` at [0x1000, 0x1100), and the table SPEC. */
static void write_unit(struct dwarf_writer *w, unsigned int version, const char *comp_dir,
	const struct dwarf_lines_spec *spec)
{
	uint64_t offset = dwarf_writer_lines(w, spec);

	dwarf_writer_unit(w, version);
	DIE(w, DW_TAG_compile_unit, true, TEXT(DW_AT_comp_dir, comp_dir), LOW(0),
		NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, offset));
	DIE(w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x100));
	dwarf_writer_up(w);
	dwarf_writer_unit_end(w);
}

static struct dwarf_result read_table(
	unsigned int version, const char *comp_dir, const struct dwarf_lines_spec *spec)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	dwarf_writer_init(&w);
	write_unit(&w, version, comp_dir, spec);
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.broken, 0);
	return result;
}

static void assert_frames(const struct dwarf_result *result, uint64_t address, const char *expected)
{
	char frames[4096];

	dwarf_result_frames(result, address, frames, sizeof(frames));
	assert_string_equal(frames, expected);
}

static const struct dwarf_row_spec numbered_rows[] = {
	{ 0x1000, 0, 1, 0 },
	{ 0x1010, 1, 2, 0 },
	{ 0x1020, 2, 3, 0 },
	{ 0x1030, 3, 4, 0 },
	{ 0x1040, 4, 5, 0 },
	{ 0x1050, 99, 6, 0 },
	{ 0x1060, .end = true },
};

static void files_of_version_4_count_from_1(void **state)
{
	static const char *const directories[] = { "include", "/usr/include/", NULL };
	static const struct dwarf_file_spec files[] = { { "a.c", 0 }, { "b.h", 1 }, { "c.h", 2 },
		{ "/abs/d.h", 1 }, { NULL } };
	const struct dwarf_lines_spec spec = { 4, directories, files, numbered_rows,
		ARRAY_SIZE(numbered_rows) };
	struct dwarf_result result = read_table(4, "/build", &spec);

	(void)state;
	assert_frames(&result, 0x1000, "f :1:0");
	assert_frames(&result, 0x1010, "f /build/a.c:2:0");
	assert_frames(&result, 0x1020, "f /build/include/b.h:3:0");
	assert_frames(&result, 0x1030, "f /usr/include/c.h:4:0");
	assert_frames(&result, 0x1040, "f /abs/d.h:5:0");
	assert_frames(&result, 0x1050, "f :6:0");
	assert_frames(&result, 0x1060, "f :0:0");
	index_destroy(result.index);
}

static void files_of_version_5_count_from_0(void **state)
{
	static const char *const directories[] = { "/build", "include", "/usr/include", NULL };
	static const struct dwarf_file_spec files[] = { { "a.c", 0 }, { "b.h", 1 }, { "c.h", 2 },
		{ "/abs/d.h", 1 }, { "e.h", 77 }, { NULL } };
	const struct dwarf_lines_spec spec = { 5, directories, files, numbered_rows,
		ARRAY_SIZE(numbered_rows) };
	struct dwarf_result result = read_table(5, "/build", &spec);

	(void)state;
	assert_frames(&result, 0x1000, "f /build/a.c:1:0");
	assert_frames(&result, 0x1010, "f /build/include/b.h:2:0");
	assert_frames(&result, 0x1020, "f /usr/include/c.h:3:0");
	assert_frames(&result, 0x1030, "f /abs/d.h:4:0");
	assert_frames(&result, 0x1040, "f /build/e.h:5:0");
	assert_frames(&result, 0x1050, "f :6:0");
	index_destroy(result.index);
}

/* Directory 0 is the compilation directory: a relative one is not appended to itself. */
static void relative_compilation_directory(void **state)
{
	static const char *const directories[] = { "./libio", "../include", NULL };
	static const struct dwarf_file_spec files[] = { { "a.c", 0 }, { "b.h", 1 }, { NULL } };
	const struct dwarf_lines_spec spec = { 5, directories, files, numbered_rows,
		ARRAY_SIZE(numbered_rows) };
	struct dwarf_result result = read_table(5, "./libio", &spec);

	(void)state;
	assert_frames(&result, 0x1000, "f ./libio/a.c:1:0");
	assert_frames(&result, 0x1010, "f ./libio/../include/b.h:2:0");
	index_destroy(result.index);
}

static const char *const directories_src[] = { "/src", NULL };
static const struct dwarf_file_spec files_src[] = { { "a.c", 1 }, { "b.c", 1 }, { NULL } };

static struct dwarf_result read_rows(const struct dwarf_row_spec *rows, size_t count)
{
	const struct dwarf_lines_spec spec = { 3, directories_src, files_src, rows, count };

	return read_table(3, "", &spec);
}

static void last_row_at_an_address_wins(void **state)
{
	static const struct dwarf_row_spec rows[] = {
		{ 0x1000, 1, 10, 1 },
		{ 0x1000, 2, 20, 2 },
		{ 0x1010, 1, 30, 3 },
		{ 0x1010, 1, 31, 4 },
		{ 0x1020, 1, 31, 4 },
		{ 0x1020, 1, 10, 1 },
		{ 0x1030, .end = true },
	};
	struct dwarf_result result = read_rows(rows, ARRAY_SIZE(rows));

	(void)state;
	assert_frames(&result, 0x1000, "f /src/b.c:20:2");
	assert_frames(&result, 0x100f, "f /src/b.c:20:2");
	assert_frames(&result, 0x1010, "f /src/a.c:31:4");
	assert_frames(&result, 0x1020, "f /src/a.c:10:1");
	assert_frames(&result, 0x1030, "f :0:0");
	index_destroy(result.index);
}

/* Line 0 means unknown; the code must not get the line before it. */
static void line_0_is_unknown(void **state)
{
	static const struct dwarf_row_spec rows[] = {
		{ 0x1000, 1, 10, 1 },
		{ 0x1010, 1, 0, 0 },
		{ 0x1020, 1, 12, 1 },
		{ 0x1030, .end = true },
	};
	struct dwarf_result result = read_rows(rows, ARRAY_SIZE(rows));
	struct index_frame frame;

	(void)state;
	assert_frames(&result, 0x100f, "f /src/a.c:10:1");
	assert_int_equal(index_lookup(result.index, 0x1010, &frame, 1), 1);
	assert_int_equal(frame.line, 0);
	assert_frames(&result, 0x1020, "f /src/a.c:12:1");
	index_destroy(result.index);
}

/* Sequences are in any order; addresses between them have no line. */
static void sequences_in_any_order(void **state)
{
	static const struct dwarf_row_spec rows[] = {
		{ 0x1080, 1, 50, 1 },
		{ 0x1090, .end = true },
		{ 0x1000, 1, 10, 1 },
		{ 0x1010, .end = true },
		{ 0x10, 2, 99, 1 }, /* of a discarded function */
		{ 0x1040, .end = true },
	};
	struct dwarf_result result = read_rows(rows, ARRAY_SIZE(rows));

	(void)state;
	assert_frames(&result, 0x1000, "f /src/a.c:10:1");
	assert_frames(&result, 0x1010, "f :0:0");
	assert_frames(&result, 0x1030, "f :0:0");
	assert_frames(&result, 0x1080, "f /src/a.c:50:1");
	index_destroy(result.index);
}

static void rows_that_go_backwards(void **state)
{
	static const struct dwarf_row_spec rows[] = {
		{ 0x1040, 1, 40, 1 },
		{ 0x1050, 1, 50, 1 },
		{ 0x1000, 1, 10, 1 },
		{ 0x1010, 1, 11, 1 },
		{ 0x1020, .end = true },
	};
	struct dwarf_result result = read_rows(rows, ARRAY_SIZE(rows));

	(void)state;
	assert_frames(&result, 0x1048, "f /src/a.c:40:1");
	assert_frames(&result, 0x1008, "f /src/a.c:10:1");
	assert_frames(&result, 0x1018, "f /src/a.c:11:1");
	assert_frames(&result, 0x1060, "f :0:0");
	index_destroy(result.index);
}

/* Special opcodes, constant and fixed steps, a file of its own, and unknown opcodes. */
static void all_kinds_of_opcodes(void **state)
{
	static const uint8_t program[] = {
		0,
		9,
		DW_LNE_set_address,
		0x00,
		0x10,
		0,
		0,
		0,
		0,
		0,
		0, /* 0x1000 */
		13 + 5 + 9 - 1, /* special: + 0, line 1 + 8 (base -5, range 14: 13 - 5) */
		DW_LNS_negate_stmt,
		DW_LNS_set_basic_block,
		DW_LNS_set_prologue_end,
		DW_LNS_set_isa,
		0x85,
		0x01,
		0,
		3,
		0x80,
		0xaa,
		0xbb, /* an extended opcode of some vendor */
		0,
		2,
		DW_LNE_set_discriminator,
		7,
		DW_LNS_const_add_pc, /* (255 - 13) / 14 = 17 */
		13 + 14 * 2 + 5, /* special: + 2, line + 0 */
		0,
		10,
		DW_LNE_define_file,
		'/',
		'o',
		'/',
		'd',
		'.',
		0,
		0,
		0,
		0,
		DW_LNS_set_file,
		3,
		DW_LNS_fixed_advance_pc,
		0x0d,
		0x00,
		DW_LNS_copy, /* at 0x1000 + 19 + 13 */
		DW_LNS_advance_pc,
		0x10,
		0,
		1,
		DW_LNE_end_sequence,
	};
	const struct dwarf_lines_spec spec = { 4, directories_src, files_src, NULL, 0 };
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	write_unit(&w, 4, "", &spec);
	buffer_append(&w.line, program, sizeof(program));
	set_u32(&w.line, 0, (uint32_t)w.line.size - 4);
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_int_equal(result.broken, 0);
	assert_frames(&result, 0x1000, "f /src/a.c:9:0");
	assert_frames(&result, 0x101f, "f /src/a.c:9:0");
	assert_frames(&result, 0x1020, "f /o/d.:9:0");
	assert_frames(&result, 0x102f, "f /o/d.:9:0");
	assert_frames(&result, 0x1030, "f :0:0");
	index_destroy(result.index);
}

/* Two units name the same table: its rows count once and agree with both. */
static void units_that_share_a_table(void **state)
{
	static const struct dwarf_row_spec rows[] = {
		{ 0x1000, 1, 10, 1 },
		{ 0x1200, .end = true },
	};
	const struct dwarf_lines_spec spec = { 4, directories_src, files_src, rows, 2 };
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	write_unit(&w, 4, "", &spec);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, true, LOW(0), NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, 0));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "g"), LOW(0x1100), SIZE(0x100));
	dwarf_writer_up(&w);
	dwarf_writer_unit_end(&w);
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_frames(&result, 0x1080, "f /src/a.c:10:1");
	assert_frames(&result, 0x1180, "g /src/a.c:10:1");
	index_destroy(result.index);
}

static void table_of_64_bit_dwarf(void **state)
{
	static const struct dwarf_row_spec rows[] = {
		{ 0x1000, 1, 10, 1 },
		{ 0x1100, .end = true },
	};
	const struct dwarf_lines_spec spec = { 5, directories_src, files_src, rows, 2 };
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	w.wide = true;
	write_unit(&w, 5, "/src", &spec);
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_frames(&result, 0x1080, "f /src/b.c:10:1");
	index_destroy(result.index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_version_4_count_from_1),
		cmocka_unit_test(files_of_version_5_count_from_0),
		cmocka_unit_test(relative_compilation_directory),
		cmocka_unit_test(last_row_at_an_address_wins),
		cmocka_unit_test(line_0_is_unknown),
		cmocka_unit_test(sequences_in_any_order),
		cmocka_unit_test(rows_that_go_backwards),
		cmocka_unit_test(all_kinds_of_opcodes),
		cmocka_unit_test(units_that_share_a_table),
		cmocka_unit_test(table_of_64_bit_dwarf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
