/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets the open calls of threads and processes that have ended. Those of goroutines that have
 * ended BPF forgets itself.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/latency/map_scan.h"
#include "agent/sampler/probes/trace/trace.h"
#include "base/cleanup.h"
#include "base/host.h"
#include "bpf/abi/trace.h"

enum { SWEEP_AT_ONCE = 1024 /* tasks that one sweep looks at */ };

struct trace_sweep {
	int tasks, levels; /* descriptors of maps */
	uint32_t alive; /* a process that is known to live; 0 = none yet */
};

static bool trace_sweep_exists(const char *path)
{
	struct stat info;

	return !host_fstatat(AT_FDCWD, path, &info) || errno != ENOENT;
}

static bool trace_sweep_lives(struct trace_sweep *s, const struct abi_trace_task_key *key,
	const struct abi_trace_task *task)
{
	char path[64];

	if (key->tid) {
		snprintf(path, sizeof(path), "/proc/%u/task/%u", task->tgid, task->tid);
		return trace_sweep_exists(path);
	}
	if (task->tgid == s->alive)
		return true;
	snprintf(path, sizeof(path), "/proc/%u", task->tgid);
	if (!trace_sweep_exists(path))
		return false;
	s->alive = task->tgid;
	return true;
}

/* Forgets TASK, unless another one has its key since it was read. */
static void trace_sweep_forget(const struct trace_sweep *s, const struct abi_trace_task_key *key,
	const struct abi_trace_task *task)
{
	struct abi_trace_level_key level = { .task = *key };
	struct abi_trace_task now;

	if (bpf_map_lookup_elem(s->tasks, key, &now) || now.incarnation != task->incarnation ||
		now.tree != task->tree)
		return;
	for (level.level = 0; level.level < MIN(now.stored, (uint32_t)ABI_TRACE_LEVELS);
		level.level++)
		(void)bpf_map_delete_elem(s->levels, &level);
	(void)bpf_map_delete_elem(s->tasks, key);
}

static void trace_sweep_batch(struct trace_sweep *s, const struct map_scan *scan)
{
	for (uint32_t i = 0; i < scan->count; i++) {
		const struct abi_trace_task_key *key = map_scan_key(scan, i);
		const struct abi_trace_task *task = map_scan_value(scan, i);

		if (!trace_sweep_lives(s, key, task))
			trace_sweep_forget(s, key, task);
	}
}

void trace_sweep(
	const struct collect *collect, const struct trace_sweep_maps *maps, uint32_t *place)
{
	struct bpf_object *object = collect_probe_object(collect, maps->probe);
	autocall(map_scan_deinit) struct map_scan scan = { 0 };
	struct trace_sweep sweep = { .tasks = -1, .levels = -1 };
	uint32_t seen = 0;

	if (object) {
		sweep.tasks = bpf_object__find_map_fd_by_name(object, maps->tasks);
		sweep.levels = bpf_object__find_map_fd_by_name(object, maps->levels);
	}
	if (sweep.tasks < 0 || sweep.levels < 0 ||
		map_scan_init(&scan, sweep.tasks, sizeof(struct abi_trace_task_key),
			sizeof(struct abi_trace_task), 0))
		return;
	map_scan_continue(&scan, *place);
	while (seen < SWEEP_AT_ONCE && !scan.done && !map_scan_next(&scan)) {
		trace_sweep_batch(&sweep, &scan);
		seen += scan.count;
	}
	*place = scan.done ? 0 : scan.place;
}
