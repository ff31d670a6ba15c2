/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace: trees of kernel functions, whose threads make calls after their end is announced. */
#include "tests/unit/trace_fixture.h"

static const uint64_t SECOND_NS = 1000000000;

static const char *kernel_function(void *context, uint32_t number)
{
	static const char *const functions[] = { "do_exit", "exit_files", "vfs_read", "timer" };

	(void)context;
	return functions[number];
}

static bool kernel_has_parameters(void *context, uint32_t number)
{
	(void)context;
	(void)number;
	return false;
}

static const char *kernel_place(void *context, uint32_t number)
{
	(void)context;
	return number ? "ksys_read+0x6d" : "";
}

static int kernel_setup(void **state)
{
	int err = setup(state);
	struct fixture *f = *state;

	f->names.function = kernel_function;
	f->names.has_parameters = kernel_has_parameters;
	f->names.place = kernel_place;
	f->names.real_ns = 0;
	f->next.flags = ABI_TRACE_KERNEL;
	return err;
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void calls_after_the_thread_ended_are_in_its_tree(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 0);
	trace_trees_exit(&f->trees, PID, TID);
	trace_trees_tick(&f->trees, f->next.time_ns);
	expect(f, "");
	enter(f, 1, 1);
	leave(f, 1, 1);
	trace_trees_tick(&f->trees, f->next.time_ns);
	expect(f, "# kernel calls of thread 71 of app (pid 70)\n"
		  "00:00:00.000000         -  do_exit()  [did not return: the thread ended]\n"
		  "00:00:00.000001    1.00us    exit_files()  ksys_read+0x6d\n\n");
	assert_int_equal(f->trees.by_id.count, 0);
}

static void a_tree_that_waits_ends_with_the_trace(void **state)
{
	struct fixture *f = *state;

	f->next.tid = f->next.task.tid = PID;
	enter(f, 0, 0);
	trace_trees_exit(&f->trees, PID, PID);
	trace_trees_finish(&f->trees);
	expect(f, "# kernel calls of thread 70 of app (pid 70)\n"
		  "00:00:00.000000         -  do_exit()  [did not return: the process ended]\n\n");
}

static void each_thread_has_an_end_of_its_own(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 2);
	/* The first thread's end is not that of the others. */
	trace_trees_exit(&f->trees, PID, PID);
	for (int i = 0; i < 4; i++)
		trace_trees_tick(&f->trees, f->next.time_ns);
	f->next.time_ns += 2 * SECOND_NS;
	leave(f, 0, 2);
	expect(f, "# kernel calls of thread 71 of app (pid 70)\n"
		  "00:00:00.000000     2.00s  vfs_read()\n\n");
}

static void the_kernel_may_not_show_a_return(void **state)
{
	struct fixture *f = *state;

	enter(f, 0, 2);
	enter(f, 1, 1);
	leave(f, 0, 2);
	expect(f, "# kernel calls of thread 71 of app (pid 70)\n"
		  "00:00:00.000000    2.00us  vfs_read()\n"
		  "00:00:00.000001         -    exit_files()  ksys_read+0x6d  "
		  "[its return was lost, or it did not return]\n\n");
}

static void what_an_interrupt_calls_is_marked(void **state)
{
	struct fixture *f = *state;

	for (int json = 0; json < 2; json++) {
		f->json = json;
		f->next.tree++;
		f->next.sequence = 0;
		f->next.time_ns = 0;
		enter(f, 0, 2);
		f->next.flags |= ABI_TRACE_INTERRUPT;
		enter(f, 1, 3);
		f->next.flags &= ~(uint32_t)ABI_TRACE_INTERRUPT;
		leave(f, 1, 3);
		leave(f, 0, 2);
		expect(f,
			json ? "{\"pid\":70,\"process\":\"app\",\"tid\":71,\"kernel\":true,"
			       "\"end\":\"returned\",\"complete\":true,\"lost\":0,\"left_out\":0,"
			       "\"calls\":[{\"level\":0,\"function\":\"vfs_read\",\"caller\":\"\","
			       "\"time_ns\":0,\"duration_ns\":3000,\"end\":\"returned\"},"
			       "{\"level\":1,\"function\":\"timer\",\"caller\":\"ksys_read+0x6d\","
			       "\"time_ns\":1000,\"duration_ns\":1000,\"end\":\"returned\","
			       "\"interrupt\":true}]}\n"
			     : "# kernel calls of thread 71 of app (pid 70)\n"
			       "00:00:00.000000    3.00us  vfs_read()\n"
			       "00:00:00.000001    1.00us    timer()  ksys_read+0x6d  "
			       "[interrupt]\n\n");
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, kernel_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(calls_after_the_thread_ended_are_in_its_tree),
		CASE(a_tree_that_waits_ends_with_the_trace),
		CASE(each_thread_has_an_end_of_its_own),
		CASE(the_kernel_may_not_show_a_return),
		CASE(what_an_interrupt_calls_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
