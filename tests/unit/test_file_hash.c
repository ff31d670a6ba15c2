/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a file as OpenTelemetry defines it, and the comment in pprof. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_hash.h"

/* ---- files ---------------------------------------------------------------------------------- */

static void assert_hash(const void *bytes, size_t size, const char *expected)
{
	struct file_hash hash = file_hash_of(bytes, size);
	char hex[FILE_HASH_TEXT_BYTES];

	file_hash_format(&hash, hex);
	assert_string_equal(hex, expected);
}

/* What other programs compute: OpenTelemetry's profiler, and for the others Python's hashlib. */
static void files_around_the_lengths_of_their_ends(void **state)
{
	static const uint8_t small[] = { 0x7f, 'E', 'L', 'F', 0, 1, 2, 3, 4 };
	static const struct {
		size_t size;
		const char *hash;
	} cases[] = {
		{ 0, "af5570f5a1810b7af78caf4bc70a660f" },
		{ 1, "52807a4607ea5debf0b7d4ccb452f4af" },
		{ 4095, "770c9562e0bb264672773e0eba6236c5" },
		{ 4096, "6c3376bc183b0a4994bc0b2c2c9d8b05" },
		{ 4097, "5caa6d2c6348b199ee7902cd00aa97b0" },
		{ 8191, "517b77705561f6703a78bfdb67380295" },
		{ 8192, "a7b0097f07ff25b7b48b13edc4aa7939" },
		{ 8193, "c7c2d298e983c984b695964c8f91aa98" },
		{ 10000, "29e3194e821b97b5565d43a5156ad97a" },
	};
	uint8_t bytes[10000];

	(void)state;
	assert_hash(small, sizeof(small), "caf6e5907166ac76eef618e5f7f59cd9");
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i % 251);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_hash(bytes, cases[i].size, cases[i].hash);
}

static void no_hash_makes_no_comment(void **state)
{
	struct file_hash none = { 0 };
	char hex[FILE_HASH_TEXT_BYTES] = "x";

	(void)state;
	file_hash_format(&none, hex);
	assert_string_equal(hex, "");
}

/* ---- comments ------------------------------------------------------------------------------- */

static void a_comment_is_read_as_it_was_written(void **state)
{
	const char *const hex = "caf6e5907166ac76eef618e5f7f59cd9", *read;
	char comment[FILE_HASH_COMMENT_BYTES];
	uint64_t id;

	(void)state;
	file_hash_comment(UINT64_MAX, hex, comment);
	assert_true(file_hash_parse(comment, &id, &read));
	assert_true(id == UINT64_MAX);
	assert_string_equal(read, hex);
	file_hash_comment(3, hex, comment);
	assert_string_equal(comment, "#htlhash 3 caf6e5907166ac76eef618e5f7f59cd9");
}

static void other_comments_are_left_alone(void **state)
{
	static const char *const others[] = {
		"",
		"made by hand",
		"#htlhash",
		"#htlhash ",
		"#htlhash 3",
		"#htlhash 3 ",
		"#htlhash 0 caf6e5907166ac76eef618e5f7f59cd9",
		"#htlhash -1 caf6e5907166ac76eef618e5f7f59cd9",
		"#htlhash  3 caf6e5907166ac76eef618e5f7f59cd9",
		"#htlhash 3x caf6e5907166ac76eef618e5f7f59cd9",
		"#htlhash 18446744073709551616 caf6e5907166ac76eef618e5f7f59cd9",
		"#htlhash 3 caf6e5907166ac76eef618e5f7f59cd",
		"#htlhash 3 caf6e5907166ac76eef618e5f7f59cd90",
		"#htlhash 3 CAF6E5907166AC76EEF618E5F7F59CD9",
		"#htlhash 3 caf6e5907166ac76eef618e5f7f59cd9 ",
	};
	const char *hex = "as it was";
	uint64_t id = 17;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(file_hash_parse(others[i], &id, &hex));
	assert_int_equal(id, 17);
	assert_string_equal(hex, "as it was");
}

static void an_open_file_has_the_hash_of_its_bytes(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8192, 20000 };
	uint8_t bytes[20000];
	char path[] = "/tmp/fathom-file-hash-XXXXXX";
	autoclose int fd = mkstemp(path);
	struct file_hash hash, expected;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 + i / 256);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, sizes[i], 0), sizes[i]);
		assert_int_equal(file_hash_read(fd, &hash), 0);
		expected = file_hash_of(bytes, sizes[i]);
		assert_true(file_hash_equal(&hash, &expected));
		assert_false(file_hash_is_none(&hash));
	}
	assert_true(file_hash_read(-1, &hash) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_file_has_the_hash_of_its_bytes),
		cmocka_unit_test(files_around_the_lengths_of_their_ends),
		cmocka_unit_test(no_hash_makes_no_comment),
		cmocka_unit_test(a_comment_is_read_as_it_was_written),
		cmocka_unit_test(other_comments_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
