/* SPDX-License-Identifier: Apache-2.0 */
/* What agent/report's pprof says of fibers: their labels, and what created them as a root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/fiber_record.h"
#include "tests/unit/report_decoded.h"
#include "tests/unit/report_fixture.h"

/* Adds a sample of process `one` in main, whose goroutine was created before CREATED_AT. */
static void add_fiber(struct fixture *f, uint32_t id, uint32_t flags, uint64_t created_at)
{
	const struct profile_frame main_frame = in_program(MAIN, 0, f);
	const struct profile_frame origin = in_program(created_at, PROFILE_FRAME_RETURN, f);
	struct profile_sample sample = { .process = f->one->number, .fiber_id = id, .count = 1 };
	union fiber_record record;
	uint32_t losses;

	fiber_record_begin(&record, 1, id);
	record.facts.parent_id = id - 1;
	record.facts.flags |= flags;
	assert_int_equal(profile_fiber(f->profile, &record.facts, &sample.fiber, &losses), 0);
	assert_int_equal(profile_stack(f->profile, &(struct profile_stack){ &origin, 1, 0, 0 },
				 &sample.origin),
		0);
	sample.origin++;
	assert_int_equal(profile_stack(f->profile, &(struct profile_stack){ &main_frame, 1, 0, 0 },
				 &sample.stack),
		0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static void add_created(struct fixture *f, uint32_t id, uint32_t state, uint64_t created_at)
{
	add_fiber(f, id, state << ABI_FIBER_STATE_SHIFT, created_at);
}

static const char *label_text_of(
	const Perftools__Profiles__Profile *m, size_t sample, const char *key)
{
	return m->string_table[label_of(m, sample, key)->str];
}

static void what_a_fiber_is_is_in_labels(void **state)
{
	struct fixture *f = *state;

	add_created(f, 17, ABI_FIBER_RUNS, START + 5);
	add_created(f, 1, ABI_FIBER_ON_THREAD_STACK, NAMELESS + 5);

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(label_text_of(m, 0, "go_state"), "user");
	assert_string_equal(label_text_of(m, 0, "go_created_by"), "_start");
	assert_int_equal(label_of(m, 0, "go_parent_goid")->num, 16);
	assert_string_equal(label_text_of(m, 1, "go_state"), "g0");
	assert_null(label_of(m, 1, "go_created_by"));
	assert_null(label_of(m, 1, "go_created_at"));
	assert_null(label_of(m, 1, "go_parent_goid"));
}

static void stacks_begin_with_what_created_the_fiber(void **state)
{
	struct fixture *f = *state;

	add_created(f, 17, ABI_FIBER_RUNS, START + 5);
	add_created(f, 18, ABI_FIBER_RUNS, LIBC_START + 5);
	add_created(f, 19, ABI_FIBER_RUNS, NAMELESS + 5);
	f->options.created_by = true;

	automessage *m = pprof_of(f, NULL);

	/* Of the same stack, which ends with its mark. */
	assert_int_equal(m->sample[0]->n_location_id, 3);
	assert_string_equal(name_at(m, 0, 2, 0), "_start");
	assert_int_equal(m->sample[1]->n_location_id, 3);
	assert_string_equal(name_at(m, 1, 2, 0), "__libc_start_main");
	assert_int_equal(m->sample[2]->n_location_id, 2);
}

/* Reasons have other numbers in other versions; one that is in no list has no label. */
static void why_a_fiber_waits_is_in_a_label(void **state)
{
	static const struct {
		uint32_t minor, reason;
		const char *text;
	} cases[] = {
		{ 16, 14, "chan receive" },
		{ 19, 21, "timer goroutine (idle)" },
		{ 20, 21, "sync.Mutex.Lock" },
		{ 21, 31, "stopping the world" },
		{ 23, 37, "GC weak to strong wait" },
		{ 23, 38, NULL },
		{ 24, 24, "sync.WaitGroup.Wait" },
		{ 25, 14, "chan receive" },
		{ 26, 14, "sleep" },
		{ 27, 19, "chan receive" },
		{ 27, 46, "cleanup wait" },
		{ 27, 47, NULL },
		{ 27, 255, NULL },
		{ 15, 14, NULL },
		{ 26, 0, NULL },
	};
	struct fixture *f = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t wait = cases[i].minor << ABI_FIBER_WAIT_REASON_BITS | cases[i].reason;

		add_fiber(f, 100 + i, wait << ABI_FIBER_WAIT_SHIFT, START + 5);
	}

	automessage *m = pprof_of(f, NULL);

	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cases[i].text)
			assert_string_equal(label_text_of(m, i, "go_wait_reason"), cases[i].text);
		else
			assert_null(label_of(m, i, "go_wait_reason"));
	}
}

/* A sample in main of a goroutine with the label KEY. */
static void add_labelled(struct fixture *f, uint64_t id, const char *key, const char *value)
{
	const struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_sample sample = { .process = f->one->number, .count = 1 };
	union fiber_record record;
	uint32_t losses;

	fiber_record_begin(&record, 1, id);
	fiber_record_add(&record, "http.route", value);
	fiber_record_add(&record, key, value);
	assert_int_equal(profile_fiber(f->profile, &record.facts, &sample.fiber, &losses), 0);
	assert_int_equal(profile_stack(f->profile, &(struct profile_stack){ &frame, 1, 0, 0 },
				 &sample.stack),
		0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static void spans_are_the_only_labels(void **state)
{
	static const struct {
		const char *key, *value;
		bool is_span;
	} cases[] = {
		{ "span_id", "9a517183f26a089d", true },
		{ "span id", "5a4fe264a9c987FE", true },
		{ "profile_id", "0000000000000001", true },
		{ "span_id", "0000000000000000", false },
		{ "span_id", "9a517183f26a089", false },
		{ "span_id", "9a517183f26a089d0", false },
		{ "span_id", "9a517183f26a089g", false },
		{ "trace_id", "9a517183f26a089d", false },
	};
	struct fixture *f = *state;

	f->options.no_labels = f->options.span_labels = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		add_labelled(f, i + 1, cases[i].key, cases[i].value);

	automessage *m = pprof_of(f, NULL);

	/* Those without a span are one. */
	assert_int_equal(m->n_sample, 4);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(m->sample[i]->n_label, 1);
		assert_string_equal(label_text_of(m, i, "span_id"), cases[i].value);
	}
	assert_int_equal(m->sample[3]->n_label, 0);
	assert_int_equal(m->sample[3]->value[0], 5);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_a_fiber_is_is_in_labels),
		CASE(stacks_begin_with_what_created_the_fiber),
		CASE(why_a_fiber_waits_is_in_a_label),
		CASE(spans_are_the_only_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
