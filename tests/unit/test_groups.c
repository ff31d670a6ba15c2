/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes' samples are stored together, and under which name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/daemon/groups.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

static void sample(struct fixture *f, const struct process *p)
{
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, p, &frame, 1);
}

static struct groups groups_now(struct fixture *f)
{
	struct groups g;

	assert_int_equal(groups_init(&g, f->profile, describe(f)), 0);
	return g;
}

static const char *name_of(const struct groups *g, const struct process *p)
{
	return groups_name(g, groups_of(g, p->number));
}

static void programs_are_groups(void **state)
{
	struct fixture *f = *state;
	struct groups g;

	f->one->executable = f->program;
	f->two->executable = f->program;
	sample(f, f->one);
	sample(f, f->two);
	g = groups_now(f);
	assert_int_equal(groups_count(&g), 1);
	assert_string_equal(name_of(&g, f->one), "program");
	assert_int_equal(groups_of(&g, f->one->number), groups_of(&g, f->two->number));
	groups_deinit(&g);
}

static void containers_come_before_programs(void **state)
{
	struct fixture *f = *state;
	struct groups g;

	f->one->executable = f->program;
	f->two->executable = f->program;
	memset(f->one->container_id, 'a', sizeof(f->one->container_id) - 1);
	sample(f, f->one);
	sample(f, f->two);
	g = groups_now(f);
	assert_int_equal(groups_count(&g), 2);
	assert_string_equal(name_of(&g, f->one), "container-aaaaaaaaaaaa");
	assert_string_equal(name_of(&g, f->two), "program");
	groups_deinit(&g);
}

static void the_kernels_threads_are_one_group(void **state)
{
	struct fixture *f = *state;
	struct groups g;

	f->one->kernel_thread = f->two->kernel_thread = true;
	sample(f, f->one);
	sample(f, f->two);
	g = groups_now(f);
	assert_int_equal(groups_count(&g), 1);
	assert_string_equal(name_of(&g, f->two), "kernel");
	groups_deinit(&g);
}

static void without_a_program_the_command_names_it(void **state)
{
	struct fixture *f = *state;
	struct groups g;

	f->one->executable = NULL;
	f->two->executable = NULL;
	f->two->comm[0] = 0;
	sample(f, f->one);
	sample(f, f->two);
	g = groups_now(f);
	assert_string_equal(name_of(&g, f->one), "one");
	assert_string_equal(name_of(&g, f->two), "unknown");
	groups_deinit(&g);
}

static void a_process_that_is_no_longer_known(void **state)
{
	struct fixture *f = *state;
	struct process gone = { .number = 4711 };
	struct groups g;

	sample(f, &gone);
	g = groups_now(f);
	assert_string_equal(name_of(&g, &gone), "unknown");
	groups_deinit(&g);
}

static void only_what_was_sampled_has_a_group(void **state)
{
	struct fixture *f = *state;
	struct groups g;

	g = groups_now(f);
	assert_int_equal(groups_count(&g), 0);
	assert_int_equal(groups_of(&g, f->one->number), 0);
	groups_deinit(&g);
	sample(f, f->one);
	g = groups_now(f);
	assert_int_equal(groups_count(&g), 1);
	assert_int_equal(groups_of(&g, f->two->number), 0);
	groups_deinit(&g);
}

static void each_sample_is_in_its_group(void **state)
{
	struct fixture *f = *state;
	struct profile_frame other = in_program(START, 0, f);
	const char *const groups[] = { "one", "two", "one" };
	struct groups_label label = { 0 };
	struct groups g;

	sample(f, f->one);
	sample(f, f->two);
	add_user(f, f->one, &other, 1);
	g = groups_now(f);
	label.groups = &g;
	assert_int_equal(profile_sample_count(f->profile), ARRAY_SIZE(groups));
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		assert_string_equal(
			groups_label_of(&label, profile_sample_at(f->profile, i)), groups[i]);
	groups_deinit(&g);
}

static void paths_of_hostile_processes(void **state)
{
	static const struct {
		const char *path, *name;
	} cases[] = {
		{ "/usr/bin/a b\n\"c", "a b\n\"c" },
		{ "/usr/bin/", "/usr/bin/" },
		{ "relative", "relative" },
		{ "/", "/" },
		{ "/tmp/x (deleted)", "x (deleted)" },
	};
	struct fixture *f = *state;

	sample(f, f->one);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct module_id id = { .build_id = { .size = 4, .bytes = { 99, (uint8_t)i } } };
		struct module *module;
		struct groups g;

		assert_int_equal(
			modules_get(f->modules, MODULE_FILE, &id, cases[i].path, &module), 0);
		f->one->executable = module;
		g = groups_now(f);
		assert_string_equal(name_of(&g, f->one), cases[i].name);
		groups_deinit(&g);
	}
}

/* Each sample has a group, whatever its process. */
static void no_sample_without_a_group(void **state)
{
	struct fixture *f = *state;
	struct process gone = { .number = 1 << 20 };
	struct groups g;

	for (unsigned int i = 0; i < 90; i++) {
		struct process *p;
		char comm[16];

		snprintf(comm, sizeof(comm), "p%u", i);
		processes_fork(f->processes, 20, 1000 + i, 1000 + i, 1, 1);
		processes_comm(f->processes, 21, 1000 + i, 1000 + i, comm, true);
		p = processes_get(
			f->processes, &(struct processes_sample){ .pid = 1000 + i, .time_ns = 22 });
		assert_non_null(p);
		sample(f, p);
	}
	sample(f, &gone);
	g = groups_now(f);
	assert_int_equal(groups_count(&g), 91);
	for (size_t i = 0; i < profile_sample_count(f->profile); i++) {
		uint32_t group = groups_of(&g, profile_sample_at(f->profile, i)->process);

		assert_in_range(group, 1, groups_count(&g));
	}
	groups_deinit(&g);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(programs_are_groups),
		CASE(containers_come_before_programs),
		CASE(the_kernels_threads_are_one_group),
		CASE(without_a_program_the_command_names_it),
		CASE(a_process_that_is_no_longer_known),
		CASE(only_what_was_sampled_has_a_group),
		CASE(each_sample_is_in_its_group),
		CASE(paths_of_hostile_processes),
		CASE(no_sample_without_a_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
