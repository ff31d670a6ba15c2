/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cursor.h"

static void reads_in_order(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0x80 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 2);
	assert_int_equal(cursor_u32(&c), 3);
	assert_true(cursor_u64(&c) == UINT64_C(0x8000000000000004));
	assert_int_equal(cursor_left(&c), 0);
	assert_false(c.bad);
}

static void reading_past_the_end_is_a_permanent_error(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0);
	assert_null(cursor_string(&c));
	assert_int_equal(cursor_left(&c), 0);
	assert_false(cursor_seek(&c, 0));
}

static void unsigned_of_odd_sizes(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	(void)state;
	assert_true(cursor_unsigned(&c, 3) == 0x030201);
	assert_true(cursor_unsigned(&c, 0) == 0);
	assert_false(c.bad);
	cursor_unsigned(&c, 9);
	assert_true(c.bad);
}

static void leb128_of_the_specification(void **state)
{
	/* DWARF 5, figures 23 and 24 of 7.6. */
	static const uint8_t bytes[] = { 2, 0x7f, 0x80, 1, 0x81, 1, 0xb9, 0x64, 2, 0x7e, 0xff, 0,
		0x81, 0x7f, 0x80, 1, 0x80, 0x7f };
	static const uint64_t unsigneds[] = { 2, 127, 128, 129, 12857 };
	static const int64_t signeds[] = { 2, -2, 127, -127, 128, -128 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	(void)state;
	for (size_t i = 0; i < 5; i++)
		assert_true(cursor_uleb128(&c) == unsigneds[i]);
	for (size_t i = 0; i < 6; i++)
		assert_true(cursor_sleb128(&c) == signeds[i]);
	assert_false(c.bad);
	assert_int_equal(cursor_left(&c), 0);
}

static void leb128_of_ten_bytes(void **state)
{
	static const uint8_t largest[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		1 };
	static const uint8_t beyond[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 };
	static const uint8_t smallest[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x7f };
	struct cursor c = cursor_over(largest, sizeof(largest));

	(void)state;
	assert_true(cursor_uleb128(&c) == UINT64_MAX);
	assert_false(c.bad);
	c = cursor_over(beyond, sizeof(beyond));
	cursor_uleb128(&c);
	assert_true(c.bad);
	c = cursor_over(smallest, sizeof(smallest));
	assert_true(cursor_sleb128(&c) == INT64_MIN);
	assert_false(c.bad);
}

static void leb128_without_an_end(void **state)
{
	static const uint8_t bytes[] = { 0x80, 0x80, 0x80 };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	(void)state;
	assert_true(cursor_uleb128(&c) == 0);
	assert_true(c.bad);
	c = cursor_over(bytes, sizeof(bytes));
	assert_true(cursor_sleb128(&c) == 0);
	assert_true(c.bad);
}

static void strings_end_inside(void **state)
{
	static const char bytes[] = { 'a', 'b', 0, 0, 'c' };
	struct cursor c = cursor_over(bytes, sizeof(bytes));

	(void)state;
	assert_string_equal(cursor_string(&c), "ab");
	assert_string_equal(cursor_string(&c), "");
	assert_null(cursor_string(&c));
	assert_true(c.bad);
}

static void slices_stay_inside(void **state)
{
	static const uint8_t bytes[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct cursor c = cursor_over(bytes, sizeof(bytes)), s;

	(void)state;
	s = cursor_slice(&c, 2, 3);
	assert_int_equal(cursor_u8(&s), 2);
	assert_int_equal(cursor_left(&s), 2);
	assert_false(cursor_slice(&c, 8, 0).bad);
	assert_true(cursor_slice(&c, 9, 0).bad);
	assert_true(cursor_slice(&c, 4, 5).bad);
	assert_true(cursor_slice(&c, UINT64_MAX, 2).bad);
	assert_true(cursor_slice(&c, 2, UINT64_MAX).bad);
}

static void empty_input(void **state)
{
	struct cursor c = cursor_over(NULL, 0);

	(void)state;
	assert_int_equal(cursor_left(&c), 0);
	assert_null(cursor_bytes(&c, 1));
	assert_true(c.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_in_order),
		cmocka_unit_test(reading_past_the_end_is_a_permanent_error),
		cmocka_unit_test(unsigned_of_odd_sizes),
		cmocka_unit_test(leb128_of_the_specification),
		cmocka_unit_test(leb128_of_ten_bytes),
		cmocka_unit_test(leb128_without_an_end),
		cmocka_unit_test(strings_end_inside),
		cmocka_unit_test(slices_stay_inside),
		cmocka_unit_test(empty_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
