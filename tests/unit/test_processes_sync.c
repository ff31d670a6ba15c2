/* SPDX-License-Identifier: Apache-2.0 */
/* The process table, fed by /proc: at the start, on demand, after lost records. */
#include "agent/sampler/process/processes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/process_fixture.h"

static const struct fake_process as_usual = { 0 };
static const char container_a[] =
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char container_b[] =
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/* ---- /proc ---- */

static void a_scan_reads_everything(void **state)
{
	struct fixture *f = *state;
	char cgroup[200];
	struct process *p;

	snprintf(cgroup, sizeof(cgroup), "0::/kubepods.slice/cri-containerd-%s.scope\n",
		container_a);
	show(f, PARENT, &f->program,
		(struct fake_process){
			.comm = "a) R (b", .cgroup = cgroup, .nspid = "\t100\t17\t1" });
	fake_proc_process(&f->proc, 2,
		&(struct fake_process){
			.comm = "kworker/0:1-events_long", .maps = "", .kernel_thread = true });
	assert_int_equal(processes_scan(f->ps, NULL, 0), 0);
	assert_int_equal(processes_count(f->ps), 2);
	p = sampled(f, PARENT, later);
	assert_string_equal(p->comm, "a) R (b");
	assert_string_equal(p->container_id, container_a);
	assert_string_equal(p->executable->path, f->program.path);
	assert_int_equal(p->start_ns, 0);
	assert_true(p->synced_ns > 0 && p->synced_ns <= clock_monotonic_ns());
	assert_int_equal(process_namespace_pid(f->ps, p), 1);
	assert_int_equal(mappings_count(p->mappings), 2);
	p = sampled(f, 2, later);
	assert_true(p->kernel_thread);
	assert_string_equal(p->comm, "kworker/0:1-eve");
	assert_false(p->unreadable);
	assert_int_equal(f->programs, 1);
	assert_int_equal(f->mapped, 2);
	assert_int_equal(count(f, METRIC_UNNAMED_GONE), 0);
}

/* The kernel's records give paths relative to the process's own root, too. */
static void a_program_in_a_chroot_is_called_as_it_calls_itself(void **state)
{
	struct fixture *f = *state;
	const struct process *p;
	size_t root = strlen(f->proc.path);

	show(f, PARENT, &f->program, as_usual);
	fake_proc_root(&f->proc, PARENT, f->proc.path);
	assert_int_equal(processes_scan(f->ps, NULL, 0), 0);
	p = sampled(f, PARENT, later);
	assert_int_equal(strncmp(f->program.path, f->proc.path, root), 0);
	assert_string_equal(process_program_path(p), f->program.path + root);
	assert_string_equal(p->executable->path, f->program.path + root);
	/* The root is only a textual prefix of this file's path. */
	show(f, CHILD, &f->other, as_usual);
	fake_proc_root(&f->proc, CHILD, "/tm");
	p = sampled(f, CHILD, later);
	assert_string_equal(process_program_path(p), f->other.path);
}

static void a_scan_of_some_pids_reads_only_those(void **state)
{
	const uint32_t pids[] = { CHILD, 4711 };
	struct fixture *f = *state;

	show(f, PARENT, &f->program, as_usual);
	show(f, CHILD, &f->program, as_usual);
	assert_int_equal(processes_scan(f->ps, pids, ARRAY_SIZE(pids)), 0);
	assert_null(live(f, PARENT));
	assert_non_null(live(f, CHILD));
	assert_int_equal(processes_count(f->ps), 1);
}

static void a_file_is_one_module_by_stream_and_by_proc(void **state)
{
	struct fixture *f = *state;

	show(f, PARENT, &f->program, as_usual);
	processes_scan(f->ps, NULL, 0);
	exec(f, later, CHILD, &f->program);
	assert_ptr_equal(live(f, CHILD)->executable, live(f, PARENT)->executable);
	assert_ptr_equal(module_at(live(f, CHILD), 0x7f0000000000),
		module_at(live(f, PARENT), 0x7f0000000000));
}

static void so_is_a_file_without_a_build_id(void **state)
{
	struct fixture *f = *state;

	show(f, PARENT, &f->plain, as_usual);
	processes_scan(f->ps, NULL, 0);
	/* CHILD's file can be examined; that of CHILD + 1 is known from the others. */
	show(f, CHILD, &f->plain, as_usual);
	exec(f, later, CHILD, &f->plain);
	exec(f, later, CHILD + 1, &f->plain);
	assert_int_equal(live(f, PARENT)->executable->id.build_id.size, 0);
	assert_int_not_equal(live(f, PARENT)->executable->id.file.mtime_ns, 0);
	assert_ptr_equal(live(f, CHILD)->executable, live(f, PARENT)->executable);
	assert_ptr_equal(live(f, CHILD + 1)->executable, live(f, PARENT)->executable);
}

/* Before Linux 5.12 the record has no build ID, so it is read from the file. */
static void a_record_without_a_build_id_is_completed(void **state)
{
	struct fixture *f = *state;
	struct fake_file bare = f->program;

	show(f, PARENT, &f->program, as_usual);
	bare.build_id.size = 0;
	processes_comm(f->ps, 1000, PARENT, PARENT, "program", true);
	map(f, 1001, PARENT, 0x400000, &bare);
	assert_true(
		build_id_equal(&live(f, PARENT)->executable->id.build_id, &f->program.build_id));
}

static void the_program_is_found_by_path_where_inodes_differ(void **state)
{
	struct fixture *f = *state;
	struct fake_file overlaid = f->program;

	overlaid.device_minor++;
	overlaid.inode += 1000;
	show(f, PARENT, &overlaid, as_usual);
	processes_scan(f->ps, NULL, 0);
	assert_string_equal(live(f, PARENT)->executable->path, f->program.path);
	assert_true(
		build_id_equal(&live(f, PARENT)->executable->id.build_id, &f->program.build_id));
}

static void the_memory_of_an_exited_main_thread_is_its_threads(void **state)
{
	struct fixture *f = *state;
	char maps[PATH_MAX], path[PATH_MAX + 64];

	show(f, PARENT, &f->program, (struct fake_process){ .state = 'Z', .threads = 2 });
	fake_proc_write(&f->proc, PARENT, "maps", "");
	snprintf(path, sizeof(path), "%s/%d/task", f->proc.path, PARENT);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/task/%d", f->proc.path, PARENT, PARENT + 1);
	mkdir(path, 0755);
	fake_maps_line(maps, sizeof(maps), 0x400000, 0x401000, 0x1000, &f->program);
	snprintf(path, sizeof(path), "task/%d/maps", PARENT + 1);
	fake_proc_write(&f->proc, PARENT, path, maps);
	assert_int_equal(processes_scan(f->ps, NULL, 0), 0);
	assert_non_null(module_at(live(f, PARENT), 0x400000));
	assert_true(live(f, PARENT)->main_exited);
}

static void what_waits_for_its_parent_is_no_process(void **state)
{
	struct fixture *f = *state;

	show(f, PARENT, &f->program, (struct fake_process){ .state = 'Z' });
	assert_int_equal(processes_scan(f->ps, NULL, 0), 0);
	assert_int_equal(processes_count(f->ps), 0);
}

static void older_records_do_not_undo_what_proc_showed(void **state)
{
	struct fixture *f = *state;
	struct process *p;
	uint32_t number;

	show(f, PARENT, &f->program, as_usual);
	processes_scan(f->ps, NULL, 0);
	p = live(f, PARENT);
	number = p->number;
	processes_comm(f->ps, 1000, PARENT, PARENT, "old", false);
	exec(f, 1000, PARENT, &f->other);
	forks(f, 2000, 1, PARENT);
	processes_exit(f->ps, 3000, PARENT, PARENT);
	p = live(f, PARENT);
	assert_int_equal(p->number, number);
	assert_string_equal(p->comm, "program");
	assert_string_equal(p->executable->path, f->program.path);
	/* Newer records are applied. */
	exec(f, later, PARENT, &f->other);
	assert_int_not_equal(live(f, PARENT)->number, number);
	assert_string_equal(live(f, PARENT)->executable->path, f->other.path);
}

/* Between a fork and the reading of /proc, the parent may have executed another program. */
static void a_child_from_before_the_reading_inherits_nothing(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	show(f, PARENT, &f->program, as_usual);
	processes_scan(f->ps, NULL, 0);
	forks(f, 1000, PARENT, CHILD);
	assert_null(live(f, CHILD));
	/* The child is read when it is sampled; its exec makes it known as well. */
	show(f, CHILD, &f->other, as_usual);
	p = sampled(f, CHILD, later);
	assert_string_equal(p->executable->path, f->other.path);
	forks(f, 1000, PARENT, CHILD + 1);
	exec(f, 1500, CHILD + 1, &f->other);
	assert_string_equal(live(f, CHILD + 1)->executable->path, f->other.path);
}

static void an_unknown_process_is_read_when_sampled(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	show(f, PARENT, &f->program, as_usual);
	p = sampled(f, PARENT, later);
	assert_string_equal(p->executable->path, f->program.path);
	assert_ptr_equal(sampled(f, PARENT, later), p);
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 0);
}

static void an_unreadable_process_has_an_entry(void **state)
{
	struct fixture *f = *state;
	struct process *p = sampled(f, PARENT, 1000);

	assert_non_null(p);
	assert_true(p->unreadable);
	assert_int_equal(mappings_count(p->mappings), 0);
	assert_ptr_equal(sampled(f, PARENT, 1001), p);
	assert_int_equal(count(f, METRIC_UNNAMED_GONE), 2);
	assert_int_equal(process_namespace_pid(f->ps, p), PARENT);
	/* The idle threads have no /proc entry to read. */
	p = sampled(f, 0, 1000);
	assert_false(p->unreadable);
	assert_int_equal(count(f, METRIC_UNNAMED_GONE), 2);
}

static void the_container_is_looked_up_at_the_first_sample(void **state)
{
	struct fixture *f = *state;
	char cgroup[200];

	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_a);
	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = cgroup });
	processes_scan(f->ps, NULL, 0);
	forks(f, later, PARENT, CHILD);
	forks(f, later, PARENT, CHILD + 1);
	assert_string_equal(live(f, CHILD)->container_id, container_a);
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_b);
	show(f, CHILD, &f->program, (struct fake_process){ .cgroup = cgroup });
	assert_string_equal(sampled(f, CHILD, later)->container_id, container_b);
	/* A child that has exited keeps the container of its parent. */
	assert_string_equal(sampled(f, CHILD + 1, later)->container_id, container_a);
}

/* By now the pid may belong to another process. */
static void the_container_of_a_later_process_is_not_taken(void **state)
{
	struct fixture *f = *state;
	char cgroup[200];

	exec(f, 1000, PARENT, &f->program);
	forks(f, 2000, PARENT, CHILD);
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_b);
	show(f, CHILD, &f->program,
		(struct fake_process){ .cgroup = cgroup, .start_ticks = UINT64_C(1) << 40 });
	assert_string_equal(sampled(f, CHILD, 3000)->container_id, "");
	/* An exec does not change the start time of a pid. */
	exec(f, 4000, CHILD, &f->other);
	assert_string_equal(sampled(f, CHILD, 5000)->container_id, "");
}

/* An exec keeps the start time of the process, which /proc showed before. */
static void the_container_is_looked_up_again_after_an_exec(void **state)
{
	struct fixture *f = *state;
	char cgroup[200];

	show(f, PARENT, &f->program, (struct fake_process){ .start_ticks = 5 });
	show(f, CHILD, &f->program, (struct fake_process){ .start_ticks = 5 });
	processes_scan(f->ps, NULL, 0);
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_b);
	show(f, PARENT, &f->other, (struct fake_process){ .cgroup = cgroup, .start_ticks = 5 });
	show(f, CHILD, &f->other, (struct fake_process){ .cgroup = cgroup, .start_ticks = 9 });
	exec(f, later, PARENT, &f->other);
	exec(f, later, CHILD, &f->other);
	assert_string_equal(sampled(f, PARENT, later + 9)->container_id, container_b);
	/* This pid was reused before the reading. */
	assert_string_equal(sampled(f, CHILD, later + 9)->container_id, "");
}

/* Control group 0 stands for a kernel that does not tell. */
static const char *container_in(struct fixture *f, uint64_t time_ns, uint64_t cgroup_id)
{
	return processes_get(f->ps,
		&(struct processes_sample){
			.pid = PARENT, .time_ns = time_ns, .cgroup_id = cgroup_id })
		->container_id;
}

static void the_container_is_looked_up_again_after_a_move(void **state)
{
	const uint64_t second = 1000000000;
	struct fixture *f = *state;
	char cgroup[200];
	uint32_t number;

	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = "0::/\n" });
	processes_scan(f->ps, NULL, 0);
	number = live(f, PARENT)->number;
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_a);
	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = cgroup });
	assert_string_equal(container_in(f, later, 0), "");
	/* It moved before its first sample. */
	assert_string_equal(container_in(f, later, 70), container_a);
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_b);
	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = cgroup });
	assert_string_equal(container_in(f, later + 2 * second, 70), container_a);
	assert_string_equal(container_in(f, later + 2 * second, 71), container_b);
	/* Threads in groups of their own do not make us read again and again. */
	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = "0::/\n" });
	assert_string_equal(container_in(f, later + 3 * second - 1, 70), container_b);
	assert_string_equal(container_in(f, later + 3 * second, 70), "");
	assert_int_equal(live(f, PARENT)->number, number);
}

/* Before the first sample nobody knows where it was: that is no move. */
static void a_move_between_containers_is_noted(void **state)
{
	const uint64_t second = 1000000000;
	struct fixture *f = *state;
	char cgroup[200];

	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = "0::/\n" });
	processes_scan(f->ps, NULL, 0);
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_a);
	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = cgroup });
	assert_string_equal(container_in(f, later, 70), container_a);
	assert_int_equal(live(f, PARENT)->moved_ns, 0);
	/* Another group of the same container */
	assert_string_equal(container_in(f, later + 2 * second, 71), container_a);
	assert_int_equal(live(f, PARENT)->moved_ns, 0);
	snprintf(cgroup, sizeof(cgroup), "0::/docker/%s\n", container_b);
	show(f, PARENT, &f->program, (struct fake_process){ .cgroup = cgroup });
	assert_string_equal(container_in(f, later + 4 * second, 72), container_b);
	assert_int_equal(live(f, PARENT)->moved_ns, later + 4 * second);
	assert_string_equal(container_in(f, later + 6 * second, 72), container_b);
	assert_int_equal(live(f, PARENT)->moved_ns, later + 4 * second);
}

static void a_thread_too_many_does_not_end_the_process(void **state)
{
	struct fixture *f = *state;

	/* The thread exited after the time of the scan, but before the reading, which lacks it. */
	show(f, PARENT, &f->program, as_usual);
	processes_scan(f->ps, NULL, 0);
	processes_exit(f->ps, later, PARENT, PARENT + 1);
	assert_non_null(live(f, PARENT));
	processes_exit(f->ps, later, PARENT, PARENT);
	assert_non_null(live(f, PARENT)); /* the number of threads is unknown */
	fake_proc_remove(&f->proc, PARENT);
	processes_sweep(f->ps, 0);
	processes_sweep(f->ps, 0);
	assert_null(live(f, PARENT));
}

/* ---- lost records ---- */

static void after_a_loss_a_process_is_read_again_when_used(void **state)
{
	struct fixture *f = *state;
	struct process *p;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	number = sampled_as(f, PARENT, 1500, 3)->number;
	show(f, PARENT, &f->program, as_usual);
	fake_proc_write(&f->proc, PARENT, "cgroup", "0::/\n");
	processes_lost(f->ps, 2000, 2000);
	assert_true(live(f, PARENT)->stale);
	p = sampled_as(f, PARENT, 2001, 3);
	assert_false(p->stale);
	assert_int_equal(p->number, number); /* same program as before */
	assert_int_equal(p->start_ns, 1000);
	assert_null(module_at(p, 0x7fff00000000)); /* only what /proc shows */
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 1);
	sampled_as(f, PARENT, 2002, 3);
	assert_int_equal(sampled_as(f, PARENT, later, 3)->number, number);
	assert_int_equal(count(f, METRIC_PROCESS_RESYNCS), 1);
	/* The reading covers earlier losses. */
	processes_lost(f->ps, 2003, 2003);
	assert_false(live(f, PARENT)->stale);
}

/* The lost records may have announced more threads. */
static void after_a_loss_the_main_threads_exit_does_not_end_the_process(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	processes_lost(f->ps, 2000, 2000);
	processes_exit(f->ps, 3000, PARENT, PARENT);
	assert_non_null(live(f, PARENT));
	assert_int_equal(f->ended, 0);
}

static void a_lost_exec_begins_a_generation(void **state)
{
	struct fixture *f = *state;
	struct process *p;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	number = sampled_as(f, PARENT, 1500, 3)->number;
	show(f, PARENT, &f->other, as_usual);
	processes_lost(f->ps, 2000, 2000);
	p = sampled_as(f, PARENT, later, 4);
	assert_int_not_equal(p->number, number);
	assert_string_equal(p->executable->path, f->other.path);
	assert_string_equal(processes_find(f->ps, number)->executable->path, f->program.path);
}

static void a_lost_exit_and_the_pid_used_again(void **state)
{
	struct fixture *f = *state;
	uint32_t number;

	show(f, PARENT, &f->program, (struct fake_process){ .start_ticks = 5 });
	processes_scan(f->ps, NULL, 0);
	number = sampled(f, PARENT, later)->number;
	show(f, PARENT, &f->program, (struct fake_process){ .start_ticks = 9 });
	processes_lost(f->ps, later, later);
	assert_int_not_equal(sampled(f, PARENT, later)->number, number);
}

static void a_process_that_went_after_a_loss(void **state)
{
	struct fixture *f = *state;
	struct process *p;

	exec(f, 1000, PARENT, &f->program);
	sampled_as(f, PARENT, 1400, 3);
	forks(f, 1500, PARENT, CHILD);
	processes_lost(f->ps, 2000, 2000);
	/* The program is the same, but its newer mappings are unknown. */
	p = sampled_as(f, PARENT, 2001, 3);
	assert_string_equal(p->executable->path, f->program.path);
	assert_true(p->unreadable);
	assert_int_equal(mappings_count(p->mappings), 0);
	/* The lost records include its exec. */
	p = sampled_as(f, CHILD, 2001, 4);
	assert_true(p->unreadable);
	assert_null(p->executable);
	assert_int_equal(mappings_count(p->mappings), 0);
	assert_int_equal(count(f, METRIC_UNNAMED_GONE), 2);
}

static void after_a_loss_an_ended_process_no_longer_answers_for_its_pid(void **state)
{
	struct fixture *f = *state;
	struct process *first, *second;
	uint32_t number;

	exec(f, 1000, PARENT, &f->program);
	first = sampled(f, PARENT, 1500);
	number = first->number;
	processes_exit(f->ps, 2000, PARENT, PARENT);
	processes_lost(f->ps, 2500, 2500);
	show(f, PARENT, &f->other, as_usual);
	second = sampled(f, PARENT, later);
	assert_string_equal(second->executable->path, f->other.path);
	/* The window of the first process is still open. */
	processes_sweep(f->ps, 2000);
	assert_ptr_equal(processes_find(f->ps, number), first);
}

static void after_a_loss_a_child_is_read_by_itself(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	show(f, PARENT, &f->other, as_usual);
	processes_lost(f->ps, 2000, 2000);
	forks(f, 3000, PARENT, CHILD);
	assert_true(live(f, CHILD)->stale);
	show(f, CHILD, &f->other, as_usual);
	assert_string_equal(sampled(f, CHILD, later)->executable->path, f->other.path);
	assert_true(live(f, PARENT)->stale);
}

static void the_end_of_a_process_that_is_gone_is_noticed(void **state)
{
	struct fixture *f = *state;

	/* With two threads at the scan, the number of threads is uncertain. */
	show(f, PARENT, &f->program, (struct fake_process){ .threads = 2 });
	processes_scan(f->ps, NULL, 0);
	processes_exit(f->ps, later, PARENT, PARENT);
	processes_exit(f->ps, later, PARENT, PARENT + 1);
	processes_sweep(f->ps, UINT64_MAX);
	assert_non_null(live(f, PARENT)); /* /proc still has it */
	fake_proc_remove(&f->proc, PARENT);
	processes_sweep(f->ps, UINT64_MAX);
	/* Its last records may still come; a record that is newer than the reading ends it. */
	assert_non_null(live(f, PARENT));
	processes_comm(f->ps, later + 1, 1, 1, "x", false);
	processes_sweep(f->ps, UINT64_MAX);
	assert_null(live(f, PARENT));
	assert_int_equal(processes_count(f->ps), 0);
	assert_int_equal(f->ended, 1);
}

static void the_last_records_of_what_is_gone_are_waited_for(void **state)
{
	struct fixture *f = *state;

	exec(f, 1000, PARENT, &f->program);
	processes_lost(f->ps, 2000, 2000);
	exec(f, 3000, CHILD, &f->program);
	/* /proc has neither; only the first lost records, so only its exit may have been missed. */
	for (int i = 0; i < 3; i++)
		processes_sweep(f->ps, 0);
	assert_non_null(live(f, PARENT));
	processes_comm(f->ps, later, CHILD, CHILD, "x", false);
	for (int i = 0; i < 3; i++)
		processes_sweep(f->ps, 0);
	assert_null(live(f, PARENT));
	assert_non_null(live(f, CHILD));
}

/* Until give_descriptors(), no descriptor can be opened. */
static void take_descriptors(struct rlimit *ret_whole)
{
	struct rlimit none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, ret_whole), 0);
	none = *ret_whole;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void give_descriptors(const struct rlimit *whole)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, whole), 0);
}

static void without_descriptors_a_process_is_not_gone(void **state)
{
	struct fixture *f = *state;
	struct rlimit whole;
	uint32_t number;

	show(f, PARENT, &f->program, as_usual);
	processes_scan(f->ps, NULL, 0);
	number = sampled(f, PARENT, later)->number;
	processes_lost(f->ps, later, later);
	take_descriptors(&whole);
	for (int i = 0; i < 3; i++) {
		processes_sweep(f->ps, UINT64_MAX);
		processes_comm(f->ps, later + 1, 1, 1, "x", false);
	}
	assert_non_null(sampled(f, PARENT, later));
	give_descriptors(&whole);
	assert_int_equal(f->ended, 0);
	assert_int_equal(live(f, PARENT)->number, number);
	/* The next sample repeats the reading. */
	assert_true(live(f, PARENT)->stale);
	assert_non_null(sampled(f, PARENT, later));
	assert_false(live(f, PARENT)->stale);
	assert_int_equal(live(f, PARENT)->number, number);
	assert_int_equal(f->ended, 0);
}

static void what_was_first_sampled_without_descriptors_is_read_later(void **state)
{
	struct fixture *f = *state;
	const struct process *p;
	struct rlimit whole;
	uint32_t number;

	show(f, PARENT, &f->program, as_usual);
	take_descriptors(&whole);
	p = sampled(f, PARENT, later);
	give_descriptors(&whole);
	assert_non_null(p);
	assert_true(p->unproven);
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 1);
	number = p->number;
	p = sampled(f, PARENT, later);
	assert_false(p->unproven);
	assert_int_equal(p->number, number);
	assert_string_equal(p->executable->path, f->program.path);
	assert_int_equal(mappings_count(p->mappings), 2);
	assert_int_equal(count(f, METRIC_UNNAMED_LOST_RECORDS), 1);
}

/* Each try has one more descriptor: whichever open fails, no partial result is remembered. */
static void at_no_point_of_a_reading_a_shortage_is_remembered(void **state)
{
	struct fixture *f = *state;
	char cgroup[200];
	struct rlimit whole, few;
	int lowest = dup(0);

	snprintf(cgroup, sizeof(cgroup), "0::/kubepods.slice/cri-containerd-%s.scope\n",
		container_a);
	show(f, PARENT, &f->program,
		(struct fake_process){ .cgroup = cgroup, .nspid = "\t100\t17\t1" });
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	few = whole;
	for (int more = 0; more < 8; more++) {
		struct process *p;

		few.rlim_cur = (rlim_t)(lowest + more);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		p = sampled(f, PARENT, later);
		if (p)
			process_namespace_pid(f->ps, p);
		processes_sweep(f->ps, 0);
		give_descriptors(&whole);
		assert_non_null(p);
		p = sampled(f, PARENT, later);
		assert_string_equal(p->container_id, container_a);
		assert_string_equal(p->executable->path, f->program.path);
		assert_false(file_hash_is_none(&p->executable->id.content));
		assert_int_equal(process_namespace_pid(f->ps, p), 1);
		assert_int_equal(f->ended, 0);
		processes_lost(f->ps, later, later + (uint64_t)more);
	}
}

static void the_container_is_looked_up_again_after_a_shortage(void **state)
{
	struct fixture *f = *state;
	struct rlimit whole;
	char cgroup[200];

	snprintf(cgroup, sizeof(cgroup), "0::/kubepods.slice/cri-containerd-%s.scope\n",
		container_a);
	exec(f, later, CHILD, &f->program);
	show(f, CHILD, &f->program, (struct fake_process){ .cgroup = cgroup });
	take_descriptors(&whole);
	assert_non_null(sampled(f, CHILD, later));
	give_descriptors(&whole);
	assert_string_equal(sampled(f, CHILD, later)->container_id, container_a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_descriptors_a_process_is_not_gone),
		CASE(what_was_first_sampled_without_descriptors_is_read_later),
		CASE(at_no_point_of_a_reading_a_shortage_is_remembered),
		CASE(the_container_is_looked_up_again_after_a_shortage),
		CASE(a_scan_reads_everything),
		CASE(a_program_in_a_chroot_is_called_as_it_calls_itself),
		CASE(a_scan_of_some_pids_reads_only_those),
		CASE(a_file_is_one_module_by_stream_and_by_proc),
		CASE(so_is_a_file_without_a_build_id),
		CASE(a_record_without_a_build_id_is_completed),
		CASE(the_program_is_found_by_path_where_inodes_differ),
		CASE(the_memory_of_an_exited_main_thread_is_its_threads),
		CASE(what_waits_for_its_parent_is_no_process),
		CASE(older_records_do_not_undo_what_proc_showed),
		CASE(a_child_from_before_the_reading_inherits_nothing),
		CASE(an_unknown_process_is_read_when_sampled),
		CASE(an_unreadable_process_has_an_entry),
		CASE(the_container_is_looked_up_at_the_first_sample),
		CASE(the_container_of_a_later_process_is_not_taken),
		CASE(the_container_is_looked_up_again_after_an_exec),
		CASE(the_container_is_looked_up_again_after_a_move),
		CASE(a_move_between_containers_is_noted),
		CASE(after_a_loss_a_process_is_read_again_when_used),
		CASE(after_a_loss_the_main_threads_exit_does_not_end_the_process),
		CASE(a_lost_exec_begins_a_generation),
		CASE(a_lost_exit_and_the_pid_used_again),
		CASE(a_process_that_went_after_a_loss),
		CASE(after_a_loss_an_ended_process_no_longer_answers_for_its_pid),
		CASE(after_a_loss_a_child_is_read_by_itself),
		CASE(the_end_of_a_process_that_is_gone_is_noticed),
		CASE(the_last_records_of_what_is_gone_are_waited_for),
		CASE(a_thread_too_many_does_not_end_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
