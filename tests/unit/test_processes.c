/* SPDX-License-Identifier: Apache-2.0 */
/* The process table, fed by the stream of records. */
#include "agent/sampler/process/processes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "agent/sampler/process/table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/process_fixture.h"

static const struct fake_process as_usual = { 0 };

/* ---- generations from the stream alone ---- */

static void a_short_lived_process_is_known_from_the_stream(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	exec(f, 1000, PARENT, &f->other);
	forks(f, 2000, PARENT, CHILD);
	exec(f, 3000, CHILD, &f->program);
	p = sampled(f, CHILD, 4000);
	assert_int_equal(p->start_ns, 3000);
	assert_false(p->unreadable);
	assert_string_equal(p->comm, "program");
	assert_string_equal(p->executable->path, f->program.path);
	assert_int_equal(p->executable->kind, MODULE_FILE);
	assert_ptr_equal(module_at(p, 0x400800), p->executable);
	assert_int_equal(module_at(p, 0x7fff00000000)->kind, MODULE_VDSO);
	assert_null(module_at(p, 0x500000));
	assert_int_equal(mapping_file_off(mappings_find(p->mappings, 0x400010), 0x400010), 0x1010);
	assert_int_equal(f->programs, 3); /* the parent's; the child's before and after exec */
	assert_int_equal(f->last_program, p->number);
	assert_int_equal(count(f, METRIC_UNNAMED_GONE), 0);
}

static void each_mapping_is_reported_once(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	assert_int_equal(f->mapped, 3); /* program, libc, vDSO */
	map(f, 2000, PARENT, 0x600000, &f->other);
	assert_int_equal(f->mapped, 4);
	assert_int_equal(f->last_mapper, live(f, PARENT)->number);
	assert_int_equal(f->last_mapped.start, 0x600000);
	assert_string_equal(f->last_mapped.module->path, f->other.path);
	/* A child has what its parent mapped. */
	forks(f, 3000, PARENT, CHILD);
	assert_int_equal(f->mapped, 4);
	/* Nothing was mapped. */
	map_name(f, 4000, CHILD + 1, 0x700000, "/unknown/process");
	assert_int_equal(f->mapped, 4);
}

static void a_copy_is_called_by_its_own_name(void **state)
{
	struct fixture *f = *state;
	struct fake_file copy = f->program;
	const struct process *original, *renamed;

	snprintf(copy.path, sizeof(copy.path), "/srv/copy (deleted)");
	exec(f, 1000, PARENT, &f->program);
	exec(f, 2000, CHILD, &copy);
	original = sampled(f, PARENT, 3000);
	renamed = sampled(f, CHILD, 3000);
	assert_ptr_equal(original->executable, renamed->executable);
	assert_string_equal(process_program_path(original), f->program.path);
	assert_string_equal(process_program_path(renamed), "/srv/copy");
	/* A forked child keeps the name until it executes another program. */
	forks(f, 4000, CHILD, CHILD + 1);
	assert_string_equal(process_program_path(live(f, CHILD + 1)), "/srv/copy");
	exec(f, 5000, CHILD + 1, &f->other);
	assert_string_equal(process_program_path(live(f, CHILD + 1)), f->other.path);
}

/* The record has 0 as the parent's pid, which is also the pid of the idle threads. */
static void a_child_of_another_pid_namespace_is_not_the_idle_threads(void **state)
{
	struct fixture *f = *state;

	assert_true(sampled(f, 0, 1000)->kernel_thread);
	forks(f, 2000, 0, CHILD);
	assert_null(table_live(f->ps, CHILD));
}

/* The smallest pid, which the first process of a container's host may have. */
static void pid_1_is_forked_like_any_other(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	forks(f, 2000, PARENT, 1);
	assert_non_null(live(f, 1));
	assert_ptr_equal(live(f, 1)->executable, live(f, PARENT)->executable);
}

static void exec_begins_a_generation(void **state)
{
	struct fixture *f = *state;
	struct process *before, *after;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	before = sampled(f, PARENT, 2000);
	number = before->number;
	processes_comm(f->ps, 3000, PARENT, PARENT, "next", true);
	after = live(f, PARENT);
	assert_int_not_equal(after->number, number);
	assert_int_equal(mappings_count(after->mappings), 0);
	assert_null(after->executable);
	map(f, 3001, PARENT, 0x400000, &f->other);
	assert_string_equal(after->executable->path, f->other.path);
	/* The sampled generation stays as it was until the sweep. */
	assert_ptr_equal(processes_find(f->ps, number), before);
	assert_string_equal(module_at(before, 0x400000)->path, f->program.path);
	assert_true(before->ended);
	/* The generation ended in a window that is still open. */
	processes_sweep(f->ps, 3000);
	assert_ptr_equal(processes_find(f->ps, number), before);
	processes_sweep(f->ps, UINT64_MAX);
	assert_null(processes_find(f->ps, number));
	assert_ptr_equal(processes_find(f->ps, after->number), after);
}

/* FIRST: its first sample also came after its end. */
static void expect_kept_for_late_sample(struct fixture *f, bool first)
{
	const struct process *p;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	p = first ? live(f, PARENT) : sampled(f, PARENT, 2000);
	number = p->number;
	processes_exit(f->ps, 3000, PARENT, PARENT);
	assert_true(p->ended);
	assert_ptr_equal(sampled_as(f, PARENT, 3500, p->exec_id), p);
	processes_sweep(f->ps, 3400);
	assert_non_null(processes_find(f->ps, number));
	processes_sweep(f->ps, 3501);
	assert_null(processes_find(f->ps, number));
}

/* The last sample came after the exit record, and into the next window. */
static void a_generation_sampled_after_its_end_is_kept(void **state)
{
	expect_kept_for_late_sample(*state, false);
}

static void a_generation_first_sampled_after_its_end_is_kept(void **state)
{
	expect_kept_for_late_sample(*state, true);
}

static void a_child_shares_its_parents_snapshot(void **state)
{
	struct fixture *f = *state;
	struct process *parent, *child;

	exec(f, 1000, PARENT, &f->program);
	forks(f, 2000, PARENT, CHILD);
	parent = live(f, PARENT);
	child = live(f, CHILD);
	assert_ptr_equal(child->mappings, parent->mappings);
	assert_ptr_equal(child->executable, parent->executable);
	assert_string_equal(child->comm, parent->comm);
	assert_int_equal(f->last_program, child->number);
	map(f, 3000, CHILD, 0x800000, &f->other);
	assert_null(module_at(parent, 0x800000));
	assert_string_equal(module_at(child, 0x800000)->path, f->other.path);
}

static void comm_changes_by_the_main_thread_only(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	processes_comm(f->ps, 2000, PARENT, PARENT + 1, "worker", false);
	assert_string_equal(live(f, PARENT)->comm, "program");
	processes_comm(f->ps, 3000, PARENT, PARENT, "renamed-to-more-than-fits", false);
	assert_string_equal(live(f, PARENT)->comm, "renamed-to-more-");
}

/* With an executable stack, the kernel reports the stack before the program. */
static void the_program_is_the_first_file(void **state)
{
	struct fixture *f = *state;

	processes_comm(f->ps, 1000, PARENT, PARENT, "program", true);
	map_name(f, 1001, PARENT, 0x7ffd00000000, "[stack]");
	assert_null(live(f, PARENT)->executable);
	map(f, 1002, PARENT, 0x400000, &f->program);
	map(f, 1003, PARENT, 0x7f0000000000, &f->libc);
	assert_string_equal(live(f, PARENT)->executable->path, f->program.path);
}

static void a_program_in_memory_is_a_file_but_jit_code_is_not(void **state)
{
	struct fake_file memory = { .path = "/memfd:runc (deleted)", .device = 1, .inode = 77 };
	struct fixture *f = *state;
	struct process *p;

	processes_comm(f->ps, 1000, PARENT, PARENT, "runc", true);
	map(f, 1001, PARENT, 0x400000, &memory);
	p = live(f, PARENT);
	assert_non_null(p->executable);
	assert_string_equal(p->executable->path, "/memfd:runc");
	memory.inode++;
	map(f, 1002, PARENT, 0x800000, &memory);
	assert_int_equal(module_at(p, 0x800000)->kind, MODULE_ANON);
	memory.build_id = f->libc.build_id;
	map(f, 1003, PARENT, 0x900000, &memory);
	assert_int_equal(module_at(p, 0x900000)->kind, MODULE_FILE);
}

static void names_tell_the_kind(void **state)
{
	static const struct {
		const char *name;
		enum module_kind kind;
	} cases[] = {
		{ "//anon", MODULE_ANON },
		{ "", MODULE_ANON },
		{ "[heap]", MODULE_ANON },
		{ "[stack]", MODULE_ANON },
		{ "[anon:scudo]", MODULE_ANON },
		{ "/dev/zero (deleted)", MODULE_ANON },
		{ "/SYSV00000000 (deleted)", MODULE_ANON },
		{ "/anon_hugepage (deleted)", MODULE_ANON },
		{ "anon_inode:[perf_event]", MODULE_ANON },
		{ "[vdso]", MODULE_VDSO },
		{ "[vsyscall]", MODULE_SPECIAL },
		{ "[uprobes]", MODULE_SPECIAL },
		{ "/lib/without/any/identity", MODULE_SPECIAL },
	};
	struct fixture *f = *state;
	uint64_t start = 0x7f0000100000;

	exec(f, 1000, PARENT, &f->program);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++, start += 0x10000) {
		const struct mapping *mapping;

		map_name(f, 2000 + i, PARENT, start, cases[i].name);
		mapping = mappings_find(live(f, PARENT)->mappings, start);
		assert_int_equal(mapping->module->kind, cases[i].kind);
		if (cases[i].kind == MODULE_ANON)
			assert_int_equal(mapping_file_off(mapping, start + 5), start + 5);
	}
	/* A 32-bit program has another vDSO than this one. */
	map_name(f, 3000, PARENT, 0xf7f00000, "[vdso]");
	assert_int_equal(module_at(live(f, PARENT), 0xf7f00000)->kind, MODULE_SPECIAL);
}

/* ---- ends ---- */

static void a_process_ends_with_its_last_thread(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	forks(f, 1500, PARENT, CHILD);
	new_thread(f, 2000, CHILD, CHILD + 1);
	processes_exit(f->ps, 3000, CHILD, CHILD + 1);
	assert_non_null(live(f, CHILD));
	processes_exit(f->ps, 4000, CHILD, CHILD);
	assert_null(live(f, CHILD));
	assert_int_equal(f->ended, 2 - 1);
}

static void the_main_thread_may_exit_first(void **state)
{
	struct fixture *f = *state;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	new_thread(f, 2000, PARENT, PARENT + 1);
	number = live(f, PARENT)->number;
	processes_exit(f->ps, 3000, PARENT, PARENT);
	assert_int_equal(live(f, PARENT)->number, number);
	map(f, 3500, PARENT, 0x800000, &f->other);
	assert_non_null(module_at(live(f, PARENT), 0x800000));
	processes_exit(f->ps, 4000, PARENT, PARENT + 1);
	assert_null(live(f, PARENT));
}

/* The thread that calls exec becomes the main thread, after all others have exited. */
static void a_fork_and_a_program_in_the_place_of_another_are_told(void **state)
{
	struct fixture *f = *state;
	uint32_t parent;

	exec(f, 1000, PARENT, &f->program);
	parent = live(f, PARENT)->number;
	forks(f, 2000, PARENT, CHILD);
	assert_int_equal(f->forked, 1);
	assert_int_equal(f->last_parent, parent);
	assert_int_equal(f->last_child, live(f, CHILD)->number);
	assert_non_null(sampled(f, CHILD, 2500));
	exec(f, 3000, CHILD, &f->other);
	assert_int_equal(f->ended, 1);
	assert_true(f->last_ended_superseded);
	processes_exit(f->ps, 4000, CHILD, CHILD);
	assert_int_equal(f->ended, 2);
	assert_false(f->last_ended_superseded);
	/* An ended generation is still known. */
	assert_non_null(processes_find(f->ps, f->last_child));
	assert_true(processes_find(f->ps, f->last_child)->ended);
}

static void exec_by_another_thread(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	new_thread(f, 2000, PARENT, PARENT + 1);
	new_thread(f, 2001, PARENT, PARENT + 2);
	processes_exit(f->ps, 3000, PARENT, PARENT + 2);
	processes_exit(f->ps, 3001, PARENT, PARENT);
	exec(f, 3002, PARENT, &f->other);
	assert_string_equal(live(f, PARENT)->executable->path, f->other.path);
	processes_exit(f->ps, 4000, PARENT, PARENT);
	assert_null(live(f, PARENT));
	assert_int_equal(processes_count(f->ps), 0);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
	struct fixture *f = *state;
	struct process *first;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	forks(f, 2000, PARENT, CHILD);
	exec(f, 3000, CHILD, &f->other);
	first = sampled(f, CHILD, 3500);
	number = first->number;
	/* The exit was never reported. */
	forks(f, 9000, PARENT, CHILD);
	assert_int_not_equal(live(f, CHILD)->number, number);
	assert_string_equal(live(f, CHILD)->executable->path, f->program.path);
	assert_ptr_equal(processes_find(f->ps, number), first);
	assert_int_equal(processes_count(f->ps), 2);
}

/* The kernel may sample a thread on its way out, after its exit record. */
static void a_sample_soon_after_the_exit_is_the_ended_ones(void **state)
{
	struct fixture *f = *state;
	struct process *p;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	number = live(f, PARENT)->number;
	processes_exit(f->ps, 2000, PARENT, PARENT);
	p = sampled(f, PARENT, 3000);
	assert_int_equal(p->number, number);
	assert_false(p->unreadable);
	p = sampled(f, PARENT, 2000 + UINT64_C(1000000000));
	assert_int_not_equal(p->number, number);
	assert_true(p->unreadable);
	assert_ptr_equal(processes_find(f->ps, number)->executable->kind, MODULE_FILE);
	processes_sweep(f->ps, UINT64_MAX);
	assert_null(processes_find(f->ps, number));
}

static void unsampled_processes_leave_nothing_behind(void **state)
{
	struct fixture *f = *state;
	unsigned int kept = 0;

	exec(f, 1000, PARENT, &f->program);
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t time_ns = 2000 + i * 100;
		uint32_t pid = CHILD + i % 3000;

		forks(f, time_ns, PARENT, pid);
		exec(f, time_ns + 10, pid, &f->other);
		processes_exit(f->ps, time_ns + 50, pid, pid);
	}
	assert_int_equal(processes_count(f->ps), 1);
	assert_int_equal(f->ended, 20000);
	for (uint32_t number = 1; number <= 20001; number++)
		kept += processes_find(f->ps, number) != NULL;
	assert_true(kept <= 1 + 16);
	assert_int_equal(modules_count(f->modules), 3 + 3);
}

static void numbers_that_are_in_use_are_not_given_again(void **state)
{
	struct fixture *f = *state;
	uint32_t first, last;

	exec(f, 1000, PARENT, &f->program);
	first = live(f, PARENT)->number;
	f->ps->last_number = UINT32_MAX - 1;
	forks(f, 2000, PARENT, CHILD);
	last = live(f, CHILD)->number;
	assert_int_equal(last, UINT32_MAX);
	forks(f, 3000, PARENT, CHILD + 1);
	assert_int_not_equal(live(f, CHILD + 1)->number, 0);
	assert_int_not_equal(live(f, CHILD + 1)->number, first);
	assert_ptr_equal(processes_find(f->ps, first), live(f, PARENT));
	assert_ptr_equal(processes_find(f->ps, last), live(f, CHILD));
}

/* ---- limits ---- */

static void more_processes_than_the_limit_are_refused(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	for (uint32_t i = 0; i < LIMIT; i++)
		forks(f, 2000 + i, PARENT, CHILD + i);
	assert_int_equal(processes_count(f->ps), LIMIT);
	assert_int_equal(count(f, METRIC_PROCESSES_REFUSED), 1);
	assert_null(sampled(f, 9999, 3000));
	/* An exec needs no further place. */
	exec(f, 4000, CHILD, &f->other);
	assert_string_equal(live(f, CHILD)->executable->path, f->other.path);
	processes_exit(f->ps, 5000, CHILD + 1, CHILD + 1);
	forks(f, 6000, PARENT, CHILD + 1);
	assert_non_null(live(f, CHILD + 1));
	show(f, 9999, &f->program, as_usual);
	assert_int_equal(processes_scan(f->ps, NULL, 0), -E2BIG);
}

static void more_modules_than_the_limit_are_unknown(void **state)
{
	struct fixture *f = *state;
	struct fake_file file = f->libc;

	exec(f, 1000, PARENT, &f->program);
	for (uint64_t i = 0; i < 100; i++) {
		memset(file.build_id.bytes, (int)(100 + i), sizeof(file.build_id.bytes));
		map(f, 2000 + i, PARENT, 0x10000000 + i * 0x10000, &file);
	}
	assert_int_equal(module_at(live(f, PARENT), 0x10000000)->kind, MODULE_FILE);
	assert_int_equal(
		module_at(live(f, PARENT), 0x10000000 + 99 * 0x10000)->kind, MODULE_SPECIAL);
	assert_true(count(f, METRIC_MODULES_REFUSED) > 0);
}

static bool any(void *context, struct module *module)
{
	(void)context;
	(void)module;
	return true;
}

/* An ended generation that is kept for its window needs its modules, too. */
static void modules_go_when_no_generation_maps_them(void **state)
{
	struct fixture *f = *state;
	struct fake_file file = f->other;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	forks(f, 2000, PARENT, CHILD);
	exec(f, 2100, CHILD, &f->other);
	number = sampled(f, CHILD, 2200)->number;
	assert_int_equal(processes_sweep_modules(f->ps, any, NULL), 0);
	processes_exit(f->ps, 3000, CHILD, CHILD);
	assert_int_equal(processes_sweep_modules(f->ps, any, NULL), 0);
	assert_string_equal(processes_find(f->ps, number)->executable->path, f->other.path);
	processes_sweep(f->ps, 4000);
	assert_int_equal(processes_sweep_modules(f->ps, any, NULL), 1);
	assert_non_null(module_at(live(f, PARENT), 0x400000));
	/* Many more modules than the table holds come and go, and none is refused. */
	for (uint64_t i = 0; i < 1000; i++) {
		file.build_id.bytes[0] = (uint8_t)i;
		file.build_id.bytes[1] = (uint8_t)(i >> 8);
		exec(f, 5000 + i * 10, CHILD, &file);
		assert_int_equal(live(f, CHILD)->executable->kind, MODULE_FILE);
		processes_exit(f->ps, 5001 + i * 10, CHILD, CHILD);
		processes_sweep(f->ps, 5002 + i * 10);
		processes_sweep_modules(f->ps, any, NULL);
	}
	assert_int_equal(count(f, METRIC_MODULES_REFUSED), 0);
}

static void pids_that_are_none_change_nothing(void **state)
{
	struct fixture *f = *state;
	const struct process *idle = sampled(f, 0, 500);
	uint32_t idle_number = idle->number;

	processes_fork(f->ps, 1000, 0, 0, 1, 1);
	assert_non_null(live(f, 0));
	assert_int_equal(live(f, 0)->number, idle_number);
	processes_fork(f->ps, 1000, UINT32_MAX, UINT32_MAX, 0, 0);
	processes_comm(f->ps, 1000, UINT32_MAX, UINT32_MAX, "x", true);
	processes_comm(f->ps, 1000, 0, 0, "x", true);
	processes_exit(f->ps, 1000, UINT32_MAX, UINT32_MAX);
	map(f, 1000, UINT32_MAX, 0x1000, &f->libc);
	assert_int_equal(processes_count(f->ps), 1);
	assert_int_equal(live(f, 0)->number, idle_number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_short_lived_process_is_known_from_the_stream),
		CASE(each_mapping_is_reported_once),
		CASE(a_copy_is_called_by_its_own_name),
		CASE(a_child_of_another_pid_namespace_is_not_the_idle_threads),
		CASE(pid_1_is_forked_like_any_other),
		CASE(exec_begins_a_generation),
		CASE(a_generation_sampled_after_its_end_is_kept),
		CASE(a_generation_first_sampled_after_its_end_is_kept),
		CASE(a_child_shares_its_parents_snapshot),
		CASE(comm_changes_by_the_main_thread_only),
		CASE(the_program_is_the_first_file),
		CASE(a_program_in_memory_is_a_file_but_jit_code_is_not),
		CASE(names_tell_the_kind),
		CASE(a_process_ends_with_its_last_thread),
		CASE(the_main_thread_may_exit_first),
		CASE(exec_by_another_thread),
		CASE(a_fork_and_a_program_in_the_place_of_another_are_told),
		CASE(a_pid_that_is_used_again_is_another_process),
		CASE(a_sample_soon_after_the_exit_is_the_ended_ones),
		CASE(unsampled_processes_leave_nothing_behind),
		CASE(numbers_that_are_in_use_are_not_given_again),
		CASE(more_processes_than_the_limit_are_refused),
		CASE(more_modules_than_the_limit_are_unknown),
		CASE(modules_go_when_no_generation_maps_them),
		CASE(pids_that_are_none_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
