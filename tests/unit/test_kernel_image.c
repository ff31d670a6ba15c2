/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kernel_image.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/build_id_note.h"
#include "base/cleanup.h"

static struct buffer notes_begin(void)
{
	struct buffer b;

	buffer_init(&b, 4096);
	return b;
}

static void add_word(struct buffer *b, uint32_t word)
{
	assert_int_equal(buffer_append(b, &word, sizeof(word)), 0);
}

static void add_note(struct buffer *b, uint32_t type, const char *name, uint32_t size)
{
	static const uint8_t zeros[4];
	uint32_t name_size = (uint32_t)strlen(name) + 1;

	add_word(b, name_size);
	add_word(b, size);
	add_word(b, type);
	buffer_append(b, name, name_size);
	buffer_append(b, zeros, -name_size & 3);
	for (uint32_t i = 0; i < size; i++)
		buffer_append(b, &(uint8_t){ (uint8_t)(i + 1) }, 1);
	buffer_append(b, zeros, -size & 3);
}

static int find(const struct buffer *b, struct build_id *ret_id)
{
	return build_id_from_notes(b->bytes, b->size, ret_id);
}

static void test_build_id_among_notes(void **state)
{
	autocall(buffer_deinit) struct buffer b = notes_begin();
	struct build_id id;

	(void)state;
	add_note(&b, NT_GNU_BUILD_ID, "Xen", 4); /* the type of another owner */
	add_note(&b, NT_GNU_ABI_TAG, "GNU", 5);
	add_note(&b, NT_GNU_BUILD_ID, "GNU", 20);
	add_note(&b, NT_GNU_BUILD_ID, "GNU", 8);
	assert_int_equal(find(&b, &id), 0);
	assert_int_equal(id.size, 20);
	assert_int_equal(id.bytes[0], 1);
	assert_int_equal(id.bytes[19], 20);
}

static void test_last_note_without_padding(void **state)
{
	autocall(buffer_deinit) struct buffer b = notes_begin();
	struct build_id id;

	(void)state;
	add_note(&b, NT_GNU_BUILD_ID, "GNU", 7);
	b.size--;
	assert_int_equal(find(&b, &id), 0);
	assert_int_equal(id.size, 7);
}

static void test_no_build_id(void **state)
{
	autocall(buffer_deinit) struct buffer b = notes_begin();
	struct build_id id = { .size = 77 };

	(void)state;
	assert_int_equal(build_id_from_notes(NULL, 0, &id), -ENOENT);
	add_note(&b, NT_GNU_ABI_TAG, "GNU", 16);
	add_note(&b, 7, "", 0);
	assert_int_equal(find(&b, &id), -ENOENT);
	assert_int_equal(id.size, 77);
}

static void test_truncated_note(void **state)
{
	autocall(buffer_deinit) struct buffer b = notes_begin();
	struct build_id id = { .size = 77 };

	(void)state;
	add_note(&b, NT_GNU_BUILD_ID, "GNU", 20);
	for (size_t size = 1; size < b.size; size++)
		assert_int_equal(build_id_from_notes(b.bytes, size, &id), -EBADMSG);
	assert_int_equal(id.size, 77);
}

static void test_sizes_beyond_the_notes(void **state)
{
	static const uint32_t sizes[] = { 13, 0x7fffffff, 0xfffffff0, 0xffffffff };
	struct build_id id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		autocall(buffer_deinit) struct buffer b = notes_begin();

		add_word(&b, sizes[i]);
		add_word(&b, 4);
		add_word(&b, NT_GNU_BUILD_ID);
		buffer_append(&b, "GNU\0aaaa", 8);
		assert_int_equal(find(&b, &id), -EBADMSG);
		((uint32_t *)b.bytes)[0] = 4;
		((uint32_t *)b.bytes)[1] = sizes[i];
		assert_int_equal(find(&b, &id), -EBADMSG);
	}
}

static void test_build_id_of_a_size_that_is_not_handled(void **state)
{
	autocall(buffer_deinit) struct buffer big = notes_begin(), none = notes_begin();
	struct build_id id;

	(void)state;
	add_note(&big, NT_GNU_BUILD_ID, "GNU", 21);
	assert_int_equal(find(&big, &id), -EOPNOTSUPP);
	add_note(&none, NT_GNU_BUILD_ID, "GNU", 0);
	assert_int_equal(find(&none, &id), -EBADMSG);
}

static void test_this_kernel(void **state)
{
	struct build_id id;

	(void)state;
	if (access("/sys/kernel/notes", R_OK))
		skip();
	assert_int_equal(kernel_build_id(&id), 0);
	assert_true(id.size >= 8);
}

static void test_module_names_are_checked(void **state)
{
	struct build_id id;

	(void)state;
	assert_int_equal(kernel_module_build_id("", &id), -ENOENT);
	assert_int_equal(kernel_module_build_id("no_such_module", &id), -ENOENT);
	assert_int_equal(kernel_module_build_id("../kernel", &id), -ENOENT);
	assert_int_equal(kernel_module_build_id("a/b", &id), -ENOENT);
	assert_int_equal(kernel_module_build_id("a.b", &id), -ENOENT);
	assert_int_equal(
		kernel_module_build_id("a_name_that_is_longer_than_any_module_name_ever_is", &id),
		-ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_id_among_notes),
		cmocka_unit_test(test_last_note_without_padding),
		cmocka_unit_test(test_no_build_id),
		cmocka_unit_test(test_truncated_note),
		cmocka_unit_test(test_sizes_beyond_the_notes),
		cmocka_unit_test(test_build_id_of_a_size_that_is_not_handled),
		cmocka_unit_test(test_this_kernel),
		cmocka_unit_test(test_module_names_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
