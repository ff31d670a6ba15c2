/* SPDX-License-Identifier: Apache-2.0 */
/* When perf maps are read and which process they belong to, over a fake /proc. */
#include "tests/unit/jit_maps_fixture.h"

static void functions_have_the_names_of_the_file(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "first");
	assert_string_equal(name_of(w, p, 0x2008), "");
	assert_int_equal(count(w->table, METRIC_PERF_MAP_REFUSED), 0);
}

static void file_is_named_after_the_pid_in_its_own_namespace(void **state)
{
	struct jit_world *w = *state;
	struct process *p;

	show(w->table, PARENT, &w->table->program, (struct fake_process){ .nspid = "\t100\t7" });
	fake_proc_root(&w->table->proc, PARENT, w->root);
	p = sampled(w->table, PARENT, later);
	write_map(w, 7, "w", "1000 10 inner\n");
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "inner");
}

static void map_is_read_once_a_second_while_samples_come(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	write_map(w, PARENT, "a", "2000 10 second\n");
	clock_ns += SECOND - 1;
	hit(w, p);
	/* An ended process keeps the report from reading the file again. */
	p->ended = true;
	remove_map(w, PARENT);
	assert_string_equal(name_of(w, p, 0x1008), "first");
	p->ended = false;
	write_map(w, PARENT, "w", "1000 10 first\n2000 10 second\n");
	clock_ns += 1;
	hit(w, p);
	p->ended = true;
	assert_string_equal(name_of(w, p, 0x2008), "second");
}

static void report_reads_new_lines(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	write_map(w, PARENT, "a", "2000 10 second\n");
	clock_ns += 100 * MS - 1;
	assert_string_equal(name_of(w, p, 0x2008), "");
	clock_ns += 1;
	assert_string_equal(name_of(w, p, 0x2008), "second");
}

/* After 100 ms, 400 ms, 1.6 s, 6.4 s, then each 10 s. */
static void missing_file_is_searched_for_less_and_less_often(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);
	const uint64_t pauses_ms[] = { 100, 400, 1600, 6400, 10000, 10000 };

	hit(w, p);
	for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
		clock_ns += pauses_ms[i] * MS - 1;
		write_map(w, PARENT, "w", "1000 10 first\n");
		hit(w, p);
		remove_map(w, PARENT);
		clock_ns += 1;
		hit(w, p);
	}
	p->ended = true;
	assert_string_equal(name_of(w, p, 0x1008), "");
	p->ended = false;
	write_map(w, PARENT, "w", "1000 10 first\n");
	clock_ns += 10000 * MS;
	hit(w, p);
	p->ended = true;
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

/* Another program may run by now, its exec not yet seen. */
static void late_sample_does_not_read_the_map(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	jit_maps_hit(w->maps, p, clock_ns - 900 * MS - 1);
	p->ended = true;
	assert_string_equal(name_of(w, p, 0x1008), "");
	p->ended = false;
	jit_maps_hit(w->maps, p, clock_ns - 900 * MS);
	p->ended = true;
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

static void file_older_than_the_program_is_not_its_own(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 old\n");
	clock_ns += SECOND;
	p->start_ns = clock_ns;
	clock_ns += SECOND;
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "");
	/* Lines that are appended later are its own. */
	write_map(w, PARENT, "a", "2000 10 new\n");
	clock_ns += SECOND;
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "");
	assert_string_equal(name_of(w, p, 0x2008), "new");
}

static void file_from_before_a_suspend_is_the_programs_own(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	p->start_ns = clock_ns;
	clock_ns += SECOND;
	write_map(w, PARENT, "w", "1000 10 own\n");
	clock_ns += SECOND;
	suspended_ns = 3600 * SECOND;
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "own");
}

/* Of a program that ran before the agent only the ticks are known. */
static void start_time_in_ticks_decides_the_owner_of_a_file(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT), *other = process_of(w, CHILD);
	uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);

	p->start_ns = other->start_ns = 0;
	write_map(w, PARENT, "w", "1000 10 old\n");
	p->start_ticks = other->start_ticks = (clock_ns / SECOND + 2) * ticks;
	clock_ns += 4 * SECOND;
	write_map(w, CHILD, "w", "1000 10 own\n");
	clock_ns += SECOND;
	hit(w, p);
	hit(w, other);
	assert_string_equal(name_of(w, p, 0x1008), "");
	assert_string_equal(name_of(w, other, 0x1008), "own");
}

static void lines_that_the_next_program_may_have_written_are_dropped(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	clock_ns += SECOND + MS;
	write_map(w, PARENT, "a", "2000 10 perhaps_its\n");
	/* The sample's time is before the reading, as it always is. */
	jit_maps_hit(w->maps, p, clock_ns - MS);
	end(w, p, true);
	assert_string_equal(name_of(w, p, 0x1008), "first");
	assert_string_equal(name_of(w, p, 0x2008), "");
}

static void file_rewritten_by_the_next_program_is_ignored(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	clock_ns += SECOND + MS;
	write_map(w, PARENT, "w", "1000 10 of_another_program\n");
	jit_maps_hit(w->maps, p, clock_ns - MS);
	end(w, p, true);
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

/* A sample of the program after that: the JIT itself wrote the file anew. */
static void file_rewritten_by_the_program_is_used(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	clock_ns += SECOND + MS;
	write_map(w, PARENT, "w", "1000 10 moved\n");
	jit_maps_hit(w->maps, p, clock_ns - MS);
	clock_ns += MS;
	hit(w, p);
	end(w, p, true);
	assert_string_equal(name_of(w, p, 0x1008), "moved");
}

static void file_rewritten_at_the_time_of_a_sample_is_used(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	clock_ns += SECOND + MS;
	write_map(w, PARENT, "w", "1000 10 moved\n");
	hit(w, p);
	end(w, p, true);
	assert_string_equal(name_of(w, p, 0x1008), "moved");
}

static void last_lines_of_a_process_that_ended_are_read(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	write_map(w, PARENT, "a", "2000 10 last\n");
	end(w, p, false);
	remove_map(w, PARENT);
	clock_ns += SECOND;
	assert_string_equal(name_of(w, p, 0x2008), "last");
}

/* One reading takes at most 128 MiB. Until the whole file is read, a name might be outdated. */
static void a_very_large_file_is_read_in_parts(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);
	char path[128];

	write_map(w, PARENT, "w", "1000 10 first\n");
	path_of(w, PARENT, path);
	assert_int_equal(truncate(path, 257 << 20), 0);
	write_map(w, PARENT, "a", "\n2000 10 last\n");
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "");
	assert_int_equal(count(w->table, METRIC_PERF_MAP_REFUSED), 0);
	/* The reports read the rest of what the process wrote. */
	end(w, p, false);
	clock_ns += SECOND;
	assert_string_equal(name_of(w, p, 0x1008), "");
	clock_ns += SECOND;
	assert_string_equal(name_of(w, p, 0x1008), "first");
	assert_string_equal(name_of(w, p, 0x2008), "last");
}

/* A later process has the pid, and writes the same file. */
static void lines_written_after_the_end_are_not_read(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	end(w, p, false);
	clock_ns += SECOND;
	write_map(w, PARENT, "a", "2000 10 of_another\n");
	clock_ns += SECOND;
	assert_string_equal(name_of(w, p, 0x1008), "first");
	assert_string_equal(name_of(w, p, 0x2008), "");
}

/* Within the second of the end, but later than a pid comes again. */
static void lines_written_soon_after_the_end_are_not_read(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	end(w, p, false);
	clock_ns += 900 * MS;
	write_map(w, PARENT, "a", "2000 10 of_another\n");
	clock_ns += SECOND;
	assert_string_equal(name_of(w, p, 0x1008), "first");
	assert_string_equal(name_of(w, p, 0x2008), "");
}

static void forked_child_inherits_its_parents_map(void **state)
{
	struct jit_world *w = *state;
	struct process *parent = process_of(w, PARENT), *child = process_of(w, CHILD);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, parent);
	clock_ns += SECOND;
	write_map(w, PARENT, "a", "2000 10 before_the_fork\n");
	jit_maps_forked(w->maps, parent, child, clock_ns);
	clock_ns += SECOND;
	write_map(w, PARENT, "a", "3000 10 after_the_fork\n");
	hit(w, parent);
	assert_string_equal(name_of(w, child, 0x1008), "first");
	assert_string_equal(name_of(w, child, 0x2008), "before_the_fork");
	assert_string_equal(name_of(w, child, 0x3008), "");
	assert_string_equal(name_of(w, parent, 0x3008), "after_the_fork");
	write_map(w, CHILD, "w", "4000 10 its_own\n");
	clock_ns += SECOND;
	assert_string_equal(name_of(w, child, 0x4008), "its_own");
}

static void child_of_a_process_without_a_map_has_none(void **state)
{
	struct jit_world *w = *state;
	struct process *parent = process_of(w, PARENT), *child = process_of(w, CHILD);

	jit_maps_forked(w->maps, parent, child, clock_ns);
	hit(w, parent);
	jit_maps_forked(w->maps, parent, child, clock_ns);
	assert_null(jit_maps_get(w->maps, child));
}

/* The refusal is counted at the first attempt only. */
static void file_that_cannot_be_read_is_counted_once(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);
	char path[128];

	path_of(w, PARENT, path);
	assert_int_equal(mkdir(path, 0755), 0);
	hit(w, p);
	clock_ns += SECOND;
	hit(w, p);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(count(w->table, METRIC_PERF_MAP_REFUSED), 1);
	write_map(w, PARENT, "w", "1000 10 first\n");
	clock_ns += 10 * SECOND;
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

static void shortage_of_descriptors_passes(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);
	struct rlimit whole, none;

	write_map(w, PARENT, "w", "1000 10 first\n");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	none = whole;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	hit(w, p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
	assert_int_equal(count(w->table, METRIC_PERF_MAP_REFUSED), 0);
	clock_ns += 100 * MS;
	hit(w, p);
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

static void process_beyond_the_limit_has_no_map_and_is_counted(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT), *other = process_of(w, CHILD);

	make_maps(w, 1);
	write_map(w, PARENT, "w", "1000 10 first\n");
	write_map(w, CHILD, "w", "1000 10 other\n");
	hit(w, p);
	hit(w, other);
	assert_int_equal(count(w->table, METRIC_PERF_MAP_REFUSED), 1);
	jit_maps_forked(w->maps, p, other, clock_ns);
	assert_string_equal(name_of(w, other, 0x1008), "");
	assert_string_equal(name_of(w, p, 0x1008), "first");
	jit_maps_forget(w->maps, p);
	clock_ns += SECOND;
	assert_string_equal(name_of(w, other, 0x1008), "other");
}

static void shrunk_map_is_read_again_at_its_next_use(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);
	const struct perf_map *map;

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	map = jit_maps_get(w->maps, p);
	assert_int_equal(perf_map_count(map), 1);
	jit_maps_shrink(w->maps);
	assert_int_equal(perf_map_count(map), 0);
	clock_ns += SECOND;
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

/* Its code is known by nothing else. */
static void map_that_cannot_be_read_again_is_not_shrunk(void **state)
{
	struct jit_world *w = *state;
	struct process *p = process_of(w, PARENT);

	write_map(w, PARENT, "w", "1000 10 first\n");
	hit(w, p);
	end(w, p, false);
	clock_ns += SECOND;
	write_map(w, PARENT, "w", "1000 10 of_another\n");
	jit_maps_shrink(w->maps);
	assert_string_equal(name_of(w, p, 0x1008), "first");
}

#undef CASE
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(functions_have_the_names_of_the_file),
		CASE(file_is_named_after_the_pid_in_its_own_namespace),
		CASE(map_is_read_once_a_second_while_samples_come),
		CASE(report_reads_new_lines),
		CASE(missing_file_is_searched_for_less_and_less_often),
		CASE(late_sample_does_not_read_the_map),
		CASE(file_older_than_the_program_is_not_its_own),
		CASE(file_from_before_a_suspend_is_the_programs_own),
		CASE(start_time_in_ticks_decides_the_owner_of_a_file),
		CASE(lines_that_the_next_program_may_have_written_are_dropped),
		CASE(file_rewritten_by_the_next_program_is_ignored),
		CASE(file_rewritten_by_the_program_is_used),
		CASE(file_rewritten_at_the_time_of_a_sample_is_used),
		CASE(last_lines_of_a_process_that_ended_are_read),
		CASE(a_very_large_file_is_read_in_parts),
		CASE(lines_written_after_the_end_are_not_read),
		CASE(lines_written_soon_after_the_end_are_not_read),
		CASE(forked_child_inherits_its_parents_map),
		CASE(child_of_a_process_without_a_map_has_none),
		CASE(file_that_cannot_be_read_is_counted_once),
		CASE(shortage_of_descriptors_passes),
		CASE(process_beyond_the_limit_has_no_map_and_is_counted),
		CASE(shrunk_map_is_read_again_at_its_next_use),
		CASE(map_that_cannot_be_read_again_is_not_shrunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
