/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of an index: what was written is read, and nothing else. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "symbolizer/index/format.h"
#include "symbolizer/index/functions.h"
#include "tests/unit/small_index.h"

/* Adds LINKAGE, a name of the function at TEXT + OFFSET. */
static void named(struct index_writer *w, const char *linkage, uint64_t offset)
{
	assert_int_equal(writer_function(w, &(struct writer_function){ .address = TEXT + offset,
						    .linkage = string(w, linkage) }),
		0);
}

static uint32_t returns_at(struct index_writer *w, uint64_t one, uint64_t other)
{
	uint32_t first;

	assert_int_equal(writer_returns(w, (uint64_t[]){ TEXT + one, TEXT + other }, 2, &first), 0);
	return first;
}

static void test_an_index_without_functions_says_so(void **)
{
	struct index_writer *w = create();
	struct index_function f;
	struct index *index;

	function(w, "main", 0x10, 0x20);
	index = finish(w);
	assert_false(index_has_functions(index));
	assert_int_equal(index_function_count(index), 0);
	assert_false(index_function(index, 0, &f));
	assert_int_equal(index_function_return(index, 0, 0), 0);
	index_destroy(index);
}

static void test_functions_come_in_order_and_aliases_share_returns(void **)
{
	struct index_writer *w = create();
	struct writer_function later = {
		.address = TEXT + 0x40,
		.linkage = string(w, "_ZN3foo3barEi"),
		.flags = INDEX_FUNCTION_FIBER | INDEX_FUNCTION_TAIL_JUMP,
		.first_return = returns_at(w, 0x4f, 0x58),
		.return_count = 2,
		.stack_check = 0x180,
		.restart_off = 0x14,
	};
	struct index_function f;
	struct index *index;

	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	assert_int_equal(writer_function(w, &later), 0);
	later.linkage = string(w, "alias");
	assert_int_equal(writer_function(w, &later), 0);
	named(w, "first", 0x10);
	index = finish(w);
	assert_true(index_has_functions(index));
	assert_int_equal(index_function_count(index), 3);
	assert_true(index_function(index, 0, &f));
	assert_string_equal(f.name, "first");
	assert_int_equal(f.return_count, 0);
	assert_int_equal(index_function_return(index, 0, 0), 0);
	assert_true(index_function(index, 1, &f));
	assert_string_equal(f.name, "foo::bar(int)");
	assert_string_equal(f.linkage, "_ZN3foo3barEi");
	assert_int_equal(f.address, TEXT + 0x40);
	assert_int_equal(f.flags, INDEX_FUNCTION_FIBER | INDEX_FUNCTION_TAIL_JUMP);
	assert_int_equal(f.stack_check, 0x180);
	assert_int_equal(f.restart_off, 0x14);
	assert_true(index_function(index, 2, &f));
	assert_string_equal(f.name, "alias");
	for (size_t number = 1; number <= 2; number++) {
		assert_int_equal(index_function_return(index, number, 0), TEXT + 0x4f);
		assert_int_equal(index_function_return(index, number, 1), TEXT + 0x58);
		assert_int_equal(index_function_return(index, number, 2), 0);
	}
	assert_false(index_function(index, 3, &f));
	index_destroy(index);
}

static void test_a_name_that_comes_twice_is_there_once(void **)
{
	struct index_writer *w = create();
	struct index_function f;
	struct index *index;

	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	named(w, "same", 0x10);
	assert_int_equal(writer_function(w, &(struct writer_function){ .address = TEXT + 0x10,
						    .linkage = string(w, "same"),
						    .name = string(w, "space::same") }),
		0);
	named(w, "same", 0x20); /* another one, a static function of another file */
	index = finish(w);
	assert_int_equal(index_function_count(index), 2);
	assert_true(index_function(index, 0, &f));
	assert_string_equal(f.name, "space::same");
	assert_true(index_function(index, 1, &f));
	assert_int_equal(f.address, TEXT + 0x20);
	index_destroy(index);
}

static void test_a_clone_keeps_its_suffix(void **)
{
	static const char *const names[][2] = {
		{ "f.part.0", "f.part.0" },
		{ "_ZN3foo3barEi.constprop.0", "foo::bar(int) [clone .constprop.0]" },
		/* ThinLTO's suffix says nothing to anybody. */
		{ "g.llvm.13192648567152250397", "g" },
		{ "_RNvC7latency5quick.llvm.12", "latency::quick" },
		{ "_ZN3foo3barEi.llvm.12.part.0", "foo::bar(int) [clone .part.0]" },
		{ "h.llvm.12.part.0", "h.part.0" },
	};
	struct index_writer *w = create();
	struct index_function f;
	struct index *index;

	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		named(w, names[i][0], 0x10 + 4 * i);
	index = finish(w);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(index_function(index, i, &f));
		assert_string_equal(f.linkage, names[i][0]);
		assert_string_equal(f.name, names[i][1]);
	}
	index_destroy(index);
}

static void test_what_is_no_code_is_not_written(void **)
{
	struct index_writer *w = create();
	uint32_t first = 7;
	struct index *index;

	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	named(w, "before", -1);
	named(w, "behind", TEXT_SIZE);
	assert_int_equal(
		writer_returns(w, (uint64_t[]){ TEXT, TEXT + TEXT_SIZE }, 2, &first), -EBADMSG);
	assert_int_equal(first, 7);
	index = finish(w);
	assert_int_equal(index_function_count(index), 0);
	index_destroy(index);
}

static void test_inlined_calls(void **)
{
	struct index_writer *w = create();
	uint32_t outer = function(w, "outer", 0x10, 0x40);
	struct index_inlined call;
	struct index *index;
	size_t calls = 0;

	inlined(w, inlined(w, outer, "middle", 0x20, 0x30), "_ZN3foo3barEi", 0x28, 0x2c);
	index = finish(w);
	for (size_t i = 0; i < index_inlined_count(index); i++) {
		if (!index_inlined(index, i, &call))
			continue;
		assert_string_equal(call.name, calls ? "foo::bar(int)" : "middle");
		assert_string_equal(call.linkage, calls ? "_ZN3foo3barEi" : "middle");
		assert_string_equal(call.caller, "outer");
		assert_string_equal(call.file, "/src/caller.c");
		assert_int_equal(call.line, 77);
		calls++;
	}
	assert_int_equal(calls, 2);
	assert_false(index_inlined(index, index_inlined_count(index), &call));
	index_destroy(index);
}

/* ---- forged files --------------------------------------------------------------------------- */

enum { ROOM = 8192 };

/* An index with one function and two returns, as bytes. */
static size_t small_bytes(uint8_t bytes[ROOM])
{
	struct index_writer *w = create();
	autoclose int fd = -1;
	ssize_t size;

	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	inlined(w, function(w, "outer", 0x10, 0x40), "inner", 0x20, 0x30);
	assert_int_equal(writer_function(w, &(struct writer_function){ .address = TEXT + 0x10,
						    .linkage = string(w, "outer"),
						    .first_return = returns_at(w, 0x20, 0x3f),
						    .return_count = 2 }),
		0);
	fd = write_index(w);
	size = pread(fd, bytes, ROOM, 0);
	assert_true(size > 0 && size < ROOM);
	return (size_t)size;
}

/* Opens SIZE bytes with a correct checksum. */
static struct index *open_forged(uint8_t *bytes, size_t size)
{
	size_t end = size - INDEX_CHECKSUM_BYTES;
	uint64_t sum = XXH3_64bits(bytes, end);
	struct index *index = NULL;
	autoclose int fd = -1;

	memcpy(bytes + end, &sum, sizeof(sum));
	fd = memory_file(bytes, size);
	assert_int_equal(index_open(fd, &index), 0);
	return index;
}

static void *table(uint8_t *bytes, enum index_table_number number)
{
	const struct index_header *header = (const void *)bytes;

	return bytes + header->tables[number].offset;
}

static void test_returns_outside_of_the_table(void **)
{
	static const uint32_t lies[][2] = { { 0, 3 }, { 1, 2 }, { 3, 0 }, { UINT32_MAX, 2 },
		{ 2, UINT32_MAX } };

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		_Alignas(8) uint8_t bytes[ROOM];
		size_t size = small_bytes(bytes);
		struct index_function_entry *entry = table(bytes, INDEX_FUNCTIONS);
		struct index_function f;
		struct index *index;

		entry->first_return = lies[i][0];
		entry->return_count = lies[i][1];
		index = open_forged(bytes, size);
		assert_int_equal(index_function_count(index), 1);
		assert_false(index_function(index, 0, &f));
		assert_int_equal(index_function_return(index, 0, 0), 0);
		index_destroy(index);
	}
}

static void test_names_outside_of_the_strings(void **)
{
	_Alignas(8) uint8_t bytes[ROOM];
	size_t size = small_bytes(bytes);
	struct index_function_entry *entry = table(bytes, INDEX_FUNCTIONS);
	struct index_function f;
	struct index *index;

	entry->name = UINT32_MAX;
	entry->linkage = (uint32_t)size;
	index = open_forged(bytes, size);
	assert_true(index_function(index, 0, &f));
	assert_string_equal(f.name, "?");
	assert_string_equal(f.linkage, "?");
	index_destroy(index);
}

static void test_an_inlined_call_that_is_its_own_caller(void **)
{
	_Alignas(8) uint8_t bytes[ROOM];
	size_t size = small_bytes(bytes);
	struct index_node *nodes = table(bytes, INDEX_NODES);
	struct index_inlined call;
	struct index *index;

	nodes[0].parent = 1;
	nodes[1].parent = 0;
	index = open_forged(bytes, size);
	assert_int_equal(index_inlined_count(index), 2);
	assert_false(index_inlined(index, 0, &call));
	assert_false(index_inlined(index, 1, &call));
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_index_without_functions_says_so),
		cmocka_unit_test(test_functions_come_in_order_and_aliases_share_returns),
		cmocka_unit_test(test_a_name_that_comes_twice_is_there_once),
		cmocka_unit_test(test_a_clone_keeps_its_suffix),
		cmocka_unit_test(test_what_is_no_code_is_not_written),
		cmocka_unit_test(test_inlined_calls),
		cmocka_unit_test(test_returns_outside_of_the_table),
		cmocka_unit_test(test_names_outside_of_the_strings),
		cmocka_unit_test(test_an_inlined_call_that_is_its_own_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
