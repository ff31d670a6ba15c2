/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace: from events to trees, text and a summary. */
#include "trace_fixture.h"

/* ---- calls ---------------------------------------------------------------------------------- */

static void shows_calls_when_the_root_returns(void **state)
{
	struct fixture *f = *state;

	f->next.flags = ABI_TRACE_FIBER;
	f->next.fiber_id = GOID;
	enter(f, 0, 0);
	enter(f, 1, 1);
	enter(f, 2, 3);
	leave(f, 2, 3);
	leave(f, 1, 1);
	enter(f, 1, 2);
	leave(f, 1, 2);
	expect(f, "");
	leave(f, 0, 0);
	expect(f, "# goroutine 9 of app (pid 70)\n"
		  "00:00:00.000000    7.00us  root()\n"
		  "00:00:00.000001    3.00us    left()  /src/a.c:5\n"
		  "00:00:00.000002    1.00us      f(int)  /src/a.c:5\n"
		  "00:00:00.000005    1.00us    right()  /src/a.c:5\n"
		  "\n");
	assert_int_equal(f->trees.by_id.count, 0);
	assert_int_equal(f->trees.bytes, 0);
}

static void marks_calls_that_did_not_return(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	enter(f, 1, 1);
	enter(f, 2, 2);
	enter(f, 1, 2);
	enter(f, 2, 1);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000    5.00us  root()\n"
		  "00:00:00.000001         -    left()  /src/a.c:5  [did not return]\n"
		  "00:00:00.000002         -      right()  /src/a.c:5  [did not return]\n"
		  "00:00:00.000003         -    right()  /src/a.c:5  [did not return]\n"
		  "00:00:00.000004         -      left()  /src/a.c:5  [did not return]\n"
		  "\n");
}

static void an_abandoned_root_ends_its_tree(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	event(f, ABI_TRACE_END, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000         -  root()  [did not return]\n\n");
	f->next.tree = 2;
	f->next.sequence = 0;
	enter(f, 0, 0);
	f->next.flags = ABI_TRACE_TASK_ENDED;
	event(f, ABI_TRACE_END, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000002         -  root()  [did not return: the thread ended]\n\n");
	assert_int_equal(f->summary.unfinished, 2);
}

static void the_end_of_a_thread_ends_its_trees_only(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	f->next.tree = 2;
	f->next.sequence = 0;
	f->next.tid = 72;
	f->next.task.tid = 72;
	enter(f, 0, 1);
	/* A goroutine's, which the thread ran last. */
	f->next.tree = 3;
	f->next.sequence = 0;
	f->next.tid = TID;
	f->next.task = (struct abi_trace_task_key){ .tgid = PID, .owner = 4096 };
	f->next.flags = ABI_TRACE_FIBER;
	f->next.fiber_id = GOID;
	enter(f, 0, 2);
	trace_trees_exit(&f->trees, PID, TID);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000         -  root()  [did not return: the thread ended]\n\n");
	trace_trees_exit(&f->trees, 99, 99);
	expect(f, "");
	trace_trees_exit(&f->trees, PID, PID);
	assert_int_equal(f->trees.by_id.count, 0);
	assert_int_equal(f->summary.trees, 3);
}

static void what_is_open_at_the_end_is_shown(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	enter(f, 1, 1);
	trace_trees_finish(&f->trees);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000         -  root()  [has not returned yet]\n"
		  "00:00:00.000001         -    left()  /src/a.c:5  [has not returned yet]\n"
		  "\n");
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void lost_events_are_shown_where_they_were(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	enter(f, 1, 1);
	f->next.sequence += 2;
	enter(f, 1, 2);
	f->next.sequence += 3;
	leave(f, 1, 2);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000    4.00us  root()\n"
		  "00:00:00.000001         -    left()  /src/a.c:5"
		  "  [its return was lost, or it did not return]\n"
		  "                             [2 events lost]\n"
		  "00:00:00.000002    1.00us    right()  /src/a.c:5\n"
		  "                               [3 events lost]\n"
		  "\n");
}

static void entries_may_be_lost(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	f->next.sequence++;
	enter(f, 2, 2);
	leave(f, 2, 2);
	leave(f, 1, 1);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000    4.00us  root()\n"
		  "                               [1 events lost]\n"
		  "00:00:00.000001    1.00us      right()  /src/a.c:5\n"
		  "\n");
}

static void the_beginning_may_be_lost(void **state)
{
	struct fixture *f = *state;

	f->next.sequence = 1;
	leave(f, 1, 1);
	assert_int_equal(f->trees.not_kept, 1);
	enter(f, 1, 1);
	leave(f, 1, 1);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)  [the beginning was lost]\n"
		  "                             [2 events lost]\n"
		  "00:00:00.000001    1.00us    left()  /src/a.c:5\n\n");
}

static void what_bpf_could_not_follow_is_said(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	f->next.flags = ABI_TRACE_INCOMPLETE;
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)  [incomplete: calls could not be followed]\n"
		  "00:00:00.000000    1.00us  root()\n\n");
}

static void calls_that_do_not_fit_are_counted(void **state)
{
	struct fixture *f = *state;

	f->trees.options.max_calls = 2;
	enter(f, 0, 0);
	enter(f, 1, 1);
	enter(f, 2, 2);
	leave(f, 2, 2);
	leave(f, 1, 1);
	enter(f, 1, 2);
	leave(f, 1, 2);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000    7.00us  root()  [1 calls left out]\n"
		  "00:00:00.000001    3.00us    left()  /src/a.c:5  [1 calls left out]\n"
		  "\n");
	assert_int_equal(f->summary.left_out, 2);
}

static void memory_of_all_trees_is_bounded(void **state)
{
	struct fixture *f = *state;

	f->trees.options.max_bytes = 64 << 10;
	f->trees.options.max_calls = 1 << 20;
	for (uint32_t i = 0; i < 2000; i++) {
		f->next.tree = 1 + i % 10;
		f->next.task.tid = 100 + i % 10;
		f->next.sequence = i / 10;
		enter(f, i / 10, 1);
	}
	assert_true(f->trees.bytes < 128 << 10);
	trace_trees_finish(&f->trees);
	assert_int_equal(f->trees.bytes, 0);
	assert_int_equal(f->summary.calls + f->summary.left_out, 2000);
	assert_true(f->summary.left_out > 500);
}

static void short_calls_are_hidden(void **state)
{
	struct fixture *f = *state;

	f->trees.options.min_duration_ns = 2000;
	enter(f, 0, 0);
	enter(f, 1, 1);
	leave(f, 1, 1);
	enter(f, 1, 2);
	enter(f, 2, 1);
	leave(f, 2, 1);
	leave(f, 1, 2);
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000    7.00us  root()\n"
		  "00:00:00.000003    3.00us    right()  /src/a.c:5\n"
		  "\n");
	assert_int_equal(f->summary.hidden, 2);
}

static void what_is_missing_is_not_hidden(void **state)
{
	struct fixture *f = *state;

	f->trees.options.min_duration_ns = 1000000;
	enter(f, 0, 0);
	f->next.sequence++;
	leave(f, 0, 0);
	expect(f, "# thread 71 of app (pid 70)\n"
		  "00:00:00.000000    1.00us  root()\n"
		  "                             [1 events lost]\n\n");
}

static void events_that_make_no_sense_do_no_harm(void **state)
{
	struct fixture *f = *state;

	enter(f, ABI_TRACE_LEVELS, 0);
	enter(f, ABI_TRACE_LEVELS - 1, 0);
	leave(f, 5, 3);
	leave(f, UINT32_MAX, 3);
	enter(f, 3, 1);
	leave(f, 3, 2);
	trace_trees_finish(&f->trees);
	assert_int_equal(f->trees.bytes, 0);
}

/* ---- payloads, text, summary ---------------------------------------------------------------- */

static void payloads_are_kept_with_their_calls(void **state)
{
	struct fixture *f = *state;

	memcpy(f->payload, "abc", 3);
	f->next.payload_bytes = 3;
	enter(f, 0, 0);
	memcpy(f->payload, "wxyz", 4);
	f->next.payload_bytes = 4;
	enter(f, 1, 1);
	leave(f, 1, 1);
	leave(f, 0, 0);
	assert_string_equal(f->payload, "abc");
}

static void deep_calls_are_numbered(void **state)
{
	struct fixture *f = *state;
	char *text;

	for (uint32_t i = 0; i < 70; i++)
		enter(f, i, 1);
	trace_trees_finish(&f->trees);
	assert_int_equal(buffer_append(&f->text, "", 1), 0);
	text = (char *)f->text.bytes;
	assert_non_null(strstr(text, " (65) left()"));
	assert_non_null(strstr(text, " (69) left()"));
	assert_null(strstr(text, "(64)"));
}

static void names_do_not_drive_the_terminal(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 4);
	leave(f, 0, 4);
	assert_int_equal(buffer_append(&f->text, "", 1), 0);
	assert_null(strchr((char *)f->text.bytes, '\033'));
}

static void the_summary_has_the_slowest_functions(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	enter(f, 1, 1);
	leave(f, 1, 1);
	enter(f, 1, 2);
	enter(f, 2, 1);
	leave(f, 2, 1);
	leave(f, 1, 2);
	leave(f, 0, 0);
	f->text.size = 0;
	f->summary.duration_ns = 2500000000;
	f->summary.events_lost = 3;
	f->summary.trees_left_out = 4;
	assert_int_equal(trace_summary_text(&f->summary, &names, &f->text), 0);
	expect(f, "2.5s: 4 calls in 1 trees\n"
		  "not shown: 3 events were lost: they came faster than they were read\n"
		  "not shown: 4 trees were left out: there were too many events in a second\n"
		  "      max      mean      calls  slowest\n"
		  "   7.00us    7.00us          1  root\n"
		  "   3.00us    3.00us          1  right\n"
		  "   1.00us    1.00us          2  left\n");
}

static void the_slowest_are_the_slowest_of_many(void **state)
{
	struct fixture *f = *state;
	uint32_t numbers[3];

	f->summary.functions = calloc(100, sizeof(*f->summary.functions));
	f->summary.capacity = 100;
	for (uint32_t i = 0; i < 100; i++)
		f->summary.functions[i] = (struct trace_function_sums){
			.calls = 1, .returned = i != 50, .max_ns = (i * 37) % 100
		};
	assert_int_equal(trace_summary_slowest(&f->summary, numbers, 3), 3);
	assert_int_equal(f->summary.functions[numbers[0]].max_ns, 99);
	assert_int_equal(f->summary.functions[numbers[1]].max_ns, 98);
	assert_int_equal(f->summary.functions[numbers[2]].max_ns, 97);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void a_tree_is_a_line_of_json(void **state)
{
	struct fixture *f = *state;

	f->json = true;
	enter(f, 0, 0);
	enter(f, 1, 4);
	f->next.sequence++;
	leave(f, 0, 0);
	expect(f, "{\"pid\":70,\"process\":\"app\",\"tid\":71,\"end\":\"returned\","
		  "\"complete\":false,\"lost\":1,\"left_out\":0,\"calls\":["
		  "{\"level\":0,\"function\":\"root\",\"caller\":\"\",\"time_ns\":86400000000000,"
		  "\"duration_ns\":2000,\"end\":\"returned\",\"lost_inside\":1},"
		  "{\"level\":1,\"function\":\"bad\\u001b[31m\",\"caller\":\"/src/a.c:5\","
		  "\"time_ns\":86400000001000,\"duration_ns\":null,\"end\":\"unknown\"}]}\n");
}

static void a_complete_tree_says_so(void **state)
{
	struct fixture *f = *state;

	f->json = true;
	f->next.flags = ABI_TRACE_FIBER;
	f->next.fiber_id = GOID;
	enter(f, 0, 0);
	event(f, ABI_TRACE_END, 0, 0);
	expect(f,
		"{\"pid\":70,\"process\":\"app\",\"goid\":9,\"tid\":71,"
		"\"end\":\"did not return\",\"complete\":true,\"lost\":0,\"left_out\":0,"
		"\"calls\":[{\"level\":0,\"function\":\"root\",\"caller\":\"\","
		"\"time_ns\":86400000000000,\"duration_ns\":null,\"end\":\"did not return\"}]}\n");
}

static void the_summary_is_a_line_of_json(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	leave(f, 0, 0);
	f->text.size = 0;
	f->summary.events_lost = 7;
	assert_int_equal(trace_json_summary(&f->summary, &names, &f->text), 0);
	expect(f, "{\"summary\":{\"duration_ns\":0,\"trees\":1,\"calls\":1,\"unfinished_trees\":0,"
		  "\"not_shown\":{\"events_lost\":7,\"trees_left_out\":0,"
		  "\"calls_not_followed\":0,\"goroutine_errors\":0,\"kernel_calls_missed\":0,"
		  "\"returns_unmatched\":0,"
		  "\"calls_left_out\":0,\"calls_hidden\":0,\"trees_not_printed\":0},"
		  "\"slowest\":[{\"function\":\"root\",\"calls\":1,\"returned\":1,"
		  "\"total_ns\":1000,\"max_ns\":1000}]}}\n");
}

static void on_done_events(void *context, const struct trace_tree *tree)
{
	struct fixture *f = context;

	assert_int_equal(trace_events_tree(tree, &names, true, &f->text), 0);
}

/* What did not return ends no later than its caller, so that the events stay nested. */
static void goroutines_have_tracks_of_events(void **state)
{
	struct fixture *f = *state;

	f->trees.options.done = on_done_events;
	f->next.flags = ABI_TRACE_FIBER;
	f->next.fiber_id = GOID;
	assert_int_equal(trace_events_begin(&f->text), 0);
	enter(f, 0, 0);
	enter(f, 1, 1);
	leave(f, 0, 0);
	assert_int_equal(trace_events_end(&f->text), 0);
	expect(f, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		  "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":70,\"tid\":4194313,"
		  "\"args\":{\"name\":\"app\"}},\n"
		  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":70,\"tid\":4194313,"
		  "\"args\":{\"name\":\"goroutine 9\"}},\n"
		  "{\"ph\":\"X\",\"name\":\"root\",\"pid\":70,\"tid\":4194313,\"ts\":0.000,"
		  "\"dur\":2.000,\"args\":{\"caller\":\"\"}},\n"
		  "{\"ph\":\"X\",\"name\":\"left\",\"pid\":70,\"tid\":4194313,\"ts\":1.000,"
		  "\"dur\":1.000,\"args\":{\"caller\":\"/src/a.c:5\","
		  "\"end\":\"did not return\"}}\n]}\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(shows_calls_when_the_root_returns),
		CASE(marks_calls_that_did_not_return),
		CASE(an_abandoned_root_ends_its_tree),
		CASE(the_end_of_a_thread_ends_its_trees_only),
		CASE(what_is_open_at_the_end_is_shown),
		CASE(lost_events_are_shown_where_they_were),
		CASE(entries_may_be_lost),
		CASE(the_beginning_may_be_lost),
		CASE(what_bpf_could_not_follow_is_said),
		CASE(calls_that_do_not_fit_are_counted),
		CASE(memory_of_all_trees_is_bounded),
		CASE(short_calls_are_hidden),
		CASE(what_is_missing_is_not_hidden),
		CASE(events_that_make_no_sense_do_no_harm),
		CASE(payloads_are_kept_with_their_calls),
		CASE(deep_calls_are_numbered),
		CASE(names_do_not_drive_the_terminal),
		CASE(the_summary_has_the_slowest_functions),
		CASE(the_slowest_are_the_slowest_of_many),
		CASE(a_tree_is_a_line_of_json),
		CASE(a_complete_tree_says_so),
		CASE(the_summary_is_a_line_of_json),
		CASE(goroutines_have_tracks_of_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
