/* SPDX-License-Identifier: Apache-2.0 */
/* Without the disassembler's library, which this program does not load. */
#include <errno.h>

#include "tests/unit/code_fixture.h"

static void test_there_is_no_decoder(void **)
{
	struct code_decoder *decoder = NULL;

	assert_int_equal(code_decoder_create(EM_X86_64, &decoder), -EOPNOTSUPP);
	assert_int_equal(code_decoder_create(EM_AARCH64, &decoder), -EOPNOTSUPP);
	assert_int_equal(code_decoder_create(EM_NONE, &decoder), -EOPNOTSUPP);
	assert_null(decoder);
}

/* It is not one whose program has no functions. */
static void test_the_index_says_that_it_has_no_functions(void **)
{
	const struct code_program program = { CODE(0x90, 0xc3), .symbols = { { "f", 0, 2 } } };
	struct index *index = index_of_program(&program);

	assert_false(index_has_functions(index));
	assert_int_equal(index_function_count(index), 0);
	assert_string_equal(names(index, 1), "f");
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_is_no_decoder),
		cmocka_unit_test(test_the_index_says_that_it_has_no_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
