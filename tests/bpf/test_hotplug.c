/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUs go offline and return while sampling runs. Takes the machine's last CPU offline, so it runs
 * only with FATHOM_TEST_HOTPLUG set (by tests/vm/run).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "base/clock.h"

enum { HZ = 199, ENOUGH = 20 };

static const uint64_t PATIENCE_NS = 60 * UINT64_C(1000000000);

struct seen {
	struct collect *collect;
	struct metrics metrics;
	int cpu; /* the one that goes offline */
	pid_t burner;
	size_t samples; /* on that CPU */
	size_t mappings; /* of the burner */
	size_t gaps; /* in the side-band */
};

static void saw_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	struct seen *s = context;

	(void)time_ns;
	s->samples +=
		tick->sample.cpu == (uint32_t)s->cpu && tick->sample.tgid == (uint32_t)s->burner;
}

static void saw_mmap(void *context, const struct collect_mmap *mmap)
{
	struct seen *s = context;

	s->mappings += mmap->tgid == (uint32_t)s->burner;
}

static void saw_lost(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct seen *s = context;

	(void)time_ns;
	(void)until_ns;
	s->gaps++;
}

static void set_online(int cpu, bool on)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(on ? "1" : "0", file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void pin(const struct seen *s)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(s->cpu, &set);
	assert_int_equal(sched_setaffinity(s->burner, sizeof(set), &set), 0);
}

/* Burns CPU, and maps a page of code now and then. */
static void burn(void)
{
	long page = sysconf(_SC_PAGESIZE);
	volatile uint64_t x = 1;

	for (uint64_t i = 0;; i++) {
		x = x * 3 + 1;
		if (i % (1 << 22) == 0)
			munmap(mmap(NULL, (size_t)page, PROT_READ | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				(size_t)page);
	}
}

/* Samples all CPUs, or those of CPUS. */
static int setup_on(void **state, const int *cpus, size_t cpu_count)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct collect_options options = { .frequency_hz = HZ,
		.user = true,
		.kernel = true,
		.cpus = cpus,
		.cpu_count = cpu_count };
	const char *what = "";

	if (!s)
		return -1;
	s->cpu = (int)sysconf(_SC_NPROCESSORS_CONF) - 1;
	s->burner = fork();
	if (!s->burner) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn();
	}
	options.probes = probes_all;
	options.metrics = &s->metrics;
	options.handlers.tick = saw_tick;
	options.handlers.mmap = saw_mmap;
	options.handlers.lost = saw_lost;
	options.handlers.context = s;
	if (collect_create(&options, &s->collect, &what)) {
		print_error("collect_create: %s\n", what);
		return -1;
	}
	*state = s;
	return collect_start(s->collect);
}

static int setup(void **state)
{
	return setup_on(state, NULL, 0);
}

static int setup_on_the_first(void **state)
{
	static const int first = 0;

	return setup_on(state, &first, 1);
}

static int teardown(void **state)
{
	struct seen *s = *state;

	collect_destroy(s->collect);
	kill(s->burner, SIGKILL);
	waitpid(s->burner, NULL, 0);
	free(s);
	return 0;
}

static void expect_samples(struct seen *s)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct pollfd rings = { .fd = collect_fd(s->collect), .events = POLLIN };

	pin(s);
	assert_true(collect_drain(s->collect, 0) >= 0);
	s->samples = 0;
	while (s->samples < ENOUGH) {
		assert_true(clock_monotonic_ns() - start_ns < PATIENCE_NS);
		poll(&rings, 1, 50);
		assert_true(collect_drain(s->collect, 0) >= 0);
	}
}

static void offline_cpu_is_closed_and_opened_again(void **state)
{
	struct seen *s = *state;
	size_t all = collect_cpu_count(s->collect);

	expect_samples(s);
	set_online(s->cpu, false);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(collect_cpu_count(s->collect), all - 1);
	set_online(s->cpu, true);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(collect_cpu_count(s->collect), all);
	expect_samples(s);
}

/* Between the two checks the list of CPUs is the same, but the CPU's events are dead. */
static void cpu_offline_between_two_checks_is_reopened(void **state)
{
	struct seen *s = *state;
	size_t all = collect_cpu_count(s->collect);

	expect_samples(s);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	set_online(s->cpu, false);
	set_online(s->cpu, true);
	/* The first check may still see time from before the CPU went offline. */
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(collect_cpu_count(s->collect), all);
	expect_samples(s);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR), 0);
}

static void expect_mappings(struct seen *s)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct pollfd rings = { .fd = collect_fd(s->collect), .events = POLLIN };

	pin(s);
	assert_true(collect_drain(s->collect, 0) >= 0);
	s->mappings = 0;
	while (!s->mappings) {
		assert_true(clock_monotonic_ns() - start_ns < PATIENCE_NS);
		poll(&rings, 1, 50);
		assert_true(collect_drain(s->collect, 0) >= 0);
	}
}

/* Mappings of unsampled CPUs matter for samples on the others. */
static void side_band_of_an_unsampled_cpu_resumes(void **state)
{
	struct seen *s = *state;

	expect_mappings(s);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(s->gaps, 0);
	set_online(s->cpu, false);
	set_online(s->cpu, true);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(collect_check_cpus(s->collect), 0);
	assert_int_equal(s->gaps, 1); /* the mappings made meanwhile */
	expect_mappings(s);
	assert_int_equal(collect_cpu_count(s->collect), 1);
}

static void nothing_is_reopened_while_all_cpus_are_online(void **state)
{
	struct seen *s = *state;
	int fd = collect_fd(s->collect);
	uint64_t lost;

	expect_samples(s);
	for (int i = 0; i < 10; i++)
		assert_int_equal(collect_check_cpus(s->collect), 0);
	expect_samples(s);
	collect_count(s->collect);
	lost = metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR);
	assert_int_equal(lost, 0);
	assert_int_equal(collect_fd(s->collect), fd);
}

#define HOTPLUG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOTPLUG_TEST(offline_cpu_is_closed_and_opened_again),
		HOTPLUG_TEST(cpu_offline_between_two_checks_is_reopened),
		HOTPLUG_TEST(nothing_is_reopened_while_all_cpus_are_online),
		cmocka_unit_test_setup_teardown(
			side_band_of_an_unsampled_cpu_resumes, setup_on_the_first, teardown),
	};

	if (!getenv("FATHOM_TEST_HOTPLUG")) {
		puts("takes a CPU offline: only with FATHOM_TEST_HOTPLUG=1");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
