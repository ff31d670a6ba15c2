/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The composition: the only place that knows every room. Carries records from collect to the
 * process table and into the profile, resolves each stack at the time of its sample, asks for
 * module indexes as soon as a module is first hit, and tells the sampler how to read goroutine ids.
 *
 * Order: agent_create (rings record side-band, /proc is read), agent_prepare (waits a bounded time
 * for the indexes of Go candidates), agent_start, the loop runs, agent_stop, agent_finish_builds,
 * then agent_sources for the report.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/loop/loop.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/profile/sealed_window.h"
#include "agent/report/report.h"
#include "base/metrics.h"
#include "symbolizer/builds/builds.h"

struct sampler;
struct windows_tap;

struct sampler_options {
	struct collect_options collect; /* event, rate, CPUs, filter; handlers are the agent's */
	const char *cache_directory;
	uint64_t cache_limit_bytes;
	const char *debug_directories; /* comma-separated (symbolizer/builds/debug_files.h); NULL =
					  none */
	const char *debuginfod_urls; /* of servers that have debug files; NULL or "" = none */
	unsigned int debuginfod_per_minute; /* questions to them; 0 = no limit */
	uint64_t profile_limit_bytes; /* of each window */
	uint64_t memory_limit_bytes; /* near it, caches are let go; 0 = none */
	struct loop *loop;
	/* With sampler_rotate_window() only. WINDOW and its profile live for the call. */
	void (*sealed)(void *context, const struct sealed_window *window);
	/* The window should end now: its samples come near a limit of memory. NULL: they are lost.
	 */
	void (*full)(void *context);
	/*
	 * Sampled files that the composition wants for itself, NULL: none. Asked once a minute at
	 * most for each; one that WANTS_FILE agrees to is opened and given away.
	 */
	bool (*wants_file)(void *context, const struct module *module);
	void (*take_file)(void *context, const struct module *module, int fd);
	void *sealed_context; /* of all four */
	bool follow; /* only FOLLOW_PID and the processes that come from it */
	uint32_t follow_pid;
};

/* What failed, for a message: STEP is a static text; DETAIL a path or "". */
struct sampler_failure {
	const char *step;
	char detail[256];
};

int sampler_create(const struct sampler_options *options, struct sampler **ret_sampler,
	struct sampler_failure *ret_failure);
void sampler_destroy(struct sampler *sampler);

/*
 * Asks for the indexes of the programs that are likely to be sampled, so that goroutine ids are
 * there from the first sample on, and runs the loop until they are built or WAIT_NS have passed.
 */
int sampler_prepare(struct sampler *sampler, uint64_t wait_ns);
int sampler_start(struct sampler *sampler);
/* No more samples; takes in what is in the rings. */
int sampler_stop(struct sampler *sampler);
/* Runs the loop until no index is being built any more, WAIT_NS at most. */
int sampler_finish_builds(struct sampler *sampler, uint64_t wait_ns);
/* The same until nothing is expected from debuginfod servers any more either. */
int sampler_finish_debug(struct sampler *sampler, uint64_t wait_ns);
/* Whether a build is still waiting or running. */
unsigned int sampler_pending_builds(const struct sampler *sampler);
/* Modules for which debuginfod servers are being asked, and bytes that are coming. */
struct builds_improving sampler_pending_debug(const struct sampler *sampler);

/*
 * Begins a new window without stopping the sampling. The one before is given to `sealed` a moment
 * later, when the last records that belong to it have been read (-EBUSY while that is under way),
 * and the indexes that are being built are there or five seconds have passed.
 */
int sampler_rotate_window(struct sampler *sampler);
/* The window that is not sealed: all that was sampled since the last rotation, once it stopped. */
struct sealed_window sampler_last_window(struct sampler *sampler);

/* A profile on demand of PID (0 = all), beside the windows. -EAGAIN: too many are open. */
int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct windows_tap **ret_tap);
/* What it has until now. */
struct sealed_window sampler_tap_read(struct sampler *sampler, const struct windows_tap *tap);
void sampler_tap_close(struct sampler *sampler, struct windows_tap *tap);

/* What a report of PROFILE reads. */
void sampler_sources(
	struct sampler *sampler, const struct profile *profile, struct report_sources *ret_sources);
const struct metrics *sampler_metrics(const struct sampler *sampler);
/* For rooms that count their own losses. */
struct metrics *sampler_metrics_to_add(struct sampler *sampler);
/* Which processes are profiled from now on; borrowed until the next call. NULL: all. */
void sampler_select(struct sampler *sampler, const struct selection *selection);
/* Until it is called again without PAUSE the CPUs are not sampled. */
int sampler_pause(struct sampler *sampler, bool pause);
/* Samples a second and CPU from now on. */
int sampler_set_frequency(struct sampler *sampler, uint64_t hz);

/* What WANTS_FILE says has changed: asks for all files anew. */
void sampler_offer_files_again(struct sampler *sampler);

/* What is kept at the moment. */
struct sampler_sizes {
	uint64_t index_bytes; /* mapped, not resident */
	uint64_t kallsyms_bytes, profile_bytes, bpf_map_bytes;
	size_t processes, modules;
};
struct sampler_sizes sampler_sizes(const struct sampler *sampler);
uint64_t sampler_samples(const struct sampler *sampler); /* taken in so far */
uint64_t sampler_first_sample_ns(const struct sampler *sampler); /* CLOCK_MONOTONIC; 0 = none yet */
/* CPU time of index builds, and the largest one's peak memory. */
uint64_t sampler_builds_cpu_ns(const struct sampler *sampler);
uint64_t sampler_builds_peak_bytes(const struct sampler *sampler);
/* Run time of the BPF program, as it measures itself; false before the first run. */
bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs);
