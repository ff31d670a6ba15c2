/* SPDX-License-Identifier: Apache-2.0 */
/* The builder on whole files: how sources combine, and files that yield nothing. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "symbolizer/indexer/builder.h"
#include "tests/unit/bytes.h"
#include "tests/unit/small_index.h"

static struct index *index_of(struct elf_writer *elf)
{
	autoclose int fd = elf_writer_file(elf);
	autoclose int output = memory_file("", 0);
	struct sandbox_result result = { .error = 1 };
	struct index *index = NULL;

	elf_writer_deinit(elf);
	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(result.error, 0);
	assert_int_equal(index_open(output, &index), 0);
	return index;
}

static int error_of(const void *bytes, size_t size)
{
	autoclose int fd = memory_file(bytes, size);
	autoclose int output = memory_file("", 0);
	struct sandbox_result result = { 0 };
	int err = builder_run(fd, output, &result);

	assert_int_equal(result.error, err);
	assert_true(!err || lseek(output, 0, SEEK_END) == 0);
	return err;
}

static void add_function(struct elf_writer *elf, const char *name, uint64_t low, uint64_t size)
{
	elf_writer_symbol(elf, &(struct elf_symbol_spec){ .name = name,
				       .address = TEXT + low,
				       .size = size,
				       .section = 1,
				       .bind = STB_GLOBAL });
}

static void test_symbols_segments_and_build_id(void **)
{
	struct elf_writer elf;
	struct index *index;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", TEXT, TEXT_SIZE);
	elf_writer_build_id(&elf, 0x300, "\1\2\3\4", 4);
	add_function(&elf, "_ZN3foo3barEi", 0x10, 0x10);
	index = index_of(&elf);
	assert_string_equal(names(index, 0x18), "foo::bar(int)");
	assert_string_equal(names(index, 0x20), "");
	assert_int_equal(index_segment_count(index), 1);
	assert_int_equal(index_segment(index, 0).address, TEXT);
	assert_int_equal(index_build_id(index)->size, 4);
	assert_int_equal(index_sources(index), INDEX_SOURCE_SYMTAB);
	assert_null(index_runtime_facts(index, 0));
	index_destroy(index);
}

static void test_the_file_is_known_by_its_content(void **)
{
	autocall(elf_writer_deinit) struct elf_writer elf;
	autoclose int output = memory_file("", 0);
	autoclose int fd = -1;
	struct sandbox_result result;
	struct file_hash expected;
	struct index *index;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", TEXT, TEXT_SIZE);
	add_function(&elf, "main", 0x10, 0x10);
	fd = elf_writer_file(&elf);
	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(index_open(output, &index), 0);
	expected = file_hash_of(elf.file.bytes, elf.file.size);
	assert_memory_equal(index_file_hash(index), &expected, sizeof(expected));
	index_destroy(index);
}

static void test_each_segment_has_its_own_load_bias(void **)
{
	struct elf_writer elf;
	struct index *index;
	uint64_t offsets[2], address;
	size_t segment;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", TEXT, 0x100);
	elf_writer_code(&elf, ".text.hot", 0xa00000, 0x100);
	offsets[0] = elf.sections[1].sh_offset;
	offsets[1] = elf.sections[2].sh_offset;
	index = index_of(&elf);
	assert_true(index_address(index, offsets[1] + 0x10, &address, &segment));
	assert_int_equal(address, 0xa00010);
	assert_int_equal(segment, 1);
	assert_true(index_address(index, offsets[0], &address, &segment));
	assert_int_equal(address, TEXT);
	index_destroy(index);
}

static void test_without_symbols_there_are_no_names(void **)
{
	struct elf_writer elf;
	struct index *index;

	elf_writer_init(&elf);
	elf.no_section_headers = true;
	elf_writer_code(&elf, ".text", TEXT, TEXT_SIZE);
	index = index_of(&elf);
	assert_string_equal(names(index, 0x18), "");
	assert_int_equal(index_segment_count(index), 1);
	assert_int_equal(index_sources(index), 0);
	index_destroy(index);
}

static void test_broken_dwarf_costs_only_itself(void **)
{
	static const char *const sections[] = { ".debug_info", ".debug_abbrev", ".debug_line",
		".debug_str" };
	struct elf_writer elf;
	struct index *index;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", TEXT, TEXT_SIZE);
	add_function(&elf, "survivor", 0x10, 0x10);
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		elf_writer_section(
			&elf, &(struct elf_section_spec){ .name = sections[i], .size = 100 });
	index = index_of(&elf);
	assert_string_equal(names(index, 0x18), "survivor");
	assert_true(index_sources(index) & INDEX_SOURCE_DWARF_PARTIAL);
	assert_false(index_sources(index) & INDEX_SOURCE_DWARF);
	index_destroy(index);
}

static void test_files_that_are_no_programs(void **)
{
	assert_int_equal(error_of("", 0), -EBADMSG);
	assert_int_equal(error_of("#!/bin/sh\nexec true\n", 20), -EBADMSG);
	assert_int_equal(error_of("\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\0\0\0\0", 20), -EOPNOTSUPP);
}

static void test_output_that_cannot_be_written(void **)
{
	autoclose int output = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct sandbox_result result;
	struct elf_writer elf;
	autoclose int fd = -1;

	assert_true(output >= 0);
	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", TEXT, TEXT_SIZE);
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	assert_int_equal(builder_run(fd, output, &result), -ENOSPC);
}

/* The test itself: a real program with DWARF, found by its own build. */
static void test_this_program(void **)
{
	const unsigned int two_below_the_name = __LINE__;
	autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	autoclose int output = memory_file("", 0);
	struct index_frame frame = { .name = "" };
	struct sandbox_result result;
	struct index *index = NULL;
	bool found = false;

	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(result.broken_units, 0);
	assert_int_equal(index_open(output, &index), 0);
	assert_true(index_segment_count(index) > 0);
	for (uint64_t i = 0; i < index_segment(index, 0).size && !found; i++)
		found = index_lookup(index, index_segment(index, 0).address + i, &frame, 1) &&
			!strcmp(frame.name, "test_this_program");
	assert_true(found);
	assert_true(strstr(frame.file, "tests/unit/test_builder.c"));
	assert_int_equal(frame.start_line, two_below_the_name - 2);
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols_segments_and_build_id),
		cmocka_unit_test(test_the_file_is_known_by_its_content),
		cmocka_unit_test(test_each_segment_has_its_own_load_bias),
		cmocka_unit_test(test_without_symbols_there_are_no_names),
		cmocka_unit_test(test_broken_dwarf_costs_only_itself),
		cmocka_unit_test(test_files_that_are_no_programs),
		cmocka_unit_test(test_output_that_cannot_be_written),
		cmocka_unit_test(test_this_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
