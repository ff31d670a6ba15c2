/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which program a sample belongs to, and which of its mappings are certain, after lost records. The
 * times of the stream are long before the reads of /proc, which happen now.
 */
#include "agent/sampler/process/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/process_fixture.h"

static const struct fake_process as_usual = { 0 };

/* Where things are mapped. */
static const uint64_t program = 0x400000, plugin = 0x600000, vdso = 0x7fff00000000;

/* PARENT executes a program at 1000 and is sampled with EXEC_ID. */
static struct process *begin(struct fixture *f, uint32_t exec_id)
{
	exec(f, 1000, PARENT, &f->program);
	return sampled_as(f, PARENT, 1500, exec_id);
}

static void expect_nothing_known(const struct process *p)
{
	assert_non_null(p);
	assert_null(p->executable);
	assert_int_equal(mappings_count(p->mappings), 0);
}

/* ---- exec ids ---- */

static void an_exec_adds_one_and_a_fork_hands_on(void **state)
{
	struct fixture *f = *state;

	begin(f, 7);
	forks(f, 2000, PARENT, CHILD);
	assert_int_equal(live(f, CHILD)->exec_id, 7);
	exec(f, 3000, CHILD, &f->other);
	assert_true(live(f, CHILD)->exec_known);
	assert_int_equal(live(f, CHILD)->exec_id, 8);
	assert_ptr_equal(sampled_as(f, CHILD, 3500, 8), live(f, CHILD));
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 0);
}

static void an_exec_that_no_record_told_of_is_seen_by_its_id(void **state)
{
	struct fixture *f = *state;
	uint32_t number = begin(f, 7)->number;
	struct process *p;

	show(f, PARENT, &f->other, as_usual);
	p = sampled_as(f, PARENT, 2000, 8);
	expect_nothing_known(p);
	assert_true(p->unproven);
	assert_int_not_equal(p->number, number);
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 1);
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 1);
	/* After the reading the program is known. */
	p = sampled_as(f, PARENT, later, 8);
	assert_string_equal(p->executable->path, f->other.path);
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 1);
}

static void a_sample_that_comes_late_is_of_the_program_before(void **state)
{
	struct fixture *f = *state;
	struct process *before = begin(f, 7);

	exec(f, 2000, PARENT, &f->other);
	sampled_as(f, PARENT, 2500, 8);
	assert_ptr_equal(sampled_as(f, PARENT, 2501, 7), before);
	assert_string_equal(before->executable->path, f->program.path);
	assert_ptr_equal(sampled_as(f, PARENT, 2502, 8), live(f, PARENT));
}

static void one_that_comes_too_late_is_of_nothing_that_is_known(void **state)
{
	struct fixture *f = *state;
	struct process *p;
	uint32_t number;

	begin(f, 7);
	exec(f, 2000, PARENT, &f->other);
	number = sampled_as(f, PARENT, 2500, 8)->number;
	p = sampled_as(f, PARENT, 2501, 5);
	expect_nothing_known(p);
	assert_true(p->ended);
	/* The late sample does not end the current program. */
	assert_int_equal(sampled_as(f, PARENT, 2502, 8)->number, number);
	assert_int_equal(live(f, PARENT)->number, number);
	processes_sweep(f->ps, UINT64_MAX);
	assert_int_equal(live(f, PARENT)->number, number);
}

/* The kernel reports the exec a moment before it increments the exec id. */
static void while_a_program_is_being_executed_either_id_is_right(void **state)
{
	const struct processes_sample sample = {
		.pid = PARENT, .time_ns = 2001, .exec_id = 7, .executing = true
	};
	struct fixture *f = *state;

	begin(f, 7);
	exec(f, 2000, PARENT, &f->other);
	assert_ptr_equal(processes_get(f->ps, &sample), live(f, PARENT));
	assert_int_equal(live(f, PARENT)->exec_id, 8);
	/* Such a sample does not set the exec id either. */
	exec(f, 2000, CHILD, &f->other);
	processes_get(
		f->ps, &(struct processes_sample){
			       .pid = CHILD, .time_ns = 2001, .exec_id = 3, .executing = true });
	assert_false(live(f, CHILD)->exec_known);
}

/* ---- losses ---- */

static void a_sample_from_before_the_reading_is_not_of_what_is_read(void **state)
{
	struct fixture *f = *state;
	uint32_t number = begin(f, 7)->number;
	struct process *p;

	processes_lost(f->ps, 2000, 2500);
	/* /proc shows the other program, which was executed before or after the sample. */
	show(f, PARENT, &f->other, as_usual);
	p = sampled_as(f, PARENT, 2600, 7);
	assert_int_equal(p->number, number);
	assert_string_equal(p->executable->path, f->program.path);
	assert_null(module_at(p, program));
	p = sampled_as(f, PARENT, 2700, 8);
	expect_nothing_known(p);
	p = sampled_as(f, PARENT, later, 9);
	assert_string_equal(p->executable->path, f->other.path);
	assert_non_null(module_at(p, program));
}

/* The process was not sampled before the loss and may have executed another program in the gap. */
static void what_was_not_sampled_before_the_loss_is_not_sure_after_it(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	show(f, PARENT, &f->program, as_usual);
	processes_lost(f->ps, 2000, 2500);
	expect_nothing_known(sampled_as(f, PARENT, 2600, 7));
	assert_non_null(module_at(sampled_as(f, PARENT, later, 7), program));
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 1);
}

static void only_mappings_that_both_have_count_until_the_reading(void **state)
{
	struct fixture *f = *state;
	struct process *p = begin(f, 7);

	map(f, 1600, PARENT, plugin, &f->other);
	/* /proc shows neither the plugin nor the vDSO. */
	show(f, PARENT, &f->program, as_usual);
	processes_lost(f->ps, 2000, 2500);
	p = sampled_as(f, PARENT, 2600, 7);
	assert_non_null(module_at(p, program));
	assert_null(module_at(p, plugin));
	assert_null(module_at(p, vdso));
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 0);
}

static void another_file_in_the_same_place_counts_for_neither(void **state)
{
	struct fixture *f = *state;
	struct process *p = begin(f, 7);
	char maps[2 * PATH_MAX], *at = maps;

	map(f, 1600, PARENT, plugin, &f->other);
	show(f, PARENT, &f->program, as_usual);
	fake_maps_line(at, PATH_MAX, program, program + 0x1000, 0x1000, &f->program);
	at += strlen(at);
	fake_maps_line(at, PATH_MAX, plugin, plugin + 0x1000, 0x1000, &f->libc);
	fake_proc_write(&f->proc, PARENT, "maps", maps);
	processes_lost(f->ps, 2000, 2500);
	p = sampled_as(f, PARENT, 2600, 7);
	assert_non_null(module_at(p, program));
	assert_null(module_at(p, plugin));
	/* Records after the gap are certain. */
	map(f, 2700, PARENT, plugin, &f->libc);
	p = sampled_as(f, PARENT, 2800, 7);
	assert_non_null(module_at(p, plugin));
}

/* All records of the exec are there: the state of /proc at a later time is not needed. */
static void an_exec_after_the_gap_makes_all_known(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	begin(f, 7);
	processes_lost(f->ps, 2000, 2500);
	show(f, PARENT, &f->program, as_usual);
	sampled_as(f, PARENT, 2600, 9);
	exec(f, 2700, PARENT, &f->other);
	p = sampled_as(f, PARENT, 2800, 10);
	assert_string_equal(p->executable->path, f->other.path);
	assert_non_null(module_at(p, vdso));
	exec(f, 2900, PARENT, &f->program);
	p = sampled_as(f, PARENT, later, 11);
	assert_string_equal(p->executable->path, f->program.path);
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 1);
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 1);
}

static void a_second_loss_before_the_reading_counts_needs_no_other(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	begin(f, 7);
	show(f, PARENT, &f->program, as_usual);
	processes_lost(f->ps, 2000, 2500);
	sampled_as(f, PARENT, 2600, 7);
	map(f, 2700, PARENT, plugin, &f->other);
	processes_lost(f->ps, 3000, 3500);
	p = sampled_as(f, PARENT, 3600, 7);
	assert_non_null(module_at(p, program));
	assert_null(module_at(p, plugin));
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 1);
	/* A loss that lasts beyond the reading needs another reading. */
	processes_lost(f->ps, 4000, later);
	sampled_as(f, PARENT, 4001, 7);
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 2);
}

static void a_pid_that_was_used_again_in_the_gap_is_of_nobody(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	show(f, PARENT, &f->program, (struct fake_process){ .start_ticks = 5 });
	processes_scan(f->ps, NULL, 0);
	sampled_as(f, PARENT, later, 7);
	show(f, PARENT, &f->program, (struct fake_process){ .start_ticks = 9 });
	processes_lost(f->ps, later + 1, UINT64_MAX);
	/* The exec id is the same by chance. The sample is older than the reading. */
	p = sampled_as(f, PARENT, 1, 7);
	expect_nothing_known(p);
	assert_true(p->unproven);
}

static void a_child_of_a_doubtful_parent_is_what_its_exec_id_says(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	begin(f, 7);
	show(f, PARENT, &f->program, as_usual);
	show(f, CHILD, &f->program, as_usual);
	show(f, CHILD + 1, &f->program, as_usual);
	processes_lost(f->ps, 2000, 2500);
	forks(f, 2600, PARENT, CHILD);
	forks(f, 2600, PARENT, CHILD + 1);
	p = sampled_as(f, CHILD, 2700, 7);
	assert_non_null(module_at(p, program));
	/* The exec id shows that the parent executed a program in the gap. */
	expect_nothing_known(sampled_as(f, CHILD + 1, 2700, 8));
}

/* Without descriptors /proc cannot be read: the process is not gone, and is read later. */
/* ---- the search after a loss ---- */

static void a_process_that_no_record_told_of_is_found_in_proc(void **state)
{
	struct fixture *f = *state;

	show(f, CHILD, &f->program, as_usual);
	processes_search(f->ps, later);
	processes_search(f->ps, later);
	assert_null(live(f, CHILD));
	processes_lost(f->ps, 2000, 2500);
	/* Records of it may be on the way. */
	processes_search(f->ps, later);
	assert_null(live(f, CHILD));
	processes_search(f->ps, later);
	assert_string_equal(live(f, CHILD)->executable->path, f->program.path);
	assert_true(f->mapped > 0);
}

static void a_process_that_executes_during_the_search_is_what_its_record_says(void **state)
{
	struct fixture *f = *state;

	show(f, CHILD, &f->program, as_usual);
	processes_lost(f->ps, 2000, 2500);
	processes_search(f->ps, later);
	exec(f, 3000, CHILD, &f->other);
	processes_search(f->ps, later);
	assert_string_equal(live(f, CHILD)->executable->path, f->other.path);
}

static void an_exec_of_which_the_record_was_lost_is_found_without_a_sample(void **state)
{
	struct fixture *f = *state;

	begin(f, 7);
	processes_lost(f->ps, 2000, 2500);
	show(f, PARENT, &f->other, as_usual);
	processes_search(f->ps, 0);
	/* Samples from before the reading are still of the old one. */
	assert_string_equal(live(f, PARENT)->executable->path, f->program.path);
	processes_search(f->ps, later);
	assert_string_equal(live(f, PARENT)->executable->path, f->other.path);
}

static void a_process_that_cannot_be_read_for_want_of_descriptors_is_not_gone(void **state)
{
	struct fixture *f = *state;
	struct rlimit limit, none;
	struct process *p;

	begin(f, 7);
	show(f, PARENT, &f->program, as_usual);
	processes_lost(f->ps, 2000, 2500);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	p = sampled_as(f, PARENT, 2600, 7);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(p->unreadable);
	assert_null(module_at(p, program));
	p = sampled_as(f, PARENT, later, 7);
	assert_false(p->unreadable);
	assert_non_null(module_at(p, program));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_process_that_no_record_told_of_is_found_in_proc),
		CASE(a_process_that_executes_during_the_search_is_what_its_record_says),
		CASE(an_exec_of_which_the_record_was_lost_is_found_without_a_sample),
		CASE(an_exec_adds_one_and_a_fork_hands_on),
		CASE(an_exec_that_no_record_told_of_is_seen_by_its_id),
		CASE(a_sample_that_comes_late_is_of_the_program_before),
		CASE(one_that_comes_too_late_is_of_nothing_that_is_known),
		CASE(while_a_program_is_being_executed_either_id_is_right),
		CASE(a_sample_from_before_the_reading_is_not_of_what_is_read),
		CASE(what_was_not_sampled_before_the_loss_is_not_sure_after_it),
		CASE(only_mappings_that_both_have_count_until_the_reading),
		CASE(another_file_in_the_same_place_counts_for_neither),
		CASE(an_exec_after_the_gap_makes_all_known),
		CASE(a_second_loss_before_the_reading_counts_needs_no_other),
		CASE(a_pid_that_was_used_again_in_the_gap_is_of_nobody),
		CASE(a_child_of_a_doubtful_parent_is_what_its_exec_id_says),
		CASE(a_process_that_cannot_be_read_for_want_of_descriptors_is_not_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
