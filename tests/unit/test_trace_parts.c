/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace: trees that are reported in parts, and those whose end is never heard of. */
#include "trace_fixture.h"

static const uint64_t SECOND_NS = 1000000000;

/* ---- what is open for long ------------------------------------------------------------------- */

static void what_is_open_for_long_is_shown_in_parts(void **state)
{
	struct fixture *f = *state;

	f->trees.options.part_ns = 10 * SECOND_NS;
	enter(f, 0, 0);
	enter(f, 1, 1);
	leave(f, 1, 1);
	enter(f, 1, 2);
	trace_trees_tick(&f->trees, 9 * SECOND_NS);
	expect(f, "");
	trace_trees_tick(&f->trees, 10 * SECOND_NS);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000         -  root()  [has not returned yet]\n"
		  "00:00:00.000001    1.00us    left()  /src/a.c:5\n"
		  "00:00:00.000003         -    right()  /src/a.c:5  [has not returned yet]\n\n");
	assert_int_equal(f->summary.trees, 1);
	assert_int_equal(f->summary.unfinished, 0);
	leave(f, 1, 2);
	enter(f, 1, 1);
	leave(f, 1, 1);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)  [continued]\n"
		  "00:00:00.000000    7.00us  root()\n"
		  "00:00:00.000003    1.00us    right()  /src/a.c:5\n"
		  "00:00:00.000005    1.00us    left()  /src/a.c:5\n\n");
	assert_int_equal(f->summary.trees, 1);
	assert_int_equal(f->summary.unfinished, 0);
	assert_int_equal(f->summary.calls, 4);
	assert_int_equal(f->summary.functions[0].calls, 1);
	assert_int_equal(f->summary.functions[1].calls, 2);
	assert_int_equal(f->summary.functions[1].returned, 2);
	assert_int_equal(f->summary.functions[2].returned, 1);
	assert_int_equal(f->trees.bytes, 0);
}

static void what_hangs_is_shown_once(void **state)
{
	struct fixture *f = *state;

	f->trees.options.part_ns = 10 * SECOND_NS;
	enter(f, 0, 0);
	trace_trees_tick(&f->trees, 11 * SECOND_NS);
	f->text.size = 0;
	trace_trees_tick(&f->trees, 30 * SECOND_NS);
	expect(f, "");
	enter(f, 1, 1);
	trace_trees_tick(&f->trees, 40 * SECOND_NS);
	expect(f, "# thread 71 of app (pid 70)  [continued]\n"
		  "00:00:00.000000         -  root()  [has not returned yet]\n"
		  "00:00:00.000001         -    left()  /src/a.c:5  [has not returned yet]\n\n");
	trace_trees_finish(&f->trees);
	assert_int_equal(f->summary.unfinished, 1);
}

static void a_time_in_the_past_reports_nothing(void **state)
{
	struct fixture *f = *state;

	f->trees.options.part_ns = 10 * SECOND_NS;
	f->next.time_ns = 100 * SECOND_NS;
	enter(f, 0, 0);
	trace_trees_tick(&f->trees, 99 * SECOND_NS);
	expect(f, "");
}

/* What was shown as open must be heard of again, however short it was. */
static void what_was_shown_is_not_hidden(void **state)
{
	struct fixture *f = *state;

	f->trees.options.part_ns = SECOND_NS;
	f->trees.options.min_duration_ns = SECOND_NS;
	enter(f, 0, 0);
	enter(f, 1, 1);
	trace_trees_tick(&f->trees, SECOND_NS);
	f->text.size = 0;
	leave(f, 1, 1);
	enter(f, 1, 2);
	leave(f, 1, 2);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)  [continued]\n"
		  "00:00:00.000000    5.00us  root()\n"
		  "00:00:00.000001    1.00us    left()  /src/a.c:5\n\n");
	assert_int_equal(f->summary.hidden, 1);
}

static void payloads_move_with_their_calls(void **state)
{
	struct fixture *f = *state;

	f->trees.options.part_ns = SECOND_NS;
	enter(f, 0, 0);
	memcpy(f->payload, "gone", 4);
	f->next.payload_bytes = 4;
	enter(f, 1, 1);
	leave(f, 1, 1);
	memcpy(f->payload, "kept", 4);
	f->next.payload_bytes = 4;
	enter(f, 1, 2);
	trace_trees_tick(&f->trees, SECOND_NS);
	f->seen_call = 1;
	leave(f, 1, 2);
	leave(f, 0, 0);
	assert_string_equal(f->payload, "kept");
}

/* ---- what is too large ------------------------------------------------------------------------
 */

static void a_tree_that_grows_too_large_is_shown_in_parts(void **state)
{
	struct fixture *f = *state;

	f->trees.options.max_calls = 100;
	enter(f, 0, 0);
	for (int i = 0; i < 250; i++) {
		enter(f, 1, 1);
		leave(f, 1, 1);
	}
	leave(f, 0, 0);
	assert_int_equal(f->summary.calls, 251);
	assert_int_equal(f->summary.left_out, 0);
	assert_int_equal(f->summary.trees, 1);
	assert_int_equal(f->parts, 3);
	assert_int_equal(f->trees.bytes, 0);
}

static void trees_share_their_memory(void **state)
{
	struct fixture *f = *state;

	f->trees.options.max_bytes = 64 << 10;
	f->trees.options.max_calls = 1 << 20;
	for (uint32_t i = 0; i < 20000; i++) {
		f->next.tree = 1 + i % 10;
		f->next.task.tid = 100 + i % 10;
		f->next.sequence = i / 10;
		event(f, i % 20 < 10 ? ABI_TRACE_ENTRY : ABI_TRACE_RETURN, i / 10 > 0, 1);
		assert_true(f->trees.bytes < 128 << 10);
	}
	trace_trees_finish(&f->trees);
	assert_int_equal(f->trees.bytes, 0);
	assert_int_equal(f->summary.trees, 10);
	assert_true(f->parts > 2);
	assert_int_equal(f->summary.calls + f->summary.left_out, 10 * 1000);
	assert_true(f->summary.left_out < 1000);
}

/* Lost events belong to the part with the line about them. */
static void what_was_lost_is_in_the_part_that_shows_it(void **state)
{
	struct fixture *f = *state;

	f->trees.options.max_calls = 65;
	enter(f, 0, 0);
	for (int i = 0; i < 64; i++) {
		enter(f, 1, 1);
		leave(f, 1, 1);
	}
	f->next.sequence += 5;
	enter(f, 1, 2);
	assert_int_equal(f->parts, 1);
	assert_int_equal(f->lost, 0);
	f->text.size = 0;
	leave(f, 1, 2);
	leave(f, 0, 0);
	assert_int_equal(f->lost, 5);
	expect(f, "# thread 71 of app (pid 70)  [continued]\n"
		  "00:00:00.000000     131us  root()\n"
		  "                             [5 events lost]\n"
		  "00:00:00.000129    1.00us    right()  /src/a.c:5\n\n");
}

/* ---- what ends unheard ------------------------------------------------------------------------
 */

static void another_tree_of_the_task_shows_that_the_end_was_lost(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	enter(f, 1, 1);
	f->next.tree = 2;
	f->next.sequence = 0;
	enter(f, 0, 2);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000         -  root()"
		  "  [its return was lost, or it did not return]\n"
		  "00:00:00.000001         -    left()  /src/a.c:5"
		  "  [its return was lost, or it did not return]\n\n");
	assert_int_equal(f->trees.by_id.count, 1);
	/* Of another task. */
	f->next.tree = 3;
	f->next.sequence = 0;
	f->next.task.tid = 72;
	enter(f, 0, 1);
	assert_int_equal(f->trees.by_id.count, 2);
	leave(f, 0, 1);
	assert_int_equal(f->trees.by_task.count, 1);
}

/* ---- other forms ------------------------------------------------------------------------------
 */

static void parts_have_numbers_in_json(void **state)
{
	struct fixture *f = *state;

	f->json = true;
	f->trees.options.part_ns = SECOND_NS;
	enter(f, 0, 0);
	trace_trees_tick(&f->trees, SECOND_NS);
	expect(f, "{\"pid\":70,\"process\":\"app\",\"tid\":71,\"end\":\"open\",\"complete\":false,"
		  "\"part\":1,\"lost\":0,\"left_out\":0,\"calls\":[{\"level\":0,"
		  "\"function\":\"root\",\"caller\":\"\",\"time_ns\":86400000000000,"
		  "\"duration_ns\":null,\"end\":\"open\"}]}\n");
	leave(f, 0, 0);
	expect(f, "{\"pid\":70,\"process\":\"app\",\"tid\":71,\"end\":\"returned\","
		  "\"complete\":false,\"part\":2,\"lost\":0,\"left_out\":0,\"calls\":["
		  "{\"level\":0,\"function\":\"root\",\"caller\":\"\","
		  "\"time_ns\":86400000000000,\"duration_ns\":1000,\"end\":\"returned\","
		  "\"continued\":true}]}\n");
}

static void put_events(void *context, const struct trace_tree *tree)
{
	struct fixture *f = context;

	assert_int_equal(trace_events_tree(tree, &names, false, &f->text), 0);
}

/* Each call is one event, whose duration is known. */
static void calls_are_events_once_they_have_ended(void **state)
{
	struct fixture *f = *state;
	char *text;

	f->trees.options.done = put_events;
	f->trees.options.part_ns = SECOND_NS;
	enter(f, 0, 0);
	enter(f, 1, 1);
	leave(f, 1, 1);
	trace_trees_tick(&f->trees, SECOND_NS);
	assert_int_equal(buffer_append(&f->text, "", 1), 0);
	text = (char *)f->text.bytes;
	assert_non_null(strstr(text, "\"name\":\"left\""));
	assert_null(strstr(text, "\"name\":\"root\""));
	f->text.size = 0;
	trace_trees_finish(&f->trees);
	assert_int_equal(buffer_append(&f->text, "", 1), 0);
	text = (char *)f->text.bytes;
	assert_null(strstr(text, "\"name\":\"left\""));
	assert_non_null(strstr(text, "\"name\":\"root\""));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_open_for_long_is_shown_in_parts),
		CASE(what_hangs_is_shown_once),
		CASE(a_time_in_the_past_reports_nothing),
		CASE(what_was_shown_is_not_hidden),
		CASE(payloads_move_with_their_calls),
		CASE(a_tree_that_grows_too_large_is_shown_in_parts),
		CASE(trees_share_their_memory),
		CASE(what_was_lost_is_in_the_part_that_shows_it),
		CASE(another_tree_of_the_task_shows_that_the_end_was_lost),
		CASE(parts_have_numbers_in_json),
		CASE(calls_are_events_once_they_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
