/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets open calls that will never return. Those of a thread or process that has ended, and those
 * of a goroutine that has ended or whose object now belongs to another one. Others are replaced by
 * the next call at the same place in the stack, so there are not many; if the map is full all the
 * same, the oldest ones have to go.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/sampler/probes/latency/latency_internal.h"
#include "agent/sampler/probes/latency/map_scan.h"
#include "base/cleanup.h"
#include "base/host.h"

enum {
	SWEEP_AT_ONCE = 1024, /* open calls that one sweep looks at */
	EVICTED_PART = 8, /* of all open calls, when there is no room */
	GO_DEAD = 6, /* runtime._Gdead */
	GO_SCAN = 0x1000, /* runtime._Gscan, a bit beside the status */
};

/* The process that was last looked at: open calls of one often follow each other. */
struct sweep {
	struct latency *l;
	uint32_t tgid; /* 0 = none yet */
	int memory_fd; /* −1 = its memory cannot be read */
};

/* In struct g before and at goid; the same in all versions (1.16 to 1.26). */
struct sweep_goroutine {
	uint32_t status;
	uint32_t stack_lock;
	uint64_t goid;
};

static bool sweep_thread_lives(const struct abi_open_call *call)
{
	char path[64];
	struct stat info;

	snprintf(path, sizeof(path), "/proc/%u/task/%u", call->tgid, call->tid);
	return !host_fstatat(AT_FDCWD, path, &info) || errno != ENOENT;
}

static bool sweep_process_lives(const struct abi_open_call *call)
{
	char path[64];
	struct stat info;

	snprintf(path, sizeof(path), "/proc/%u", call->tgid);
	return !host_fstatat(AT_FDCWD, path, &info) || errno != ENOENT;
}

static void sweep_open_memory(struct sweep *s, uint32_t tgid)
{
	char path[64];

	if (s->tgid == tgid)
		return;
	if (s->memory_fd >= 0)
		close(s->memory_fd);
	snprintf(path, sizeof(path), "/proc/%u/mem", tgid);
	s->memory_fd = host_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	s->tgid = tgid;
}

/* Memory that cannot be read proves nothing. */
static bool sweep_goroutine_lives(
	struct sweep *s, const struct abi_open_call_key *key, const struct abi_open_call *call)
{
	uint32_t goid_off = s->l->functions[key->function].abi.go.g_goid;
	struct sweep_goroutine now;
	uint64_t address = key->owner + goid_off - offsetof(struct sweep_goroutine, goid);

	if (!sweep_process_lives(call))
		return false;
	sweep_open_memory(s, call->tgid);
	if (s->memory_fd < 0 ||
		host_pread(s->memory_fd, &now, sizeof(now), (off_t)address) != sizeof(now))
		return true;
	return now.goid == call->fiber_id && (now.status & ~(uint32_t)GO_SCAN) != GO_DEAD;
}

static bool sweep_lives(
	struct sweep *s, const struct abi_open_call_key *key, const struct abi_open_call *call)
{
	/* Of a kernel function that no process called. */
	if (!call->tgid)
		return true;
	return key->owner ? sweep_goroutine_lives(s, key, call) : sweep_thread_lives(call);
}

/* Forgets CALL, unless another one has replaced it since it was read. Returns whether it did. */
static bool sweep_forget(const struct latency *l, const struct abi_open_call_key *key,
	const struct abi_open_call *call)
{
	struct abi_open_call now;

	return !bpf_map_lookup_elem(l->open_map, key, &now) && now.start_ns == call->start_ns &&
	       !bpf_map_delete_elem(l->open_map, key);
}

static int sweep_scan_init(const struct latency *l, struct map_scan *ret_scan)
{
	return map_scan_init(ret_scan, l->open_map, sizeof(struct abi_open_call_key),
		sizeof(struct abi_open_call), 0);
}

static void sweep_batch(struct sweep *s, const struct map_scan *scan)
{
	for (uint32_t i = 0; i < scan->count; i++) {
		const struct abi_open_call_key *key = map_scan_key(scan, i);
		const struct abi_open_call *call = map_scan_value(scan, i);

		if (key->function < s->l->count && !sweep_lives(s, key, call))
			s->l->swept += sweep_forget(s->l, key, call);
	}
}

/* Looks at LIMIT open calls, more or less, from where it was last time. */
static void sweep_some(struct latency *l, uint32_t limit)
{
	struct sweep sweep = { .l = l, .memory_fd = -1 };
	autocall(map_scan_deinit) struct map_scan scan = { 0 };
	uint32_t seen = 0;

	if (sweep_scan_init(l, &scan))
		return;
	map_scan_continue(&scan, l->sweep_place);
	while (seen < limit && !scan.done && !map_scan_next(&scan)) {
		sweep_batch(&sweep, &scan);
		seen += scan.count;
	}
	l->sweep_place = scan.done ? 0 : scan.place;
	if (sweep.memory_fd >= 0)
		close(sweep.memory_fd);
}

/* ---- when the map is full ------------------------------------------------------------------- */

static int sweep_compare_times(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

/* Sets *RET_NS to the time before which the oldest part of all open calls began. */
static int sweep_find_oldest(const struct latency *l, uint64_t *ret_ns)
{
	autocall(map_scan_deinit) struct map_scan scan = { 0 };
	autofree uint64_t *times = calloc(l->options.max_open_calls, sizeof(*times));
	size_t count = 0;
	int err = times ? sweep_scan_init(l, &scan) : -ENOMEM;

	while (!err && !scan.done) {
		err = map_scan_next(&scan);
		for (uint32_t i = 0; !err && i < scan.count && count < l->options.max_open_calls;
			i++) {
			const struct abi_open_call *call = map_scan_value(&scan, i);

			times[count++] = call->start_ns;
		}
	}
	if (err || !count)
		return err ? err : -ENOENT;
	qsort(times, count, sizeof(*times), sweep_compare_times);
	*ret_ns = times[count / EVICTED_PART];
	return 0;
}

static void sweep_evict(struct latency *l)
{
	autocall(map_scan_deinit) struct map_scan scan = { 0 };
	uint64_t before_ns;

	if (sweep_find_oldest(l, &before_ns) || sweep_scan_init(l, &scan))
		return;
	while (!scan.done && !map_scan_next(&scan)) {
		for (uint32_t i = 0; i < scan.count; i++) {
			const struct abi_open_call *call = map_scan_value(&scan, i);

			if (call->start_ns < before_ns)
				l->evicted += sweep_forget(l, map_scan_key(&scan, i), call);
		}
	}
}

void latency_sweep_all(struct latency *l)
{
	l->sweep_place = 0;
	sweep_some(l, UINT32_MAX);
}

void latency_sweep(struct latency *l)
{
	struct latency_counts counts;

	sweep_some(l, SWEEP_AT_ONCE);
	if (latency_read_counts(l, &counts) || counts.open_full == l->open_full)
		return;
	l->open_full = counts.open_full;
	sweep_evict(l);
}
