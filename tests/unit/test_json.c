/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"

enum { LIMIT_BYTES = 4096 };

struct fixture {
	struct buffer out;
	struct json j;
};

static void begin(struct fixture *f, enum json_style style)
{
	buffer_init(&f->out, LIMIT_BYTES);
	json_init(&f->j, &f->out, style);
}

static void assert_written(struct fixture *f, const char *expected)
{
	assert_int_equal(json_finish(&f->j), 0);
	assert_int_equal(buffer_append(&f->out, "", 1), 0);
	assert_string_equal((const char *)f->out.bytes, expected);
	buffer_deinit(&f->out);
}

static void assert_text(const char *text, const char *expected)
{
	struct fixture f;

	begin(&f, JSON_COMPACT);
	json_text(&f.j, NULL, text);
	assert_written(&f, expected);
}

static void texts_are_escaped(void **state)
{
	(void)state;
	assert_text("", "\"\"");
	assert_text("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	assert_text("\"", "\"\\\"\"");
	assert_text("a\nb\t\x1b\x7f", "\"a\\u000ab\\u0009\\u001b\\u007f\"");
	assert_text("caf\xc3\xa9 \xf0\x9f\x90\xa7", "\"caf\xc3\xa9 \xf0\x9f\x90\xa7\"");
}

static void bytes_that_are_not_utf8_are_replaced_one_each(void **state)
{
	(void)state;
	assert_text("\xff", "\"\\ufffd\"");
	assert_text("a\xff\xfe"
		    "b",
		"\"a\\ufffd\\ufffdb\"");
	assert_text("\xc3", "\"\\ufffd\""); /* cut off */
	assert_text("\xe2\x82", "\"\\ufffd\\ufffd\"");
	assert_text("\xc0\xaf", "\"\\ufffd\\ufffd\""); /* overlong */
	assert_text("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
}

static void a_text_of_bytes_may_hold_a_nul(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_COMPACT);
	json_text_bytes(&f.j, NULL, "a\0b", 3);
	assert_written(&f, "\"a\\u0000b\"");
}

static void keys_are_escaped_too(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_COMPACT);
	json_object(&f.j, NULL);
	json_null(&f.j, "a\"\xff");
	json_close(&f.j);
	assert_written(&f, "{\"a\\\"\\ufffd\":null}");
}

/* One of everything, nested. */
static void write_sample(struct json *j)
{
	json_object(j, NULL);
	json_text(j, "text", "t");
	json_array(j, "list");
	json_number(j, NULL, 1);
	json_object(j, NULL);
	json_close(j);
	json_array(j, NULL);
	json_bool(j, NULL, true);
	json_close(j);
	json_close(j);
	json_null(j, "none");
	json_close(j);
}

static void members_have_commas_between_them(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_COMPACT);
	write_sample(&f.j);
	assert_written(&f, "{\"text\":\"t\",\"list\":[1,{},[true]],\"none\":null}");
	begin(&f, JSON_SPACED);
	write_sample(&f.j);
	assert_written(&f, "{\"text\": \"t\", \"list\": [1, {}, [true]], \"none\": null}");
}

static void lines_are_indented_when_spaced(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_SPACED);
	json_object_by_line(&f.j, NULL);
	json_number(&f.j, "a", 1);
	json_array_by_line(&f.j, "b");
	json_number(&f.j, NULL, 2);
	json_number(&f.j, NULL, 3);
	json_close(&f.j);
	json_object(&f.j, "c");
	json_number(&f.j, "d", 4);
	json_number(&f.j, "e", 5);
	json_close(&f.j);
	json_array_by_line(&f.j, "f");
	json_close(&f.j);
	json_close(&f.j);
	assert_written(&f, "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ],\n"
			   "  \"c\": {\"d\": 4, \"e\": 5},\n  \"f\": []\n}");
}

static void lines_begin_at_once_when_compact(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_COMPACT);
	json_array_by_line(&f.j, NULL);
	json_number(&f.j, NULL, 1);
	json_number(&f.j, NULL, 2);
	json_close(&f.j);
	assert_written(&f, "[\n1,\n2]");
}

static void compact_form_ends_with_its_object(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_SPACED);
	json_object(&f.j, NULL);
	json_object_compact(&f.j, "a");
	json_number(&f.j, "b", 1);
	json_array(&f.j, "c");
	json_close(&f.j);
	json_close(&f.j);
	json_number(&f.j, "d", 2);
	json_close(&f.j);
	assert_written(&f, "{\"a\": {\"b\":1,\"c\":[]}, \"d\": 2}");
}

static void numbers_have_their_whole_range(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, JSON_COMPACT);
	json_array(&f.j, NULL);
	json_number(&f.j, NULL, UINT64_MAX);
	json_signed(&f.j, NULL, INT64_MIN);
	json_decimal(&f.j, NULL, 1.2345, 3);
	json_decimal(&f.j, NULL, -2.5, 0);
	json_decimal(&f.j, NULL, NAN, 3);
	json_decimal(&f.j, NULL, INFINITY, 3);
	json_bool(&f.j, NULL, false);
	json_close(&f.j);
	assert_written(&f, "[18446744073709551615,-9223372036854775808,1.234,-2,null,null,false]");
}

/* RFC 4648, section 10. */
static void bytes_are_base64(void **state)
{
	static const char *const cases[][2] = { { "", "\"\"" }, { "f", "\"Zg==\"" },
		{ "fo", "\"Zm8=\"" }, { "foo", "\"Zm9v\"" }, { "foob", "\"Zm9vYg==\"" },
		{ "fooba", "\"Zm9vYmE=\"" }, { "foobar", "\"Zm9vYmFy\"" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f;

		begin(&f, JSON_COMPACT);
		json_base64(&f.j, NULL, cases[i][0], strlen(cases[i][0]));
		assert_written(&f, cases[i][1]);
	}
}

static void overflow_is_an_error_at_the_end(void **state)
{
	for (size_t limit = 0; limit < 40; limit++) {
		struct buffer out;
		struct json j;

		(void)state;
		buffer_init(&out, limit);
		json_init(&j, &out, JSON_COMPACT);
		write_sample(&j);
		assert_int_equal(json_finish(&j), -E2BIG);
		assert_true(out.size <= limit);
		buffer_deinit(&out);
	}
}

static void containers_nest_to_the_limit(void **state)
{
	char expected[2 * JSON_DEPTH_LIMIT + 1] = "";
	struct fixture f;

	(void)state;
	begin(&f, JSON_COMPACT);
	for (int i = 0; i < JSON_DEPTH_LIMIT; i++)
		json_array(&f.j, NULL);
	for (int i = 0; i < JSON_DEPTH_LIMIT; i++)
		json_close(&f.j);
	memset(expected, '[', JSON_DEPTH_LIMIT);
	memset(expected + JSON_DEPTH_LIMIT, ']', JSON_DEPTH_LIMIT);
	assert_written(&f, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_escaped),
		cmocka_unit_test(bytes_that_are_not_utf8_are_replaced_one_each),
		cmocka_unit_test(a_text_of_bytes_may_hold_a_nul),
		cmocka_unit_test(keys_are_escaped_too),
		cmocka_unit_test(members_have_commas_between_them),
		cmocka_unit_test(lines_are_indented_when_spaced),
		cmocka_unit_test(lines_begin_at_once_when_compact),
		cmocka_unit_test(compact_form_ends_with_its_object),
		cmocka_unit_test(numbers_have_their_whole_range),
		cmocka_unit_test(bytes_are_base64),
		cmocka_unit_test(overflow_is_an_error_at_the_end),
		cmocka_unit_test(containers_nest_to_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
