/* SPDX-License-Identifier: Apache-2.0 */
/* Prologues of Go functions, as the compilers of 1.16 to 1.27 wrote them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/go/go_stack_check.h"

struct prologue {
	const char *what;
	uint32_t expected;
	uint8_t size; /* bytes */
	uint8_t bytes[48];
};

#define BYTES(...)                                \
	sizeof((const uint8_t[]){ __VA_ARGS__ }), \
	{                                         \
		__VA_ARGS__                       \
	}
#define LOAD_G 0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff
#define PIE_LOAD_G 0x48, 0xc7, 0xc1, 0xf8, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b, 0x09
#define SHARED_LOAD_G 0x48, 0x8b, 0x0d, 0x10, 0x20, 0, 0, 0x64, 0x48, 0x8b, 0x09

static const struct prologue amd64[] = {
	{ "small", 0, BYTES(0x49, 0x3b, 0x66, 0x10) },
	{ "medium, one byte", 0x78, BYTES(0x4c, 0x8d, 0x64, 0x24, 0x88, 0x4d, 0x3b, 0x66, 0x10) },
	{ "medium", 0xd8,
		BYTES(0x4c, 0x8d, 0xa4, 0x24, 0x28, 0xff, 0xff, 0xff, 0x4d, 0x3b, 0x66, 0x10) },
	{ "huge", 0x2e88,
		BYTES(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0x88, 0x2e, 0, 0, 0x0f, 0x82, 5, 1, 0, 0,
			0x4d, 0x3b, 0x66, 0x10) },
	{ "huge, short branch", 0x2e88,
		BYTES(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0x88, 0x2e, 0, 0, 0x72, 5, 0x4d, 0x3b,
			0x66, 0x10) },
	{ "1.16, small", 0, BYTES(LOAD_G, 0x48, 0x3b, 0x61, 0x10) },
	{ "1.16, small, PIE", 0, BYTES(PIE_LOAD_G, 0x48, 0x3b, 0x61, 0x10) },
	{ "1.16, small, shared", 0, BYTES(SHARED_LOAD_G, 0x48, 0x3b, 0x61, 0x10) },
	{ "1.16, medium", 0xd0,
		BYTES(LOAD_G, 0x48, 0x8d, 0x84, 0x24, 0x30, 0xff, 0xff, 0xff, 0x48, 0x3b, 0x41,
			0x10) },
	{ "1.16, huge", 0x3220 - 0x3a0,
		BYTES(LOAD_G, 0x48, 0x8b, 0x71, 0x10, 0x48, 0x81, 0xfe, 0xde, 0xfa, 0xff, 0xff,
			0x0f, 0x84, 0, 1, 0, 0, 0x48, 0x8d, 0x84, 0x24, 0xa0, 3, 0, 0, 0x48, 0x29,
			0xf0, 0x48, 0x3d, 0x20, 0x32, 0, 0) },
	{ "assembly since 1.17, medium", 0x70,
		BYTES(LOAD_G, 0x4c, 0x8d, 0x64, 0x24, 0x90, 0x4c, 0x3b, 0x61, 0x10) },
	{ "the system's stack", INDEX_NO_STACK_CHECK, BYTES(0x49, 0x3b, 0x66, 0x18) },
	{ "a frame pointer", INDEX_NO_STACK_CHECK, BYTES(0x55, 0x48, 0x89, 0xe5) },
	{ "another comparison after the lea", INDEX_NO_STACK_CHECK,
		BYTES(0x4c, 0x8d, 0x64, 0x24, 0x88, 0x49, 0x3b, 0x66, 0x10) },
	{ "another branch", INDEX_NO_STACK_CHECK,
		BYTES(0x49, 0x89, 0xe4, 0x49, 0x81, 0xec, 0x88, 0x2e, 0, 0, 0x74, 5, 0x4d, 0x3b,
			0x66, 0x10) },
};

struct words {
	const char *what;
	uint32_t expected;
	uint8_t count;
	uint32_t words[12];
};

#define LIST(...)                                      \
	sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4, \
	{                                              \
		__VA_ARGS__                            \
	}

static const struct words arm64[] = {
	{ "small", 0, LIST(0xf9400b90, 0xeb3063ff) },
	{ "medium", 0xd0, LIST(0xf9400b90, 0xd10343f1, 0xeb10023f) },
	{ "medium, shifted", 0x3000, LIST(0xf9400b90, 0xd1400ff1, 0xeb10023f) },
	{ "huge", 0x2e80, LIST(0xf9400b90, 0xd285d01b, 0xeb3b63f1, 0x54000843, 0xeb10023f) },
	{ "huge, two halves", 0xfffa0,
		LIST(0xf9400b90, 0xd29ff41b, 0xf2a001fb, 0xeb3b63f1, 0x54000843, 0xeb10023f) },
	{ "1.16, small", 0, LIST(0xf9400b81, 0x910003e2, 0xeb01005f) },
	{ "1.16, medium", 0xd0, LIST(0xf9400b81, 0xd10343e2, 0xeb01005f) },
	{ "1.16, huge", 0x3220 - 0x3a0,
		LIST(0xf9400b81, 0x9280a43b, 0xeb1b003f, 0x54000940, 0x910e83e2, 0xcb010042,
			0xd2864403, 0xeb03005f) },
	{ "1.16, huge, two halves", 0x100340 - 0x3a0,
		LIST(0xf9400b81, 0x9280a43b, 0xeb1b003f, 0x54000940, 0x910e83e2, 0xcb010042,
			0xd2806803, 0xf2a00203, 0xeb03005f) },
	{ "the system's stack", INDEX_NO_STACK_CHECK, LIST(0xf9400f90, 0xeb3063ff) },
	{ "another register", INDEX_NO_STACK_CHECK, LIST(0xf9400b90, 0xeb3163ff) },
	{ "another branch", INDEX_NO_STACK_CHECK,
		LIST(0xf9400b90, 0xd285d01b, 0xeb3b63f1, 0x54000849, 0xeb10023f) },
};

static void test_amd64(void **)
{
	for (size_t i = 0; i < ARRAY_SIZE(amd64); i++) {
		uint32_t bytes = go_stack_check_amd64(cursor_over(amd64[i].bytes, amd64[i].size));

		if (bytes != amd64[i].expected)
			fail_msg("%s: %#x, expected %#x", amd64[i].what, bytes, amd64[i].expected);
	}
}

static void test_arm64(void **)
{
	for (size_t i = 0; i < ARRAY_SIZE(arm64); i++) {
		uint32_t bytes = go_stack_check_arm64(
			cursor_over(arm64[i].words, arm64[i].count * sizeof(uint32_t)));

		if (bytes != arm64[i].expected)
			fail_msg("%s: %#x, expected %#x", arm64[i].what, bytes, arm64[i].expected);
	}
}

/* The code ends within the prologue: nothing is known then. */
static void test_each_truncation(void **)
{
	for (size_t i = 0; i < ARRAY_SIZE(amd64); i++)
		for (size_t size = 0; size < amd64[i].size; size++)
			assert_int_equal(go_stack_check_amd64(cursor_over(amd64[i].bytes, size)),
				INDEX_NO_STACK_CHECK);
	for (size_t i = 0; i < ARRAY_SIZE(arm64); i++)
		for (size_t size = 0; size < arm64[i].count * sizeof(uint32_t); size++)
			assert_int_equal(go_stack_check_arm64(cursor_over(arm64[i].words, size)),
				INDEX_NO_STACK_CHECK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amd64),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_each_truncation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
