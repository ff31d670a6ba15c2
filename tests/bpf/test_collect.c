/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream on the running kernel, as root: children burn CPU, fork and execute; the records are
 * compared with what the children did.
 */
#include "tests/bpf/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/collect/tables.h"
#include "base/clock.h"

/*
 * Everything on the machine writes into these rings, and a burst of mappings fills one faster than
 * it is drained. So losses are no failure here, but an uncounted loss is.
 */
static void assert_losses_are_counted(const struct seen *s)
{
	assert_int_equal(s->gaps, metrics_get(&s->metrics, METRIC_SIDEBAND_GAPS));
	assert_true(s->gaps || !metrics_get(&s->metrics, METRIC_LOST_SIDEBAND));
	assert_true(s->missing_stacks <= collect_counter(s->collect, ABI_COUNT_STACK_FULL));
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR), 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BAD_RECORD), 0);
}

static void busy_child_is_sampled(struct seen *s, uint32_t without)
{
	struct collect_options options = options_for(s);
	struct burner b;
	uint64_t cpu_ns, lost;

	/* A starved emulator misses ticks. */
	if (getenv("VM_GUEST"))
		skip();
	b = start_burner(burn);
	s->tgid = (uint32_t)b.pid;
	options.filter.self_tgid = (uint32_t)getpid();
	options.without = without;
	open_with(s, &options);
	release_child(&b);
	drain_until_cpu(s, b.pid, SECOND_NS);
	cpu_ns = cpu_ns_of(b.pid);
	stop_and_drain(s);
	end_burner(&b);
	print_message("%zu samples in %.2f s of CPU, %zu stack records (%zu repeated), up to %u "
		      "frames, %zu samples of others\n",
		s->samples, (double)cpu_ns / 1e9, s->stack_records, s->repeated_stacks,
		(unsigned int)s->frames_max, s->samples_of_others);
	lost = metrics_get(&s->metrics, METRIC_LOST_RING_FULL);
	/*
	 * The host of a virtual machine takes time that the child is not charged for, hence the
	 * tolerance.
	 */
	assert_in_range(s->samples + lost, HZ * 8 / 10, UINT64_MAX);
	assert_in_range(s->samples, 1, HZ * 12 / 10 * cpu_ns / SECOND_NS + 2);
	assert_in_range(
		s->weight_ns, s->samples * (SECOND_NS / HZ), s->samples * (SECOND_NS / HZ + 1));
	assert_string_equal(s->comm, "burner");
	assert_int_equal(s->own_samples, 0);
	assert_true(s->user_stacks >= s->samples * 9 / 10);
	assert_int_equal(s->backwards, 0);
	assert_losses_are_counted(s);
}

static void busy_child_is_sampled_at_the_requested_rate(void **state)
{
	busy_child_is_sampled(*state, 0);
}

static void rings_of_perf_events_work_as_well(void **state)
{
	busy_child_is_sampled(*state, MECHANISM_OWN_RINGS);
}

static void frames_are_shipped_once_a_window(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	options.frequency_hz = 999;
	open_with(s, &options);
	release_child(&b);
	/* After a pause of the machine, one drain may bring many samples of the last window. */
	for (uint32_t window = 1; window <= 4; window++) {
		if (window > 1)
			assert_int_equal(collect_next_window(s->collect), window);
		while (s->window < window)
			drain_until_samples(s, s->samples + 50);
	}
	stop_and_drain(s);
	end_burner(&b);
	assert_int_equal(s->samples_of_others, 0);
	assert_losses_are_counted(s);
	/* A short loop has few stacks; a record repeats only after a slot collision. */
	assert_true(s->stack_records >= 4);
	assert_true(s->stack_records < s->samples);
	assert_true(s->repeated_stacks * 10 <= s->stack_records);
}

/* Runs children until one has lost no record: other programs may fill the rings. */
static void see_a_whole_life(struct seen *s)
{
	uint64_t start_ns = clock_monotonic_ns();
	unsigned int gaps;

	do {
		struct burner b;

		assert_true(clock_monotonic_ns() - start_ns < 60 * SECOND_NS);
		gaps = s->gaps;
		s->step_count = 0;
		memset(s->steps, 0, sizeof(s->steps));
		b = start_burner(exec_true);
		s->tgid = (uint32_t)b.pid;
		release_child(&b);
		assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
		stop_and_drain(s);
	} while (s->gaps > gaps);
}

static void life_of_a_child_comes_in_order(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	const char *exec_at;

	open_with(s, &options);
	see_a_whole_life(s);
	/* fork, the child's own name, exec, the mappings of program and libraries, exit */
	print_message("steps: %s\n", s->steps);
	assert_true(!strncmp(s->steps, "fcx", 3));
	exec_at = strchr(s->steps, 'x');
	assert_true(strspn(exec_at + 1, "m") >= 3);
	assert_string_equal(exec_at + 1 + strspn(exec_at + 1, "m"), "e");
	assert_true(s->exec_path_seen);
	assert_false(s->file_lost);
	assert_int_equal(s->backwards, 0);
}

static void drain_leaves_records_after_its_limit(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	uint64_t before_ns;
	struct burner b;

	open_with(s, &options);
	before_ns = clock_monotonic_ns();
	b = start_burner(exec_true);
	s->tgid = (uint32_t)b.pid;
	release_child(&b);
	assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	assert_int_equal(collect_stop(s->collect), 0);
	assert_true(collect_drain(s->collect, before_ns) >= 0);
	assert_int_equal(s->step_count, 0);
	assert_true(s->last_ns <= before_ns);
	assert_true(collect_drain(s->collect, 0) > 0);
	assert_true(s->step_count > 0);
}

/* Children that pin themselves to each CPU in turn, so that every ring gets their records. */
static void run_children_on_all_cpus(int cpus)
{
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct burner b = start_burner(exec_true);

		pin(b.pid, cpu);
		release_child(&b);
		assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	}
}

/*
 * The kernel's record of a new BPF program is too long on all CPUs but the first, and ends with
 * stale bytes of the ring. Read as a time, they may stop the CPU's stream for ever.
 */
static void programs_loaded_in_between_do_not_stop_the_stream(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct collect *another = NULL;
	const char *what = "";
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);

	options.ring_pages = 1;
	open_with(s, &options);
	for (int i = 0; i < 8; i++) {
		for (int j = 0; j < 4; j++) {
			run_children_on_all_cpus(cpus);
			assert_true(collect_drain(s->collect, 0) >= 0);
		}
		assert_int_equal(collect_create(&options, &another, &what), 0);
		collect_destroy(another);
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct burner b = start_burner(burn);

		pin(b.pid, cpu);
		s->tgid = (uint32_t)b.pid;
		s->samples = 0;
		release_child(&b);
		drain_until_samples(s, 10);
		end_burner(&b);
	}
	stop_and_drain(s);
	/* On a slow machine the small ring overflows while a program is loaded. */
	assert_true(s->ksymbols > 0 || s->gaps > 0);
	assert_int_equal(s->backwards, 0);
}

/* Side-band overflows a ring that nobody drains: the loss is reported, and the stream goes on. */
static void full_ring_is_reported(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);

	options.ring_pages = 1;
	open_with(s, &options);
	for (int i = 0; i < 200; i++) {
		struct burner b = start_burner(exec_true);

		release_child(&b);
		assert_int_equal(waitpid(b.pid, NULL, 0), b.pid);
	}
	assert_true(collect_drain(s->collect, 0) > 0);
	/* The kernel reports the number of lost records with the CPU's next record. */
	run_children_on_all_cpus((int)sysconf(_SC_NPROCESSORS_ONLN));
	stop_and_drain(s);
	assert_true(metrics_get(&s->metrics, METRIC_LOST_SIDEBAND) > 0);
	assert_true(s->gaps > 0);
	assert_int_equal(s->backwards, 0);
}

/* Without draining, samples that do not fit are counted; later samples arrive again. */
static void samples_that_do_not_fit_are_counted(struct seen *s, uint32_t without)
{
	struct collect_options options = options_for(s);
	uint64_t start_ns = clock_monotonic_ns();
	struct burner b = start_burner(burn);

	s->tgid = (uint32_t)b.pid;
	options.filter.filter_tgids = 1;
	options.tgids = &s->tgid;
	options.tgid_count = 1;
	options.frequency_hz = 999;
	options.ring_pages = 1;
	options.without = without;
	open_with(s, &options);
	release_child(&b);
	while (!metrics_get(&s->metrics, METRIC_LOST_RING_FULL)) {
		assert_true(clock_monotonic_ns() - start_ns < 60 * SECOND_NS);
		poll(NULL, 0, 10);
		collect_count(s->collect);
	}
	assert_true(collect_drain(s->collect, 0) > 0);
	drain_until_samples(s, s->samples + 100);
	stop_and_drain(s);
	end_burner(&b);
	assert_int_equal(s->samples_of_others, 0);
	assert_int_equal(s->backwards, 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR), 0);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BAD_RECORD), 0);
}

static void full_own_ring_is_counted(void **state)
{
	samples_that_do_not_fit_are_counted(*state, 0);
}

static void full_ring_of_a_perf_event_is_counted(void **state)
{
	samples_that_do_not_fit_are_counted(*state, MECHANISM_OWN_RINGS);
}

/* arm64 names the PMU after the CPU model. */
static bool has_pmu(void)
{
	glob_t found = { 0 };
	bool any = !glob("/sys/bus/event_source/devices/armv8*", 0, NULL, &found);

	globfree(&found);
	return any || !access("/sys/bus/event_source/devices/cpu", F_OK);
}

static void cycles_need_a_pmu(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	const char *what = NULL;
	int err;

	options.event = COLLECT_CYCLES;
	err = collect_create(&options, &s->collect, &what);
	if (has_pmu() && !err)
		return;
	assert_int_equal(err, -ENOENT);
	assert_string_equal(what, "open the sampling event");
}

static void cpu_that_is_not_online_is_refused(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	const char *what = NULL;
	int cpu = 8000;

	options.cpus = &cpu;
	options.cpu_count = 1;
	assert_int_equal(collect_create(&options, &s->collect, &what), -ENODEV);
	assert_non_null(what);
}

static void chosen_cpu_is_the_only_one_sampled(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	int cpu = 0;

	options.cpus = &cpu;
	options.cpu_count = 1;
	open_with(s, &options);
	assert_int_equal(collect_cpu_count(s->collect), 1);
}

/* The kernel does not know the child's modules, so it leaves each walk to user space. */
static void excluded_process_ships_no_stack(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);
	struct tables *tables;

	s->tgid = (uint32_t)b.pid;
	open_with(s, &options);
	tables = collect_tables(s->collect);
	release_child(&b);
	while (tables && !s->unfinished)
		drain_until_samples(s, s->samples + 1);
	if (tables) {
		tables_leave_out(tables, s->tgid, true);
		tables_leave_out(tables, s->tgid + ABI_LEFT_OUT, false);
		/* Earlier samples are still in the rings. */
		drain_until_samples(s, s->samples + HZ);
		s->unfinished = 0;
		drain_until_samples(s, s->samples + HZ / 4);
		assert_int_equal(s->unfinished, 0);
		tables_leave_out(tables, s->tgid, false);
		while (!s->unfinished)
			drain_until_samples(s, s->samples + 1);
	}
	stop_and_drain(s);
	end_burner(&b);
	if (!tables)
		skip();
}

/* Samples from before a change may still be in the rings. */
static void drain_until_go_generation(struct seen *s, uint32_t generation)
{
	for (unsigned int i = 0; i < 10 * HZ && s->fiber_generation != generation; i++)
		drain_until_samples(s, s->samples + 1);
	assert_int_equal(s->fiber_generation, generation);
}

static void go_offsets_are_not_used_for_another_program(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b = start_burner(burn);
	struct abi_runtime_process how = {
		.kind = ABI_RUNTIME_GO,
		.generation = 7,
		.go = { .g_m = 48, .m_curg = 184, .g_goid = 152 },
	};

	s->tgid = (uint32_t)b.pid;
	options.filter.read_fibers = 1;
	open_with(s, &options);
	release_child(&b);
	assert_int_equal(collect_set_runtime(s->collect, s->tgid, &how), 0);
	drain_until_go_generation(s, 7);
	how.exec_known = 1;
	how.exec_id = s->exec_id - 1;
	assert_int_equal(collect_set_runtime(s->collect, s->tgid, &how), 0);
	drain_until_go_generation(s, 0);
	how.exec_id = s->exec_id;
	assert_int_equal(collect_set_runtime(s->collect, s->tgid, &how), 0);
	drain_until_go_generation(s, 7);
	end_burner(&b);
}

static void *map_ring(int ring, size_t bytes, off_t what)
{
	void *mapped =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);

	return mapped == MAP_FAILED ? NULL : mapped;
}

/* Reads by one io_uring request at a time, which a kernel thread of this process executes. */
static void read_by_workers(void)
{
	struct io_uring_params p = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *sq = map_ring(ring, p.sq_off.array + p.sq_entries * sizeof(uint32_t), 0);
	char *cq = map_ring(ring, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		IORING_OFF_CQ_RING);
	struct io_uring_sqe *entry = map_ring(ring, sizeof(*entry), IORING_OFF_SQES);
	static char bytes[16 << 20];
	uint32_t tail = 0;

	if (ring < 0 || !sq || !cq || !entry)
		return;
	for (;;) {
		*entry = (struct io_uring_sqe){
			.opcode = IORING_OP_READ,
			.flags = IOSQE_ASYNC,
			.fd = zeros,
			.addr = (uintptr_t)bytes,
			.len = sizeof(bytes),
		};
		__atomic_store_n(
			(uint32_t *)(void *)(sq + p.sq_off.tail), ++tail, __ATOMIC_RELEASE);
		syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
		__atomic_store_n((uint32_t *)(void *)(cq + p.cq_off.head), tail, __ATOMIC_RELEASE);
	}
}

static bool has_io_uring(void)
{
	struct io_uring_params p = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &p);

	if (ring >= 0)
		close(ring);
	/* Since 5.12 io_uring's threads belong to the process. */
	return ring >= 0 && p.features & IORING_FEAT_NATIVE_WORKERS;
}

static void threads_made_by_the_kernel_have_no_user_stack(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);
	struct burner b;

	if (!has_io_uring())
		skip();
	b = start_burner(read_by_workers);
	s->tgid = (uint32_t)b.pid;
	open_with(s, &options);
	release_child(&b);
	for (size_t count = 1; s->worker_samples < HZ / 4; count++)
		drain_until_samples(s, count);
	stop_and_drain(s);
	end_burner(&b);
	assert_int_equal(s->worker_stacks, 0);
	assert_true(s->kernel_stacks >= s->worker_samples);
	assert_int_equal(metrics_get(&s->metrics, METRIC_LOST_BPF_ERROR), 0);
}

static void maps_are_small(void **state)
{
	struct seen *s = *state;
	struct collect_options options = options_for(s);

	options.filter.read_fibers = 1;
	open_with(s, &options);
	print_message("%zu bytes of maps\n", (size_t)collect_map_bytes(s->collect));
	assert_in_range(collect_map_bytes(s->collect), 1, 8 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		COLLECT_TEST(busy_child_is_sampled_at_the_requested_rate),
		COLLECT_TEST(rings_of_perf_events_work_as_well),
		COLLECT_TEST(frames_are_shipped_once_a_window),
		COLLECT_TEST(life_of_a_child_comes_in_order),
		COLLECT_TEST(drain_leaves_records_after_its_limit),
		COLLECT_TEST(programs_loaded_in_between_do_not_stop_the_stream),
		COLLECT_TEST(full_ring_is_reported),
		COLLECT_TEST(full_own_ring_is_counted),
		COLLECT_TEST(full_ring_of_a_perf_event_is_counted),
		COLLECT_TEST(cycles_need_a_pmu),
		COLLECT_TEST(cpu_that_is_not_online_is_refused),
		COLLECT_TEST(chosen_cpu_is_the_only_one_sampled),
		COLLECT_TEST(excluded_process_ships_no_stack),
		COLLECT_TEST(go_offsets_are_not_used_for_another_program),
		COLLECT_TEST(threads_made_by_the_kernel_have_no_user_stack),
		COLLECT_TEST(maps_are_small),
	};

	if (geteuid() != 0) {
		puts("needs root: perf events of all processes and BPF");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
