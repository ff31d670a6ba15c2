/* SPDX-License-Identifier: Apache-2.0 */
/* Functions found in machine code of aarch64. */
#include "tests/unit/code_fixture.h"

#define WORDS(...)                                 \
	.code = (const uint32_t[]){ __VA_ARGS__ }, \
	.size = sizeof((const uint32_t[]){ __VA_ARGS__ }), .machine = EM_AARCH64

enum {
	NOP = 0xd503201f,
	RET = 0xd65f03c0,
	LDADDAL = 0xf8e10000, /* v8.1, which Capstone 4 does not know */
	MSR_DIT = 0xd503415f, /* v8.4, likewise */
};

static void test_each_kind_of_return(void **)
{
	/* ret; ret x3; retaa; retab */
	assert_functions(
		&(struct code_program){ WORDS(NOP, RET, 0xd65f0060, 0xd65f0bff, 0xd65f0fff),
			.symbols = { { "f", 0, 20 } } },
		"f@0:4,8,c,10");
}

static void test_where_control_goes(void **)
{
	/* tail: b g; ret   index: br x0; braa x0, x1   g: hlt; udf; brk */
	assert_functions(
		&(struct code_program){
			WORDS(0x14000004, RET, 0xd61f0000, 0xd71f0801, 0xd4400000, 0, 0xd4200000),
			.symbols = { { "tail", 0, 8 }, { "index", 8, 8 }, { "g", 16, 12 } } },
		"tail@0:4/T index@8/N/I g@10/N");
}

static void test_branches(void **)
{
	/* Each leads to g, then back into f: b.eq, cbz, tbz. */
	static const uint32_t forward[] = { 0x54000060, 0xb4000060, 0x36000060 };
	static const uint32_t back[] = { 0x54ffffe0, 0xb4ffffe0, 0x3607ffe0 };

	for (size_t i = 0; i < ARRAY_SIZE(forward); i++) {
		assert_functions(&(struct code_program){ WORDS(forward[i], NOP, RET, RET),
					 .symbols = { { "f", 0, 12 }, { "g", 12, 4 } } },
			"f@0:8/T g@c:c/E");
		assert_functions(&(struct code_program){ WORDS(NOP, back[i], RET),
					 .symbols = { { "f", 0, 12 } } },
			"f@0:8");
	}
}

static void test_instructions_that_the_library_does_not_know(void **)
{
	assert_functions(&(struct code_program){ WORDS(LDADDAL, MSR_DIT, RET),
				 .symbols = { { "f", 0, 12 } } },
		"f@0:8");
}

/* Constants that Go puts behind its code. */
static void test_data(void **)
{
	assert_functions(&(struct code_program){ WORDS(NOP, RET, 0x00020000),
				 .symbols = { { "f", 0, 12 } } },
		"f@0/U");
	/* Half a word. */
	assert_functions(
		&(struct code_program){ WORDS(NOP, RET), .symbols = { { "f", 0, 6 } } }, "f@0/U");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_of_return),
		cmocka_unit_test(test_where_control_goes),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_instructions_that_the_library_does_not_know),
		cmocka_unit_test(test_data),
	};

	code_libraries_load(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
