/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/process while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/process/proc_reader.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/io.h"
#include "tests/unit/process_fixture.h"

struct watching {
	struct fixture *f;
	struct process *process;
	int pid_fd, task_fd; /* -1 = none */
};

static void begin(void *context)
{
	struct watching *w = context;
	void *state = NULL;

	*w = (struct watching){ .pid_fd = -1, .task_fd = -1 };
	assert_int_equal(process_set_up(&state), 0);
	w->f = state;
	show(w->f, PARENT, &w->f->program, (struct fake_process){ .comm = "shop" });
}

static void end(struct watching *w)
{
	void *state = w->f;

	process_tear_down(&state);
}

/* A sample of an unknown process: its generation is read from /proc. */
static int look(void *context)
{
	struct watching *w = context;

	w->process = sampled(w->f, PARENT, later);
	if (!w->process)
		return -ENOMEM;
	return w->process->unreadable || !w->process->executable;
}

static void look_again(struct watching *w, uint64_t time_ns)
{
	/* After a shortage of descriptors or memory the next sample alone must be enough. */
	if (!failure_is_shortage(-torture_errno()))
		processes_lost(w->f->ps, time_ns, time_ns);
	w->process = sampled(w->f, PARENT, time_ns);
}

/* Whatever failed for the moment, a later sample finds the process and its program. */
static void it_is_known_later(void *context, int result)
{
	struct watching *w = context;

	(void)result;
	for (int i = 0; i < 3; i++)
		look_again(w, later + (uint64_t)i);
	assert_non_null(w->process);
	assert_int_equal(w->process->pid, PARENT);
	assert_string_equal(w->process->comm, "shop");
	assert_non_null(w->process->executable);
	assert_int_equal(w->process->executable->id.build_id.bytes[0], 1);
	assert_false(w->process->unreadable);
	assert_int_equal(processes_count(w->f->ps), 1);
	end(w);
}

static void a_process_that_could_not_be_read_is_read_later(void **state)
{
	struct watching w;
	struct torture t = { .begin = begin,
		.operation = look,
		.end = it_is_known_later,
		.context = &w,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

static void begin_records(void *context)
{
	struct watching *w = context;

	begin(w);
	show(w->f, CHILD, &w->f->program, (struct fake_process){ .comm = "program" });
}

/* The stream has all records of the process: /proc is not needed. */
static int follow(void *context)
{
	struct watching *w = context;

	exec(w->f, 1000, CHILD, &w->f->program);
	map(w->f, 1001, CHILD, 0x700000, &w->f->libc);
	w->process = sampled(w->f, CHILD, 1002);
	return w->process ? 0 : -ENOMEM;
}

/* What the records did not deliver is read from /proc at a later sample. */
static void assert_known_later(struct watching *w)
{
	const struct module *m;

	for (uint64_t i = 0; i < 3; i++)
		w->process = sampled(w->f, CHILD, later + i);
	assert_non_null(w->process);
	assert_non_null(w->process->executable);
	assert_int_equal(w->process->executable->id.build_id.bytes[0], 1);
	m = module_at(w->process, 0x7f0000000010);
	assert_non_null(m);
	assert_int_equal(m->id.build_id.size ? m->id.build_id.bytes[0] : 0, 3);
}

/* A mapping that was not added leaves no other file in its place. */
static void no_wrong_module_is_there(void *context, int result)
{
	struct watching *w = context;
	const struct module *m = w->process ? module_at(w->process, 0x700010) : NULL;

	(void)result;
	if (m && m->id.build_id.size)
		assert_int_equal(m->id.build_id.bytes[0], 3);
	if (!torture_failed())
		assert_non_null(m);
	assert_known_later(w);
	end(w);
}

static void a_record_that_was_not_taken_gives_no_wrong_module(void **state)
{
	struct watching w;
	struct torture t = { .begin = begin_records,
		.operation = follow,
		.end = no_wrong_module_is_there,
		.context = &w,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

static int scan(void *context)
{
	struct watching *w = context;

	return processes_scan(w->f->ps, NULL, 0);
}

static void begin_many(void *context)
{
	struct watching *w = context;

	begin(w);
	for (uint32_t i = 1; i < 5; i++)
		show(w->f, PARENT + i, &w->f->other, (struct fake_process){ .comm = "other" });
}

/* A successful scan lists all of /proc; a process that it could not read is read at a sample. */
static void all_are_known(void *context, int result)
{
	struct watching *w = context;
	bool listing_failed = torture_failed() && !strcmp(torture_failed(), "readdir");

	assert_true(result || !listing_failed);
	if (!result && !torture_failed())
		assert_int_equal(processes_count(w->f->ps), 5);
	w->process = sampled(w->f, PARENT, later);
	assert_non_null(w->process);
	end(w);
}

static void a_scan_that_failed_leaves_a_table(void **state)
{
	struct watching w;
	struct torture t = { .begin = begin_many,
		.operation = scan,
		.end = all_are_known,
		.context = &w,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

static void show_thread(struct fixture *f, int tid, const char *maps)
{
	char path[PATH_MAX + 64], name[64];

	snprintf(path, sizeof(path), "%s/%d/task/%d", f->proc.path, PARENT, tid);
	assert_int_equal(io_make_directories(path, 0755), 0);
	snprintf(name, sizeof(name), "task/%d/maps", tid);
	fake_proc_write(&f->proc, PARENT, name, maps);
}

static void begin_exited_main_thread(void *context)
{
	struct watching *w = context;

	begin(w);
	show_thread(w->f, PARENT, "");
	show_thread(w->f, PARENT + 1, "00400000-00401000 r-xp 00000000 00:00 0\n");
	assert_int_equal(proc_open(w->f->proc.fd, PARENT, &w->pid_fd), 0);
}

static int open_live_thread(void *context)
{
	struct watching *w = context;

	return proc_open_live_thread(w->pid_fd, PARENT, &w->task_fd);
}

static void close_live_thread(void *context, int result)
{
	struct watching *w = context;

	assert_int_equal(result == 0, w->task_fd >= 0);
	if (w->task_fd >= 0)
		close(w->task_fd);
	close(w->pid_fd);
	end(w);
}

/* -ESRCH would mean that no thread has memory. */
static void threads_that_could_not_be_listed_are_not_gone(void **state)
{
	struct watching w;
	struct torture t = { .begin = begin_exited_main_thread,
		.operation = open_live_thread,
		.end = close_live_thread,
		.context = &w,
		.optional = "read" }; /* of the thread's maps: the next thread is tried */

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_process_that_could_not_be_read_is_read_later),
		torture_test(a_record_that_was_not_taken_gives_no_wrong_module),
		torture_test(a_scan_that_failed_leaves_a_table),
		torture_test(threads_that_could_not_be_listed_are_not_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
