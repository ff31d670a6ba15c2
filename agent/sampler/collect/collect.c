/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/sampler/collect/cpus.h"
#include "agent/sampler/collect/events.h"
#include "agent/sampler/collect/merge.h"
#include "agent/sampler/collect/perf_event.h"
#include "agent/sampler/collect/probe_set.h"
#include "agent/sampler/collect/ring.h"
#include "agent/sampler/recording/notes.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"

enum {
	/* A ring wakes its reader when 1/4 of it is full: before pieces of stack use up their
	   share. */
	READ_PART = 4,
	MAX_CPUS = 8192,
};

/*
 * While sampling runs, the most recent records are left to the next call: if an interrupt samples
 * in the middle of another record's output, its records become visible only after that output.
 */
static const uint64_t SETTLE_NS = 200 * 1000;

struct cpu {
	int number;
	int output_fd, files_fd, sampling_fd; /* −1 = none */
	struct ring ring;
	uint64_t enabled_ns; /* of the output event, as last read */
	bool gone; /* no longer online: its ring is read once more */
};

struct collect {
	struct collect_options options;
	struct cpu_list chosen; /* a copy of options.cpus; empty = all */
	struct probe_set *probes;
	struct shared_maps *maps; /* of `probes` */
	struct events events;
	struct merge merge;
	int epoll_fd;
	uint32_t window;
	bool build_ids; /* mapping records have build IDs */
	struct mapped_files files; /* the other halves of these records */
	bool started;
	struct cpu *cpus;
	size_t cpu_count, cpu_capacity;
	struct ring **rings; /* of `cpus` and the sampler's, as merge_rings() wants them */
	size_t ring_capacity;
	uint64_t counted[ABI_COUNTERS]; /* already added to the metrics */
};

static void close_cpu(struct collect *c, struct cpu *cpu)
{
	/* A CPU that went offline is already disconnected; its number may be in use again. */
	if (cpu->output_fd >= 0 && !cpu->gone) {
		shared_maps_set_output(c->maps, cpu->number, -1);
		epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, cpu->output_fd, NULL);
	}
	ring_unmap(&cpu->ring);
	if (cpu->sampling_fd >= 0)
		close(cpu->sampling_fd);
	if (cpu->files_fd >= 0)
		close(cpu->files_fd);
	if (cpu->output_fd >= 0)
		close(cpu->output_fd);
}

static int map_output(struct collect *c, struct cpu *cpu, const char **ret_step)
{
	uint32_t pages = c->options.ring_pages;
	uint32_t enough = (uint32_t)(pages * (size_t)sysconf(_SC_PAGESIZE) / READ_PART);

	*ret_step = "open the output event";
	cpu->output_fd = perf_event_open_output(cpu->number, enough, &c->build_ids);
	if (cpu->output_fd < 0)
		return cpu->output_fd;
	*ret_step = "map the output event's ring";
	return ring_map(&cpu->ring, cpu->output_fd, pages);
}

/* Not needed without build IDs: such records have the file themselves. */
static int open_files(struct collect *c, struct cpu *cpu, const char **ret_step)
{
	if (!c->build_ids)
		return 0;
	c->events.files = &c->files;
	*ret_step = "open the event that reports mapped files";
	cpu->files_fd = perf_event_open_files(cpu->number);
	return cpu->files_fd < 0 ? cpu->files_fd
				 : perf_event_share_ring(cpu->files_fd, cpu->output_fd);
}

static int open_output(struct collect *c, struct cpu *cpu, const char **ret_step)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err = map_output(c, cpu, ret_step);

	/* Without CAP_IPC_LOCK, kernel.perf_event_mlock_kb limits locked memory. */
	if (err == -EPERM && cpu->output_fd >= 0 &&
		c->options.ring_pages > RING_SIZES_DEFAULT_PAGES) {
		c->options.ring_pages = RING_SIZES_DEFAULT_PAGES;
		close(cpu->output_fd);
		err = map_output(c, cpu, ret_step);
	}
	if (err)
		return err;
	err = open_files(c, cpu, ret_step);
	if (err)
		return err;
	*ret_step = "connect the BPF program to the output event";
	err = shared_maps_set_output(c->maps, cpu->number, cpu->output_fd);
	if (!err && epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, cpu->output_fd, &event) < 0)
		err = -errno;
	return err;
}

static int open_sampling(struct collect *c, struct cpu *cpu, const char **ret_step)
{
	int err;

	*ret_step = "open the sampling event";
	cpu->sampling_fd = perf_event_open_sampling(cpu->number, &c->options);
	if (cpu->sampling_fd < 0)
		return cpu->sampling_fd;
	*ret_step = "map the sampler's ring";
	err = sample_rings_open(shared_maps_rings(c->maps), cpu->number);
	if (err)
		return err;
	*ret_step = "attach the BPF program to the sampling event";
	err = perf_event_set_program(cpu->sampling_fd, probe_set_event_program(c->probes));
	if (!err && c->started)
		err = perf_event_enable(cpu->sampling_fd, true);
	return err;
}

/*
 * Mappings made on any CPU matter for samples on every other, so the output event is opened on all
 * of them and the sampling event on the chosen ones.
 */
static int open_cpu(struct collect *c, int number, const char **ret_step)
{
	struct cpu cpu = { .number = number, .output_fd = -1, .files_fd = -1, .sampling_fd = -1 };
	int err;

	*ret_step = "remember the CPU";
	err = array_reserve(c->cpus, c->cpu_capacity, c->cpu_count + 1, MAX_CPUS);
	if (!err)
		err = array_reserve(c->rings, c->ring_capacity,
			c->cpu_count + 1 + shared_maps_rings(c->maps)->count, 2 * MAX_CPUS);
	if (err)
		return err;
	err = open_output(c, &cpu, ret_step);
	if (!err && (!c->chosen.count || cpu_list_has(&c->chosen, number)))
		err = open_sampling(c, &cpu, ret_step);
	if (err) {
		close_cpu(c, &cpu);
		return err;
	}
	c->cpus[c->cpu_count++] = cpu;
	return 0;
}

static struct cpu *find_cpu(struct collect *c, int number)
{
	for (size_t i = 0; i < c->cpu_count; i++)
		if (c->cpus[i].number == number && !c->cpus[i].gone)
			return &c->cpus[i];
	return NULL;
}

/* -ENODEV, from a CPU that went offline after the list was read, is no error. */
static int open_missing(struct collect *c, const struct cpu_list *online, const char **ret_step)
{
	for (size_t i = 0; i < online->count; i++) {
		int err;

		if (find_cpu(c, online->numbers[i]))
			continue;
		err = open_cpu(c, online->numbers[i], ret_step);
		if (err && err != -ENODEV)
			return err;
	}
	return 0;
}

static int open_all(struct collect *c, const char **ret_step)
{
	autocall(cpu_list_deinit) struct cpu_list online = { 0 };
	int err;

	*ret_step = "list the online CPUs";
	err = cpu_list_online(&online);
	if (err)
		return err;
	for (size_t i = 0; i < c->chosen.count; i++)
		if (!cpu_list_has(&online, c->chosen.numbers[i])) {
			*ret_step = "find the requested CPU among those online";
			return -ENODEV;
		}
	return open_missing(c, &online, ret_step);
}

static int copy_options(struct collect *c, const struct collect_options *options)
{
	int err;

	c->options = *options;
	err = array_reserve(c->chosen.numbers, c->chosen.capacity, options->cpu_count, MAX_CPUS);
	if (err)
		return err;
	for (size_t i = 0; i < options->cpu_count; i++)
		c->chosen.numbers[c->chosen.count++] = options->cpus[i];
	/* The caller's; used by load_probes() only. */
	c->options.cpus = NULL;
	return 0;
}

static int load_probes(struct collect *c, const char **ret_step)
{
	autocall(cpu_list_deinit) struct cpu_list online = { 0 };
	struct ring_sizes sizes;
	int err;

	*ret_step = "list the online CPUs";
	err = cpu_list_online(&online);
	if (err)
		return err;
	sizes = ring_sizes_for(&c->options, online.numbers[online.count - 1]);
	c->options.ring_pages = sizes.pages;
	err = probe_set_load(&c->options, &sizes, &c->probes, ret_step);
	if (!err)
		c->maps = probe_set_maps(c->probes);
	return err;
}

static int set_up(struct collect *c, const struct collect_options *options, const char **ret_step)
{
	int err;

	*ret_step = "prepare";
	err = copy_options(c, options);
	if (!err)
		err = merge_init(&c->merge);
	if (err)
		return err;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0)
		return -errno;
	err = load_probes(c, ret_step);
	if (err)
		return err;
	return open_all(c, ret_step);
}

static void note_collect(const struct collect *c)
{
	const struct tables *tables = collect_tables(c);

	host_note(HOST_NOTE_COLLECT, &(struct note_collect){
					     .tables = tables != NULL,
					     .by_file = tables && tables_by_file(tables),
					     .build_ids = c->build_ids,
				     });
}

int collect_create(
	const struct collect_options *options, struct collect **ret_collect, const char **ret_step)
{
	struct collect *c = calloc(1, sizeof(*c));
	int err;

	*ret_step = "prepare";
	if (!c)
		return -ENOMEM;
	c->epoll_fd = -1;
	c->build_ids = true;
	c->events = (struct events){ .handlers = options->handlers,
		.probes = options->probes,
		.metrics = options->metrics };
	err = set_up(c, options, ret_step);
	if (err) {
		collect_destroy(c);
		return err;
	}
	note_collect(c);
	c->options.tgids = NULL;
	c->options.tids = NULL;
	*ret_collect = c;
	return 0;
}

void collect_destroy(struct collect *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->cpu_count; i++)
		close_cpu(c, &c->cpus[i]);
	free(c->cpus);
	free(c->rings);
	probe_set_unload(c->probes);
	merge_deinit(&c->merge);
	cpu_list_deinit(&c->chosen);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	free(c);
}

static int enable_events(struct collect *c, bool on)
{
	int first_error = 0;

	for (size_t i = 0; i < c->cpu_count; i++) {
		int err = 0;

		if (c->cpus[i].sampling_fd >= 0)
			err = perf_event_enable(c->cpus[i].sampling_fd, on);
		if (err && !first_error)
			first_error = err;
	}
	return first_error;
}

static int enable(struct collect *c, bool on)
{
	int attached = probe_set_attach(c->probes, on);
	int enabled = enable_events(c, on);

	c->started = on;
	return attached ? attached : enabled;
}

int collect_start(struct collect *c)
{
	return enable(c, true);
}

int collect_stop(struct collect *c)
{
	return enable(c, false);
}

int collect_pause(struct collect *c, bool pause)
{
	return c->started ? enable_events(c, !pause) : 0;
}

int collect_set_frequency(struct collect *c, uint64_t hz)
{
	int first_error = 0;

	if (!c->options.frequency_hz || !hz)
		return -EINVAL;
	c->options.frequency_hz = hz;
	for (size_t i = 0; i < c->cpu_count; i++) {
		int err = 0;

		if (c->cpus[i].sampling_fd >= 0)
			err = perf_event_set_frequency(
				c->cpus[i].sampling_fd, c->options.event, hz);
		if (err && !first_error)
			first_error = err;
	}
	if (c->options.event == COLLECT_CPU_CLOCK)
		shared_maps_set_period(c->maps, UINT64_C(1000000000) / hz);
	return first_error;
}

int collect_fd(const struct collect *c)
{
	return c->epoll_fd;
}

static void record_arrived(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	struct collect *c = context;

	events_deliver(&c->events, time_ns, record, size);
}

static void tell_of_gap(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct collect *c = context;

	metrics_add(c->options.metrics, METRIC_SIDEBAND_GAPS, 1);
	if (c->options.handlers.lost)
		c->options.handlers.lost(c->options.handlers.context, time_ns, until_ns);
}

static void ring_was_bad(void *context, uint64_t time_ns, uint64_t bytes)
{
	struct collect *c = context;

	(void)bytes;
	metrics_add(c->options.metrics, METRIC_LOST_BAD_RECORD, 1);
	tell_of_gap(c, time_ns, clock_monotonic_ns());
}

/* Drops CPUs that went offline: their rings have been read to the end and nobody writes to them. */
static void forget_gone(struct collect *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->cpu_count; i++) {
		struct cpu *cpu = &c->cpus[i];

		if (cpu->gone && cpu->ring.at == cpu->ring.head)
			close_cpu(c, cpu);
		else
			c->cpus[kept++] = *cpu;
	}
	c->cpu_count = kept;
}

int64_t collect_drain(struct collect *c, uint64_t until_ns)
{
	const struct merge_sink sink = {
		.record = record_arrived, .bad = ring_was_bad, .gap = tell_of_gap, .context = c
	};
	uint64_t settled_ns = clock_monotonic_ns() - (c->started ? SETTLE_NS : 0);
	size_t count = c->cpu_count;
	int64_t delivered;

	for (size_t i = 0; i < c->cpu_count; i++)
		c->rings[i] = &c->cpus[i].ring;
	if (c->maps)
		count += sample_rings_list(shared_maps_rings(c->maps), c->rings + count);
	if (!until_ns || until_ns > settled_ns)
		until_ns = settled_ns;
	host_rings(c->rings, count);
	delivered = merge_rings(&c->merge, c->rings, count, until_ns, &sink);
	forget_gone(c);
	if (c->maps)
		shared_maps_rings_read(c->maps);
	return delivered;
}

uint32_t collect_next_window(struct collect *c)
{
	shared_maps_set_window(c->maps, ++c->window);
	return c->window;
}

/*
 * A CPU's events die when it goes offline, even if it comes back before the next check: their
 * enabled time then stands still. The output event is enabled from its opening on, whether or not
 * the CPU is sampled.
 */
static bool events_died(struct cpu *cpu)
{
	uint64_t before_ns = cpu->enabled_ns;

	return perf_event_enabled_ns(cpu->output_fd, &cpu->enabled_ns) < 0 ||
	       cpu->enabled_ns == before_ns;
}

/* Disconnects a CPU that went offline. Its ring can still be drained. */
static void retire(struct collect *c, struct cpu *cpu)
{
	cpu->gone = true;
	shared_maps_set_output(c->maps, cpu->number, -1);
	epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, cpu->output_fd, NULL);
	if (cpu->sampling_fd >= 0)
		close(cpu->sampling_fd);
	cpu->sampling_fd = -1;
}

int collect_check_cpus(struct collect *c)
{
	autocall(cpu_list_deinit) struct cpu_list online = { 0 };
	const char *step;
	int err = cpu_list_online(&online);
	size_t opened;

	if (err)
		return err;
	for (size_t i = 0; i < c->cpu_count; i++) {
		struct cpu *cpu = &c->cpus[i];

		if (!cpu->gone && (!cpu_list_has(&online, cpu->number) || events_died(cpu)))
			retire(c, cpu);
	}
	opened = c->cpu_count;
	err = open_missing(c, &online, &step);
	/* Nothing reported the mappings and execs on a CPU before its event was opened. */
	if (c->cpu_count > opened)
		tell_of_gap(c, c->merge.last_ns, clock_monotonic_ns());
	return err;
}

void collect_set_kernel_tables(struct collect *c, const struct abi_kernel_tables *tables)
{
	if (!(c->options.without & MECHANISM_KERNEL_WALK))
		shared_maps_set_kernel_tables(c->maps, tables);
}

int collect_set_runtime(struct collect *c, uint32_t tgid, const struct abi_runtime_process *how)
{
	return shared_maps_set_runtime(c->maps, tgid, how);
}

void collect_remove_runtime(struct collect *c, uint32_t tgid)
{
	shared_maps_remove_runtime(c->maps, tgid);
}

struct tables *collect_tables(const struct collect *c)
{
	return shared_maps_tables(c->maps);
}

uint64_t collect_counter(const struct collect *c, enum abi_counter counter)
{
	uint64_t counts[ABI_COUNTERS];

	return probe_set_counters(c->probes, counts) ? 0 : counts[counter];
}

void collect_count(struct collect *c)
{
	struct metrics *m = c->options.metrics;
	uint64_t now[ABI_COUNTERS], since[ABI_COUNTERS];

	if (probe_set_counters(c->probes, now))
		return;
	for (size_t i = 0; i < ABI_COUNTERS; i++) {
		since[i] = now[i] - c->counted[i];
		c->counted[i] = now[i];
	}
	if (since[ABI_COUNT_KERNEL_WALKS_WRONG])
		log_warn("this kernel's unwind tables are not supported, using its own stack walk",
			"stacks=%llu", (unsigned long long)since[ABI_COUNT_KERNEL_WALKS_WRONG]);
	metrics_add(m, METRIC_LOST_RING_FULL, since[ABI_COUNT_OUTPUT_FULL]);
	metrics_add(m, METRIC_LOST_BPF_ERROR, since[ABI_COUNT_OUTPUT_ERROR]);
	metrics_add(m, METRIC_LOST_WAITS_FULL, since[ABI_COUNT_WAITS_FULL]);
	metrics_add(m, METRIC_LOST_WAITS_UNENDED, since[ABI_COUNT_WAITS_UNENDED]);
	metrics_add(m, METRIC_LOST_SIGHTINGS, since[ABI_COUNT_SIGHTINGS_FULL]);
	metrics_add(m, METRIC_UNWIND_MISSES, since[ABI_COUNT_UNWIND_MISSES]);
}

size_t collect_cpu_count(const struct collect *c)
{
	size_t count = 0;

	for (size_t i = 0; i < c->cpu_count; i++)
		count += c->cpus[i].sampling_fd >= 0;
	return count;
}

int collect_bpf_stats(const struct collect *c, uint64_t *ret_ns, uint64_t *ret_runs)
{
	uint64_t counts[ABI_COUNTERS];
	int err = probe_set_counters(c->probes, counts);

	if (err)
		return err;
	*ret_ns = counts[ABI_COUNT_RUN_NS];
	*ret_runs = counts[ABI_COUNT_RUNS];
	return 0;
}

uint64_t collect_map_bytes(const struct collect *c)
{
	return probe_set_memory(c->probes);
}
