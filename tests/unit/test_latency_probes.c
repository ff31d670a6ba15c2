/* SPDX-License-Identifier: Apache-2.0 */
/* Named probes: what is well-formed, sets of processes, what was added to cells, what it may cost.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/latency_probes/deltas.h"
#include "agent/sampler/latency_probes/latency_probes_internal.h"
#include "agent/sampler/latency_probes/probe_cost.h"
#include "agent/sampler/latency_probes/probe_spec.h"
#include "agent/sampler/latency_probes/process_sets.h"
#include "base/cleanup.h"

/* ---- what is well-formed -------------------------------------------------------------------- */

static const char *const NAMES[] = { "main.*", "libc:malloc" };

static struct latency_probe good(void)
{
	return (struct latency_probe){
		.name = "requests",
		.processes = "comm=server",
		.functions = NAMES,
		.function_count = ARRAY_SIZE(NAMES),
	};
}

static int check_one(const struct latency_probe *probe, struct latency_probes_problem *problem)
{
	return latency_probes_check(probe, 1, problem);
}

static void malformed_probes_are_refused(void **state)
{
	static const char *const empty[] = { "" }, *const no_file[] = { "main" };
	struct latency_probes_problem problem;
	struct latency_probe probe = good();

	(void)state;
	assert_int_equal(check_one(&probe, &problem), 0);
	probe.name = "";
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
	assert_int_equal(problem.number, 0);
	probe.name = "a\nb";
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
	probe = good();
	probe.processes = "user=root";
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
	assert_non_null(strstr(problem.text, "user=root"));
	probe = good();
	probe.function_count = 0;
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
	probe = good();
	probe.functions = empty;
	probe.function_count = 1;
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
	probe.functions = no_file;
	probe.processes = NULL;
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
	probe.processes = "pid=1";
	assert_int_equal(check_one(&probe, &problem), 0);
	probe = good();
	probe.kernel = true;
	assert_int_equal(check_one(&probe, &problem), -EINVAL);
}

static void names_are_there_once(void **state)
{
	struct latency_probe probes[LATENCY_PROBES_MAX + 1] = { good(), good() };
	struct latency_probes_problem problem;

	(void)state;
	assert_int_equal(latency_probes_check(probes, 2, &problem), -EINVAL);
	assert_int_equal(problem.number, 1);
	probes[1].name = "others";
	assert_int_equal(latency_probes_check(probes, 2, &problem), 0);
	assert_int_equal(latency_probes_check(probes, ARRAY_SIZE(probes), &problem), -E2BIG);
	assert_int_equal(problem.number, ARRAY_SIZE(probes));
}

static void all_of_a_probe_is_compared(void **state)
{
	static const char *const others[] = { "main.*", "libc:free" };
	autocall(probe_spec_deinit) struct probe_spec spec = { 0 };
	struct latency_probe probe = good();

	(void)state;
	assert_int_equal(probe_spec_init(&spec, &probe), 0);
	assert_true(probe_spec_is(&spec, &probe));
	probe.functions = others;
	assert_false(probe_spec_is(&spec, &probe));
	probe = good();
	probe.function_count = 1;
	assert_false(probe_spec_is(&spec, &probe));
	probe = good();
	probe.processes = NULL;
	assert_false(probe_spec_is(&spec, &probe));
	probe = good();
	probe.by = ABI_LATENCY_BY_FIBER;
	assert_false(probe_spec_is(&spec, &probe));
	probe = good();
	probe.unwanted = others;
	probe.unwanted_count = 1;
	assert_false(probe_spec_is(&spec, &probe));
	probe = good();
	probe.exclude_vendor = true;
	assert_false(probe_spec_is(&spec, &probe));
}

/* ---- sets of processes ---------------------------------------------------------------------- */

enum { PIDS = 1024 };

struct kernel {
	uint64_t sets[PIDS]; /* by pid */
	uint32_t numbers[PIDS];
	unsigned int forgotten;
	int error;
};

static int on_set(void *context, uint32_t tgid, uint64_t sets, uint32_t number)
{
	struct kernel *kernel = context;

	if (sets && kernel->error)
		return kernel->error;
	kernel->forgotten += !sets;
	kernel->sets[tgid] = sets;
	kernel->numbers[tgid] = number;
	return 0;
}

static void begin_sets(struct process_sets *sets, struct kernel *kernel, size_t limit)
{
	memset(kernel, 0, sizeof(*kernel));
	process_sets_init(sets, limit);
	sets->set = on_set;
	sets->context = kernel;
}

static void processes_are_in_their_sets(void **state)
{
	autocall(process_sets_deinit) struct process_sets sets = { 0 };
	struct kernel kernel;

	(void)state;
	begin_sets(&sets, &kernel, 100);
	assert_int_equal(process_sets_put(&sets, 7, 70, 5, false), 5);
	assert_int_equal(process_sets_put(&sets, 7, 70, 5, false), 0);
	assert_int_equal(process_sets_put(&sets, 7, 70, 6, false), 2);
	assert_int_equal(kernel.sets[7], 6);
	assert_int_equal(kernel.numbers[7], 70);
	assert_int_equal(process_sets_count(&sets, 1), 1);
	assert_int_equal(process_sets_count(&sets, 0), 0);
	assert_int_equal(process_sets_put(&sets, 7, 70, 0, false), 0);
	assert_int_equal(kernel.sets[7], 0);
	assert_int_equal(process_sets_get(&sets, 70), 0);
}

static void a_new_generation_takes_the_place_of_the_old_one(void **state)
{
	autocall(process_sets_deinit) struct process_sets sets = { 0 };
	struct kernel kernel;

	(void)state;
	begin_sets(&sets, &kernel, 100);
	assert_int_equal(process_sets_put(&sets, 7, 70, 1, false), 1);
	assert_int_equal(process_sets_put(&sets, 7, 71, 1, false), 1);
	/* Without a moment in which it is in no set. */
	assert_int_equal(kernel.forgotten, 0);
	assert_int_equal(kernel.numbers[7], 71);
	assert_int_equal(process_sets_get(&sets, 70), 0);
	process_sets_end(&sets, 7, 70);
	assert_int_equal(kernel.sets[7], 1);
	/* One that is not selected, though the old one was. */
	assert_int_equal(process_sets_put(&sets, 7, 72, 0, false), 0);
	assert_int_equal(kernel.sets[7], 0);
	assert_int_equal(process_sets_get(&sets, 71), 0);
	assert_int_equal(process_sets_put(&sets, 7, 72, 1, false), 1);
	process_sets_end(&sets, 7, 72);
	assert_int_equal(kernel.sets[7], 0);
}

static bool on_lives(void *context, uint32_t pid)
{
	const uint32_t *gone = context;

	return pid != *gone;
}

static void sets_end_and_pids_go(void **state)
{
	autocall(process_sets_deinit) struct process_sets sets = { 0 };
	struct kernel kernel;
	uint32_t gone = 500;

	(void)state;
	begin_sets(&sets, &kernel, 10000);
	for (uint32_t pid = 1; pid < PIDS; pid++)
		assert_int_equal(process_sets_put(&sets, pid, pid + 5000, 1 + pid % 2 * 2, false),
			1 + pid % 2 * 2);
	process_sets_clear(&sets, 1);
	assert_int_equal(process_sets_count(&sets, 0), 0);
	assert_int_equal(process_sets_count(&sets, 1), PIDS / 2);
	assert_int_equal(kernel.sets[1], 2);
	assert_int_equal(kernel.sets[2], 0);
	gone = 501;
	process_sets_sweep(&sets, on_lives, &gone);
	assert_int_equal(kernel.sets[501], 0);
	assert_int_equal(process_sets_count(&sets, 1), PIDS / 2 - 1);
}

static void processes_without_room_are_counted_once(void **state)
{
	autocall(process_sets_deinit) struct process_sets sets = { 0 };
	struct kernel kernel;

	(void)state;
	begin_sets(&sets, &kernel, 1);
	assert_int_equal(process_sets_put(&sets, 1, 10, 1, false), 1);
	assert_int_equal(process_sets_put(&sets, 2, 20, 1, false), 0);
	assert_int_equal(process_sets_put(&sets, 2, 20, 1, true), 0);
	assert_int_equal(sets.refused, 1);
	process_sets_end(&sets, 1, 10);
	assert_int_equal(process_sets_put(&sets, 2, 20, 1, true), 1);
	kernel.error = -E2BIG;
	assert_int_equal(process_sets_put(&sets, 2, 21, 1, false), 0);
	assert_int_equal(sets.refused, 2);
	assert_int_equal(process_sets_get(&sets, 21), 0);
}

static void a_generation_of_lost_records_changes_nothing_yet(void **state)
{
	struct process first = { .pid = 7, .number = 70, .comm = "server" };
	struct process second = { .pid = 7, .number = 71, .unproven = true };
	struct process third = { .pid = 7, .number = 72, .comm = "other" };
	struct named_probe probe = { 0 }, *items[] = { &probe };
	struct latency_probes lp = { .items = items, .count = 1 };
	struct latency_probe named = good();
	struct kernel kernel;

	(void)state;
	begin_sets(&lp.processes, &kernel, 100);
	assert_int_equal(probe_spec_init(&probe.spec, &named), 0);
	first.mappings = second.mappings = third.mappings = mappings_create();
	probe_membership_look(&lp, &first, false);
	assert_int_equal(kernel.sets[7], 1);
	first.ended = first.superseded = true;
	probe_membership_look(&lp, &second, true);
	assert_int_equal(kernel.sets[7], 1);
	assert_int_equal(kernel.numbers[7], 70);
	/* It is the same program. */
	second.unproven = false;
	memcpy(second.comm, "server", sizeof("server"));
	probe_membership_look(&lp, &second, true);
	assert_int_equal(kernel.sets[7], 1);
	assert_int_equal(kernel.numbers[7], 71);
	assert_int_equal(kernel.forgotten, 0);
	/* The next one is not. */
	probe_membership_look(&lp, &third, true);
	assert_int_equal(kernel.sets[7], 0);
	process_sets_deinit(&lp.processes);
	probe_spec_deinit(&probe.spec);
	mappings_unref(first.mappings);
}

/* ---- what was added ------------------------------------------------------------------------- */

struct readings {
	struct latency_cell added[16];
	size_t count;
	uint32_t forgotten_process, forgotten_idle; /* 0 = none */
};

static void on_added(void *context, const struct latency_cell *delta)
{
	struct readings *r = context;

	r->added[r->count++] = *delta;
}

static bool on_forget(void *context, const struct latency_cell *cell, uint32_t idle)
{
	const struct readings *r = context;

	return (r->forgotten_process && cell->process == r->forgotten_process) ||
	       (r->forgotten_idle && idle >= r->forgotten_idle);
}

static void read_cells(
	struct deltas *d, struct readings *r, const struct latency_cell *cells, size_t count)
{
	const struct deltas_reading reading = {
		.added = on_added, .forget = on_forget, .context = r
	};

	r->count = 0;
	assert_int_equal(deltas_read(d, cells, count, &reading), 0);
}

static void only_what_is_new_is_told(void **state)
{
	struct latency_cell cells[] = {
		{ .function = 1,
			.bucket = 40,
			.process = 3,
			.count = 10,
			.sum_ns = 500,
			.max_ns = 60 },
		{ .function = 1,
			.bucket = 40,
			.process = 4,
			.count = 1,
			.sum_ns = 50,
			.max_ns = 50 },
	};
	autocall(deltas_deinit) struct deltas d = { 0 };
	struct readings r = { 0 };

	(void)state;
	read_cells(&d, &r, cells, 2);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.added[0].count, 10);
	read_cells(&d, &r, cells, 2);
	assert_int_equal(r.count, 0);
	cells[0].count = 13;
	cells[0].sum_ns = 620;
	read_cells(&d, &r, cells, 2);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.added[0].count, 3);
	assert_int_equal(r.added[0].sum_ns, 120);
	assert_int_equal(r.added[0].process, 3);
}

static void the_longest_is_known_by_its_bucket_if_it_is_older(void **state)
{
	const uint32_t bucket = abi_latency_bucket(1000);
	const uint64_t end_ns = abi_latency_bucket_start(bucket + 1);
	struct latency_cell cell = { .bucket = bucket, .count = 1, .sum_ns = 1000, .max_ns = 1000 };
	autocall(deltas_deinit) struct deltas d = { 0 };
	struct readings r = { 0 };

	(void)state;
	read_cells(&d, &r, &cell, 1);
	assert_int_equal(r.added[0].max_ns, 1000);
	cell.count++;
	cell.max_ns = 1010;
	read_cells(&d, &r, &cell, 1);
	assert_int_equal(r.added[0].max_ns, 1010);
	cell.count++;
	read_cells(&d, &r, &cell, 1);
	assert_int_equal(r.added[0].max_ns, 1010);
	assert_true(end_ns > 1010);
}

/* A count that has come without its time. */
static void a_sum_may_be_late(void **state)
{
	struct latency_cell cell = { .count = 1, .sum_ns = 0 };
	autocall(deltas_deinit) struct deltas d = { 0 };
	struct readings r = { 0 };

	(void)state;
	read_cells(&d, &r, &cell, 1);
	cell.sum_ns = 70;
	read_cells(&d, &r, &cell, 1);
	assert_int_equal(r.count, 0);
	cell.count = 2;
	cell.sum_ns = 170;
	read_cells(&d, &r, &cell, 1);
	assert_int_equal(r.added[0].sum_ns, 170);
}

static void what_is_forgotten_begins_again(void **state)
{
	struct latency_cell cells[] = {
		{ .function = 1, .process = 3, .count = 10 },
		{ .function = 1, .process = 4, .count = 20 },
	};
	autocall(deltas_deinit) struct deltas d = { 0 };
	struct readings r = { .forgotten_process = 3 };

	(void)state;
	read_cells(&d, &r, cells, 2);
	assert_int_equal(r.count, 2);
	assert_int_equal(d.count, 1);
	r.forgotten_process = 0;
	cells[0].count = 4;
	read_cells(&d, &r, cells, 2);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.added[0].count, 4);
	r.forgotten_idle = 2;
	read_cells(&d, &r, cells, 2);
	assert_int_equal(d.count, 1);
}

static void many_cells_are_told_apart(void **state)
{
	enum { CELLS = 20000 };
	struct latency_cell *cells = calloc(CELLS, sizeof(*cells));
	autocall(deltas_deinit) struct deltas d = { 0 };
	struct readings r = { 0 };

	(void)state;
	assert_non_null(cells);
	for (uint32_t i = 0; i < CELLS; i++)
		cells[i] = (struct latency_cell){ .function = i % 7,
			.bucket = i % 11,
			.by = i / 77 % 13,
			.process = 1 + i / 1001,
			.count = 1 };
	for (uint32_t i = 0; i < CELLS; i += 16)
		read_cells(&d, &r, cells, i);
	assert_int_equal(d.count, CELLS - 16);
	cells[12345].count = 9;
	read_cells(&d, &r, cells, CELLS - 16);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.added[0].count, 8);
	free(cells);
}

/* ---- what it may cost ----------------------------------------------------------------------- */

static const uint64_t SECOND_NS = 1000000000;

/* A second with so many hits and measured calls, each of which costs BPF_NS. */
static enum probe_cost_verdict second(struct probe_cost *c, struct probe_cost_now *now,
	uint64_t hits, uint64_t calls, uint64_t bpf_ns)
{
	now->time_ns += SECOND_NS;
	now->traps += hits;
	now->calls += calls;
	now->bpf_ns += calls * bpf_ns;
	return probe_cost_look(c, now);
}

static void without_a_share_nothing_is_limited(void **state)
{
	struct probe_cost_now now = { .time_ns = 1 };
	struct probe_cost c;

	(void)state;
	probe_cost_init(&c, 1000);
	for (int i = 0; i < 10; i++)
		assert_int_equal(second(&c, &now, 1000000, 500000, 1000), PROBE_COST_KEEP);
	assert_int_equal(c.calls_per_second, 0);
}

static void fewer_calls_are_measured_first(void **state)
{
	struct probe_cost_now now = { .time_ns = 1 };
	enum probe_cost_verdict verdict = PROBE_COST_KEEP;
	struct probe_cost c;

	(void)state;
	probe_cost_init(&c, 100);
	c.share = 0.01;
	/* 2 ms for traps, 20 ms for BPF, of 10 ms. */
	for (int i = 0; i < 10 && verdict == PROBE_COST_KEEP; i++)
		verdict = second(&c, &now, 20000, 10000, 2000);
	assert_int_equal(verdict, PROBE_COST_LIMIT);
	assert_in_range(c.calls_per_second, 1000, 5000);
	/* Well below: it is raised again, and at last there is no limit. */
	for (int i = 0; i < 200; i++)
		(void)second(&c, &now, 100, 50, 2000);
	assert_int_equal(c.calls_per_second, 0);
}

static void traps_alone_suspend(void **state)
{
	struct probe_cost_now now = { .time_ns = 1 };
	struct probe_cost c;

	(void)state;
	probe_cost_init(&c, 2000);
	c.share = 0.01;
	(void)second(&c, &now, 0, 0, 0);
	/* A little over, for one second only. */
	assert_int_equal(second(&c, &now, 6000, 3000, 500), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 100, 50, 500), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 6000, 3000, 500), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 6000, 3000, 500), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 6000, 3000, 500), PROBE_COST_SUSPEND);
	/* Far over. */
	assert_int_equal(second(&c, &now, 600000, 300000, 500), PROBE_COST_SUSPEND);
}

static void nothing_at_all_is_allowed(void **state)
{
	struct probe_cost_now now = { .time_ns = 1 };
	struct probe_cost c;

	(void)state;
	probe_cost_init(&c, 2000);
	c.share = 0;
	(void)second(&c, &now, 0, 0, 0);
	assert_int_equal(second(&c, &now, 0, 0, 0), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 2, 1, 500), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 2, 1, 500), PROBE_COST_KEEP);
	assert_int_equal(second(&c, &now, 2, 1, 500), PROBE_COST_SUSPEND);
	assert_int_equal(second(&c, &now, 60000, 30000, 500), PROBE_COST_SUSPEND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_probes_are_refused),
		cmocka_unit_test(names_are_there_once),
		cmocka_unit_test(all_of_a_probe_is_compared),
		cmocka_unit_test(processes_are_in_their_sets),
		cmocka_unit_test(a_new_generation_takes_the_place_of_the_old_one),
		cmocka_unit_test(sets_end_and_pids_go),
		cmocka_unit_test(processes_without_room_are_counted_once),
		cmocka_unit_test(a_generation_of_lost_records_changes_nothing_yet),
		cmocka_unit_test(only_what_is_new_is_told),
		cmocka_unit_test(the_longest_is_known_by_its_bucket_if_it_is_older),
		cmocka_unit_test(a_sum_may_be_late),
		cmocka_unit_test(what_is_forgotten_begins_again),
		cmocka_unit_test(many_cells_are_told_apart),
		cmocka_unit_test(without_a_share_nothing_is_limited),
		cmocka_unit_test(fewer_calls_are_measured_first),
		cmocka_unit_test(traps_alone_suspend),
		cmocka_unit_test(nothing_at_all_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
