/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency probe on the running kernel, as root: functions of this program that a child calls.
 * With --drive: tests/bpf/latency_drive.h, for run_latency.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/files/file_child.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "base/clock.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/bpf/latency_drive.h"
#include "tests/bpf/probes_drive.h"

#ifdef __x86_64__
enum { NOP_BYTES = 1 };
#else
enum { NOP_BYTES = 4 };
#endif

/* Functions whose returns have names. */
__asm__(".text\n"
	".globl probed, probed_return, probed_other, probed_many\n"
	"probed: nop\nnop\nprobed_return: ret\n"
	"probed_other: nop\nnop\nret\n"
	"probed_many: .rept 20\nnop\n.endr\nret\n");

void probed(void);
void probed_other(void);
void probed_many(void);
extern const char probed_return[];

enum { CALLS = 5000, NOPS = 20 };

static const uint64_t SECOND_NS = 1000000000;

struct fixture {
	struct collect_options options;
	struct latency_options latency_options;
	struct metrics metrics;
	struct collect *collect;
	struct latency *latency;
	struct latency_attached *attached;
	int file;
	uint32_t function;
	uint64_t calls, sum_ns, buckets; /* as read */
	uint64_t by[8], calls_by[8]; /* the first different ones */
	uint32_t children[2];
	int go[2]; /* each child calls when something is written to it, and then answers */
	int done[2];
};

/* ---- children ------------------------------------------------------------------------------- */

static void child_run(int go, int done)
{
	char byte;

	while (read(go, &byte, 1) == 1) {
		for (int i = 0; i < CALLS; i++) {
			probed();
			if (byte == 'b')
				probed_other();
		}
		if (write(done, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static void child_start(struct fixture *f, int i)
{
	int go[2], done[2];
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(go[1]);
		child_run(go[0], done[1]);
	}
	close(go[0]);
	close(done[1]);
	f->children[i] = (uint32_t)pid;
	f->go[i] = go[1];
	f->done[i] = done[0];
}

/* The child makes CALLS calls, WHAT 'a' of one function, 'b' of both. */
static void child_calls(struct fixture *f, int i, char what)
{
	char byte;

	assert_int_equal(write(f->go[i], &what, 1), 1);
	assert_int_equal(read(f->done[i], &byte, 1), 1);
}

static void child_end(struct fixture *f, int i)
{
	close(f->go[i]);
	close(f->done[i]);
	kill((pid_t)f->children[i], SIGKILL);
	assert_int_equal(waitpid((pid_t)f->children[i], NULL, 0), f->children[i]);
	f->children[i] = 0;
}

/* ---- set-up --------------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	child_start(f, 0);
	child_start(f, 1);
	f->options = (struct collect_options){ .probes = probes_all,
		.user = true,
		.kernel = true,
		.no_ticks = true,
		.latency = &f->latency_options,
		.metrics = &f->metrics };
	f->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	*state = f;
	return f->file < 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	latency_detach(f->latency, f->attached);
	latency_destroy(f->latency);
	collect_destroy(f->collect);
	for (int i = 0; i < 2; i++)
		if (f->children[i])
			child_end(f, i);
	close(f->file);
	free(f);
	return 0;
}

static void load(struct fixture *f)
{
	const char *step = "";
	int err = collect_create(&f->options, &f->collect, &step);

	if (!err)
		err = latency_create(collect_probe_object(f->collect, "latency"),
			&f->latency_options, &f->latency, &step);
	if (err)
		fail_msg("cannot %s: %s", step, strerror(-err));
	assert_int_equal(collect_start(f->collect), 0);
	assert_int_equal(collect_cpu_count(f->collect), 0);
}

static uint32_t add_function(struct fixture *f)
{
	const struct abi_latency_function plain = { .stack_check = ABI_LATENCY_NO_STACK_CHECK };
	uint32_t number = UINT32_MAX;

	assert_int_equal(latency_functions_add(f->latency, &plain, &number), 0);
	return number;
}

static uint64_t file_off_of(const void *code)
{
	struct abi_mapping mapping;

	assert_true(mapping_probe_own((uintptr_t)code, &mapping));
	return (uintptr_t)code - mapping.start + mapping.file_off;
}

static struct latency_attached *attach(
	struct fixture *f, const struct latency_site *sites, size_t count)
{
	struct latency_attached *attached = NULL;
	const char *step = "";
	int err = latency_attach(f->latency, f->file, sites, count, &attached, &step);

	if (err)
		fail_msg("cannot %s: %s", step, strerror(-err));
	return attached;
}

static struct latency_attached *attach_probed(struct fixture *f, uint32_t function)
{
	const struct latency_site sites[] = {
		{ file_off_of((const void *)probed), function, false },
		{ file_off_of(probed_return), function, true },
	};

	return attach(f, sites, 2);
}

static void open_with(struct fixture *f)
{
	load(f);
	f->function = add_function(f);
	f->attached = attach_probed(f, f->function);
}

static void filter_child(struct fixture *f, int i)
{
	f->options.filter.filter_tgids = 1;
	f->options.tgids = &f->children[i];
	f->options.tgid_count = 1;
}

static void count_cell(void *context, const struct latency_cell *cell)
{
	struct fixture *f = context;
	size_t i = 0;

	if (cell->function != f->function)
		return;
	f->buckets++;
	f->calls += cell->count;
	f->sum_ns += cell->sum_ns;
	assert_true(cell->max_ns >= abi_latency_bucket_start(cell->bucket));
	assert_true(cell->sum_ns >= cell->count * abi_latency_bucket_start(cell->bucket));
	while (i < 7 && f->calls_by[i] && f->by[i] != cell->by)
		i++;
	f->by[i] = cell->by;
	f->calls_by[i] += cell->count;
}

static uint64_t read_calls(struct fixture *f)
{
	f->calls = f->sum_ns = f->buckets = 0;
	memset(f->calls_by, 0, sizeof(f->calls_by));
	assert_int_equal(latency_read(f->latency, count_cell, f), 0);
	return f->calls;
}

static struct latency_counts counts_of(const struct fixture *f)
{
	struct latency_counts counts = { 0 };

	assert_int_equal(latency_read_counts(f->latency, &counts), 0);
	return counts;
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void each_call_is_counted(void **state)
{
	struct fixture *f = *state;
	uint64_t began_ns;

	filter_child(f, 0);
	open_with(f);
	began_ns = clock_monotonic_ns();
	child_calls(f, 0, 'a');
	began_ns = clock_monotonic_ns() - began_ns;
	child_calls(f, 1, 'a');
	assert_int_equal(read_calls(f), CALLS);
	assert_true(f->sum_ns > 0 && f->sum_ns <= began_ns);
	assert_int_equal(counts_of(f).calls, CALLS);
	assert_int_equal(counts_of(f).hits, 4 * CALLS);
	assert_int_equal(counts_of(f).unmatched, 0);
	assert_int_equal(counts_of(f).abandoned, 0);
	child_calls(f, 0, 'b');
	assert_int_equal(read_calls(f), 2 * CALLS);
}

static void events_count(struct fixture *f, uint32_t without)
{
	f->options.without = without;
	filter_child(f, 0);
	open_with(f);
	assert_false(latency_attaches_at_once(f->latency));
	child_calls(f, 0, 'a');
	child_calls(f, 1, 'a');
	assert_int_equal(read_calls(f), CALLS);
	assert_int_equal(counts_of(f).unmatched, 0);
}

static void events_count_the_same(void **state)
{
	events_count(*state, MECHANISM_UPROBE_MULTI);
}

static void events_without_cookies_count_the_same(void **state)
{
	events_count(*state, MECHANISM_ATTACH_COOKIE);
}

static void the_cost_of_a_hit_is_found(struct fixture *f)
{
	int tries = 0;

	load(f);
	while (!latency_trap_ns(f->latency)) {
		assert_true(++tries < 60000);
		usleep(1000);
	}
	/* It stays, and is none of the hits. */
	assert_true(latency_trap_ns(f->latency) > 0);
	assert_int_equal(counts_of(f).hits, 0);
}

static void the_cost_of_a_hit_is_known_soon(void **state)
{
	the_cost_of_a_hit_is_found(*state);
}

static void the_cost_of_an_event_is_known_soon(void **state)
{
	struct fixture *f = *state;

	f->options.without = MECHANISM_UPROBE_MULTI;
	the_cost_of_a_hit_is_found(f);
}

static void the_cost_without_cookies_is_known_soon(void **state)
{
	struct fixture *f = *state;

	f->options.without = MECHANISM_ATTACH_COOKIE;
	the_cost_of_a_hit_is_found(f);
}

static void the_processes_can_be_changed(void **state)
{
	struct fixture *f = *state;

	filter_child(f, 0);
	open_with(f);
	assert_int_equal(collect_set_tgids(f->collect, &f->children[1], 1), 0);
	child_calls(f, 0, 'a');
	assert_int_equal(read_calls(f), 0);
	child_calls(f, 1, 'a');
	assert_int_equal(read_calls(f), CALLS);
	assert_int_equal(collect_set_tgids(f->collect, f->children, 2), 0);
	child_calls(f, 0, 'a');
	child_calls(f, 1, 'a');
	assert_int_equal(read_calls(f), 3 * CALLS);
	assert_int_equal(collect_set_tgids(f->collect, NULL, 0), 0);
	child_calls(f, 0, 'a');
	assert_int_equal(read_calls(f), 3 * CALLS);
	assert_int_equal(collect_set_tgids(f->collect, f->children, ABI_MAX_PIDS + 1), -E2BIG);
}

static void the_filter_by_name_applies(void **state)
{
	struct fixture *f = *state;

	f->options.filter.filter_comm = 1;
	memcpy(f->options.filter.comm, "somebody", sizeof("somebody"));
	open_with(f);
	child_calls(f, 0, 'a');
	assert_int_equal(read_calls(f), 0);
	assert_int_equal(counts_of(f).hits, 2 * CALLS);
	assert_int_equal(counts_of(f).unmatched, 0);
}

static void processes_have_histograms_of_their_own(void **state)
{
	struct fixture *f = *state;

	f->latency_options.by = ABI_LATENCY_BY_PROCESS;
	open_with(f);
	child_calls(f, 0, 'a');
	child_calls(f, 1, 'a');
	child_calls(f, 1, 'a');
	assert_int_equal(read_calls(f), 3 * CALLS);
	for (int i = 0; i < 2; i++) {
		int child = f->by[i] == f->children[1];

		assert_int_equal(f->by[i], f->children[child]);
		assert_int_equal(f->calls_by[i], child ? 2 * CALLS : CALLS);
	}
}

static void nothing_is_measured_after_detaching(void **state)
{
	struct fixture *f = *state;

	open_with(f);
	child_calls(f, 0, 'a');
	latency_detach(f->latency, f->attached);
	f->attached = NULL;
	child_calls(f, 0, 'a');
	assert_int_equal(read_calls(f), CALLS);
	assert_int_equal(counts_of(f).hits, 2 * CALLS);
}

/* A number is given away again only without what was measured before. */
static void removed_functions_are_forgotten(void **state)
{
	struct fixture *f = *state;
	uint32_t first;

	f->latency_options.max_functions = 1;
	open_with(f);
	first = f->function;
	child_calls(f, 0, 'a');
	latency_detach(f->latency, f->attached);
	f->attached = NULL;
	assert_int_equal(latency_functions_add(
				 f->latency, &(struct abi_latency_function){ 0 }, &f->function),
		-E2BIG);
	latency_functions_remove(f->latency, &first, 1);
	f->function = add_function(f);
	assert_int_equal(f->function, first);
	assert_int_equal(read_calls(f), 0);
	f->attached = attach_probed(f, f->function);
	child_calls(f, 0, 'a');
	assert_int_equal(read_calls(f), CALLS);
}

static void assert_refused(const struct fixture *f, size_t place, size_t number, int err)
{
	size_t count;
	const struct latency_refused_site *refused = latency_refused_sites(f->attached, &count);

	assert_true(place < count);
	assert_int_equal(refused[place].number, number);
	assert_int_equal(refused[place].err, err);
}

/* Offsets that are not in the file or come twice, among good ones. */
static void refused_sites_leave_the_others(struct fixture *f)
{
	size_t count;

	load(f);
	f->function = add_function(f);
	const struct latency_site sites[] = {
		{ UINT64_C(1) << 40, f->function, false },
		{ file_off_of((const void *)probed), f->function, false },
		{ (UINT64_C(1) << 40) + 1, f->function, true },
		{ file_off_of(probed_return), f->function, true },
		{ file_off_of((const void *)probed), f->function, true },
	};

	f->attached = attach(f, sites, 5);
	latency_refused_sites(f->attached, &count);
	assert_int_equal(count, 3);
	assert_refused(f, 0, 4, -EEXIST);
	/* Returns come first. */
	assert_refused(f, 1, 2, -EINVAL);
	assert_refused(f, 2, 0, -EINVAL);
	child_calls(f, 0, 'b');
	assert_int_equal(read_calls(f), CALLS);
}

static void one_link_leaves_out_refused_sites(void **state)
{
	refused_sites_leave_the_others(*state);
}

static void events_leave_out_refused_sites(void **state)
{
	struct fixture *f = *state;

	f->options.without = MECHANISM_UPROBE_MULTI;
	refused_sites_leave_the_others(f);
}

static void attach_nowhere(struct fixture *f)
{
	const struct latency_site site = { UINT64_C(1) << 40, 0, false };
	struct latency_attached *attached = NULL;
	const char *step = "";

	load(f);
	f->function = add_function(f);
	assert_int_equal(latency_attach(f->latency, f->file, &site, 1, &attached, &step), -EINVAL);
	assert_null(attached);
	assert_string_not_equal(step, "");
}

static void nothing_to_attach_is_an_error(void **state)
{
	attach_nowhere(*state);
}

static void full_histograms_are_counted(void **state)
{
	struct fixture *f = *state;

	f->latency_options.max_cells = 1;
	open_with(f);
	child_calls(f, 0, 'a');
	child_calls(f, 1, 'a');
	assert_int_equal(read_calls(f) + counts_of(f).cells_full, 2 * CALLS);
	assert_int_equal(f->buckets, 1);
}

/* Without a probe on its return a function's call stays open, until its process ends. */
static void calls_of_ended_processes_are_forgotten(void **state)
{
	struct fixture *f = *state;
	struct latency_site site;

	load(f);
	f->function = add_function(f);
	site = (struct latency_site){ file_off_of((const void *)probed), f->function, false };
	f->attached = attach(f, &site, 1);
	child_calls(f, 0, 'a');
	assert_int_equal(counts_of(f).abandoned, CALLS - 1);
	latency_tick(f->latency, clock_monotonic_ns());
	assert_int_equal(counts_of(f).abandoned, CALLS - 1);
	child_end(f, 0);
	latency_tick(f->latency, clock_monotonic_ns());
	assert_int_equal(counts_of(f).abandoned, CALLS);
	latency_tick(f->latency, clock_monotonic_ns());
	assert_int_equal(counts_of(f).abandoned, CALLS);
}

static void returns_alone_are_unmatched(void **state)
{
	struct fixture *f = *state;
	struct latency_site site;

	filter_child(f, 0);
	load(f);
	f->function = add_function(f);
	site = (struct latency_site){ file_off_of(probed_return), f->function, true };
	f->attached = attach(f, &site, 1);
	child_calls(f, 0, 'a');
	child_calls(f, 1, 'a');
	assert_int_equal(counts_of(f).unmatched, CALLS);
	assert_int_equal(read_calls(f), 0);
}

/* The time that passes is as good as made up: only the rate counts. */
static void frequent_calls_are_thinned_out(void **state)
{
	struct fixture *f = *state;
	const double most = 1.5 * CALLS, least = 0.5 * CALLS;
	uint64_t before;

	f->latency_options.max_calls_per_second = CALLS / 32;
	open_with(f);
	latency_tick(f->latency, SECOND_NS);
	child_calls(f, 0, 'a');
	assert_int_equal(latency_factor(f->latency, f->function), 1);
	latency_tick(f->latency, 2 * SECOND_NS);
	assert_int_equal(latency_factor(f->latency, f->function), 64);
	before = read_calls(f);
	assert_int_equal(before, CALLS);
	/* Of 16 times CALLS, 1250 are measured: their number is off by half once in 10^70 times. */
	for (int i = 0; i < 16; i++)
		child_calls(f, 0, 'a');
	assert_true((double)(read_calls(f) - before) < 16 * most);
	assert_true((double)(f->calls - before) > 16 * least);
	assert_int_equal((f->calls - before) % 64, 0);
	assert_int_equal(counts_of(f).calls + counts_of(f).unmeasured, 17 * CALLS);
	assert_int_equal(counts_of(f).unmatched, 0);
	for (uint64_t i = 3; i < 20; i++)
		latency_tick(f->latency, i * SECOND_NS);
	assert_int_equal(latency_factor(f->latency, f->function), 1);
	assert_true(latency_largest_factor(f->latency) >= 64);
	before = read_calls(f);
	child_calls(f, 0, 'a');
	assert_int_equal(read_calls(f) - before, CALLS);
}

/* Each instruction of a function is a site: more than are closed at once. */
static void many_events_are_detached_in_the_background(void **state)
{
	struct fixture *f = *state;
	struct latency_site sites[NOPS];
	struct latency_counts before, after = { 0 };
	int tries = 0;

	f->options.without = MECHANISM_UPROBE_MULTI;
	load(f);
	f->function = add_function(f);
	for (uint32_t i = 0; i < NOPS; i++)
		sites[i] = (struct latency_site){
			file_off_of((const char *)probed_many + i * NOP_BYTES), f->function, true
		};
	f->attached = attach(f, sites, NOPS);
	probed_many();
	assert_int_equal(counts_of(f).unmatched, NOPS);
	latency_detach(f->latency, f->attached);
	f->attached = NULL;
	do {
		before = after;
		usleep(1000);
		probed_many();
		after = counts_of(f);
		assert_true(++tries < 60000);
	} while (after.hits != before.hits);
}

#define LATENCY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LATENCY_TEST(each_call_is_counted),
		LATENCY_TEST(events_count_the_same),
		LATENCY_TEST(events_without_cookies_count_the_same),
		LATENCY_TEST(the_cost_of_a_hit_is_known_soon),
		LATENCY_TEST(the_cost_of_an_event_is_known_soon),
		LATENCY_TEST(the_cost_without_cookies_is_known_soon),
		LATENCY_TEST(the_processes_can_be_changed),
		LATENCY_TEST(the_filter_by_name_applies),
		LATENCY_TEST(processes_have_histograms_of_their_own),
		LATENCY_TEST(nothing_is_measured_after_detaching),
		LATENCY_TEST(removed_functions_are_forgotten),
		LATENCY_TEST(one_link_leaves_out_refused_sites),
		LATENCY_TEST(events_leave_out_refused_sites),
		LATENCY_TEST(nothing_to_attach_is_an_error),
		LATENCY_TEST(full_histograms_are_counted),
		LATENCY_TEST(calls_of_ended_processes_are_forgotten),
		LATENCY_TEST(returns_alone_are_unmatched),
		LATENCY_TEST(frequent_calls_are_thinned_out),
		LATENCY_TEST(many_events_are_detached_in_the_background),
	};

	if (geteuid() != 0) {
		puts("needs root: BPF");
		return 77;
	}
	/* The sampler's children are this program. */
	if (argc > 1 && file_child_is_command(argv[1]))
		return file_child_main(argc, argv);
	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--drive"))
		return latency_drive(argc - 2, argv + 2);
	if (argc == 3 && !strcmp(argv[1], "--drive-probes"))
		return probes_drive(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
