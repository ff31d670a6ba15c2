/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules a sweep drops, in a process table over a fake /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/memory/module_sweeper.h"
#include "tests/unit/direct_build_ids.h"
#include "tests/unit/fake_proc.h"

enum { MODULES_LIMIT = 10000, PID = 7, MANY = 2048 };

static const uint64_t SECOND = 1000000000;
/* Times of the first sweep and, in most cases, of the start of the oldest open window. */
static const uint64_t NOW = UINT64_C(1000000000000), OPEN = UINT64_C(990000000000);

struct sweep_fixture {
	struct fake_proc proc;
	struct metrics metrics;
	struct modules *modules;
	struct processes *processes;
	struct module_sweeper sweeper;
	struct module *needed; /* needed by the owner; NULL = none */
	unsigned int forgotten;
	uint32_t last_forgotten; /* number */
};

static void keep(void *context)
{
	const struct sweep_fixture *f = context;

	if (f->needed)
		f->needed->used_ns = NOW;
}

static void forget(void *context, struct module *module)
{
	struct sweep_fixture *f = context;

	f->forgotten++;
	f->last_forgotten = module->number;
}

static int set_up(void **state)
{
	struct sweep_fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	*state = f;
	fake_proc_init(&f->proc);
	if (modules_create(MODULES_LIMIT, &f->modules) ||
		processes_create(
			&(struct processes_options){
				.proc_fd = f->proc.fd,
				.modules = f->modules,
				.build_ids = &direct_build_ids,
				.metrics = &f->metrics,
				.limit = 10,
			},
			&f->processes))
		return -1;
	module_sweeper_init(&f->sweeper, &(struct module_sweeper_options){
						 .modules = f->modules,
						 .processes = f->processes,
						 .keep = keep,
						 .forget = forget,
						 .context = f,
					 });
	return 0;
}

static int tear_down(void **state)
{
	struct sweep_fixture *f = *state;

	processes_destroy(f->processes);
	modules_destroy(f->modules);
	fake_proc_deinit(&f->proc);
	free(f);
	return 0;
}

static struct module *add_module(struct sweep_fixture *f, uint32_t id, uint64_t used_ns)
{
	struct module_id module_id = { .build_id.size = 20 };
	struct module *module;

	memcpy(module_id.build_id.bytes, &id, sizeof(id));
	assert_int_equal(modules_get(f->modules, MODULE_FILE, &module_id, "/bin/x", &module), 0);
	module->used_ns = used_ns;
	return module;
}

static bool is_known(const struct sweep_fixture *f, uint32_t number)
{
	return modules_find(f->modules, number) != NULL;
}

static void module_is_forgotten_five_minutes_after_its_last_sample(void **state)
{
	struct sweep_fixture *f = *state;
	uint32_t recent = add_module(f, 1, NOW - 300 * SECOND)->number;
	uint32_t idle = add_module(f, 2, NOW - 302 * SECOND)->number;

	module_sweeper_idle(&f->sweeper, OPEN, NOW);
	assert_true(is_known(f, recent));
	assert_false(is_known(f, idle));
	assert_int_equal(f->last_forgotten, idle);
	assert_int_equal(f->forgotten, 1);
}

/* A profile on demand may be open for longer than modules are kept. */
static void module_of_an_open_window_stays(void **state)
{
	struct sweep_fixture *f = *state;
	uint32_t late = add_module(f, 1, NOW - 400 * SECOND)->number;
	uint32_t before = add_module(f, 2, NOW - 402 * SECOND)->number;

	module_sweeper_idle(&f->sweeper, NOW - 400 * SECOND, NOW);
	assert_true(is_known(f, late));
	assert_false(is_known(f, before));
}

static void module_that_a_process_maps_stays(void **state)
{
	struct sweep_fixture *f = *state;
	struct fake_file file;
	const struct process *p;
	const struct module *module;
	char line[PATH_MAX + 100];

	fake_proc_elf(&f->proc, "program", 9, &file);
	fake_maps_line(line, sizeof(line), 0x1000, 0x2000, 0, &file);
	fake_proc_process(&f->proc, PID,
		&(struct fake_process){ .comm = "p", .maps = line, .exe = file.path });
	assert_int_equal(processes_scan(f->processes, NULL, 0), 0);
	p = processes_get(f->processes, &(struct processes_sample){ .time_ns = NOW, .pid = PID });
	assert_non_null(p);
	module = mappings_at(p->mappings, 0)->module;
	module_sweeper_all(&f->sweeper, UINT64_MAX, UINT64_MAX / 2);
	assert_true(is_known(f, module->number));
	assert_int_equal(f->forgotten, 0);
}

static void module_that_the_owner_needs_stays(void **state)
{
	struct sweep_fixture *f = *state;
	uint32_t number;

	f->needed = add_module(f, 1, 0);
	number = f->needed->number;
	module_sweeper_all(&f->sweeper, OPEN, NOW);
	assert_true(is_known(f, number));
	f->needed = NULL;
	module_sweeper_all(&f->sweeper, NOW + 2 * SECOND, NOW + 2 * SECOND);
	assert_false(is_known(f, number));
}

static void sweeps_of_idle_modules_are_half_a_minute_apart(void **state)
{
	struct sweep_fixture *f = *state;

	module_sweeper_idle(&f->sweeper, OPEN, NOW);
	add_module(f, 1, 0);
	module_sweeper_idle(&f->sweeper, OPEN, NOW + 29 * SECOND);
	assert_int_equal(f->forgotten, 0);
	module_sweeper_idle(&f->sweeper, OPEN, NOW + 30 * SECOND);
	assert_int_equal(f->forgotten, 1);
}

/* When memory is short, neither the five minutes nor the time of the last sweep matters. */
static void all_unused_modules_go_when_memory_is_short(void **state)
{
	struct sweep_fixture *f = *state;
	uint32_t open;

	module_sweeper_idle(&f->sweeper, OPEN, NOW);
	add_module(f, 1, OPEN - 2 * SECOND);
	open = add_module(f, 2, OPEN)->number;
	module_sweeper_all(&f->sweeper, OPEN, NOW);
	assert_int_equal(f->forgotten, 1);
	assert_true(is_known(f, open));
}

static void many_unused_modules_go_at_once(void **state)
{
	struct sweep_fixture *f = *state;

	module_sweeper_idle(&f->sweeper, OPEN, NOW);
	for (uint32_t i = 0; modules_count(f->modules) <= MANY; i++)
		add_module(f, i, OPEN - 2 * SECOND);
	module_sweeper_idle(&f->sweeper, OPEN, NOW + SECOND);
	/* The modules that the table maps stay. */
	assert_true(modules_count(f->modules) < 10);
	assert_int_equal(f->forgotten, MANY + 1 - modules_count(f->modules));
}

/* Modules in use do not count towards the limit, or each window would sweep again. */
static void many_modules_in_use_are_swept_once(void **state)
{
	struct sweep_fixture *f = *state;
	uint64_t swept_ns;

	for (uint32_t i = 0; modules_count(f->modules) <= MANY; i++)
		add_module(f, i, NOW);
	module_sweeper_idle(&f->sweeper, OPEN, NOW);
	swept_ns = f->sweeper.swept_ns;
	assert_int_equal(swept_ns, NOW);
	module_sweeper_idle(&f->sweeper, OPEN, NOW + SECOND);
	assert_int_equal(f->sweeper.swept_ns, swept_ns);
	for (uint32_t i = 0; i < MANY; i++)
		add_module(f, (1 << 20) + i, OPEN - 2 * SECOND);
	module_sweeper_idle(&f->sweeper, OPEN, NOW + 2 * SECOND);
	assert_int_equal(f->forgotten, 0);
	add_module(f, 1 << 22, OPEN - 2 * SECOND);
	module_sweeper_idle(&f->sweeper, OPEN, NOW + 3 * SECOND);
	assert_int_equal(f->forgotten, MANY + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(module_is_forgotten_five_minutes_after_its_last_sample),
		CASE(module_of_an_open_window_stays),
		CASE(module_that_a_process_maps_stays),
		CASE(module_that_the_owner_needs_stays),
		CASE(sweeps_of_idle_modules_are_half_a_minute_apart),
		CASE(all_unused_modules_go_when_memory_is_short),
		CASE(many_unused_modules_go_at_once),
		CASE(many_modules_in_use_are_swept_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
