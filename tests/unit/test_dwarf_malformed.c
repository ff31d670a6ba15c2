/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile or damaged DWARF costs its unit; other units keep their names. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "tests/unit/bytes.h"
#include "tests/unit/dwarf_writer.h"

static void assert_frames(const struct dwarf_result *result, uint64_t address, const char *expected)
{
	char frames[4096];

	dwarf_result_frames(result, address, frames, sizeof(frames));
	assert_string_equal(frames, expected);
}

static void begin_unit(struct dwarf_writer *w)
{
	dwarf_writer_unit(w, 4);
	DIE(w, DW_TAG_compile_unit, true, LOW(0), TEXT(DW_AT_comp_dir, "/"),
		NUMBER(DW_AT_language, DW_FORM_data1, DW_LANG_C_plus_plus));
}

static void end_unit(struct dwarf_writer *w)
{
	dwarf_writer_up(w);
	dwarf_writer_unit_end(w);
}

static void add_sound_unit(struct dwarf_writer *w)
{
	begin_unit(w);
	DIE(w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "sound"), LOW(0x2000), SIZE(0x10));
	end_unit(w);
}

/* Appends a valid unit to W, reads all, and expects BROKEN units and the valid one. */
static struct dwarf_result read_with_sound_unit(struct dwarf_writer *w, unsigned int broken)
{
	struct dwarf_result result;

	add_sound_unit(w);
	dwarf_writer_read(w, false, &result);
	dwarf_writer_deinit(w);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.broken, broken);
	assert_frames(&result, 0x2000, "sound :0:0");
	return result;
}

static void expect_sound_unit(struct dwarf_writer *w, unsigned int broken)
{
	struct dwarf_result result = read_with_sound_unit(w, broken);

	index_destroy(result.index);
}

static void unknown_abbreviation_code(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "before"), LOW(0x1000), SIZE(0x10));
	put_uleb128(&w.info, 77);
	end_unit(&w);
	result = read_with_sound_unit(&w, 1);
	assert_frames(&result, 0x1000, "before :0:0"); /* what was read before stays */
	index_destroy(result.index);
}

static void unknown_form(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, NUMBER(DW_AT_name, 0x7f, 0));
	DIE(&w, DW_TAG_subprogram, false, NUMBER(DW_AT_name, 0x1f7f, 0));
	end_unit(&w);
	expect_sound_unit(&w, 1);
}

static void indirect_form_of_itself(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, LOW(0x1000),
		NUMBER(DW_AT_call_line, DW_FORM_indirect, 1));
	memset(w.info.bytes + w.last_value, DW_FORM_indirect, 2);
	for (int i = 0; i < 100; i++)
		put_u8(&w.info, DW_FORM_indirect);
	end_unit(&w);
	expect_sound_unit(&w, 1);
}

static void abbreviations_cut_off(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x10));
	end_unit(&w);
	w.abbrev.size -= 3;
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.broken, 1);
	index_destroy(result.index);
}

static void abbreviations_beyond_the_section(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	end_unit(&w);
	set_u32(&w.info, 6, 0xfffffff0);
	expect_sound_unit(&w, 1);
}

/* Codes that are neither dense nor sorted are found, too. */
static void unsorted_abbreviations(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	dwarf_writer_unit(&w, 4);
	w.next_code = 900;
	DIE(&w, DW_TAG_compile_unit, true, LOW(0));
	w.next_code = 7;
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x10));
	w.next_code = UINT32_MAX;
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "g"), LOW(0x1010), SIZE(0x10));
	end_unit(&w);
	result = read_with_sound_unit(&w, 0);
	assert_frames(&result, 0x1000, "f :0:0");
	assert_frames(&result, 0x1010, "g :0:0");
	index_destroy(result.index);
}

/* An origin that refers to itself, and two that refer to each other: no name, no endless loop. */
static void loops_of_origins(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;
	uint64_t first, second, at;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	first = DIE(&w, DW_TAG_subprogram, false, ORIGIN(w.info.size));
	DIE(&w, DW_TAG_subprogram, false, ORIGIN(first), LOW(0x1000), SIZE(0x10));
	first = DIE(&w, DW_TAG_subprogram, false, ORIGIN(0));
	at = w.last_value;
	second = DIE(&w, DW_TAG_subprogram, false, ORIGIN(first));
	set_u32(&w.info, at, (uint32_t)(second - w.unit));
	DIE(&w, DW_TAG_subprogram, false, ORIGIN(second), LOW(0x1010), SIZE(0x10));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "after"), LOW(0x1020), SIZE(0x10));
	end_unit(&w);
	result = read_with_sound_unit(&w, 0);
	assert_frames(&result, 0x1020, "after :0:0");
	index_destroy(result.index);
}

static void invalid_origins(void **state)
{
	static const uint64_t targets[] = { 0, 3, 0x7fffffff, 0xffffffff };
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "outer"), LOW(0x1000), SIZE(0x100));
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		DIE(&w, DW_TAG_inlined_subroutine, false,
			NUMBER(DW_AT_abstract_origin, DW_FORM_ref_addr, targets[i]),
			LOW(0x1010 + 16 * i), SIZE(8));
	dwarf_writer_up(&w);
	end_unit(&w);
	result = read_with_sound_unit(&w, 0);
	assert_frames(&result, 0x1000, "outer :0:0");
	index_destroy(result.index);
}

static void deep_nesting(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;
	uint64_t code;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "before"), LOW(0x1000), SIZE(0x10));
	code = w.next_code;
	DIE(&w, DW_TAG_lexical_block, true, NUMBER(DW_AT_sibling, DW_FORM_flag_present, 0));
	for (int i = 0; i < 100000; i++)
		put_uleb128(&w.info, code);
	end_unit(&w);
	result = read_with_sound_unit(&w, 1);
	assert_frames(&result, 0x1000, "before :0:0");
	index_destroy(result.index);
}

/* Following a sibling that points backwards would never end. */
static void sibling_backwards(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, true, LOW(0),
		NUMBER(DW_AT_language, DW_FORM_data1, DW_LANG_C));
	DIE(&w, DW_TAG_structure_type, true, NUMBER(DW_AT_sibling, DW_FORM_ref4, w.info.size));
	dwarf_writer_up(&w);
	DIE(&w, DW_TAG_structure_type, true, NUMBER(DW_AT_sibling, DW_FORM_ref4, 0x70000000));
	dwarf_writer_up(&w);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x10));
	end_unit(&w);
	result = read_with_sound_unit(&w, 1);
	index_destroy(result.index);
}

static void block_longer_than_the_unit(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_variable, false, NUMBER(DW_AT_location, DW_FORM_exprloc, 1));
	w.info.bytes[w.last_value] = 0x7f;
	end_unit(&w);
	expect_sound_unit(&w, 1);
}

static void ranges_that_never_end(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	put_u64(&w.ranges, 0x1000);
	put_u64(&w.ranges, 0x1010);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, NUMBER(DW_AT_ranges, DW_FORM_sec_offset, 0));
	end_unit(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, NUMBER(DW_AT_ranges, DW_FORM_sec_offset, 0x10000));
	end_unit(&w);
	expect_sound_unit(&w, 2);
}

static void indexes_out_of_bounds(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	put_zeros(&w.rnglists, 16);
	put_zeros(&w.addr, 16);
	for (int i = 0; i < 2; i++) {
		dwarf_writer_unit(&w, 5);
		DIE(&w, DW_TAG_compile_unit, true,
			NUMBER(DW_AT_rnglists_base, DW_FORM_sec_offset, 12),
			NUMBER(DW_AT_addr_base, DW_FORM_sec_offset, 8), LOW(0));
		DIE(&w, DW_TAG_subprogram, false,
			i ? NUMBER(DW_AT_ranges, DW_FORM_rnglistx, UINT64_MAX / 2)
			  : NUMBER(DW_AT_low_pc, DW_FORM_addrx, UINT64_MAX / 8),
			SIZE(8));
		end_unit(&w);
	}
	expect_sound_unit(&w, 2);
}

static void unit_longer_than_the_section(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x10));
	end_unit(&w);
	begin_unit(&w);
	end_unit(&w);
	set_u32(&w.info, w.unit, 0x1000);
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_int_equal(result.broken, 1);
	assert_frames(&result, 0x1000, "f :0:0");
	index_destroy(result.index);
}

static void unsupported_versions_and_address_sizes(void **state)
{
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	begin_unit(&w);
	end_unit(&w);
	w.info.bytes[w.unit + 4] = 6;
	begin_unit(&w);
	end_unit(&w);
	w.info.bytes[w.unit + 10] = 4;
	begin_unit(&w);
	end_unit(&w);
	w.info.bytes[w.unit + 5] = 1; /* version 0x104 */
	expect_sound_unit(&w, 3);
}

/* Counts of files and directories that no header could hold, with and without fields. */
static void huge_file_counts(void **state)
{
	static const uint8_t formats[][4] = { { 0 }, { 1, DW_LNCT_path, DW_FORM_string },
		{ 1, DW_LNCT_size, DW_FORM_flag_present } };
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t start = w.line.size;

		put_u32(&w.line, 0);
		put_u16(&w.line, 5);
		put_u16(&w.line, 8);
		put_u32(&w.line, 0);
		buffer_append(&w.line, "\x01\x01\x01\xfb\x0e\x01", 6);
		buffer_append(&w.line, formats[i], formats[i][0] ? 3 : 1);
		put_uleb128(&w.line, UINT64_MAX);
		set_u32(&w.line, start + 8, (uint32_t)(w.line.size - start - 12));
		set_u32(&w.line, start, (uint32_t)(w.line.size - start - 4));
		dwarf_writer_unit(&w, 4);
		DIE(&w, DW_TAG_compile_unit, true, LOW(0),
			NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, start));
		end_unit(&w);
	}
	expect_sound_unit(&w, 3);
}

static void line_table_outside_of_the_section(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	dwarf_writer_unit(&w, 4);
	DIE(&w, DW_TAG_compile_unit, true, LOW(0),
		NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, 0x1234));
	DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x10));
	end_unit(&w);
	result = read_with_sound_unit(&w, 1);
	assert_frames(&result, 0x1000, "f :0:0"); /* without lines, but with its name */
	index_destroy(result.index);
}

/* A unit with a bit of everything, to be damaged. */
static void put_specimen(struct dwarf_writer *w)
{
	static const char *const directories[] = { "/src", NULL };
	static const struct dwarf_file_spec files[] = { { "a.c", 0 }, { "b.h", 0 }, { NULL } };
	static const struct dwarf_row_spec rows[] = { { 0x1000, 1, 20, 1 }, { 0x1010, 0, 7, 3 },
		{ 0x1100, .end = true } };
	const struct dwarf_lines_spec lines = { 5, directories, files, rows, ARRAY_SIZE(rows) };
	uint64_t inlined;

	put_zeros(&w->rnglists, 12);
	put_u32(&w->rnglists, 4);
	put_u8(&w->rnglists, DW_RLE_start_length);
	put_u64(&w->rnglists, 0x1010);
	put_u8(&w->rnglists, 0x10);
	put_u8(&w->rnglists, DW_RLE_end_of_list);
	dwarf_writer_unit(w, 5);
	DIE(w, DW_TAG_compile_unit, true, LOW(0), TEXT(DW_AT_comp_dir, "/src"),
		NUMBER(DW_AT_rnglists_base, DW_FORM_sec_offset, 12),
		NUMBER(DW_AT_stmt_list, DW_FORM_sec_offset, dwarf_writer_lines(w, &lines)));
	DIE(w, DW_TAG_namespace, true, TEXT(DW_AT_name, "space"));
	inlined = DIE(w, DW_TAG_subprogram, false,
		NUMBER(DW_AT_name, DW_FORM_strp, dwarf_writer_string(&w->str, "inlined")));
	dwarf_writer_up(w);
	DIE(w, DW_TAG_subprogram, true, TEXT(DW_AT_name, "f"), LOW(0x1000), SIZE(0x100));
	DIE(w, DW_TAG_inlined_subroutine, false, ORIGIN(inlined),
		NUMBER(DW_AT_ranges, DW_FORM_rnglistx, 0), LINE(DW_AT_call_file, 1),
		LINE(DW_AT_call_line, 22));
	dwarf_writer_up(w);
	end_unit(w);
}

static void write_specimen(struct dwarf_writer *w)
{
	dwarf_writer_init(w);
	put_specimen(w);
}

static bool is_one_of(const char *text, const char *const *list)
{
	while (*list && strcmp(text, *list))
		list++;
	return *list != NULL;
}

/* Names and files are those of the specimen: truncation loses some and invents none. */
static void assert_known_frames(const struct dwarf_result *result)
{
	static const char *const names[] = { "f", "inlined", "space::inlined", "?", NULL };
	static const char *const files[] = { "", "/src/a.c", "/src/b.h", NULL };

	for (uint64_t address = 0x1000; address < 0x3000; address += 8) {
		struct index_frame frames[INDEX_MAX_FRAMES];
		size_t count = index_lookup(result->index, address, frames, INDEX_MAX_FRAMES);

		for (size_t i = 0; i < count; i++) {
			assert_true(is_one_of(frames[i].name, names));
			assert_true(is_one_of(frames[i].file, files));
		}
	}
}

enum { SECTIONS = 5 };

static struct buffer *section_of(struct dwarf_writer *w, size_t number)
{
	struct buffer *sections[SECTIONS] = { &w->info, &w->abbrev, &w->line, &w->rnglists,
		&w->str };

	return sections[number];
}

static void every_truncation(void **state)
{
	struct dwarf_writer w;

	(void)state;
	write_specimen(&w);
	for (size_t i = 0; i < SECTIONS; i++) {
		struct buffer *b = section_of(&w, i);
		size_t whole = b->size;

		for (b->size = 0; b->size < whole; b->size++) {
			struct dwarf_result result;

			dwarf_writer_read(&w, false, &result);
			assert_int_equal(result.error, 0);
			/* No unit is complete; some of the other sections are not needed.
			 */
			if (b == &w.info)
				assert_int_equal(result.broken, b->size > 0);
			assert_known_frames(&result);
			index_destroy(result.index);
		}
	}
	dwarf_writer_deinit(&w);
}

/* Damage after a valid unit does not affect its functions. */
static void read_damaged(struct dwarf_writer *w)
{
	struct dwarf_result result;

	dwarf_writer_read(w, false, &result);
	assert_int_equal(result.error, 0);
	assert_true(result.broken <= 1);
	assert_frames(&result, 0x2008, "sound :0:0");
	index_destroy(result.index);
}

static void every_byte_changed(void **state)
{
	static const uint8_t masks[] = { 0xff, 0x80, 0x01 };
	size_t begins[SECTIONS];
	struct dwarf_writer w;

	(void)state;
	dwarf_writer_init(&w);
	add_sound_unit(&w);
	for (size_t i = 0; i < SECTIONS; i++)
		begins[i] = section_of(&w, i)->size;
	put_specimen(&w);
	for (size_t i = 0; i < SECTIONS; i++) {
		struct buffer *b = section_of(&w, i);

		for (size_t at = begins[i]; at < b->size; at++) {
			for (size_t mask = 0; mask < ARRAY_SIZE(masks); mask++) {
				b->bytes[at] ^= masks[mask];
				read_damaged(&w);
				b->bytes[at] ^= masks[mask];
			}
		}
	}
	dwarf_writer_deinit(&w);
}

static void undamaged_specimen_is_read(void **state)
{
	struct dwarf_result result;
	struct dwarf_writer w;

	(void)state;
	write_specimen(&w);
	dwarf_writer_read(&w, false, &result);
	dwarf_writer_deinit(&w);
	assert_int_equal(result.broken, 0);
	assert_frames(&result, 0x1010, "space::inlined /src/a.c:7:3 < f /src/b.h:22:0");
	index_destroy(result.index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_abbreviation_code),
		cmocka_unit_test(unknown_form),
		cmocka_unit_test(indirect_form_of_itself),
		cmocka_unit_test(abbreviations_cut_off),
		cmocka_unit_test(abbreviations_beyond_the_section),
		cmocka_unit_test(unsorted_abbreviations),
		cmocka_unit_test(loops_of_origins),
		cmocka_unit_test(invalid_origins),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(sibling_backwards),
		cmocka_unit_test(block_longer_than_the_unit),
		cmocka_unit_test(ranges_that_never_end),
		cmocka_unit_test(indexes_out_of_bounds),
		cmocka_unit_test(unit_longer_than_the_section),
		cmocka_unit_test(unsupported_versions_and_address_sizes),
		cmocka_unit_test(huge_file_counts),
		cmocka_unit_test(line_table_outside_of_the_section),
		cmocka_unit_test(every_truncation),
		cmocka_unit_test(every_byte_changed),
		cmocka_unit_test(undamaged_specimen_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
