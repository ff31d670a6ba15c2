/* SPDX-License-Identifier: Apache-2.0 */
/* The builder with debug files: which file's names win. */
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <lzma.h>
#include <unistd.h>

#include "symbolizer/indexer/builder.h"
#include "tests/unit/bytes.h"
#include "tests/unit/small_index.h"

static const uint8_t one_id[] = { 1, 2, 3, 4 }, other_id[] = { 1, 2, 3, 5 };

/* A file with code; NAME is a symbol of it (NULL: none), ID its build ID (NULL: none). */
static void start(struct elf_writer *elf, const char *name, const void *id)
{
	elf_writer_init(elf);
	elf_writer_code(elf, ".text", TEXT, TEXT_SIZE);
	if (id)
		elf_writer_build_id(elf, 0x300, id, sizeof(one_id));
	if (name)
		elf_writer_symbol(elf,
			&(struct elf_symbol_spec){
				.name = name, .address = TEXT + 0x10, .size = 0x10, .section = 1 });
}

static int file_of(const char *name, const void *id)
{
	struct elf_writer elf;
	int fd;

	start(&elf, name, id);
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	return fd;
}

static uint32_t crc_of(int fd)
{
	char bytes[1 << 18];
	ssize_t size = pread(fd, bytes, sizeof(bytes), 0);

	assert_in_range(size, 1, sizeof(bytes) - 1);
	return libdeflate_crc32(0, bytes, (size_t)size);
}

/* Takes the fds. */
static struct index *build(int fd, const struct debug_file *debug_files, size_t count)
{
	struct sandbox_files files = { .elf_fd = fd, .output_fd = memory_file("", 0) };
	struct sandbox_result result;
	struct index *index;

	for (size_t i = 0; i < count; i++)
		files.debug_files.items[files.debug_files.count++] = debug_files[i];
	assert_int_equal(builder_run_files(&files, &result), 0);
	assert_int_equal(index_open(files.output_fd, &index), 0);
	debug_files_close(&files.debug_files);
	close(files.elf_fd);
	close(files.output_fd);
	return index;
}

static void assert_name(struct index *index, const char *name)
{
	assert_string_equal(names(index, 0x18), name);
	index_destroy(index);
}

static void test_the_same_build_id_counts(void **state)
{
	const struct debug_file c = { file_of("debug", one_id), DEBUG_FILE_SEPARATE, 0 };
	struct index *index = build(file_of(NULL, one_id), &c, 1);

	(void)state;
	assert_true(index_sources(index) & INDEX_SOURCE_DEBUG_FILES);
	assert_false(index_lacks_debug(index));
	assert_name(index, "debug");
}

static void test_another_build_id_does_not(void **state)
{
	const struct debug_file c[] = { { file_of("other", other_id), DEBUG_FILE_SEPARATE, 0 },
		{ file_of("none", NULL), DEBUG_FILE_SEPARATE, 0 },
		{ file_of("right", one_id), DEBUG_FILE_SEPARATE, 0 } };

	(void)state;
	assert_name(build(file_of(NULL, one_id), c, 3), "right");
}

static void test_no_matching_debug_file(void **state)
{
	const struct debug_file c[] = { { file_of("other", other_id), DEBUG_FILE_SEPARATE, 0 },
		{ memory_file("no ELF file", 11), DEBUG_FILE_SEPARATE, 0 },
		{ memory_file("", 0), DEBUG_FILE_LINKED, 0 } };
	struct index *index = build(file_of(NULL, one_id), c, 3);

	(void)state;
	/* They were examined: no need to try again. */
	assert_false(index_lacks_debug(index));
	assert_name(index, "");
	index = build(file_of(NULL, one_id), NULL, 0);
	assert_true(index_lacks_debug(index));
	index_destroy(index);
}

static void test_examined_files_are_reported(void **state)
{
	const struct debug_file debug = { file_of("debug", one_id), DEBUG_FILE_SEPARATE, 0 };
	struct debug_file split = { memory_file("no ELF file", 11), DEBUG_FILE_SPLIT, 0 };
	struct index *index = build(file_of(NULL, one_id), &debug, 1);

	(void)state;
	assert_false(index_sources(index) & (INDEX_SOURCE_SPLIT | INDEX_SOURCE_NOT_SHARED));
	assert_false(index_lacks_shared(index));
	assert_false(index_lacks_split(index));
	index_destroy(index);
	index = build(file_of(NULL, one_id), &split, 1);
	assert_true(index_sources(index) & INDEX_SOURCE_SPLIT);
	index_destroy(index);
}

static void test_a_link_wants_crc_and_build_id(void **state)
{
	int right = file_of("right", one_id), other = file_of("other", other_id);
	const struct debug_file wrong[] = { { right, DEBUG_FILE_LINKED, crc_of(right) ^ 1 },
		{ other, DEBUG_FILE_LINKED, crc_of(other) } };
	struct debug_file good;

	(void)state;
	assert_name(build(file_of(NULL, one_id), wrong, 2), "");
	right = file_of("right", one_id);
	good = (struct debug_file){ right, DEBUG_FILE_LINKED, crc_of(right) };
	assert_name(build(file_of(NULL, one_id), &good, 1), "right");
}

static void test_without_build_ids_the_crc_decides(void **state)
{
	int right = file_of("right", NULL);
	const struct debug_file linked = { right, DEBUG_FILE_LINKED, crc_of(right) };
	const struct debug_file by_id = { file_of("wrong", NULL), DEBUG_FILE_SEPARATE, 0 };

	(void)state;
	assert_name(build(file_of(NULL, NULL), &linked, 1), "right");
	assert_name(build(file_of(NULL, NULL), &by_id, 1), "");
}

static void test_a_file_for_another_machine_does_not_match(void **state)
{
	struct elf_writer elf;
	struct debug_file c = { -1, DEBUG_FILE_SEPARATE, 0 };

	(void)state;
	start(&elf, "arm", one_id);
	elf.machine = EM_AARCH64;
	c.fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	assert_name(build(file_of(NULL, one_id), &c, 1), "");
}

static void test_own_symbols_are_kept(void **state)
{
	const struct debug_file c = { file_of("debug", one_id), DEBUG_FILE_SEPARATE, 0 };
	struct elf_writer elf;
	struct index *index;

	(void)state;
	start(&elf, NULL, one_id);
	elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "exported",
					.address = TEXT + 0x40,
					.size = 0x10,
					.section = 1,
					.bind = STB_GLOBAL,
					.dynamic = true });
	index = build(elf_writer_file(&elf), &c, 1);
	elf_writer_deinit(&elf);
	assert_string_equal(names(index, 0x48), "exported");
	assert_name(index, "debug");
}

/* ---- .gnu_debugdata ------------------------------------------------------------------------- */

static int with_small(const void *packed, size_t size)
{
	struct elf_writer elf;
	int fd;

	start(&elf, NULL, one_id);
	elf_writer_section(&elf,
		&(struct elf_section_spec){ ".gnu_debugdata", .bytes = packed, .size = size });
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	return fd;
}

static size_t pack(const void *bytes, size_t size, uint8_t *packed, size_t room)
{
	size_t used = 0;

	assert_int_equal(lzma_easy_buffer_encode(
				 0, LZMA_CHECK_CRC32, NULL, bytes, size, packed, &used, room),
		LZMA_OK);
	return used;
}

static void test_small_symbols_are_unpacked(void **state)
{
	struct elf_writer small;
	uint8_t packed[16384];
	size_t size;

	(void)state;
	start(&small, "hidden", NULL);
	elf_writer_finish(&small);
	size = pack(small.file.bytes, small.file.size, packed, sizeof(packed));
	elf_writer_deinit(&small);
	assert_name(build(with_small(packed, size), NULL, 0), "hidden");
	/* Cut short, and with a wrong byte in the middle. */
	assert_name(build(with_small(packed, size - 8), NULL, 0), "");
	packed[size / 2] ^= 0x55;
	assert_name(build(with_small(packed, size), NULL, 0), "");
	assert_name(build(with_small("not xz at all", 13), NULL, 0), "");
}

static void test_small_symbols_over_the_limit_are_left_out(void **state)
{
	const size_t size = (size_t)65 << 20;
	autofree uint8_t *zeros = calloc(1, size), *packed = malloc(1 << 20);

	(void)state;
	assert_non_null(zeros);
	assert_non_null(packed);
	assert_name(build(with_small(packed, pack(zeros, size, packed, 1 << 20)), NULL, 0), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_build_id_counts),
		cmocka_unit_test(test_another_build_id_does_not),
		cmocka_unit_test(test_no_matching_debug_file),
		cmocka_unit_test(test_examined_files_are_reported),
		cmocka_unit_test(test_a_link_wants_crc_and_build_id),
		cmocka_unit_test(test_without_build_ids_the_crc_decides),
		cmocka_unit_test(test_a_file_for_another_machine_does_not_match),
		cmocka_unit_test(test_own_symbols_are_kept),
		cmocka_unit_test(test_small_symbols_are_unpacked),
		cmocka_unit_test(test_small_symbols_over_the_limit_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
