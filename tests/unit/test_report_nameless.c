/* SPDX-License-Identifier: Apache-2.0 */
/* Code without a symbol in agent/report's pprof: what stands in for its name; and which samples
 * are looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/report_decoded.h"
#include "tests/unit/report_fixture.h"

/* Its addresses stay, for those who can name them; what stands in for a name is one function. */
static void test_code_without_a_symbol_is_named_after_its_functions_start(void **state)
{
	struct fixture *f = *state;
	const uint64_t bias = SEGMENT_ADDRESS - SEGMENT_OFFSET;
	struct profile_frame stack[] = { in_program(UNWOUND, 0, f),
		in_program(UNWOUND + 0x80, PROFILE_FRAME_RETURN, f), in_program(MAIN, 0, f) };

	add_user(f, f->one, stack, 3);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(location_at(m, 0, 0)->address, UNWOUND + bias);
	assert_int_equal(location_at(m, 0, 1)->address, UNWOUND + bias + 0x7f);
	assert_string_equal(name_at(m, 0, 0, 0), "program+0x401900");
	assert_ptr_equal(function_at(m, 0, 0, 0), function_at(m, 0, 1, 0));
	assert_string_equal(m->string_table[function_at(m, 0, 0, 0)->system_name], "");
	assert_string_equal(m->string_table[function_at(m, 0, 0, 0)->filename], "");
	assert_int_equal(location_at(m, 0, 0)->line[0]->line, 0);
	assert_string_equal(file_at(m, 0, 0), "/bin/program");
	assert_false(mapping_at(m, 0, 0)->has_functions);
	assert_true(mapping_at(m, 0, 2)->has_functions);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_SYMBOL), 2);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NAMED), 1);
}

static void test_code_without_a_symbol_can_stay_an_address(void **state)
{
	struct fixture *f = *state;
	struct profile_frame stack[] = { in_program(UNWOUND, 0, f), in_program(MAIN, 0, f) };

	add_user(f, f->one, stack, 2);
	f->options.bare_addresses = true;

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(location_at(m, 0, 0)->n_line, 0);
	assert_string_equal(name_at(m, 0, 1, 0), "main");
}

static void test_without_demangling_the_functions_start_stays(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(UNWOUND + 1, 0, f);

	add_user(f, f->one, &frame, 1);
	f->options.no_demangle = f->options.no_inlines = true;

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(name_at(m, 0, 0, 0), "program+0x401900");
}

static bool of_process(void *context, const struct profile_sample *sample)
{
	return sample->process == *(uint32_t *)context;
}

static void test_only_the_named_samples_are_looked_at(void **state)
{
	struct fixture *f = *state;
	struct profile_frame main_frame = in_program(MAIN, 0, f), start = in_program(START, 0, f);
	const uint32_t second[] = { 1 };

	add_user(f, f->one, &main_frame, 1);
	add_user(f, f->one, &start, 1);
	f->options.samples = second;
	f->options.sample_count = 1;
	{
		automessage *m = pprof_of(f, NULL);

		assert_int_equal(m->n_sample, 1);
		assert_int_equal(m->location[0]->address, START + SEGMENT_ADDRESS - SEGMENT_OFFSET);
	}
	f->options.include = of_process;
	f->options.include_context = &f->two->number;
	{
		automessage *m = pprof_of(f, NULL);

		assert_int_equal(m->n_sample, 0);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_code_without_a_symbol_is_named_after_its_functions_start),
		CASE(test_only_the_named_samples_are_looked_at),
		CASE(test_code_without_a_symbol_can_stay_an_address),
		CASE(test_without_demangling_the_functions_start_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
