/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/go/go.h"
#include "tests/unit/gopclntab_writer.h"

static struct gopclntab_writer w;
static const unsigned int formats[] = { 16, 18, 20 };

/*
 * main.outer covers 0x00-0x40 with code up to 0x30; main.middle is inlined at 0x10-0x28 (called at
 * 0x08), main.inner into it at 0x18-0x20 (called at 0x14). main.next, 0x40-0x60, has no inlines.
 */
static uint32_t outer_tables[3], trees[2];

static void table(int which, const struct gopclntab_table_part *parts, size_t count)
{
	outer_tables[which] = gopclntab_writer_table(&w, parts, count);
}

static struct gopclntab_function_spec outer(void)
{
	static const struct gopclntab_table_part lines[] = { { 8, 10 }, { 4, 11 }, { 12, 20 },
		{ 8, 30 }, { 8, 21 }, { 8, 12 } };
	static const struct gopclntab_table_part inlined[] = { { 0x10, -1 }, { 8, 0 }, { 8, 1 },
		{ 8, 0 }, { 8, -1 } };
	static const struct gopclntab_table_part files[] = { { 0x18, 0 }, { 8, 1 }, { 0x10, 0 } };
	uint32_t name = gopclntab_writer_name(&w, "main.outer");

	gopclntab_writer_path(&w, "/src/main.go");
	gopclntab_writer_path(&w, "/src/inner.go");
	table(0, files, ARRAY_SIZE(files));
	table(1, lines, ARRAY_SIZE(lines));
	table(2, inlined, ARRAY_SIZE(inlined));
	trees[0] = gopclntab_writer_inline(&w, gopclntab_writer_name(&w, "main.middle"), 8, 18);
	trees[1] = gopclntab_writer_inline(&w, gopclntab_writer_name(&w, "main.inner"), 0x14, 28);
	return (struct gopclntab_function_spec){
		.name = name,
		.start_line = 9,
		.pcfile = outer_tables[0],
		.pcln = outer_tables[1],
		.pcinline = outer_tables[2],
		.tree = trees[0],
	};
}

static struct gopclntab_function_spec next(const char *name)
{
	static const struct gopclntab_table_part lines[] = { { 0x18, 40 } };
	static const struct gopclntab_table_part files[] = { { 0x18, 0 } };

	return (struct gopclntab_function_spec){
		.entry = 0x40,
		.name = gopclntab_writer_name(&w, name),
		.start_line = 39,
		.pcfile = gopclntab_writer_table(&w, files, 1),
		.pcln = gopclntab_writer_table(&w, lines, 1),
		.tree = GO_NO_TREE,
	};
}

static void write_two(unsigned int format, const char *second)
{
	struct gopclntab_function_spec spec;

	gopclntab_writer_init(&w, format);
	spec = outer();
	gopclntab_writer_function(&w, &spec);
	spec = next(second);
	gopclntab_writer_function(&w, &spec);
}

static struct source_range text;

/* What gopclntab_read() made of the file as an index; NULL when it failed with *RET_ERROR. */
static struct index *read_file(int *ret_error)
{
	autoclose int fd = gopclntab_writer_file(&w, 0x60);
	autoclose int output = memory_file("", 0);
	struct index_writer *writer = index_writer_create();
	struct elf_image *image = NULL;
	struct index *index = NULL;

	assert_non_null(writer);
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(
		writer_segment(writer, &(struct writer_segment){ GO_TEXT, GO_TEXT_SIZE, 0x1000 }),
		0);
	text = (struct source_range){ 0 };
	*ret_error = gopclntab_read(image, writer, &text);
	if (!*ret_error) {
		assert_int_equal(writer_finish(writer, output), 0);
		assert_int_equal(index_open(output, &index), 0);
	}
	index_writer_destroy(writer);
	elf_image_destroy(image);
	gopclntab_writer_deinit(&w);
	return index;
}

static struct index *read_index(void)
{
	int error;
	struct index *index = read_file(&error);

	assert_int_equal(error, 0);
	return index;
}

static void fails(int expected)
{
	int error;
	struct index *index = read_file(&error);

	assert_int_equal(error, expected);
	assert_null(index);
}

/* `name file:line start, name file:line start` at OFFSET of the text. */
static void answers(const struct index *index, uint64_t offset, const char *expected)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	size_t count = index_lookup(index, GO_TEXT + offset, frames, INDEX_MAX_FRAMES);
	char answer[4096], *at = answer;

	*at = 0;
	for (size_t i = 0; i < count && i < 8; i++)
		at += snprintf(at, (size_t)(answer + sizeof(answer) - at), "%s%s %s:%u %u",
			i ? ", " : "", frames[i].name, frames[i].file, frames[i].line,
			frames[i].start_line);
	assert_string_equal(answer, expected);
}

static void function_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct index *index;

		write_two(formats[i], "main.next");
		index = read_index();
		answers(index, 0,
			formats[i] == 20 ? "main.outer /src/main.go:10 9"
					 : "main.outer /src/main.go:10 0");
		answers(index, 0x0b,
			formats[i] == 20 ? "main.outer /src/main.go:11 9"
					 : "main.outer /src/main.go:11 0");
		answers(index, 0x40,
			formats[i] == 20 ? "main.next /src/main.go:40 39"
					 : "main.next /src/main.go:40 0");
		index_destroy(index);
	}
}

static void inline_chains(void **state)
{
	(void)state;
	write_two(20, "main.next");
	struct index *index = read_index();

	answers(index, 0x10, "main.middle /src/main.go:20 18, main.outer /src/main.go:11 9");
	answers(index, 0x18,
		"main.inner /src/inner.go:30 28, main.middle /src/main.go:20 18, "
		"main.outer /src/main.go:11 9");
	answers(index, 0x27, "main.middle /src/main.go:21 18, main.outer /src/main.go:11 9");
	answers(index, 0x28, "main.outer /src/main.go:12 9");
	index_destroy(index);
}

static void inline_chains_of_older_formats(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct index *index;

		write_two(formats[i], "main.next");
		index = read_index();
		answers(index, 0x1f,
			"main.inner /src/inner.go:30 0, main.middle /src/main.go:20 0, "
			"main.outer /src/main.go:11 0");
		index_destroy(index);
	}
}

static void padding_has_no_function(void **state)
{
	(void)state;
	write_two(20, "main.next");
	struct index *index = read_index();

	answers(index, 0x2f, "main.outer /src/main.go:12 9");
	answers(index, 0x30, "");
	answers(index, 0x3f, "");
	answers(index, 0x58, "");
	index_destroy(index);
}

/* Signal handlers return to its first instruction; lookups subtract 1. */
static void signal_return_begins_in_the_padding(void **state)
{
	static const char *const names[] = { "runtime.sigreturn", "runtime.sigreturn__sigaction",
		"runtime.sigreturn__sigaction.abi0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char expected[128];
		struct index *index;

		write_two(20, names[i]);
		index = read_index();
		snprintf(expected, sizeof(expected), "%s /src/main.go:40 39", names[i]);
		answers(index, 0x2f, "main.outer /src/main.go:12 9");
		answers(index, 0x3e, "");
		answers(index, 0x3f, expected);
		answers(index, 0x40, expected);
		answers(index, 0x57, expected);
		answers(index, 0x58, "");
		index_destroy(index);
	}
}

/* The byte before it belongs to the function that it follows without padding. */
static void signal_return_takes_no_code(void **state)
{
	static const struct gopclntab_table_part lines[] = { { 0x40, 10 } };
	struct gopclntab_function_spec spec;
	struct index *index;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = outer();
	spec.pcln = gopclntab_writer_table(&w, lines, 1);
	gopclntab_writer_function(&w, &spec);
	spec = next("runtime.sigreturn");
	gopclntab_writer_function(&w, &spec);
	index = read_index();
	answers(index, 0x3f, "main.outer :0 9");
	answers(index, 0x40, "runtime.sigreturn /src/main.go:40 39");
	index_destroy(index);
}

static void only_the_text_has_functions(void **state)
{
	(void)state;
	write_two(20, "main.next");
	struct index *index = read_index();

	assert_int_equal(text.low, GO_TEXT);
	assert_int_equal(text.high, GO_TEXT + 0x60);
	answers(index, 0x60, "");
	index_destroy(index);
}

static void generic_names_are_shown_short(void **state)
{
	struct index_frame frame;
	struct index *index;

	(void)state;
	write_two(20, "main.sum[go.shape.[]int].func1");
	index = read_index();
	assert_int_equal(index_lookup(index, GO_TEXT + 0x40, &frame, 1), 1);
	assert_string_equal(frame.name, "main.sum[...].func1");
	assert_string_equal(frame.linkage, "main.sum[go.shape.[]int].func1");
	index_destroy(index);
}

static void brackets_are_arrays_before_generics(void **state)
{
	struct index *index;

	(void)state;
	write_two(16, "type..eq.[15]string");
	index = read_index();
	answers(index, 0x40, "type..eq.[15]string /src/main.go:40 0");
	index_destroy(index);
}

static void function_without_lines_has_its_name(void **state)
{
	struct gopclntab_function_spec spec;
	struct index *index;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = outer();
	gopclntab_writer_function(&w, &spec);
	spec = next("c_function");
	spec.pcln = 0;
	spec.pcfile = 0;
	gopclntab_writer_function(&w, &spec);
	index = read_index();
	answers(index, 0x5f, "c_function :0 39");
	index_destroy(index);
}

static void pclntab_is_found_in_the_relro_section(void **state)
{
	struct index *index;

	(void)state;
	write_two(20, "main.next");
	w.section = ".data.rel.ro.gopclntab";
	w.module_section = ".go.module";
	index = read_index();
	answers(index, 0x40, "main.next /src/main.go:40 39");
	index_destroy(index);
}

static void pclntab_is_found_without_section_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct index *index;

		write_two(formats[i], "main.next");
		w.elf.no_section_headers = true;
		index = read_index();
		answers(index, 0x28,
			formats[i] == 20 ? "main.outer /src/main.go:12 9"
					 : "main.outer /src/main.go:12 0");
		index_destroy(index);
	}
}

static void merged_by_the_external_linker(void **state)
{
	static const char note[16] = "";
	struct index *index;

	(void)state;
	write_two(20, "main.next");
	w.section = ".data.rel.ro";
	elf_writer_section(&w.elf, &(struct elf_section_spec){ .name = ".go.buildinfo",
					   .flags = SHF_ALLOC | SHF_WRITE,
					   .address = 0x700000,
					   .bytes = note,
					   .size = sizeof(note) });
	index = read_index();
	answers(index, 0x40, "main.next /src/main.go:40 39");
	index_destroy(index);
}

static void programs_without_go_are_not_searched(void **state)
{
	(void)state;
	write_two(20, "main.next");
	w.section = ".rodata.blob";
	fails(-ENOENT);
}

static void no_module_data_costs_the_inlines(void **state)
{
	struct index *index;

	(void)state;
	write_two(20, "main.next");
	w.no_module = true;
	index = read_index();
	answers(index, 0x08, "main.outer /src/main.go:11 9");
	answers(index, 0x18, "main.outer :0 9");
	answers(index, 0x28, "main.outer /src/main.go:12 9");
	index_destroy(index);
}

static void neither_module_data_nor_text_start(void **state)
{
	(void)state;
	write_two(20, "main.next"); /* as in 1.26 */
	w.no_module = true;
	w.text_start = 0;
	fails(-EOPNOTSUPP);
}

static void module_data_with_another_count_is_rejected(void **state)
{
	struct index *index;

	(void)state;
	write_two(20, "main.next");
	w.module_functions = 7;
	index = read_index();
	answers(index, 0x08, "main.outer /src/main.go:11 9");
	answers(index, 0x18, "main.outer :0 9");
	answers(index, 0x28, "main.outer /src/main.go:12 9");
	index_destroy(index);
}

static void wrong_funcdata_base_costs_the_inlines(void **state)
{
	static const uint64_t bases[] = { GO_FUNCDATA + 4, GO_TEXT, GO_PCLNTAB, 1, UINT64_MAX - 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		struct index *index;

		write_two(20, "main.next");
		w.module_funcdata = bases[i];
		index = read_index();
		answers(index, 0x18, "main.outer :0 9");
		answers(index, 0x28, "main.outer /src/main.go:12 9");
		index_destroy(index);
	}
}

static void go_1_27_has_the_funcdata_base_elsewhere(void **state)
{
	struct index *index;

	(void)state;
	write_two(20, "main.next");
	w.module_funcdata_at = 344;
	index = read_index();
	answers(index, 0x18,
		"main.inner /src/inner.go:30 28, main.middle /src/main.go:20 18, "
		"main.outer /src/main.go:11 9");
	index_destroy(index);
}

static void functions_elsewhere_than_the_module_data_says(void **state)
{
	(void)state;
	write_two(20, "main.next");
	w.module_text = GO_TEXT + 8;
	fails(-EOPNOTSUPP);
}

static void unknown_magic(void **state)
{
	(void)state;
	write_two(20, "main.next");
	w.magic = 0xfffffffb; /* 1.15 and before */
	fails(-EOPNOTSUPP);
	write_two(20, "main.next");
	w.magic = 0xfffffff2;
	fails(-EOPNOTSUPP);
}

static void invalid_header(void **state)
{
	(void)state;
	write_two(20, "main.next");
	w.pointer_size = 4;
	fails(-EOPNOTSUPP);
	write_two(20, "main.next");
	w.quantum = 3;
	fails(-EOPNOTSUPP);
	for (int i = 0; i < 5; i++) {
		write_two(20, "main.next");
		w.offsets[i] = 1 << 30;
		fails(-EOPNOTSUPP);
	}
}

static void more_functions_than_bytes(void **state)
{
	static const uint64_t counts[] = { 100000, 1 << 23 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		write_two(20, "main.next");
		w.functions = counts[i];
		fails(-EBADMSG);
	}
	write_two(20, "main.next");
	w.functions = UINT64_C(1) << 40;
	fails(-EOPNOTSUPP);
}

static void functions_outside_of_the_file(void **state)
{
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.entry = 0x30000000;
	gopclntab_writer_function(&w, &spec);
	fails(-EBADMSG);
}

/* The second function's record is broken; the first is still found. */
static void broken_second(struct gopclntab_function_spec spec, const char *expected)
{
	struct gopclntab_function_spec first;
	struct index *index;

	first = outer();
	gopclntab_writer_function(&w, &first);
	gopclntab_writer_function(&w, &spec);
	index = read_index();
	answers(index, 0, "main.outer /src/main.go:10 9");
	answers(index, 0x40, expected);
	index_destroy(index);
}

static void name_outside_of_the_table(void **state)
{
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.name = 1 << 30;
	broken_second(spec, "");
}

static void name_inside_of_another(void **state)
{
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.name += 5;
	broken_second(spec, "");
}

static void too_many_pcdata(void **state)
{
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.pcdata_count = 1 << 30;
	broken_second(spec, "");
}

static void tables_outside_of_the_bytes(void **state)
{
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.pcln = 1 << 30;
	spec.pcfile = 1 << 30;
	spec.pcinline = 1 << 30;
	spec.tree = 0;
	broken_second(spec, "main.next :0 39");
}

static void table_that_never_advances(void **state)
{
	static const struct gopclntab_table_part lines[] = { { 0, 40 }, { 0, 41 }, { 8, 42 } };
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.pcln = gopclntab_writer_table(&w, lines, ARRAY_SIZE(lines));
	broken_second(spec, "main.next :0 39");
}

static void table_beyond_the_function_is_cut(void **state)
{
	static const struct gopclntab_table_part lines[] = { { 0x10, 40 }, { 0x10, 41 } };
	static const struct gopclntab_table_part longer[] = { { 0x1f, 40 }, { 0x20, 41 } };
	static const struct gopclntab_table_part files[] = { { 0x20, 0 } };
	struct gopclntab_function_spec spec;
	struct index *index;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = outer();
	spec.pcln = gopclntab_writer_table(&w, lines, ARRAY_SIZE(lines));
	gopclntab_writer_function(&w, &spec);
	spec = next("main.next");
	spec.pcln = gopclntab_writer_table(&w, longer, ARRAY_SIZE(longer));
	spec.pcfile = gopclntab_writer_table(&w, files, 1);
	gopclntab_writer_function(&w, &spec);
	index = read_index();
	answers(index, 0x5f, "main.next /src/main.go:41 39");
	answers(index, 0x60, "");
	index_destroy(index);
}

static void unknown_file_number(void **state)
{
	static const struct gopclntab_table_part files[] = { { 0x18, 1 << 20 } };
	struct gopclntab_function_spec spec;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = next("main.next");
	spec.pcfile = gopclntab_writer_table(&w, files, 1);
	broken_second(spec, "main.next :40 39");
}

static void functions_out_of_order(void **state)
{
	struct gopclntab_function_spec spec;
	struct index *index;

	(void)state;
	gopclntab_writer_init(&w, 20);
	spec = outer();
	gopclntab_writer_function(&w, &spec);
	spec = next("main.next");
	gopclntab_writer_function(&w, &spec);
	spec = next("main.back");
	spec.entry = 0x20;
	gopclntab_writer_function(&w, &spec);
	index = read_index();
	answers(index, 0, "main.outer /src/main.go:10 9");
	answers(index, 0x28, "main.outer /src/main.go:12 9");
	index_destroy(index);
}

/* main.loop at 0x40, its code inlined call 0 at 0x48-0x50 and 1 at 0x50-0x58. */
static void inline_tree(
	uint32_t first_parent, uint32_t second_parent, int32_t second_number, const char *expected)
{
	const struct gopclntab_table_part inlined[] = { { 8, -1 }, { 8, 0 }, { 8, second_number } };
	struct gopclntab_function_spec first, spec;
	struct index *index;
	uint32_t name;

	gopclntab_writer_init(&w, 20);
	first = outer();
	gopclntab_writer_function(&w, &first);
	spec = next("main.loop");
	spec.pcinline = gopclntab_writer_table(&w, inlined, ARRAY_SIZE(inlined));
	name = gopclntab_writer_name(&w, "main.call");
	spec.tree = gopclntab_writer_inline(&w, name, first_parent, 3);
	gopclntab_writer_inline(&w, name, second_parent, 3);
	gopclntab_writer_function(&w, &spec);
	index = read_index();
	answers(index, 0x50, expected);
	answers(index, 0x40, "main.loop /src/main.go:40 39");
	index_destroy(index);
}

static void inline_entries_that_call_each_other(void **state)
{
	(void)state;
	inline_tree(0x10, 8, 1, "main.loop :0 39");
}

static void inline_entry_that_calls_itself(void **state)
{
	(void)state;
	inline_tree(0, 0x10, 1, "main.loop :0 39");
}

static void inline_parent_outside_of_the_function(void **state)
{
	(void)state;
	inline_tree(0, 0x18, 1, "main.loop :0 39");
	inline_tree(0, UINT32_MAX, 1, "main.loop :0 39");
}

static void inline_number_that_is_huge(void **state)
{
	(void)state;
	inline_tree(0, 8, 1000000, "main.loop :0 39");
	inline_tree(0, 8, INT32_MAX, "main.loop :0 39");
}

static void inline_numbers_below_none(void **state)
{
	(void)state;
	inline_tree(0, 8, -5, "main.loop /src/main.go:40 39");
}

static void well_formed_inline_tree(void **state)
{
	(void)state;
	inline_tree(0, 8, 1,
		"main.call /src/main.go:40 3, main.call /src/main.go:40 3, "
		"main.loop /src/main.go:40 39");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(function_lines),
		cmocka_unit_test(inline_chains),
		cmocka_unit_test(inline_chains_of_older_formats),
		cmocka_unit_test(padding_has_no_function),
		cmocka_unit_test(signal_return_begins_in_the_padding),
		cmocka_unit_test(signal_return_takes_no_code),
		cmocka_unit_test(only_the_text_has_functions),
		cmocka_unit_test(generic_names_are_shown_short),
		cmocka_unit_test(brackets_are_arrays_before_generics),
		cmocka_unit_test(function_without_lines_has_its_name),
		cmocka_unit_test(pclntab_is_found_in_the_relro_section),
		cmocka_unit_test(pclntab_is_found_without_section_headers),
		cmocka_unit_test(merged_by_the_external_linker),
		cmocka_unit_test(programs_without_go_are_not_searched),
		cmocka_unit_test(no_module_data_costs_the_inlines),
		cmocka_unit_test(neither_module_data_nor_text_start),
		cmocka_unit_test(module_data_with_another_count_is_rejected),
		cmocka_unit_test(wrong_funcdata_base_costs_the_inlines),
		cmocka_unit_test(go_1_27_has_the_funcdata_base_elsewhere),
		cmocka_unit_test(functions_elsewhere_than_the_module_data_says),
		cmocka_unit_test(unknown_magic),
		cmocka_unit_test(invalid_header),
		cmocka_unit_test(more_functions_than_bytes),
		cmocka_unit_test(functions_outside_of_the_file),
		cmocka_unit_test(name_outside_of_the_table),
		cmocka_unit_test(name_inside_of_another),
		cmocka_unit_test(too_many_pcdata),
		cmocka_unit_test(tables_outside_of_the_bytes),
		cmocka_unit_test(table_that_never_advances),
		cmocka_unit_test(table_beyond_the_function_is_cut),
		cmocka_unit_test(unknown_file_number),
		cmocka_unit_test(functions_out_of_order),
		cmocka_unit_test(inline_entries_that_call_each_other),
		cmocka_unit_test(inline_entry_that_calls_itself),
		cmocka_unit_test(inline_parent_outside_of_the_function),
		cmocka_unit_test(inline_number_that_is_huge),
		cmocka_unit_test(inline_numbers_below_none),
		cmocka_unit_test(well_formed_inline_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
