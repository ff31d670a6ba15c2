/* SPDX-License-Identifier: Apache-2.0 */
/* The process table when walks see other mappings than the records reported. */
#include "agent/sampler/process/processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/process_fixture.h"

enum { PROGRAM = 0x400000, STARTED = 1000, SAMPLED = 2000, PAGE = 0x1000 };

static const uint64_t LIBRARY = 0x7f0000000000, INTERVAL_NS = 200000000;

/* FILE's second page at START; NULL = anonymous memory. */
static struct seen_mapping seen_at(uint64_t start, const struct fake_file *file)
{
	struct seen_mapping seen = { .start = start, .end = start + PAGE };

	if (!file)
		return seen;
	seen.file_off = PAGE;
	seen.file.device = file->device;
	seen.file.inode = file->inode;
	return seen;
}

static void see(struct fixture *f, uint64_t time_ns, uint64_t start, const struct fake_file *file)
{
	const struct sighting sighting = { start + 8, seen_at(start, file) };

	processes_seen(f->ps, time_ns, PARENT, &sighting, 1);
}

/* /proc shows the program, and FILE in the library's place; NULL = no file. */
static void show_library(struct fixture *f, const struct fake_file *file)
{
	char maps[2 * PATH_MAX];

	fake_maps_line(maps, PATH_MAX, PROGRAM, PROGRAM + PAGE, PAGE, &f->program);
	if (file)
		fake_maps_line(maps + strlen(maps), PATH_MAX, LIBRARY, LIBRARY + PAGE, PAGE, file);
	fake_proc_process(&f->proc, PARENT,
		&(struct fake_process){ .comm = "program", .maps = maps, .exe = f->program.path });
}

static uint64_t mtime_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

static enum module_kind kind_at(struct fixture *f, uint64_t pc)
{
	const struct module *module = module_at(live(f, PARENT), pc);

	assert_non_null(module);
	return module->kind;
}

static const char *path_at(struct fixture *f, uint64_t pc)
{
	const struct module *module = module_at(live(f, PARENT), pc);

	return module ? module->path : "";
}

static void what_is_seen_as_it_was_told_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const struct mappings *before;

	exec(f, STARTED, PARENT, &f->program);
	before = live(f, PARENT)->mappings;
	see(f, SAMPLED, LIBRARY, &f->libc);
	see(f, SAMPLED, PROGRAM, &f->program);
	assert_ptr_equal(live(f, PARENT)->mappings, before);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 0);
}

static void a_library_moved_over_another_is_found_in_proc(void **state)
{
	struct fixture *f = *state;
	uint32_t number;

	exec(f, STARTED, PARENT, &f->program);
	number = live(f, PARENT)->number;
	show_library(f, &f->other);
	see(f, SAMPLED, LIBRARY, &f->other);
	assert_string_equal(path_at(f, LIBRARY), f->other.path);
	assert_int_equal(live(f, PARENT)->number, number);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 1);
	/* The correction is remembered. */
	see(f, clock_monotonic_ns() + INTERVAL_NS, LIBRARY, &f->other);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 1);
}

static void a_mapping_where_nothing_was_is_found_in_proc(void **state)
{
	struct fixture *f = *state;
	const uint64_t hole = LIBRARY + 0x100000;

	exec(f, STARTED, PARENT, &f->program);
	show_library(f, &f->libc);
	see(f, SAMPLED, hole, &f->other);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 1);
	/* /proc no longer has the mapping. */
	assert_int_equal(kind_at(f, hole), MODULE_SPECIAL);
	assert_string_equal(path_at(f, LIBRARY), f->libc.path);
}

static void memory_moved_over_a_library_is_not_called_by_it(void **state)
{
	struct fixture *f = *state;

	exec(f, STARTED, PARENT, &f->program);
	show_library(f, NULL);
	see(f, SAMPLED, LIBRARY, NULL);
	assert_int_equal(kind_at(f, LIBRARY), MODULE_SPECIAL);
	assert_string_equal(path_at(f, PROGRAM), f->program.path);
}

static void of_a_process_that_is_gone_what_differs_has_no_name(void **state)
{
	struct fixture *f = *state;

	exec(f, STARTED, PARENT, &f->program);
	see(f, SAMPLED, LIBRARY, &f->other);
	assert_int_equal(kind_at(f, LIBRARY), MODULE_SPECIAL);
	assert_string_equal(path_at(f, PROGRAM), f->program.path);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 1);
}

/* One walk may have seen all of the mappings, or each walk one. */
static void all_that_has_no_name_is_looked_up_again(void **state)
{
	struct fixture *f = *state;
	const uint64_t one = LIBRARY + 0x100000, two = LIBRARY + 0x200000;
	char maps[3 * PATH_MAX];

	exec(f, STARTED, PARENT, &f->program);
	show_library(f, &f->libc);
	see(f, SAMPLED, one, &f->other);
	see(f, SAMPLED + 1, two, &f->libc);
	assert_int_equal(kind_at(f, one), MODULE_SPECIAL);
	assert_int_equal(kind_at(f, two), MODULE_SPECIAL);
	fake_maps_line(maps, PATH_MAX, PROGRAM, PROGRAM + PAGE, PAGE, &f->program);
	fake_maps_line(maps + strlen(maps), PATH_MAX, one, one + PAGE, PAGE, &f->other);
	fake_maps_line(maps + strlen(maps), PATH_MAX, two, two + PAGE, PAGE, &f->libc);
	fake_proc_process(&f->proc, PARENT,
		&(struct fake_process){ .comm = "program", .maps = maps, .exe = f->program.path });
	sampled(f, PARENT, SAMPLED + INTERVAL_NS);
	assert_string_equal(path_at(f, one), f->other.path);
	assert_string_equal(path_at(f, two), f->libc.path);
}

/* No other event of the process is needed between the two. */
static void what_is_seen_after_proc_was_read_is_news(void **state)
{
	struct fixture *f = *state;

	exec(f, STARTED, PARENT, &f->program);
	show_library(f, &f->libc);
	processes_lost(f->ps, SAMPLED, SAMPLED + 1);
	sampled(f, PARENT, SAMPLED + 2);
	show_library(f, &f->other);
	see(f, clock_monotonic_ns() + INTERVAL_NS, LIBRARY, &f->other);
	assert_string_equal(path_at(f, LIBRARY), f->other.path);
}

/* Reading /proc for each of them would cost more than the samples. */
static void what_moves_on_and_on_is_nameless_until_it_is_read_again(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns;

	exec(f, STARTED, PARENT, &f->program);
	show_library(f, &f->other);
	see(f, SAMPLED, LIBRARY, &f->other);
	now_ns = clock_monotonic_ns() + INTERVAL_NS;
	show_library(f, &f->libc);
	see(f, now_ns, LIBRARY, &f->libc);
	assert_string_equal(path_at(f, LIBRARY), f->libc.path);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 2);
	show_library(f, &f->other);
	see(f, now_ns + 1, LIBRARY, &f->other);
	assert_int_equal(kind_at(f, LIBRARY), MODULE_SPECIAL);
	sampled(f, PARENT, now_ns + 2);
	assert_int_equal(kind_at(f, LIBRARY), MODULE_SPECIAL);
	sampled(f, PARENT, now_ns + INTERVAL_NS);
	assert_string_equal(path_at(f, LIBRARY), f->other.path);
}

/* One reading covers everything that moved. */
static void all_that_a_walk_saw_is_looked_up_at_once(void **state)
{
	struct fixture *f = *state;
	const struct sighting of[] = { { PROGRAM, seen_at(PROGRAM, &f->program) },
		{ LIBRARY, seen_at(LIBRARY, &f->other) },
		{ LIBRARY + PAGE, seen_at(LIBRARY + PAGE, &f->libc) } };
	char maps[3 * PATH_MAX];

	exec(f, STARTED, PARENT, &f->program);
	fake_maps_line(maps, PATH_MAX, PROGRAM, PROGRAM + PAGE, PAGE, &f->program);
	fake_maps_line(maps + strlen(maps), PATH_MAX, LIBRARY, LIBRARY + PAGE, PAGE, &f->other);
	fake_maps_line(
		maps + strlen(maps), PATH_MAX, LIBRARY + PAGE, LIBRARY + 2 * PAGE, PAGE, &f->libc);
	fake_proc_process(&f->proc, PARENT,
		&(struct fake_process){ .comm = "program", .maps = maps, .exe = f->program.path });
	processes_seen(f->ps, SAMPLED, PARENT, of, 3);
	assert_string_equal(path_at(f, LIBRARY), f->other.path);
	assert_string_equal(path_at(f, LIBRARY + PAGE), f->libc.path);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 2);
}

/* Some file systems show other inode numbers in /proc; the difference proves nothing. */
static void numbers_that_proc_does_not_show_are_not_compared(void **state)
{
	struct fixture *f = *state;
	struct fake_file numbered = f->libc;

	numbered.inode += 1000;
	exec(f, STARTED, PARENT, &f->program);
	show_library(f, &f->libc);
	see(f, SAMPLED, LIBRARY, &numbered);
	assert_string_equal(path_at(f, LIBRARY), f->libc.path);
	see(f, clock_monotonic_ns() + INTERVAL_NS, LIBRARY, &numbered);
	assert_string_equal(path_at(f, LIBRARY), f->libc.path);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 1);
	/* The offset in the file is compared. */
	see(f, clock_monotonic_ns() + INTERVAL_NS, LIBRARY - PAGE, &numbered);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 2);
}

/* Code and names of a rewritten file may have changed. */
static void a_file_that_was_written_to_is_looked_at_again(void **state)
{
	struct fixture *f = *state;
	struct sighting sighting = { .pc = LIBRARY };
	const struct module *before;

	show_library(f, &f->libc);
	processes_scan(f->ps, NULL, 0);
	before = module_at(live(f, PARENT), LIBRARY);
	fake_proc_elf(&f->proc, "libc", 9, &f->libc);
	show_library(f, &f->libc);
	sighting.seen = seen_at(LIBRARY, &f->libc);
	sighting.seen.file.mtime_ns = mtime_of(f->libc.path);
	processes_seen(f->ps, clock_monotonic_ns() + 1, PARENT, &sighting, 1);
	assert_ptr_not_equal(module_at(live(f, PARENT), LIBRARY), before);
}

static void what_was_seen_before_proc_was_read_is_no_news(void **state)
{
	struct fixture *f = *state;

	show_library(f, &f->libc);
	processes_scan(f->ps, NULL, 0);
	see(f, SAMPLED, LIBRARY, &f->other);
	assert_string_equal(path_at(f, LIBRARY), f->libc.path);
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 0);
}

/* The kernel maps the program and reports the mapping a moment later. */
static void a_program_that_is_not_told_of_yet_is_waited_for(void **state)
{
	struct fixture *f = *state;

	processes_comm(f->ps, STARTED, PARENT, PARENT, "program", true);
	see(f, SAMPLED, PROGRAM, &f->program);
	see(f, SAMPLED, LIBRARY + 0x5000, &f->other);
	assert_null(module_at(live(f, PARENT), PROGRAM));
	assert_int_equal(count(f, METRIC_MAPPINGS_CORRECTED), 0);
}

static void processes_that_are_not_known_are_left_alone(void **state)
{
	struct fixture *f = *state;

	see(f, SAMPLED, LIBRARY, &f->libc);
	assert_null(live(f, PARENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_is_seen_as_it_was_told_changes_nothing),
		CASE(a_library_moved_over_another_is_found_in_proc),
		CASE(a_mapping_where_nothing_was_is_found_in_proc),
		CASE(memory_moved_over_a_library_is_not_called_by_it),
		CASE(of_a_process_that_is_gone_what_differs_has_no_name),
		CASE(what_moves_on_and_on_is_nameless_until_it_is_read_again),
		CASE(all_that_has_no_name_is_looked_up_again),
		CASE(what_is_seen_after_proc_was_read_is_news),
		CASE(all_that_a_walk_saw_is_looked_up_at_once),
		CASE(numbers_that_proc_does_not_show_are_not_compared),
		CASE(a_file_that_was_written_to_is_looked_at_again),
		CASE(what_was_seen_before_proc_was_read_is_no_news),
		CASE(a_program_that_is_not_told_of_yet_is_waited_for),
		CASE(processes_that_are_not_known_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
