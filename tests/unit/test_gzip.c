/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"

enum { LIMIT = 1 << 20 };

static void compress(const char *text, struct buffer *out)
{
	assert_int_equal(gzip_deflate(text, strlen(text), 1, out), 0);
}

static void decompression_restores_the_input(void **state)
{
	autocall(buffer_deinit) struct buffer gzip, plain;

	(void)state;
	buffer_init(&gzip, LIMIT);
	buffer_init(&plain, LIMIT);
	compress("a window of ten seconds", &gzip);
	assert_true(gzip_is(gzip.bytes, gzip.size));
	assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), 0);
	assert_int_equal(plain.size, 23);
	assert_memory_equal(plain.bytes, "a window of ten seconds", 23);
}

static void members_follow_one_another(void **state)
{
	autocall(buffer_deinit) struct buffer gzip, plain;

	(void)state;
	buffer_init(&gzip, LIMIT);
	buffer_init(&plain, LIMIT);
	compress("one", &gzip);
	compress("", &gzip);
	compress("two", &gzip);
	assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), 0);
	assert_int_equal(plain.size, 6);
	assert_memory_equal(plain.bytes, "onetwo", 6);
}

static void more_than_the_limit_is_refused(void **state)
{
	autocall(buffer_deinit) struct buffer zeros, gzip, plain, small;

	(void)state;
	buffer_init(&zeros, LIMIT);
	buffer_init(&gzip, LIMIT);
	memset(buffer_room(&zeros, LIMIT), 0, LIMIT);
	assert_int_equal(gzip_deflate(zeros.bytes, LIMIT, 6, &gzip), 0);
	assert_true(gzip.size < LIMIT / 100);
	buffer_init(&plain, LIMIT - 1);
	assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), -E2BIG);
	buffer_init(&small, 10);
	assert_int_equal(gzip_deflate("no room for this", 16, 1, &small), -E2BIG);
	buffer_deinit(&plain);
	buffer_init(&plain, LIMIT);
	assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), 0);
	assert_int_equal(plain.size, LIMIT);
}

/* What a member says of its length saves a second attempt, and room. */
static void a_member_is_inflated_at_once(void **state)
{
	enum { BYTES = LIMIT / 4 };
	autocall(buffer_deinit) struct buffer text, gzip, plain;

	(void)state;
	buffer_init(&text, LIMIT);
	buffer_init(&gzip, LIMIT);
	buffer_init(&plain, LIMIT);
	for (unsigned int i = 0; text.size < BYTES; i++)
		assert_int_equal(buffer_printf(&text, "%x ", i * i * i % 65521), 0);
	assert_int_equal(gzip_deflate(text.bytes, BYTES, 1, &gzip), 0);
	assert_true(gzip.size * 32 > BYTES);
	assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), 0);
	assert_int_equal(plain.size, BYTES);
	assert_int_equal(plain.capacity, BYTES);
	/* A short last member says nothing of the first. */
	compress("the end", &gzip);
	plain.size = 0;
	assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), 0);
	assert_int_equal(plain.size, BYTES + 7);
	assert_memory_equal(plain.bytes, text.bytes, BYTES);
	assert_memory_equal(plain.bytes + BYTES, "the end", 7);
}

static void truncation_and_a_wrong_checksum_are_errors(void **state)
{
	autocall(buffer_deinit) struct buffer gzip;

	(void)state;
	buffer_init(&gzip, LIMIT);
	compress("a window of ten seconds", &gzip);
	for (size_t i = 0; i < gzip.size; i++) {
		autocall(buffer_deinit) struct buffer plain;

		buffer_init(&plain, LIMIT);
		assert_int_equal(gzip_inflate(gzip.bytes, i, &plain), -EBADMSG);
	}
	/* The checksum and the length. */
	for (size_t i = gzip.size - 8; i < gzip.size; i++) {
		autocall(buffer_deinit) struct buffer plain;

		buffer_init(&plain, LIMIT);
		gzip.bytes[i] ^= 0x40;
		assert_int_equal(gzip_inflate(gzip.bytes, gzip.size, &plain), -EBADMSG);
		gzip.bytes[i] ^= 0x40;
	}
	assert_false(gzip_is("\x1f\x8b", 2));
	assert_false(gzip_is("pprof", 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decompression_restores_the_input),
		cmocka_unit_test(members_follow_one_another),
		cmocka_unit_test(more_than_the_limit_is_refused),
		cmocka_unit_test(a_member_is_inflated_at_once),
		cmocka_unit_test(truncation_and_a_wrong_checksum_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
