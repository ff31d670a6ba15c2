/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace: trees of kernel functions, whose threads make calls after their end is announced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "agent/trace/trace_json.h"
#include "agent/trace/trace_text.h"
#include "agent/trace/trace_trees.h"
#include "base/buffer.h"

enum { TEXT_BYTES = 1 << 20, PID = 70, TID = 71 };

static const uint64_t SECOND_NS = 1000000000;

struct fixture {
	struct trace_trees trees;
	struct buffer text;
	struct abi_trace_event next;
	bool json;
};

static const char *name_function(void *context, uint32_t number)
{
	static const char *const names[] = { "do_exit", "exit_files", "vfs_read", "timer" };

	(void)context;
	return names[number];
}

static bool name_has_parameters(void *context, uint32_t number)
{
	(void)context;
	(void)number;
	return false;
}

static const char *name_place(void *context, uint32_t number)
{
	(void)context;
	return number ? "ksys_read+0x6d" : "";
}

static const char *name_process(void *context, uint32_t pid)
{
	(void)context;
	(void)pid;
	return "app";
}

static const struct trace_names names = {
	.function = name_function,
	.has_parameters = name_has_parameters,
	.place = name_place,
	.process = name_process,
};

static void on_done(void *context, const struct trace_tree *tree)
{
	struct fixture *f = context;

	assert_int_equal(f->json ? trace_json_tree(tree, &names, &f->text)
				 : trace_text_tree(tree, &names, false, &f->text),
		0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	setenv("TZ", "UTC", 1);
	trace_trees_init(&f->trees, &(struct trace_trees_options){
					    .max_calls = 1000,
					    .max_bytes = 1 << 20,
					    .done = on_done,
					    .context = f,
				    });
	buffer_init(&f->text, TEXT_BYTES);
	f->next = (struct abi_trace_event){ .tree = 1,
		.tgid = PID,
		.tid = TID,
		.task = { .tgid = PID, .tid = TID },
		.flags = ABI_TRACE_KERNEL };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trace_trees_deinit(&f->trees);
	buffer_deinit(&f->text);
	free(f);
	return 0;
}

/* An event one microsecond after the last one. */
static void event(struct fixture *f, enum abi_trace_what what, uint32_t level, uint32_t function)
{
	struct abi_trace_event e = f->next;

	e.what = what;
	e.level = level;
	e.function = function;
	trace_trees_event(&f->trees, &e, NULL, what == ABI_TRACE_ENTRY && level ? 1 : 0);
	f->next.time_ns += 1000;
	f->next.sequence++;
}

static void expect(struct fixture *f, const char *text)
{
	assert_int_equal(buffer_append(&f->text, "", 1), 0);
	assert_string_equal((char *)f->text.bytes, text);
	f->text.size = 0;
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void calls_after_the_thread_ended_are_in_its_tree(void **state)
{
	struct fixture *f = *state;

	event(f, ABI_TRACE_ENTRY, 0, 0);
	trace_trees_exit(&f->trees, PID, TID);
	trace_trees_tick(&f->trees, f->next.time_ns);
	expect(f, "");
	event(f, ABI_TRACE_ENTRY, 1, 1);
	event(f, ABI_TRACE_RETURN, 1, 1);
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
	event(f, ABI_TRACE_ENTRY, 0, 0);
	trace_trees_exit(&f->trees, PID, PID);
	trace_trees_finish(&f->trees);
	expect(f, "# kernel calls of thread 70 of app (pid 70)\n"
		  "00:00:00.000000         -  do_exit()  [did not return: the process ended]\n\n");
}

static void each_thread_has_an_end_of_its_own(void **state)
{
	struct fixture *f = *state;

	event(f, ABI_TRACE_ENTRY, 0, 2);
	/* The first thread's end is not that of the others. */
	trace_trees_exit(&f->trees, PID, PID);
	for (int i = 0; i < 4; i++)
		trace_trees_tick(&f->trees, f->next.time_ns);
	f->next.time_ns += 2 * SECOND_NS;
	event(f, ABI_TRACE_RETURN, 0, 2);
	expect(f, "# kernel calls of thread 71 of app (pid 70)\n"
		  "00:00:00.000000     2.00s  vfs_read()\n\n");
}

static void the_kernel_may_not_show_a_return(void **state)
{
	struct fixture *f = *state;

	event(f, ABI_TRACE_ENTRY, 0, 2);
	event(f, ABI_TRACE_ENTRY, 1, 1);
	event(f, ABI_TRACE_RETURN, 0, 2);
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
		event(f, ABI_TRACE_ENTRY, 0, 2);
		f->next.flags |= ABI_TRACE_INTERRUPT;
		event(f, ABI_TRACE_ENTRY, 1, 3);
		f->next.flags &= ~(uint32_t)ABI_TRACE_INTERRUPT;
		event(f, ABI_TRACE_RETURN, 1, 3);
		event(f, ABI_TRACE_RETURN, 0, 2);
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
