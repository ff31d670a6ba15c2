/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes come first: CPU times are in the fake /proc/PID/stat. */
#include "agent/sampler/process/busiest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/process_fixture.h"

enum { MAX_FOUND = 16 };

struct found {
	uint32_t pids[MAX_FOUND];
	size_t count;
};

static void note(void *context, struct process *p)
{
	struct found *found = context;

	assert_true(found->count < MAX_FOUND);
	found->pids[found->count++] = p->pid;
}

/* The times are words 14 and 15; COMM may contain text that looks like more words. */
static void use_time(
	struct fixture *f, uint32_t pid, const char *comm, unsigned int user, unsigned int system)
{
	char text[256];

	snprintf(text, sizeof(text),
		"%u (%s) S 1 1 1 0 -1 4194304 9 9 9 9 %u %u 0 0 20 0 1 0 1 0 0\n", pid, comm, user,
		system);
	fake_proc_write(&f->proc, pid, "stat", text);
}

static void run(struct fixture *f, uint32_t pid)
{
	show(f, pid, &f->program, (struct fake_process){ 0 });
	assert_int_equal(processes_scan(f->ps, &pid, 1), 0);
}

static struct found busiest(struct fixture *f, size_t most)
{
	struct found found = { 0 };

	assert_int_equal(busiest_for_each(f->ps, f->proc.fd, most, note, &found), 0);
	return found;
}

static void the_busiest_come_first(void **state)
{
	struct fixture *f = *state;
	struct found found;

	for (uint32_t pid = 101; pid <= 104; pid++)
		run(f, pid);
	use_time(f, 101, "program", 10, 0);
	use_time(f, 102, "program", 0, 30);
	use_time(f, 103, "program", 15, 10);
	use_time(f, 104, "program", 1, 1);
	found = busiest(f, 4);
	assert_int_equal(found.count, 4);
	assert_int_equal(found.pids[0], 102);
	assert_int_equal(found.pids[1], 103);
	assert_int_equal(found.pids[2], 101);
	assert_int_equal(found.pids[3], 104);
	found = busiest(f, 2);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.pids[1], 103);
}

static void words_and_parentheses_in_a_name_do_not_shift_fields(void **state)
{
	struct fixture *f = *state;
	struct found found;

	run(f, 101);
	run(f, 102);
	use_time(f, 101, "a) S 1 1 1 0 -1 0 9 9 9 9 5000 5000", 1, 0);
	use_time(f, 102, "program", 1, 1);
	found = busiest(f, 2);
	assert_int_equal(found.pids[0], 102);
}

static void a_process_whose_time_is_unknown_comes_last(void **state)
{
	struct fixture *f = *state;
	struct found found;

	for (uint32_t pid = 101; pid <= 103; pid++)
		run(f, pid);
	fake_proc_write(&f->proc, 101, "stat", "nonsense");
	fake_proc_remove(&f->proc, 102);
	use_time(f, 103, "program", 0, 1);
	found = busiest(f, MAX_FOUND);
	assert_int_equal(found.count, 3);
	assert_int_equal(found.pids[0], 103);
}

static void kernel_threads_and_unknown_programs_are_left_out(void **state)
{
	struct fixture *f = *state;

	run(f, 101);
	live(f, 101)->kernel_thread = true;
	run(f, 102);
	live(f, 102)->executable = NULL;
	assert_int_equal(busiest(f, MAX_FOUND).count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_busiest_come_first),
		CASE(words_and_parentheses_in_a_name_do_not_shift_fields),
		CASE(a_process_whose_time_is_unknown_comes_last),
		CASE(kernel_threads_and_unknown_programs_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
