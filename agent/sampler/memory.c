/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps the agent small over months. Modules that nobody maps any more are forgotten after a
 * while, as their programs may come again. When memory comes near its limit, first everything goes
 * that can be had again: pages and entries of indexes, perf maps. If that is not enough, the window
 * ends early, so that its samples are written instead of lost.
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/profile/profile.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"

enum {
	/* More modules than this are not kept for their programs' return. */
	UNUSED_MODULES = 2048,
	FULL_PERCENT = 85, /* of the memory limit: time to let go */
	LONGEST_PAUSE = 64, /* looks, when letting go did not help */
};

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t MODULE_IDLE_NS = UINT64_C(300000000000);
static const uint64_t SWEEP_INTERVAL_NS = UINT64_C(30000000000);

/* ---- modules -------------------------------------------------------------------------------- */

struct sweep {
	struct sampler *sampler;
	uint64_t before_ns; /* those that were used last before this go */
};

static bool is_unused(void *context, struct module *m)
{
	const struct sweep *sweep = context;

	if (m->used_ns >= sweep->before_ns)
		return false;
	if (sweep->sampler->unwind)
		unwind_forget_module(sweep->sampler->unwind, m);
	sampler_module_data_free(m);
	return true;
}

/* The open windows name modules by number: what they may have seen stays. */
static size_t sweep_modules(struct sampler *sampler, uint64_t idle_ns)
{
	uint64_t open_ns = windows_oldest_open_ns(sampler->windows), now_ns = clock_monotonic_ns();
	uint64_t idle_since_ns = now_ns > idle_ns ? now_ns - idle_ns : 0;
	struct sweep sweep = { .sampler = sampler, .before_ns = MIN(idle_since_ns, open_ns) };

	/* A record that came late was counted into a window that began after its time. */
	sweep.before_ns -= MIN(sweep.before_ns, SECOND_NS);
	sampler->modules_swept_ns = now_ns;
	sampler_unwind_keep_modules(sampler);
	return processes_sweep_modules(sampler->processes, is_unused, &sweep);
}

void sampler_forget_modules(struct sampler *sampler)
{
	bool many = modules_count(sampler->modules) > sampler->modules_kept + UNUSED_MODULES;

	if (!many && clock_monotonic_ns() - sampler->modules_swept_ns < SWEEP_INTERVAL_NS)
		return;
	sweep_modules(sampler, MODULE_IDLE_NS);
	if (modules_count(sampler->modules) > sampler->modules_kept + UNUSED_MODULES) {
		sweep_modules(sampler, 0);
		sampler->modules_kept = modules_count(sampler->modules);
	}
}

/* ---- after a start and after each window ------------------------------------------------------
 */

void sampler_give_back_memory(struct sampler *sampler)
{
	(void)malloc_trim(0);
	sampler_forget_index_pages(sampler);
}

/* ---- the limit ------------------------------------------------------------------------------ */

uint64_t sampler_resident_bytes(const struct sampler *sampler, uint64_t *ret_file_bytes)
{
	unsigned long long total, resident, shared;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[96];
	ssize_t length = host_pread(sampler->statm_fd, text, sizeof(text) - 1, 0);

	*ret_file_bytes = 0;
	if (length <= 0)
		return 0;
	text[length] = 0;
	if (sscanf(text, "%llu %llu %llu", &total, &resident, &shared) != 3)
		return 0;
	*ret_file_bytes = shared * page;
	return resident * page;
}

static bool is_near_limit(const struct sampler *sampler)
{
	uint64_t file_bytes;

	return sampler_resident_bytes(sampler, &file_bytes) >
	       sampler->memory_limit_bytes / 100 * FULL_PERCENT;
}

static void shrink_caches(struct sampler *sampler)
{
	struct process *p;
	size_t i = 0;

	sweep_modules(sampler, 0);
	sampler_forget_index_pages(sampler);
	while ((p = processes_next_known(sampler->processes, &i)))
		sampler_jit_let_go(p);
	malloc_trim(0);
	metrics_add(&sampler->metrics, METRIC_MEMORY_CACHES, 1);
}

static void end_window_early(struct sampler *sampler)
{
	if (!sampler->full || windows_are_busy(sampler->windows))
		return;
	metrics_add(&sampler->metrics, METRIC_MEMORY_WINDOW, 1);
	sampler->full(sampler->sealed_context);
}

void sampler_look_at_memory(struct sampler *sampler)
{
	if (!sampler->memory_limit_bytes || !is_near_limit(sampler)) {
		sampler->memory_pause = sampler->memory_wait = 0;
		return;
	}
	if (sampler->memory_wait) {
		sampler->memory_wait--;
		return;
	}
	shrink_caches(sampler);
	if (!is_near_limit(sampler))
		return;
	/* Only where the window has a part in it. */
	if (profile_bytes(windows_profile(sampler->windows, 0)) > sampler->profile_limit_bytes / 4)
		end_window_early(sampler);
	sampler->memory_pause = MIN(2 * sampler->memory_pause + 1, LONGEST_PAUSE);
	sampler->memory_wait = sampler->memory_pause;
	log_info("memory stays near its limit although all caches were let go", "limit_bytes=%llu",
		(unsigned long long)sampler->memory_limit_bytes);
}

void sampler_look_at_profile(struct sampler *sampler)
{
	if (profile_bytes(windows_profile(sampler->windows, 0)) >
		sampler->profile_limit_bytes / 4 * 3)
		end_window_early(sampler);
}
