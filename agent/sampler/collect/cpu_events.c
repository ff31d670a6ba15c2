/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/cpu_events.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/sampler/collect/perf_event.h"
#include "agent/sampler/collect/probe_set.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	/* A ring wakes its reader when 1/4 of it is full: before pieces of stack use up their
	   share. */
	READ_PART = 4,
	MAX_CPUS = 8192,
	/* The list of online CPUs is read at the two checks after a sign that CPUs came or went,
	   and at every fifth check. */
	CHECKS_AFTER_SIGN = 2,
	CHECKS_PER_LIST = 5,
};

struct cpu {
	int number;
	int output_fd, files_fd, sampling_fd; /* −1 = none */
	struct ring ring;
	uint64_t runs; /* of the program at its ticks, as last looked at */
	uint64_t enabled_ns; /* of the output event, as last read */
	bool gone; /* no longer online: its ring is read once more */
};

struct cpu_events {
	struct collect_options options; /* without what is borrowed */
	struct cpu_list chosen; /* a copy of options.cpus; empty = all */
	struct probe_set *probes; /* borrowed */
	struct shared_maps *maps; /* of `probes` */
	int epoll_fd;
	bool build_ids; /* mapping records have build IDs */
	bool started;
	uint64_t usable[MAX_CPUS / 64]; /* a bit for each CPU that this thread may use */
	unsigned int checks; /* since the last sign that CPUs came or went */
	struct cpu *cpus;
	size_t count, capacity;
	struct ring **rings; /* of `cpus` and the sampler's, as merge_rings() wants them */
	size_t ring_capacity;
};

static void cpu_close(struct cpu_events *e, struct cpu *cpu)
{
	/* A CPU that went offline is already disconnected; its number may be in use again. */
	if (cpu->output_fd >= 0 && !cpu->gone) {
		shared_maps_set_output(e->maps, cpu->number, -1);
		epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, cpu->output_fd, NULL);
	}
	ring_unmap(&cpu->ring);
	if (cpu->sampling_fd >= 0)
		close(cpu->sampling_fd);
	if (cpu->files_fd >= 0)
		close(cpu->files_fd);
	if (cpu->output_fd >= 0)
		close(cpu->output_fd);
}

static int cpu_map_output(struct cpu_events *e, struct cpu *cpu, const char **ret_step)
{
	uint32_t pages = e->options.ring_pages;
	uint32_t enough = (uint32_t)(pages * (size_t)sysconf(_SC_PAGESIZE) / READ_PART);

	*ret_step = "open the output event";
	cpu->output_fd = perf_event_open_output(cpu->number, enough, &e->build_ids);
	if (cpu->output_fd < 0)
		return cpu->output_fd;
	*ret_step = "map the output event's ring";
	return ring_map(&cpu->ring, cpu->output_fd, pages);
}

/* Not needed without build IDs: such records have the file themselves. */
static int cpu_open_files(struct cpu_events *e, struct cpu *cpu, const char **ret_step)
{
	if (!e->build_ids)
		return 0;
	*ret_step = "open the event that reports mapped files";
	cpu->files_fd = perf_event_open_files(cpu->number);
	return cpu->files_fd < 0 ? cpu->files_fd
				 : perf_event_share_ring(cpu->files_fd, cpu->output_fd);
}

static int cpu_open_output(struct cpu_events *e, struct cpu *cpu, const char **ret_step)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err = cpu_map_output(e, cpu, ret_step);

	/* Without CAP_IPC_LOCK, kernel.perf_event_mlock_kb limits locked memory. */
	if (err == -EPERM && cpu->output_fd >= 0 &&
		e->options.ring_pages > RING_SIZES_DEFAULT_PAGES) {
		e->options.ring_pages = RING_SIZES_DEFAULT_PAGES;
		close(cpu->output_fd);
		err = cpu_map_output(e, cpu, ret_step);
	}
	if (err)
		return err;
	err = cpu_open_files(e, cpu, ret_step);
	if (err)
		return err;
	*ret_step = "connect the BPF program to the output event";
	err = shared_maps_set_output(e->maps, cpu->number, cpu->output_fd);
	if (!err && epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, cpu->output_fd, &event) < 0)
		err = -errno;
	return err;
}

static int cpu_open_sampling(struct cpu_events *e, struct cpu *cpu, const char **ret_step)
{
	int err;

	*ret_step = "open the sampling event";
	cpu->sampling_fd = perf_event_open_sampling(cpu->number, &e->options);
	if (cpu->sampling_fd < 0)
		return cpu->sampling_fd;
	*ret_step = "map the sampler's ring";
	err = sample_rings_open(shared_maps_rings(e->maps), cpu->number);
	if (err)
		return err;
	*ret_step = "attach the BPF program to the sampling event";
	err = perf_event_set_program(cpu->sampling_fd, probe_set_event_program(e->probes));
	if (!err && e->started)
		err = perf_event_enable(cpu->sampling_fd, true);
	return err;
}

static bool cpu_is_sampled(const struct cpu_events *e, int number)
{
	return !e->options.no_ticks && (!e->chosen.count || cpu_list_has(&e->chosen, number));
}

/*
 * Mappings made on any CPU matter for samples on every other, so the output event is opened on all
 * of them and the sampling event on the chosen ones.
 */
static int cpu_events_open(struct cpu_events *e, int number, const char **ret_step)
{
	struct cpu cpu = { .number = number, .output_fd = -1, .files_fd = -1, .sampling_fd = -1 };
	int err;

	*ret_step = "remember the CPU";
	err = array_reserve(e->cpus, e->capacity, e->count + 1, MAX_CPUS);
	if (!err)
		err = array_reserve(e->rings, e->ring_capacity,
			e->count + 1 + shared_maps_rings(e->maps)->count, 2 * MAX_CPUS);
	if (err)
		return err;
	err = cpu_open_output(e, &cpu, ret_step);
	if (!err && cpu_is_sampled(e, number))
		err = cpu_open_sampling(e, &cpu, ret_step);
	if (err) {
		cpu_close(e, &cpu);
		return err;
	}
	e->cpus[e->count++] = cpu;
	return 0;
}

static struct cpu *cpu_events_find(struct cpu_events *e, int number)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->cpus[i].number == number && !e->cpus[i].gone)
			return &e->cpus[i];
	return NULL;
}

/* -ENODEV, from a CPU that went offline after the list was read, is no error. */
static int cpu_events_open_missing(
	struct cpu_events *e, const struct cpu_list *online, const char **ret_step)
{
	for (size_t i = 0; i < online->count; i++) {
		int err;

		if (cpu_events_find(e, online->numbers[i]))
			continue;
		err = cpu_events_open(e, online->numbers[i], ret_step);
		if (err && err != -ENODEV)
			return err;
	}
	return 0;
}

static int cpu_events_open_all(struct cpu_events *e, const char **ret_step)
{
	autocall(cpu_list_deinit) struct cpu_list online = { 0 };
	int err;

	*ret_step = "list the online CPUs";
	err = cpu_list_online(&online);
	if (err)
		return err;
	for (size_t i = 0; i < e->chosen.count; i++)
		if (!cpu_list_has(&online, e->chosen.numbers[i])) {
			*ret_step = "find the requested CPU among those online";
			return -ENODEV;
		}
	return cpu_events_open_missing(e, &online, ret_step);
}

/* Keeps OPTIONS, and of what they borrow the list of CPUs. */
static int cpu_events_choose(struct cpu_events *e, const struct collect_options *options)
{
	int err;

	e->options = *options;
	err = array_reserve(e->chosen.numbers, e->chosen.capacity, options->cpu_count, MAX_CPUS);
	if (err)
		return err;
	for (size_t i = 0; i < options->cpu_count; i++)
		e->chosen.numbers[e->chosen.count++] = options->cpus[i];
	/* These are the caller's. */
	e->options.cpus = NULL;
	e->options.tgids = NULL;
	e->options.tids = NULL;
	e->options.latency = NULL;
	e->options.trace = NULL;
	return 0;
}

int cpu_events_create(const struct collect_options *options, struct probe_set *probes,
	struct cpu_events **ret_events, const char **ret_step)
{
	struct cpu_events *e = calloc(1, sizeof(*e));
	int err;

	*ret_step = "prepare";
	if (!e)
		return -ENOMEM;
	e->probes = probes;
	e->maps = probe_set_maps(probes);
	e->build_ids = true;
	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = e->epoll_fd < 0 ? -errno : cpu_events_choose(e, options);
	if (!err)
		err = cpu_events_open_all(e, ret_step);
	if (err) {
		cpu_events_destroy(e);
		return err;
	}
	*ret_events = e;
	return 0;
}

void cpu_events_destroy(struct cpu_events *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->count; i++)
		cpu_close(e, &e->cpus[i]);
	free(e->cpus);
	free(e->rings);
	cpu_list_deinit(&e->chosen);
	if (e->epoll_fd >= 0)
		close(e->epoll_fd);
	free(e);
}

bool cpu_events_have_build_ids(const struct cpu_events *e)
{
	return e->build_ids;
}

int cpu_events_fd(const struct cpu_events *e)
{
	return e->epoll_fd;
}

/* ---- sampling ------------------------------------------------------------------------------- */

static int cpu_events_enable(struct cpu_events *e, bool on)
{
	int first_error = 0;

	for (size_t i = 0; i < e->count; i++) {
		int err = 0;

		if (e->cpus[i].sampling_fd >= 0)
			err = perf_event_enable(e->cpus[i].sampling_fd, on);
		if (err && !first_error)
			first_error = err;
	}
	return first_error;
}

int cpu_events_start(struct cpu_events *e, bool on)
{
	int err = cpu_events_enable(e, on);

	e->started = on;
	return err;
}

int cpu_events_pause(struct cpu_events *e, bool pause)
{
	return e->started ? cpu_events_enable(e, !pause) : 0;
}

int cpu_events_set_frequency(struct cpu_events *e, uint64_t hz)
{
	int first_error = 0;

	e->options.frequency_hz = hz;
	for (size_t i = 0; i < e->count; i++) {
		int err = 0;

		if (e->cpus[i].sampling_fd >= 0)
			err = perf_event_set_frequency(
				e->cpus[i].sampling_fd, e->options.event, hz);
		if (err && !first_error)
			first_error = err;
	}
	return first_error;
}

size_t cpu_events_sampled(const struct cpu_events *e)
{
	size_t count = 0;

	for (size_t i = 0; i < e->count; i++)
		count += e->cpus[i].sampling_fd >= 0;
	return count;
}

/* ---- rings ---------------------------------------------------------------------------------- */

struct ring **cpu_events_rings(struct cpu_events *e, size_t *ret_count)
{
	for (size_t i = 0; i < e->count; i++)
		e->rings[i] = &e->cpus[i].ring;
	*ret_count = e->count + sample_rings_list(shared_maps_rings(e->maps), e->rings + e->count);
	return e->rings;
}

void cpu_events_forget_gone(struct cpu_events *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->count; i++) {
		struct cpu *cpu = &e->cpus[i];

		if (cpu->gone && cpu->ring.at == cpu->ring.head)
			cpu_close(e, cpu);
		else
			e->cpus[kept++] = *cpu;
	}
	e->count = kept;
}

/* ---- CPUs that come and go ------------------------------------------------------------------ */

static bool cpu_has_ticked(const struct cpu_events *e, struct cpu *cpu)
{
	const uint64_t before = cpu->runs;

	cpu->runs = probe_set_event_runs(e->probes, cpu->number);
	return cpu->runs != before;
}

/*
 * A CPU's events die when it goes offline, even if it comes back before the next check: their
 * enabled time then stands still. Reading it interrupts that CPU, so it is only read of a CPU
 * without ticks. The output event is enabled from its opening on, whether or not the CPU is
 * sampled.
 */
static bool cpu_is_dead(const struct cpu_events *e, struct cpu *cpu)
{
	uint64_t before_ns = cpu->enabled_ns;

	if (cpu_has_ticked(e, cpu))
		return false;
	return perf_event_enabled_ns(cpu->output_fd, &cpu->enabled_ns) < 0 ||
	       cpu->enabled_ns == before_ns;
}

/* Disconnects a CPU that went offline. Its ring can still be drained. */
static void cpu_retire(struct cpu_events *e, struct cpu *cpu)
{
	cpu->gone = true;
	shared_maps_set_output(e->maps, cpu->number, -1);
	epoll_ctl(e->epoll_fd, EPOLL_CTL_DEL, cpu->output_fd, NULL);
	if (cpu->sampling_fd >= 0)
		close(cpu->sampling_fd);
	cpu->sampling_fd = -1;
}

/*
 * Whether the CPUs that this thread may use have changed since the last call. The kernel leaves
 * offline ones out. This costs one system call, while sysfs formats its list anew for each reader;
 * but it does not tell of CPUs that this thread may never use.
 */
static bool cpu_events_usable_changed(struct cpu_events *e)
{
	uint64_t usable[ARRAY_SIZE(e->usable)] = { 0 };

	if (sched_getaffinity(0, sizeof(usable), (cpu_set_t *)usable))
		return true;
	if (!memcmp(usable, e->usable, sizeof(usable)))
		return false;
	memcpy(e->usable, usable, sizeof(usable));
	return true;
}

/*
 * Whether it is time to read the list of online CPUs. DIED: events were found dead. Two checks read
 * it after a sign, because a CPU becomes unusable some time before it is offline.
 */
static bool cpu_events_need_list(struct cpu_events *e, bool died)
{
	unsigned int check;

	if (cpu_events_usable_changed(e) || died)
		e->checks = 0;
	check = e->checks++;
	return check < CHECKS_AFTER_SIGN || check % CHECKS_PER_LIST == 0;
}

/*
 * Disconnects the CPUs whose events died. Returns whether there was one: it may already be online
 * again.
 */
static bool cpu_events_retire_dead(struct cpu_events *e)
{
	bool found = false;

	for (size_t i = 0; i < e->count; i++) {
		struct cpu *cpu = &e->cpus[i];

		if (cpu->gone || !cpu_is_dead(e, cpu))
			continue;
		cpu_retire(e, cpu);
		found = true;
	}
	return found;
}

static void cpu_events_retire_offline(struct cpu_events *e, const struct cpu_list *online)
{
	for (size_t i = 0; i < e->count; i++)
		if (!e->cpus[i].gone && !cpu_list_has(online, e->cpus[i].number))
			cpu_retire(e, &e->cpus[i]);
}

int cpu_events_check(struct cpu_events *e, bool *ret_opened)
{
	autocall(cpu_list_deinit) struct cpu_list online = { 0 };
	const char *step;
	bool died = cpu_events_retire_dead(e);
	size_t before;
	int err;

	*ret_opened = false;
	if (!cpu_events_need_list(e, died))
		return 0;
	err = cpu_list_online(&online);
	if (err)
		return err;
	cpu_events_retire_offline(e, &online);
	before = e->count;
	err = cpu_events_open_missing(e, &online, &step);
	*ret_opened = e->count > before;
	return err;
}
