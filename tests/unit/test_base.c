/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failure.h"
#include "base/io.h"
#include "base/items.h"
#include "base/metrics.h"
#include "base/module_id.h"
#include "base/utf8.h"

static int enter_directory(void **state)
{
	char *path = strdup("/tmp/fathom-test-XXXXXX");

	if (!path || !mkdtemp(path) || chdir(path))
		return -1;
	*state = path;
	return 0;
}

static int leave_directory(void **state)
{
	autofree char *path = *state;
	autofree char *command = NULL;

	if (chdir("/") || asprintf(&command, "rm -rf %s", path) < 0)
		return -1;
	return system(command); /* NOLINT: a path of our own making */
}

static void file_is_replaced_whole(void **state)
{
	struct buffer b;

	(void)state;
	assert_int_equal(io_replace_file(AT_FDCWD, "f", "one", 3, 0600), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, "f", "twotwo", 6, 0600), 0);
	buffer_init(&b, 100);
	assert_int_equal(io_read_file(AT_FDCWD, "f", &b), 0);
	assert_int_equal(b.size, 6);
	assert_memory_equal(b.bytes, "twotwo", 6);
	buffer_deinit(&b);
}

static void failed_replacement_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(mkdir("d/f", 0700), 0);
	/* A directory cannot be replaced by a file. */
	assert_int_equal(io_replace_file(AT_FDCWD, "d/f", "x", 1, 0600), -EISDIR);
	assert_int_equal(rmdir("d/f"), 0);
	assert_int_equal(rmdir("d"), 0); /* empty: the temporary is gone */
}

static void reading_stops_at_the_limit(void **state)
{
	struct buffer b;
	char big[50000];

	(void)state;
	memset(big, 'x', sizeof(big));
	assert_int_equal(io_replace_file(AT_FDCWD, "big", big, sizeof(big), 0600), 0);
	buffer_init(&b, sizeof(big) - 1);
	assert_int_equal(io_read_file(AT_FDCWD, "big", &b), -E2BIG);
	buffer_deinit(&b);
	buffer_init(&b, sizeof(big));
	assert_int_equal(io_read_file(AT_FDCWD, "big", &b), 0);
	assert_int_equal(b.size, sizeof(big));
	buffer_deinit(&b);
}

static void reads_proc_files(void **state)
{
	struct buffer b;
	char line[64];

	(void)state;
	buffer_init(&b, 1 << 20);
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/maps", &b), 0);
	assert_true(b.size > 100);
	buffer_deinit(&b);
	assert_true(io_read_line(AT_FDCWD, "/proc/self/comm", line, sizeof(line)) > 0);
	assert_null(strchr(line, '\n'));
	assert_int_equal(io_read_line(AT_FDCWD, "no-such-file", line, sizeof(line)), -ENOENT);
}

static void makes_directories(void **state)
{
	struct stat info;

	(void)state;
	assert_int_equal(io_make_directories("a/b/c", 0700), 0);
	assert_int_equal(io_make_directories("a/b/c", 0700), 0);
	assert_int_equal(stat("a/b/c", &info), 0);
	assert_int_equal(io_replace_file(AT_FDCWD, "a/file", "", 0, 0600), 0);
	assert_int_equal(io_make_directories("a/file/x", 0700), -ENOTDIR);
}

static void utf8_is_validated(void **state)
{
	static const char *const good[] = { "", "plain", "\xc3\xa9", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xc2\xa0", "~" };
	static const char *const bad[] = { "\x1b[2J", "a\n", "\t", "\x7f", "\xc2\x80", "\xc2\x9b",
		"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80", "a\xff", "\xe2\x82" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(utf8_is_clean(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char text[16];

		assert_false(utf8_is_clean(bad[i], strlen(bad[i])));
		snprintf(text, sizeof(text), "%s", bad[i]);
		utf8_clean(text, strlen(text));
		assert_true(utf8_is_clean(text, strlen(text)));
		assert_int_equal(strlen(text), strlen(bad[i]));
	}
}

static void each_byte_of_a_long_text_counts(void **state)
{
	char text[] = "functions and names";

	(void)state;
	for (size_t at = 0; at < strlen(text); at++) {
		const char kept = text[at];

		for (int byte = 1; byte < 256; byte++) {
			text[at] = (char)byte;
			assert_int_equal(
				utf8_is_clean(text, strlen(text)), byte >= 0x20 && byte < 0x7f);
		}
		text[at] = kept;
	}
}

static void utf8_clean_keeps_valid_characters(void **state)
{
	char text[] = "a\xc3\xa9\xff\n\xc2\x9b"
		      "2J\xc2\xa0";

	(void)state;
	utf8_clean(text, strlen(text));
	assert_string_equal(text, "a\xc3\xa9????2J\xc2\xa0");
}

static void a_module_id_has_all_known_parts(void **state)
{
	const struct module_id a = { .build_id = { .size = 2, .bytes = { 0xab, 0x01 } } };
	const struct module_id file = { .file = { .inode = 7 } };
	struct module_id other;

	(void)state;
	assert_true(module_id_equal(&a, &a));
	assert_false(module_id_equal(&a, &file));
	other = a;
	other.content.bytes[15] = 1;
	assert_false(module_id_equal(&a, &other));
	assert_true(module_id_hash(&a) != module_id_hash(&other));
	other = a;
	other.file.inode = 99;
	assert_false(module_id_equal(&a, &other));
	assert_true(module_id_hash(&a) != module_id_hash(&other));
	other = file;
	assert_true(module_id_equal(&file, &other));
	assert_true(module_id_hash(&file) == module_id_hash(&other));
	other.file.generation = 1;
	assert_false(module_id_equal(&file, &other));
}

static void names_of_module_ids_are_distinct(void **state)
{
	struct module_id a = { .build_id = { .size = 2, .bytes = { 0xab, 0x01 } } };
	struct module_id c = { .file = { .inode = 7 } };
	char text[MODULE_ID_TEXT_BYTES], copies[MODULE_ID_TEXT_BYTES];

	(void)state;
	module_id_format(&a, text, sizeof(text));
	assert_string_equal(text, "ab01");
	a.content.bytes[0] = 0x2f;
	module_id_format(&a, text, sizeof(text));
	assert_string_equal(text, "ab01-2f000000000000000000000000000000");
	a.file.inode = 7;
	module_id_format(&a, text, sizeof(text));
	assert_int_equal(strlen(text), 4 + 33 + 33);
	module_id_format_copies(&a, copies, sizeof(copies));
	assert_string_equal(copies, "ab01-2f000000000000000000000000000000");
	assert_memory_equal(text, copies, strlen(copies));
	/* The build ID of a file that was not read does not name it. */
	memset(&a.content, 0, sizeof(a.content));
	module_id_format(&a, text, sizeof(text));
	assert_int_equal(text[0], 'i');
	module_id_format(&c, text, sizeof(text));
	assert_int_equal(text[0], 'i');
	assert_int_equal(strlen(text), 1 + 33);
	memset(&c.content, 0xff, sizeof(c.content));
	module_id_format(&c, text, sizeof(text));
	assert_int_equal(strlen(text), 1 + 33 + 33);
	memset(c.build_id.bytes, 0xff, sizeof(c.build_id.bytes));
	c.build_id.size = sizeof(c.build_id.bytes);
	module_id_format(&c, text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

/* Whatever differs in it makes another name; ctime makes another name for the same module. */
static void each_number_of_a_file_is_in_its_modules_name(void **state)
{
	const struct module_id first = { .file = { .inode = 7 } };
	char name[MODULE_ID_TEXT_BYTES], other[MODULE_ID_TEXT_BYTES];

	(void)state;
	module_id_format(&first, name, sizeof(name));
	for (size_t i = 0; i < sizeof(first.file) / sizeof(uint64_t); i++) {
		struct module_id id = first;

		((uint64_t *)&id.file)[i]++;
		module_id_format(&id, other, sizeof(other));
		assert_string_not_equal(name, other);
		assert_int_equal(module_id_equal(&first, &id),
			i == offsetof(struct file_id, changed_ns) / sizeof(uint64_t));
	}
}

static void each_metric_has_its_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		assert_non_null(metric_texts[i].name);
		assert_int_equal(strncmp(metric_texts[i].name, "fathom_", 7), 0);
		assert_true(strlen(metric_texts[i].help) > 10);
		for (size_t j = 0; j < i; j++)
			assert_false(!strcmp(metric_texts[i].name, metric_texts[j].name) &&
				     !strcmp(metric_texts[i].label, metric_texts[j].label));
	}
}

static void a_shortage_is_temporary_and_an_absence_is_not(void **state)
{
	static const int transient[] = { -EMFILE, -ENFILE, -ENOMEM, -EAGAIN, -EINTR, -ENOSPC,
		-EIO };
	static const int final[] = { 0, -ENOENT, -ESRCH, -EBADMSG, -EACCES, -ESTALE, -E2BIG };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(transient); i++)
		assert_true(failure_is_transient(transient[i]));
	for (size_t i = 0; i < ARRAY_SIZE(final); i++)
		assert_false(failure_is_transient(final[i]));
	assert_true(failure_is_shortage(-EMFILE));
	assert_false(failure_is_shortage(-EIO));
}

static void pauses_grow_up_to_their_limit(void **state)
{
	(void)state;
	assert_int_equal(failure_pause_ns(1, 10, 500), 10);
	assert_int_equal(failure_pause_ns(2, 10, 500), 40);
	assert_int_equal(failure_pause_ns(3, 10, 500), 160);
	assert_int_equal(failure_pause_ns(4, 10, 500), 500);
	assert_int_equal(failure_pause_ns(UINT32_MAX, 10, 500), 500);
	assert_int_equal(failure_pause_ns(9, 1, UINT64_MAX), 65536);
	assert_int_equal(failure_pause_ns(UINT32_MAX, 1, UINT64_MAX), UINT64_MAX);
	assert_int_equal(failure_pause_ns(1, 10, 5), 5);
}

/* What items_escape() makes is one item again, and nothing more. */
static void an_item_keeps_its_borders(void **state)
{
	static const char *const items[] = { "", "a", ",", "a,b", ",,", "a;b", "a\\b", "\\x",
		"a, b," };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		autofree char *escaped = items_escape(items[i], ",;"), *list = NULL;
		char *next;

		assert_true(asprintf(&list, "first,%s;last", escaped) > 0);
		next = list;
		assert_string_equal(items_next(&next, ",;"), "first");
		assert_string_equal(items_next(&next, ",;"), items[i]);
		assert_string_equal(items_next(&next, ",;"), "last");
		assert_null(items_next(&next, ",;"));
	}
}

static void an_item_that_is_escaped_already_stays(void **state)
{
	autofree char *escaped = items_escape("a\\,b,c", ",");

	(void)state;
	assert_string_equal(escaped, "a\\,b\\,c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_item_keeps_its_borders),
		cmocka_unit_test(an_item_that_is_escaped_already_stays),
		cmocka_unit_test(a_shortage_is_temporary_and_an_absence_is_not),
		cmocka_unit_test(pauses_grow_up_to_their_limit),
		cmocka_unit_test_setup_teardown(
			file_is_replaced_whole, enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(
			failed_replacement_leaves_nothing, enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(
			reading_stops_at_the_limit, enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(reads_proc_files, enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(
			makes_directories, enter_directory, leave_directory),
		cmocka_unit_test(utf8_is_validated),
		cmocka_unit_test(each_byte_of_a_long_text_counts),
		cmocka_unit_test(utf8_clean_keeps_valid_characters),
		cmocka_unit_test(a_module_id_has_all_known_parts),
		cmocka_unit_test(names_of_module_ids_are_distinct),
		cmocka_unit_test(each_number_of_a_file_is_in_its_modules_name),
		cmocka_unit_test(each_metric_has_its_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
