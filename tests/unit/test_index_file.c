/* SPDX-License-Identifier: Apache-2.0 */
/* The index file: the module's facts, page tables, and broken or hostile files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "symbolizer/index/format.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/index/index.h"
#include "tests/unit/small_index.h"

static void test_bad_node_numbers_are_refused(void **)
{
	struct index_writer *w = create();
	uint32_t number;

	assert_int_equal(writer_node(w, &(struct writer_node){ .parent = 7 }, &number), -EBADMSG);
	assert_int_equal(writer_range(w, 7, TEXT, TEXT + 1), -EBADMSG);
	index_writer_destroy(w);
}

static void test_facts_of_the_module(void **)
{
	struct index_writer *w = create();
	struct build_id id = { .size = 3, .bytes = { 1, 2, 3 } };
	struct index *index;
	uint64_t address;
	size_t segment;

	assert_int_equal(
		writer_segment(w, &(struct writer_segment){ 0x700000, 0x1000, 0x30000 }), 0);
	writer_runtime(w, 5, (const uint32_t[INDEX_RUNTIME_WORDS]){ 21, [10] = 152 });
	writer_build_id(w, &id);
	writer_text_build_id(w, string(w, "abc/def"));
	writer_file_hash(w, &(struct file_hash){ { 1, 2, [15] = 3 } });
	writer_making(w, string(w, "GCC 12.2.0"), INDEX_STRIPPED);
	writer_source(w, INDEX_SOURCE_SYMTAB);
	writer_source(w, INDEX_SOURCE_DWARF);
	index = finish(w);
	assert_int_equal(index_segment_count(index), 2);
	assert_int_equal(index_segment(index, 1).address, 0x700000);
	assert_int_equal(index_segment(index, 2).size, 0);
	assert_true(index_address(index, 0x30010, &address, &segment));
	assert_int_equal(address, 0x700010);
	assert_int_equal(segment, 1);
	assert_false(index_address(index, 0x31000, &address, &segment));
	assert_true(index_file_off(index, 0x700fff, &address));
	assert_int_equal(address, 0x30fff);
	assert_false(index_file_off(index, 0x701000, &address));
	assert_false(index_file_off(index, 0x6fffff, &address));
	assert_int_equal(index_runtime_facts(index, 5)[0], 21);
	assert_int_equal(index_runtime_facts(index, 5)[10], 152);
	assert_null(index_runtime_facts(index, 0));
	assert_true(build_id_equal(index_build_id(index), &id));
	assert_string_equal(index_text_build_id(index), "abc/def");
	assert_int_equal(index_sources(index), INDEX_SOURCE_SYMTAB | INDEX_SOURCE_DWARF);
	assert_memory_equal(index_file_hash(index), (&(struct file_hash){ { 1, 2, [15] = 3 } }),
		sizeof(struct file_hash));
	assert_string_equal(index_toolchain(index), "GCC 12.2.0");
	assert_int_equal(index_kind(index), INDEX_STRIPPED);
	assert_true(index_bytes(index) > sizeof(struct index_header));
	index_forget_pages(index);
	assert_string_equal(index_text_build_id(index), "abc/def");
	index_destroy(index);
}

/* Resident bytes of the mapping that begins at START, from smaps. */
static unsigned long resident_at(const void *start)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	char line[512];
	unsigned long begin, end, kib = 0;
	bool mine = false;

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			mine = begin == (unsigned long)(uintptr_t)start;
		if (mine && sscanf(line, "Rss: %lu kB", &kib) == 1)
			break;
	}
	fclose(smaps);
	return kib << 10;
}

static void test_pages_are_resident_between_a_lookup_and_forgetting(void **)
{
	struct index *index = finish(index_writer_create());
	const void *map = index_file(index);

	for (int round = 0; round < 2; round++) {
		index_forget_pages(index);
		assert_int_equal(resident_at(map), 0);
		assert_string_equal(index_toolchain(index), "");
		assert_int_not_equal(resident_at(map), 0);
	}
	index_destroy(index);
}

static void test_empty_module(void **)
{
	struct index_writer *w = index_writer_create();
	struct index_frame frame;
	struct index *index = finish(w);

	assert_int_equal(index_segment_count(index), 0);
	assert_int_equal(index_lookup(index, 0, &frame, 1), 0);
	assert_int_equal(index_lookup(index, TEXT, &frame, 1), 0);
	assert_null(index_runtime_facts(index, 0));
	assert_string_equal(index_text_build_id(index), "");
	assert_string_equal(index_toolchain(index), "");
	index_destroy(index);
}

/* Many functions far apart, so that the page tables have work. */
static void test_many_functions(void **)
{
	enum { COUNT = 3000, STEP = 0x4321 };
	struct index_writer *w = index_writer_create();
	struct index *index;
	char name[32];

	assert_int_equal(writer_code(w, TEXT, (uint64_t)COUNT * STEP), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		function(w, name, i * STEP, i * STEP + 0x40);
		sequence(w, 0, i * STEP, i * STEP + 0x40, "/many.c", (uint32_t)i + 1);
	}
	index = finish(w);
	for (uint64_t i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		assert_string_equal(names(index, i * STEP), name);
		assert_string_equal(names(index, i * STEP + 0x3f), name);
		assert_string_equal(names(index, i * STEP + 0x40), "");
		snprintf(name, sizeof(name), "/many.c:%u:%u", (unsigned int)i + 1,
			(unsigned int)i + 2);
		assert_string_equal(place(index, i * STEP + 0x3f), name);
	}
	index_destroy(index);
}

/* A small index with some of everything, as bytes. */
static size_t sample_bytes(uint8_t *bytes, size_t room)
{
	struct index_writer *w = create();
	uint32_t f = function(w, "f", 0x10, 0x40), first;
	autoclose int fd = -1;
	ssize_t size;

	inlined(w, f, "_ZN3foo3barEi", 0x20, 0x30);
	sequence(w, 0, 0x10, 0x40, "/a.c", 1);
	symbol(w, 0x50, 8, "symbol", WRITER_SYMBOL_GLOBAL);
	writer_build_id(w, &(struct build_id){ .size = 20 });
	writer_text_build_id(w, string(w, "go"));
	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	assert_int_equal(writer_returns(w, (uint64_t[]){ TEXT + 0x3f, TEXT + 0x41 }, 2, &first), 0);
	assert_int_equal(writer_function(w, &(struct writer_function){ .address = TEXT + 0x10,
						    .linkage = string(w, "f"),
						    .first_return = first,
						    .return_count = 2 }),
		0);
	fd = write_index(w);
	size = pread(fd, bytes, room, 0);
	assert_true(size > 0 && (size_t)size < room);
	return (size_t)size;
}

static void read_functions(const struct index *index)
{
	struct index_inlined inlined;

	for (size_t i = 0; i < index_function_count(index) && i < 100; i++) {
		struct index_function f;

		if (!index_function(index, i, &f))
			continue;
		assert_true(*f.name && *f.linkage && strlen(f.name) + strlen(f.linkage) < 1000);
		for (size_t j = 0; j < f.return_count && j < 100; j++)
			index_function_return(index, i, j);
	}
	for (size_t i = 0; i < index_inlined_count(index) && i < 100; i++)
		if (index_inlined(index, i, &inlined))
			assert_true(*inlined.name && *inlined.linkage && *inlined.caller &&
				    strlen(inlined.file) < 1000);
}

static void read_everything(const struct index *index)
{
	struct index_frame frames[8];
	uint64_t address;
	size_t segment;

	for (uint64_t at = TEXT - 1; at < TEXT + 0x80; at++) {
		size_t count = index_lookup(index, at, frames, ARRAY_SIZE(frames));

		assert_true(count <= ARRAY_SIZE(frames));
		for (size_t i = 0; i < count; i++)
			assert_true(strlen(frames[i].name) && strlen(frames[i].linkage) &&
				    strlen(frames[i].file) < 1000);
	}
	for (size_t i = 0; i < index_segment_count(index) && i < 100; i++)
		index_segment(index, i);
	index_address(index, 0x1000, &address, &segment);
	index_file_off(index, TEXT, &address);
	read_functions(index);
	assert_true(strlen(index_text_build_id(index)) < 1000);
	assert_true(index_build_id(index)->size <= BUILD_ID_MAX_BYTES);
}

static int open_bytes(const uint8_t *bytes, size_t size)
{
	autoclose int fd = memory_file(bytes, size);
	struct index *index = NULL;
	int err = index_open(fd, &index);

	if (!err)
		read_everything(index);
	index_destroy(index);
	return err;
}

static void test_each_flipped_byte_is_noticed(void **)
{
	uint8_t bytes[8192];
	size_t size = sample_bytes(bytes, sizeof(bytes));

	assert_int_equal(open_bytes(bytes, size), 0);
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x40;
		assert_int_equal(open_bytes(bytes, size), -EBADMSG);
		bytes[i] ^= 0x40;
	}
}

static void test_each_truncation_is_noticed(void **)
{
	uint8_t bytes[8192];
	size_t size = sample_bytes(bytes, sizeof(bytes));

	for (size_t i = 0; i < size; i++)
		assert_int_equal(open_bytes(bytes, i), -EBADMSG);
	bytes[size] = 0;
	assert_int_equal(open_bytes(bytes, size + 1), -EBADMSG);
}

/* False contents with a correct checksum: wrong names at worst. */
static void test_lies_under_a_right_checksum(void **)
{
	static const uint8_t lies[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	uint8_t bytes[8192];
	size_t size = sample_bytes(bytes, sizeof(bytes)), end = size - INDEX_CHECKSUM_BYTES;

	for (size_t i = 0; i < end * ARRAY_SIZE(lies); i++) {
		size_t at = i / ARRAY_SIZE(lies);
		uint8_t before = bytes[at];
		uint64_t sum;

		bytes[at] = lies[i % ARRAY_SIZE(lies)];
		sum = XXH3_64bits(bytes, end);
		memcpy(bytes + end, &sum, sizeof(sum));
		open_bytes(bytes, size);
		bytes[at] = before;
	}
}

static void test_write_error_is_told(void **)
{
	struct index_writer *w = create();

	function(w, "f", 0, 1);
	assert_int_equal(writer_finish(w, -1), -EBADF);
	index_writer_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_node_numbers_are_refused),
		cmocka_unit_test(test_facts_of_the_module),
		cmocka_unit_test(test_pages_are_resident_between_a_lookup_and_forgetting),
		cmocka_unit_test(test_empty_module),
		cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_each_flipped_byte_is_noticed),
		cmocka_unit_test(test_each_truncation_is_noticed),
		cmocka_unit_test(test_lies_under_a_right_checksum),
		cmocka_unit_test(test_write_error_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
