/* SPDX-License-Identifier: Apache-2.0 */
/* Split DWARF: units in .dwo files and packages, and which files are missing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "tests/unit/bytes.h"
#include "tests/unit/dwarf_writer.h"

enum { ID = 0x1234567, OTHER_ID = 0x7654321 };

static void assert_frames(const struct dwarf_result *result, uint64_t address, const char *expected)
{
	char frames[4096];

	dwarf_result_frames(result, address, frames, sizeof(frames));
	assert_string_equal(frames, expected);
}

/* The skeleton of the unit ID, whose code is at 0x1000 and whose file is NAME below /build. */
static void put_skeleton(struct dwarf_writer *w, uint64_t id, const char *name)
{
	dwarf_writer_split_unit(w, DW_UT_skeleton, id);
	DIE(w, DW_TAG_skeleton_unit, false, LOW(0x1000), TEXT(DW_AT_comp_dir, "/build"),
		TEXT(DW_AT_dwo_name, name), NUMBER(DW_AT_addr_base, DW_FORM_sec_offset, 0));
	dwarf_writer_unit_end(w);
}

/* The unit ID with the function NAME at the program's address NUMBER. */
static void put_split_unit(
	struct dwarf_writer *w, uint64_t id, const char *name, unsigned int number)
{
	dwarf_writer_split_unit(w, DW_UT_split_compile, id);
	DIE(w, DW_TAG_compile_unit, true, NUMBER(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	DIE(w, DW_TAG_subprogram, false, TEXT(DW_AT_name, name),
		NUMBER(DW_AT_low_pc, DW_FORM_addrx, number), SIZE(0x10));
	dwarf_writer_up(w);
	dwarf_writer_unit_end(w);
}

/* Addresses 0x1000, 0x1100, … */
static void put_addresses(struct dwarf_writer *w)
{
	for (uint64_t i = 0; i < 4; i++)
		put_u64(&w->addr, 0x1000 + i * 0x100);
}

static struct dwarf_result read_split(
	struct dwarf_writer *program, const struct dwarf_split_spec *splits, size_t count)
{
	struct dwarf_result result;

	dwarf_writer_read_split(program, splits, count, &result);
	dwarf_writer_deinit(program);
	for (size_t i = 0; i < count; i++)
		dwarf_writer_deinit(splits[i].w);
	assert_int_equal(result.error, 0);
	return result;
}

/* ---- which files are missing ---------------------------------------------------------------- */

static void missing_files_are_listed(void **state)
{
	char long_name[5000];
	struct dwarf_writer w;
	struct dwarf_result result;

	(void)state;
	snprintf(long_name, sizeof(long_name), "%0*d", (int)sizeof(long_name) - 1, 0);
	dwarf_writer_init(&w);
	put_skeleton(&w, 1, "a.dwo");
	put_skeleton(&w, 2, "/elsewhere/b.dwo");
	put_skeleton(&w, 3, ""); /* nobody knows where */
	put_skeleton(&w, 4, long_name);
	put_skeleton(&w, 5, "sub/c.dwo");
	dwarf_writer_split_unit(&w, DW_UT_skeleton, 6);
	DIE(&w, DW_TAG_skeleton_unit, false, LOW(0x1000), TEXT(DW_AT_dwo_name, "d.dwo"));
	dwarf_writer_unit_end(&w);
	result = read_split(&w, NULL, 0);
	assert_int_equal(index_wanted_count(result.index), 4);
	assert_string_equal(index_wanted(result.index, 0), "/build/a.dwo");
	assert_string_equal(index_wanted(result.index, 1), "/elsewhere/b.dwo");
	assert_string_equal(index_wanted(result.index, 2), "/build/sub/c.dwo");
	assert_string_equal(index_wanted(result.index, 3), "d.dwo");
	assert_int_equal(result.broken, 0);
	index_destroy(result.index);
}

static void unit_without_an_id_wants_no_file(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, false, LOW(0x1000), TEXT(DW_AT_GNU_dwo_name, "a.dwo"));
	dwarf_writer_unit_end(&w);
	result = read_split(&w, NULL, 0);
	assert_int_equal(index_wanted_count(result.index), 0);
	index_destroy(result.index);
}

/* ---- .dwo files ----------------------------------------------------------------------------- */

static void unit_of_a_file_is_its_skeletons(void **state)
{
	struct dwarf_writer program, dwo;
	const struct dwarf_split_spec split = { &dwo, NULL };
	struct dwarf_result result;

	(void)state;
	dwarf_writer_init(&program);
	put_addresses(&program);
	put_skeleton(&program, OTHER_ID, "other.dwo");
	put_skeleton(&program, ID, "a.dwo");
	dwarf_writer_init(&dwo);
	put_split_unit(&dwo, ID, "f", 1);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1100, "f :0:0");
	assert_frames(&result, 0x1110, "");
	/* The other one's file is still missing. */
	assert_int_equal(index_wanted_count(result.index), 1);
	assert_string_equal(index_wanted(result.index, 0), "/build/other.dwo");
	index_destroy(result.index);
}

static void unit_with_another_id_is_ignored(void **state)
{
	struct dwarf_writer program, dwo;
	const struct dwarf_split_spec split = { &dwo, NULL };
	struct dwarf_result result;

	(void)state;
	dwarf_writer_init(&program);
	put_addresses(&program);
	put_skeleton(&program, ID, "a.dwo");
	dwarf_writer_init(&dwo);
	put_split_unit(&dwo, ID + 1, "stale", 0);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1000, "");
	assert_int_equal(index_wanted_count(result.index), 1);
	index_destroy(result.index);
}

/* The same file in two places, one of them stale: the first one with the ID counts. */
static void the_first_of_two_files_is_used(void **state)
{
	struct dwarf_writer program, first, second;
	const struct dwarf_split_spec splits[] = { { &first, NULL }, { &second, NULL } };
	struct dwarf_result result;

	(void)state;
	dwarf_writer_init(&program);
	put_addresses(&program);
	put_skeleton(&program, ID, "a.dwo");
	dwarf_writer_init(&first);
	put_split_unit(&first, ID, "first", 0);
	dwarf_writer_init(&second);
	put_split_unit(&second, ID, "second", 1);
	result = read_split(&program, splits, 2);
	assert_frames(&result, 0x1000, "first :0:0");
	assert_frames(&result, 0x1100, "");
	index_destroy(result.index);
}

/* Lines, and the files of calls, are in the skeleton's line table. */
static void lines_and_call_sites_are_the_programs(void **state)
{
	static const char *const directories[] = { "/src", NULL };
	static const struct dwarf_file_spec files[] = { { "a.c", 0 }, { "b.h", 0 }, { NULL } };
	static const struct dwarf_row_spec rows[] = { { 0x1000, 1, 20, 1 },
		{ 0x1100, .end = true } };
	const struct dwarf_lines_spec lines = { 5, directories, files, rows, ARRAY_SIZE(rows) };
	struct dwarf_writer program, dwo;
	const struct dwarf_split_spec split = { &dwo, NULL };
	struct dwarf_result result;
	uint64_t inlined;

	(void)state;
	dwarf_writer_init(&program);
	put_addresses(&program);
	dwarf_writer_split_unit(&program, DW_UT_skeleton, ID);
	DIE(&program, DW_TAG_skeleton_unit, false, LOW(0x1000), TEXT(DW_AT_dwo_name, "a.dwo"),
		NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, dwarf_writer_lines(&program, &lines)));
	dwarf_writer_unit_end(&program);
	dwarf_writer_init(&dwo);
	dwarf_writer_split_unit(&dwo, DW_UT_split_compile, ID);
	DIE(&dwo, DW_TAG_compile_unit, true, NUMBER(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	inlined = DIE(&dwo, DW_TAG_subprogram, false, TEXT(DW_AT_name, "inlined"));
	DIE(&dwo, DW_TAG_subprogram, true, TEXT(DW_AT_name, "f"),
		NUMBER(DW_AT_low_pc, DW_FORM_addrx, 0), SIZE(0x100));
	DIE(&dwo, DW_TAG_inlined_subroutine, false, ORIGIN(inlined),
		NUMBER(DW_AT_low_pc, DW_FORM_addrx, 0), SIZE(0x10), LINE(DW_AT_call_file, 1),
		LINE(DW_AT_call_line, 22));
	dwarf_writer_up(&dwo);
	dwarf_writer_up(&dwo);
	dwarf_writer_unit_end(&dwo);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1000, "inlined /src/b.h:20:1 < f /src/b.h:22:0");
	index_destroy(result.index);
}

/* GNU's split form of version 4: its own attributes, and ranges in the program. */
static void units_of_version_4(void **state)
{
	struct dwarf_writer program, dwo;
	const struct dwarf_split_spec split = { &dwo, NULL };
	struct dwarf_result result;

	(void)state;
	dwarf_writer_init(&program);
	put_u64(&program.addr, 0); /* another unit's */
	put_addresses(&program);
	put_zeros(&program.ranges, 32); /* likewise */
	put_u64(&program.ranges, 0x200);
	put_u64(&program.ranges, 0x210);
	put_zeros(&program.ranges, 16);
	dwarf_writer_unit(&program, 4);
	DIE(&program, DW_TAG_compile_unit, false, LOW(0x1000),
		TEXT(DW_AT_GNU_dwo_name, "/build/a.dwo"),
		NUMBER(DW_AT_GNU_dwo_id, DW_FORM_data8, ID),
		NUMBER(DW_AT_GNU_addr_base, DW_FORM_sec_offset, 8),
		NUMBER(DW_AT_GNU_ranges_base, DW_FORM_sec_offset, 32));
	dwarf_writer_unit_end(&program);
	dwarf_writer_init(&dwo);
	put_string(&dwo.str, "unused");
	put_u32(&dwo.str_offsets, 0);
	put_u32(&dwo.str_offsets, (uint32_t)dwarf_writer_string(&dwo.str, "by_index"));
	dwarf_writer_unit(&dwo, 4);
	DIE(&dwo, DW_TAG_compile_unit, true, NUMBER(DW_AT_GNU_dwo_id, DW_FORM_data8, ID));
	DIE(&dwo, DW_TAG_subprogram, false, NUMBER(DW_AT_name, DW_FORM_GNU_str_index, 1),
		NUMBER(DW_AT_low_pc, DW_FORM_GNU_addr_index, 1), SIZE(0x10));
	DIE(&dwo, DW_TAG_subprogram, false, TEXT(DW_AT_name, "in_ranges"),
		NUMBER(DW_AT_ranges, DW_FORM_sec_offset, 0));
	dwarf_writer_up(&dwo);
	dwarf_writer_unit_end(&dwo);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1100, "by_index :0:0");
	assert_frames(&result, 0x1200, "in_ranges :0:0");
	assert_int_equal(index_wanted_count(result.index), 0);
	index_destroy(result.index);
}

/* ---- packages ------------------------------------------------------------------------------- */

enum { INFO = 1, ABBREV = 3, STR_OFFSETS = 6, RNGLISTS = 8 };

struct part {
	uint32_t info, info_size, abbrev, str_offsets, rnglists;
};

/* .debug_cu_index of VERSION (DWARF 5, 7.3.5.3) with a hash table of 4 slots. */
static void put_cu_index(
	struct buffer *b, uint32_t version, const struct part *parts, uint32_t count)
{
	static const uint32_t columns[] = { ABBREV, INFO, RNGLISTS, STR_OFFSETS };

	put_u32(b, version);
	put_u32(b, ARRAY_SIZE(columns));
	put_u32(b, count);
	put_u32(b, 4);
	put_zeros(b, 4 * (8 + 4));
	buffer_append(b, columns, sizeof(columns));
	for (uint32_t i = 0; i < count; i++) {
		put_u32(b, parts[i].abbrev);
		put_u32(b, parts[i].info);
		put_u32(b, parts[i].rnglists);
		put_u32(b, parts[i].str_offsets);
	}
	for (uint32_t i = 0; i < count; i++) {
		put_u32(b, 1);
		put_u32(b, parts[i].info_size);
		put_u32(b, 1);
		put_u32(b, 1);
	}
}

static struct part start_part(const struct dwarf_writer *w)
{
	return (struct part){ .info = (uint32_t)w->info.size,
		.abbrev = (uint32_t)w->abbrev.size,
		.str_offsets = (uint32_t)w->str_offsets.size,
		.rnglists = (uint32_t)w->rnglists.size };
}

/*
 * A unit of a package, as a linker of .dwo files writes it: its offsets into a section are relative
 * to its own part of that section, which has one name and one list of ranges. Their abbreviations
 * differ; the list is given by its number or by its offset.
 */
static struct part put_packed_unit(
	struct dwarf_writer *w, uint64_t id, const char *name, uint64_t low)
{
	const struct dwarf_spec by_number = NUMBER(DW_AT_ranges, DW_FORM_rnglistx, 0);
	const struct dwarf_spec by_place = NUMBER(DW_AT_ranges, DW_FORM_sec_offset, 16);
	struct part part = start_part(w);

	put_u32(&w->str_offsets, 8);
	put_u32(&w->str_offsets, 5);
	put_u32(&w->str_offsets, (uint32_t)dwarf_writer_string(&w->str, name));
	put_zeros(&w->rnglists, 12); /* the header */
	put_u32(&w->rnglists, 4); /* from here on, the list */
	put_u8(&w->rnglists, DW_RLE_start_length);
	put_u64(&w->rnglists, low);
	put_u8(&w->rnglists, 0x10);
	put_u8(&w->rnglists, DW_RLE_end_of_list);
	dwarf_writer_split_unit(w, DW_UT_split_compile, id);
	DIE(w, DW_TAG_compile_unit, true, NUMBER(DW_AT_language, DW_FORM_data1, DW_LANG_C11));
	DIE(w, DW_TAG_subprogram, false, id == ID ? by_number : by_place,
		NUMBER(DW_AT_name, DW_FORM_strx1, 0));
	dwarf_writer_up(w);
	dwarf_writer_unit_end(w);
	set_u32(&w->info, w->unit + 8, 0); /* its table of abbreviations */
	part.info_size = (uint32_t)w->info.size - part.info;
	return part;
}

/* Of version 4, with the function at the program's address NUMBER. */
static struct part put_packed_unit_4(
	struct dwarf_writer *w, uint64_t id, const char *name, unsigned int number)
{
	struct part part = start_part(w);

	put_u32(&w->str_offsets, (uint32_t)dwarf_writer_string(&w->str, name));
	dwarf_writer_unit(w, 4);
	DIE(w, DW_TAG_compile_unit, true, NUMBER(DW_AT_GNU_dwo_id, DW_FORM_data8, id));
	DIE(w, DW_TAG_subprogram, false, NUMBER(DW_AT_name, DW_FORM_GNU_str_index, 0),
		NUMBER(DW_AT_low_pc, DW_FORM_GNU_addr_index, number), SIZE(0x10));
	dwarf_writer_up(w);
	dwarf_writer_unit_end(w);
	set_u32(&w->info, w->unit + 6, 0);
	part.info_size = (uint32_t)w->info.size - part.info;
	return part;
}

static void start_package(struct dwarf_writer *program, struct dwarf_writer *package)
{
	dwarf_writer_init(program);
	put_addresses(program);
	put_skeleton(program, ID, "a.dwo");
	put_skeleton(program, OTHER_ID, "b.dwo");
	dwarf_writer_init(package);
}

static void units_of_a_package_have_parts_of_its_sections(void **state)
{
	autocall(buffer_deinit) struct buffer cu_index;
	struct dwarf_writer program, package;
	const struct dwarf_split_spec split = { &package, &cu_index };
	struct dwarf_result result;
	struct part parts[3];

	(void)state;
	buffer_init(&cu_index, 4096);
	start_package(&program, &package);
	parts[2] = put_packed_unit(&package, 77, "nobody's", 0x1300);
	parts[0] = put_packed_unit(&package, OTHER_ID, "other", 0x1200);
	parts[1] = put_packed_unit(&package, ID, "one", 0x1100);
	put_cu_index(&cu_index, 5, parts, 3);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1100, "one :0:0");
	assert_frames(&result, 0x1200, "other :0:0");
	assert_frames(&result, 0x1300, "");
	assert_int_equal(index_wanted_count(result.index), 0);
	assert_int_equal(result.broken, 0);
	index_destroy(result.index);
}

/* GNU's index of version 2: its eighth column is another one. */
static void package_of_version_4(void **state)
{
	autocall(buffer_deinit) struct buffer cu_index;
	struct dwarf_writer program, package;
	const struct dwarf_split_spec split = { &package, &cu_index };
	struct dwarf_result result;
	struct part parts[2];

	(void)state;
	buffer_init(&cu_index, 4096);
	start_package(&program, &package);
	parts[0] = put_packed_unit_4(&package, OTHER_ID, "other", 2);
	parts[1] = put_packed_unit_4(&package, ID, "one", 1);
	put_cu_index(&cu_index, 2, parts, 2);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1100, "one :0:0");
	assert_frames(&result, 0x1200, "other :0:0");
	index_destroy(result.index);
}

/* Its parts of the sections are unknown. */
static void unit_missing_from_the_packages_index_is_left_out(void **state)
{
	autocall(buffer_deinit) struct buffer cu_index;
	struct dwarf_writer program, package;
	const struct dwarf_split_spec split = { &package, &cu_index };
	struct dwarf_result result;
	struct part parts[2];

	(void)state;
	buffer_init(&cu_index, 4096);
	start_package(&program, &package);
	parts[0] = put_packed_unit(&package, ID, "one", 0x1100);
	parts[1] = put_packed_unit(&package, OTHER_ID, "other", 0x1200);
	put_cu_index(&cu_index, 5, parts, 1);
	result = read_split(&program, &split, 1);
	assert_frames(&result, 0x1100, "one :0:0");
	assert_frames(&result, 0x1200, "");
	assert_int_equal(index_wanted_count(result.index), 1);
	assert_string_equal(index_wanted(result.index, 0), "/build/b.dwo");
	index_destroy(result.index);
}

static void package_with_an_invalid_index_is_left_out(void **state)
{
	(void)state;
	for (int damage = 0; damage < 5; damage++) {
		autocall(buffer_deinit) struct buffer cu_index;
		struct dwarf_writer program, package;
		const struct dwarf_split_spec split = { &package, &cu_index };
		struct dwarf_result result;
		struct part part;

		buffer_init(&cu_index, 4096);
		start_package(&program, &package);
		part = put_packed_unit(&package, ID, "one", 0x1100);
		put_cu_index(&cu_index, damage == 0 ? 3 : 5, &part, 1);
		if (damage != 4)
			put_zeros(&cu_index, 1024);
		if (damage == 1)
			set_u32(&cu_index, 4, 0); /* columns */
		else if (damage == 2)
			set_u32(&cu_index, 4, 17);
		else if (damage == 3)
			set_u32(&cu_index, 8, UINT32_MAX); /* units */
		else if (damage == 4)
			cu_index.size -= 4; /* the last size */
		result = read_split(&program, &split, 1);
		assert_frames(&result, 0x1100, "");
		assert_int_equal(index_wanted_count(result.index), 2);
		index_destroy(result.index);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_files_are_listed),
		cmocka_unit_test(unit_without_an_id_wants_no_file),
		cmocka_unit_test(unit_of_a_file_is_its_skeletons),
		cmocka_unit_test(unit_with_another_id_is_ignored),
		cmocka_unit_test(the_first_of_two_files_is_used),
		cmocka_unit_test(lines_and_call_sites_are_the_programs),
		cmocka_unit_test(units_of_version_4),
		cmocka_unit_test(units_of_a_package_have_parts_of_its_sections),
		cmocka_unit_test(package_of_version_4),
		cmocka_unit_test(unit_missing_from_the_packages_index_is_left_out),
		cmocka_unit_test(package_with_an_invalid_index_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
