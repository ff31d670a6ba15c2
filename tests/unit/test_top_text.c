/* SPDX-License-Identifier: Apache-2.0 */
/* agent/top: sanitizing foreign names, decoding keys, and the effects of keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "agent/top/keys.h"
#include "agent/top/text.h"
#include "agent/top/view.h"
#include "base/cleanup.h"

/* ---- text ---- */

static void expect_text(const char *text, size_t columns, const char *expected)
{
	autocall(buffer_deinit) struct buffer out;

	buffer_init(&out, 4096);
	assert_true(text_put(&out, text, columns) <= columns);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_string_equal((const char *)out.bytes, expected);
}

static void test_text_is_cut_at_columns(void **state)
{
	(void)state;
	expect_text("plain", 10, "plain");
	expect_text("plain", 5, "plain");
	expect_text("plain", 3, "pla");
	expect_text("plain", 0, "");
	expect_text("", 5, "");
}

static void test_wide_characters_are_never_halved(void **state)
{
	(void)state;
	expect_text("日本語", 6, "日本語");
	expect_text("日本語", 5, "日本");
	expect_text("日本語", 1, "");
	expect_text("é日", 3, "é日");
}

static void test_padding_counts_columns(void **state)
{
	autocall(buffer_deinit) struct buffer out;

	(void)state;
	buffer_init(&out, 4096);
	text_put_padded(&out, "日本", 6);
	text_put_padded(&out, "日本語", 5);
	text_put_padded(&out, "", 2);
	assert_int_equal(buffer_append(&out, "|", 2), 0);
	assert_string_equal((const char *)out.bytes, "日本  日本   |");
}

static void test_control_characters_are_harmless(void **state)
{
	(void)state;
	expect_text("\x1b[2J", 10, "?[2J");
	expect_text("a\nb\tc\rd\x7f", 10, "a?b?c?d?");
	/* U+009B is CSI as one character. */
	expect_text("a\xc2\x9b"
		    "2J",
		10, "a?2J");
}

static void test_writing_direction_stays(void **state)
{
	(void)state;
	expect_text("a\xe2\x80\xae"
		    "b", /* U+202E */
		10, "a?b");
	expect_text("a\xe2\x80\x8b"
		    "b", /* U+200B */
		10, "a?b");
}

static void test_bytes_that_are_no_text(void **state)
{
	(void)state;
	expect_text("\xff\xfe", 10, "??");
	expect_text("a\xe2\x82", 10, "a??");
	expect_text("\xc3(", 10, "?(");
	/* An overlong form of ESC. */
	expect_text("\xc0\x9b", 10, "??");
}

static void test_marks_do_not_pile_up(void **state)
{
	char text[2 + 2 * 100] = "a";

	(void)state;
	for (size_t i = 0; i < 100; i++)
		memcpy(text + 1 + 2 * i, "\xcc\x81", 3); /* U+0301 */
	expect_text(text, 10, "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81");
}

static void test_locale_without_utf8(void **state)
{
	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C"));
	expect_text("h\xc3\xa9", 10, "h??");
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

/* ---- keys ---- */

static int feed(struct keys *k, const char *bytes)
{
	int key = KEY_NONE;

	for (; *bytes; bytes++)
		key = keys_feed(k, (uint8_t)*bytes);
	return key;
}

static void test_keys_and_sequences(void **state)
{
	static const struct {
		const char *bytes;
		int key;
	} cases[] = { { "q", 'q' }, { "\r", KEY_ENTER }, { "\n", KEY_ENTER },
		{ "\x7f", KEY_BACKSPACE }, { "\b", KEY_BACKSPACE }, { "\x1b[A", KEY_UP },
		{ "\x1bOA", KEY_UP }, { "\x1b[B", KEY_DOWN }, { "\x1b[5~", KEY_PAGE_UP },
		{ "\x1b[6~", KEY_PAGE_DOWN }, { "\x1b[H", KEY_HOME }, { "\x1b[1~", KEY_HOME },
		{ "\x1b[F", KEY_END }, { "\x1b[4~", KEY_END }, { "\x1b[1;5A", KEY_UP },
		{ "\x1b[15~", KEY_NONE }, { "\x1b[?1;2c", KEY_NONE }, { "\xc3", 0xc3 } };
	struct keys keys = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(feed(&keys, cases[i].bytes), cases[i].key);
		assert_false(keys_waiting(&keys));
	}
}

static void test_escape_alone_needs_time(void **state)
{
	struct keys keys = { 0 };

	(void)state;
	assert_int_equal(feed(&keys, "\x1b"), KEY_NONE);
	assert_true(keys_waiting(&keys));
	assert_int_equal(keys_expire(&keys), KEY_ESCAPE);
	assert_false(keys_waiting(&keys));
	assert_int_equal(feed(&keys, "\x1b["), KEY_NONE);
	assert_int_equal(keys_expire(&keys), KEY_NONE);
	assert_int_equal(feed(&keys, "q"), 'q');
	assert_int_equal(feed(&keys, "\x1b\x1b"), KEY_ESCAPE);
}

static void test_a_sequence_without_end_ends(void **state)
{
	struct keys keys = { 0 };

	(void)state;
	feed(&keys, "\x1b[");
	for (int i = 0; i < 1000 && keys_waiting(&keys); i++)
		assert_int_equal(keys_feed(&keys, '9'), KEY_NONE);
	assert_false(keys_waiting(&keys));
}

/* ---- view ---- */

static void type(struct view *v, const char *text)
{
	for (; *text; text++)
		view_key(v, (unsigned char)*text);
}

static void test_view_filter(void **state)
{
	struct view v = { 0 };

	(void)state;
	type(&v, "/qé");
	assert_true(v.editing);
	assert_string_equal(v.filter, "qé");
	view_key(&v, KEY_BACKSPACE);
	assert_string_equal(v.filter, "q");
	view_key(&v, 0x07);
	assert_string_equal(v.filter, "q");
	assert_int_equal(view_key(&v, KEY_ENTER), VIEW_REDRAW);
	assert_false(v.editing);
	type(&v, "/ab");
	view_key(&v, KEY_ESCAPE);
	assert_string_equal(v.filter, "q");
	view_key(&v, KEY_ESCAPE);
	assert_string_equal(v.filter, "");
	type(&v, "/");
	view_key(&v, KEY_BACKSPACE);
	assert_string_equal(v.filter, "");
	for (int i = 0; i < 1000; i++)
		view_key(&v, 'x');
	assert_int_equal(strlen(v.filter), VIEW_FILTER_BYTES - 1);
	view_key(&v, 'U' & 0x1f);
	assert_string_equal(v.filter, "");
}

static void test_view_order_fits_the_table(void **state)
{
	struct view v = { 0 };

	(void)state;
	type(&v, "fs");
	assert_int_equal(v.key, ROWS_TOTAL);
	type(&v, "s");
	assert_int_equal(v.key, ROWS_NAME);
	type(&v, "ssr");
	assert_int_equal(v.key, ROWS_TOTAL);
	assert_true(v.reverse);
	type(&v, "p");
	assert_int_equal(v.key, ROWS_CPU);
	assert_false(v.reverse);
	type(&v, "s");
	assert_int_equal(v.key, ROWS_PID);
	type(&v, "g");
	assert_int_equal(v.by, ROWS_FIBER);
	assert_int_equal(v.key, ROWS_PID);
	type(&v, "\t");
	assert_int_equal(v.by, ROWS_PROCESS);
	assert_int_equal(view_key(&v, 'q'), VIEW_QUIT);
	assert_int_equal(view_key(&v, 'z'), VIEW_NOTHING);
}

static void test_view_moves_stay_in_range(void **state)
{
	struct view v = { .page = 10 };

	(void)state;
	view_key(&v, KEY_UP);
	view_key(&v, KEY_PAGE_UP);
	assert_int_equal(v.first, 0);
	view_key(&v, KEY_PAGE_DOWN);
	view_key(&v, KEY_DOWN);
	assert_int_equal(v.first, 11);
	view_key(&v, KEY_PAGE_UP);
	assert_int_equal(v.first, 1);
	view_key(&v, KEY_HOME);
	assert_int_equal(v.first, 0);
}

static int utf8_locale(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_cut_at_columns),
		cmocka_unit_test(test_wide_characters_are_never_halved),
		cmocka_unit_test(test_padding_counts_columns),
		cmocka_unit_test(test_control_characters_are_harmless),
		cmocka_unit_test(test_writing_direction_stays),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_marks_do_not_pile_up),
		cmocka_unit_test(test_locale_without_utf8),
		cmocka_unit_test(test_keys_and_sequences),
		cmocka_unit_test(test_escape_alone_needs_time),
		cmocka_unit_test(test_a_sequence_without_end_ends),
		cmocka_unit_test(test_view_filter),
		cmocka_unit_test(test_view_order_fits_the_table),
		cmocka_unit_test(test_view_moves_stay_in_range),
	};

	return cmocka_run_group_tests(tests, utf8_locale, NULL);
}
