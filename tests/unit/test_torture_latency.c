/* SPDX-License-Identifier: Apache-2.0 */
/* agent/latency and agent/sampler/functions while each allocation fails in turn. */
#include "tests/unit/torture.h"

#include "agent/latency/latency_json.h"
#include "agent/latency/latency_openmetrics.h"
#include "agent/latency/latency_text.h"
#include "agent/sampler/functions/choose.h"
#include "tests/unit/latency_fixture.h"
#include "tests/unit/small_index.h"

static int latency_fill(struct latency_report *report)
{
	struct latency_identity identity = { .linkage = "", .binary = "/bin/app", .build_id = "" };
	int err = latency_report_name_key(report, 3, "three");

	for (uint32_t i = 0; !err && i < 20; i++) {
		struct latency_report_cell cell = { .calls = 1, .key = i % 7, .bucket = i };
		char name[16];

		snprintf(name, sizeof(name), "f%u", i % 10);
		identity.name = name;
		err = latency_report_function(report, &identity, &cell.function);
		if (!err)
			err = latency_report_add(report, &cell);
	}
	return err;
}

/* ---- a report -------------------------------------------------------------------------------- */

static struct latency_report made;

static int make_report(void *context)
{
	struct latency_report report;
	int err = latency_report_init(&report, ABI_LATENCY_BY_FIBER);

	(void)context;
	if (err)
		return err;
	err = latency_fill(&report);
	if (err)
		latency_report_deinit(&report);
	else
		made = report;
	return err;
}

static void expect_whole(void *context, int result)
{
	(void)context;
	if (result)
		return;
	assert_int_equal(made.function_count, 10);
	assert_int_equal(latency_report_calls(&made), 20);
	latency_report_deinit(&made);
}

static void a_report_without_memory(void **state)
{
	(void)state;
	torture_run(&(struct torture){ .operation = make_report, .end = expect_whole });
}

/* After a failure the same report takes what failed. */
static int fill_again(void *context)
{
	int err = latency_fill(&made);

	(void)context;
	if (!err)
		return 0;
	latency_report_clear(&made);
	return err;
}

static void begin_report(void *context)
{
	(void)context;
	assert_int_equal(latency_report_init(&made, ABI_LATENCY_BY_FIBER), 0);
}

static void expect_usable(void *context, int result)
{
	(void)context;
	if (result)
		assert_int_equal(latency_fill(&made), 0);
	assert_int_equal(made.function_count, 10);
	for (uint32_t i = 0; i < 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", i);
		assert_string_equal(made.functions[i].identity.name, name);
	}
	assert_int_equal(latency_report_calls(&made), 20);
	latency_report_deinit(&made);
}

static void a_report_after_a_failure(void **state)
{
	(void)state;
	torture_run(&(struct torture){
		.begin = begin_report, .operation = fill_again, .end = expect_usable });
}

/* ---- what is made of it ---------------------------------------------------------------------- */

static void begin_filled(void *context)
{
	begin_report(context);
	assert_int_equal(latency_fill(&made), 0);
}

static void end_filled(void *context, int result)
{
	(void)context;
	(void)result;
	assert_int_equal(latency_report_calls(&made), 20);
	latency_report_deinit(&made);
}

static int make_interval(void *context)
{
	struct latency_report interval;
	int err = latency_report_since(&made, &made, &interval);

	(void)context;
	if (!err)
		latency_report_deinit(&interval);
	return err;
}

static int write_text(void *context)
{
	autocall(buffer_deinit) struct buffer out;

	(void)context;
	buffer_init(&out, 1 << 20);
	return latency_text(&made, &out);
}

static int write_json(void *context)
{
	autocall(buffer_deinit) struct buffer out;

	(void)context;
	buffer_init(&out, 1 << 20);
	return latency_json(&made, false, &out);
}

static int write_openmetrics(void *context)
{
	autocall(buffer_deinit) struct buffer out;

	(void)context;
	buffer_init(&out, 1 << 20);
	return latency_openmetrics(&made, &out);
}

static void outputs_without_memory(void **state)
{
	int (*const operations[])(
		void *context) = { make_interval, write_text, write_json, write_openmetrics };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		torture_run(&(struct torture){
			.begin = begin_filled, .operation = operations[i], .end = end_filled });
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int choose_some(void *context)
{
	struct function_patterns wanted = { 0 }, unwanted = { 0 };
	struct choose_options options = { .wanted = &wanted,
		.unwanted = &unwanted,
		.path = "/bin/app",
		.is_program = true,
		.find_inlined = true,
		.limit = 100 };
	struct choice choice = { 0 };
	const char *problem = NULL;
	int err = function_patterns_add(&wanted, "app:f*", &problem);

	if (!err)
		err = function_patterns_add(&unwanted, "f3", &problem);
	if (!err)
		err = choose_functions(context, &options, &choice);
	if (!err) {
		assert_int_equal(choice.chosen_count, 9);
		assert_int_equal(choice.refused_count, 1);
		assert_int_equal(choice.excluded, 1);
	}
	choice_deinit(&choice);
	function_patterns_deinit(&wanted);
	function_patterns_deinit(&unwanted);
	return err;
}

static void choosing_without_memory(void **state)
{
	struct index_writer *w = create();
	struct index *index;
	uint32_t first;

	(void)state;
	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	assert_int_equal(writer_returns(w, (uint64_t[]){ TEXT + 9 }, 1, &first), 0);
	for (uint64_t i = 0; i < 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		assert_int_equal(
			writer_function(w, &(struct writer_function){ .address = TEXT + 16 * i,
						   .linkage = string(w, name),
						   .first_return = first,
						   .return_count = 1 }),
			0);
	}
	inlined(w, function(w, "main", 0x100, 0x200), "f_inlined", 0x110, 0x120);
	index = finish(w);
	torture_run(&(struct torture){ .operation = choose_some, .context = index });
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_report_without_memory),
		torture_test(a_report_after_a_failure),
		torture_test(outputs_without_memory),
		torture_test(choosing_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
