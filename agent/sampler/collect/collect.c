/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the kernel side together: probes, the CPUs' events, and the drain of their rings. */
#include "agent/sampler/collect/collect.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/collect/counters.h"
#include "agent/sampler/collect/cpu_events.h"
#include "agent/sampler/collect/cpus.h"
#include "agent/sampler/collect/drain.h"
#include "agent/sampler/collect/probe_set.h"
#include "agent/sampler/recording/notes.h"
#include "base/cleanup.h"
#include "base/host.h"

struct collect {
	struct collect_options options; /* what they borrow is NULL after collect_create() */
	struct probe_set *probes;
	struct shared_maps *maps; /* of `probes` */
	struct cpu_events *cpus;
	struct drain drain;
	struct counters counters;
	uint32_t window;
};

/* ---- creation ------------------------------------------------------------------------------- */

static int collect_load(struct collect *c, const char **ret_step)
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

static int collect_set_up(struct collect *c, const char **ret_step)
{
	int err = drain_init(&c->drain, &c->options);

	if (!err)
		err = collect_load(c, ret_step);
	if (!err)
		err = cpu_events_create(&c->options, c->probes, &c->cpus, ret_step);
	if (!err && cpu_events_have_build_ids(c->cpus))
		drain_join_files(&c->drain);
	return err;
}

static void collect_note(const struct collect *c)
{
	const struct tables *tables = collect_tables(c);

	host_note(HOST_NOTE_COLLECT, &(struct note_collect){
					     .tables = tables != NULL,
					     .by_file = tables && tables_by_file(tables),
					     .build_ids = cpu_events_have_build_ids(c->cpus),
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
	c->options = *options;
	err = collect_set_up(c, ret_step);
	if (err) {
		collect_destroy(c);
		return err;
	}
	collect_note(c);
	c->options.cpus = NULL;
	c->options.tgids = NULL;
	c->options.tids = NULL;
	c->options.latency = NULL;
	c->options.trace = NULL;
	*ret_collect = c;
	return 0;
}

void collect_destroy(struct collect *c)
{
	if (!c)
		return;
	cpu_events_destroy(c->cpus);
	probe_set_unload(c->probes);
	drain_deinit(&c->drain);
	free(c);
}

/* ---- sampling ------------------------------------------------------------------------------- */

static int collect_enable(struct collect *c, bool on)
{
	int attached = probe_set_attach(c->probes, on);
	int enabled = cpu_events_start(c->cpus, on);

	drain_set_sampling(&c->drain, on);
	return attached ? attached : enabled;
}

int collect_start(struct collect *c)
{
	return collect_enable(c, true);
}

int collect_stop(struct collect *c)
{
	return collect_enable(c, false);
}

int collect_pause(struct collect *c, bool pause)
{
	return cpu_events_pause(c->cpus, pause);
}

int collect_set_frequency(struct collect *c, uint64_t hz)
{
	int err;

	if (!c->options.frequency_hz || !hz)
		return -EINVAL;
	err = cpu_events_set_frequency(c->cpus, hz);
	if (c->options.event == COLLECT_CPU_CLOCK)
		shared_maps_set_period(c->maps, UINT64_C(1000000000) / hz);
	return err;
}

size_t collect_cpu_count(const struct collect *c)
{
	return cpu_events_sampled(c->cpus);
}

int collect_check_cpus(struct collect *c)
{
	bool opened;
	int err = cpu_events_check(c->cpus, &opened);

	/* Nothing reported the mappings and execs on a CPU before its event was opened. */
	if (opened)
		drain_report_gap(&c->drain);
	return err;
}

/* ---- rings ---------------------------------------------------------------------------------- */

int collect_fd(const struct collect *c)
{
	return cpu_events_fd(c->cpus);
}

int64_t collect_drain(struct collect *c, uint64_t until_ns)
{
	uint64_t limit_ns = drain_limit_ns(&c->drain, until_ns);
	size_t count;
	struct ring **rings = cpu_events_rings(c->cpus, &count);
	int64_t delivered;

	host_rings(rings, count);
	delivered = drain_rings(&c->drain, rings, count, limit_ns);
	cpu_events_forget_gone(c->cpus);
	if (!c->drain.left_much)
		shared_maps_rings_read(c->maps);
	return delivered;
}

bool collect_left_much(const struct collect *c)
{
	return c->drain.left_much;
}

/* ---- what goes to the kernel ---------------------------------------------------------------- */

uint32_t collect_next_window(struct collect *c)
{
	shared_maps_set_window(c->maps, ++c->window);
	return c->window;
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

int collect_set_tgids(struct collect *c, const uint32_t *tgids, size_t count)
{
	return shared_maps_set_tgids(c->maps, tgids, count);
}

int collect_leave_out_cgroup(struct collect *c, uint64_t id, bool out)
{
	return shared_maps_leave_out_cgroup(c->maps, id, out);
}

struct bpf_object *collect_probe_object(const struct collect *c, const char *name)
{
	return probe_set_object(c->probes, name);
}

int collect_add_latency(
	struct collect *c, const struct latency_options *latency, const char **ret_step)
{
	struct collect_options options = c->options;

	options.latency = latency;
	return probe_set_add(c->probes, &options, "latency", ret_step);
}

void collect_remove_latency(struct collect *c)
{
	probe_set_remove(c->probes, "latency");
}

int collect_add_kernel_latency(
	struct collect *c, const struct latency_options *latency, const char **ret_step)
{
	struct collect_options options = c->options;

	options.latency = latency;
	return probe_set_add(c->probes, &options, "kernel_latency", ret_step);
}

void collect_remove_kernel_latency(struct collect *c)
{
	probe_set_remove(c->probes, "kernel_latency");
}

struct tables *collect_tables(const struct collect *c)
{
	return shared_maps_tables(c->maps);
}

/* ---- what the kernel side counted ----------------------------------------------------------- */

uint64_t collect_counter(const struct collect *c, enum abi_counter counter)
{
	uint64_t counts[ABI_COUNTERS];

	return probe_set_counters(c->probes, counts) ? 0 : counts[counter];
}

void collect_count(struct collect *c)
{
	uint64_t now[ABI_COUNTERS], since[ABI_COUNTERS];

	if (probe_set_counters(c->probes, now))
		return;
	counters_add(&c->counters, now, c->options.metrics, since);
	probe_set_count_losses(c->probes, since, c->options.metrics);
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
