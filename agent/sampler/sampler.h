/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sampler: the only place that knows every room. It carries records from collect to the process
 * table and into the profile, resolves each stack at the time of its sample, requests a module's
 * index at its first hit, and tells BPF how to read goroutine ids.
 *
 * Order of calls: sampler_create() (the rings begin to record side-band events, /proc is read),
 * sampler_prepare() (waits a bounded time for the indexes of the busiest programs),
 * sampler_start(), the loop runs, sampler_stop(), sampler_finish_builds() or
 * sampler_finish_debug(), then sampler_symbolize() for the report.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/loop/loop.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/seam/sealed_window.h"
#include "base/metrics.h"
#include "base/module_id.h"
#include "symbolizer/builds/builds.h"

struct sampler;
struct symbolize;
struct windows_tap;

struct sampler_options {
	struct collect_options collect; /* its handlers, probes and metrics are ignored */
	const char *cache_directory;
	uint64_t cache_limit_bytes;
	const char *debug_directories; /* comma-separated (symbolizer/builds/debug_search.h); NULL =
					  none */
	const char *debuginfod_urls; /* servers of debug files; NULL or "" = none */
	unsigned int debuginfod_per_minute; /* requests to them; 0 = no limit */
	uint64_t profile_limit_bytes; /* of each window */
	uint64_t memory_limit_bytes; /* near it, caches are shrunk; 0 = no limit */
	struct loop *loop;
	/*
	 * A window was sealed; only called after sampler_rotate_window(). WINDOW and its profile
	 * are valid during the call. May be NULL.
	 */
	void (*sealed)(void *context, const struct sealed_window *window);
	/*
	 * The window should end now: its samples approach a memory limit. NULL: samples over the
	 * limit are lost.
	 */
	void (*full)(void *context);
	/*
	 * Whether the owner wants a sampled file; asked at most once a minute per file. If so, the
	 * file is opened and passed to take_file(), which must close FD. ID is valid during the
	 * call. Both NULL: no file is wanted.
	 */
	bool (*wants_file)(void *context, const struct module_id *id);
	void (*take_file)(void *context, const struct module_id *id, int fd);
	void *sealed_context; /* of the four callbacks */
	bool follow; /* profile only FOLLOW_PID and its descendants */
	uint32_t follow_pid;
};

/* The step that failed, for an error message. STEP is a static string; DETAIL is a path or "". */
struct sampler_failure {
	const char *step;
	char detail[256];
};

int sampler_create(const struct sampler_options *options, struct sampler **ret_sampler,
	struct sampler_failure *ret_failure);
void sampler_destroy(struct sampler *sampler);

/*
 * Requests the indexes of the programs most likely to be sampled, so that goroutine ids are
 * available from the first sample on, and runs the loop until they are built or WAIT_NS have
 * passed.
 */
int sampler_prepare(struct sampler *sampler, uint64_t wait_ns);
int sampler_start(struct sampler *sampler);
/* Stops sampling and processes what is left in the rings. */
int sampler_stop(struct sampler *sampler);
/* Runs the loop until no index build is pending, for at most WAIT_NS. */
int sampler_finish_builds(struct sampler *sampler, uint64_t wait_ns);
/* As sampler_finish_builds(), but also waits for debug files from debuginfod servers. */
int sampler_finish_debug(struct sampler *sampler, uint64_t wait_ns);
/* Number of modules without an index whose build is waiting, running or about to be retried. */
unsigned int sampler_pending_builds(const struct sampler *sampler);
/* Modules that have an index but wait for debug files, and bytes being downloaded. */
struct builds_improving sampler_pending_debug(const struct sampler *sampler);

/*
 * Begins a new window without pausing sampling. The previous one is passed to `sealed` once its
 * last records have been read and pending index builds are done, or five seconds have passed.
 * Returns -EBUSY while the last records of the previous window are still being read.
 */
int sampler_rotate_window(struct sampler *sampler);
/* The current window: everything sampled since the last rotation. For use after sampler_stop(). */
struct sealed_window sampler_last_window(struct sampler *sampler);

/*
 * Opens an on-demand profile of PID (0 = all), independent of the windows. Returns -EAGAIN if too
 * many are open.
 */
int sampler_tap_open(struct sampler *sampler, uint32_t pid, struct windows_tap **ret_tap);
/* What TAP has collected so far. */
struct sealed_window sampler_tap_read(struct sampler *sampler, const struct windows_tap *tap);
void sampler_tap_close(struct sampler *sampler, struct windows_tap *tap);

/*
 * Who names the frames of the window that was passed on last, with what is known now. Valid until
 * the next window is passed on; call it again for each report that is made later than others.
 */
struct symbolize *sampler_symbolize(struct sampler *sampler);
const struct metrics *sampler_metrics(const struct sampler *sampler);
/* Writable, for rooms that count their own losses. */
struct metrics *sampler_metrics_to_add(struct sampler *sampler);
/*
 * Sets which processes are profiled from now on; NULL = all. SELECTION is borrowed until the next
 * call.
 */
void sampler_select(struct sampler *sampler, const struct selection *selection);
/* Pauses or resumes sampling on all CPUs. */
int sampler_pause(struct sampler *sampler, bool pause);
/* Sets the samples per second and CPU. */
int sampler_set_frequency(struct sampler *sampler, uint64_t hz);

/* The answers of wants_file() may have changed: offers all sampled files to it again. */
void sampler_offer_files_again(struct sampler *sampler);

/* Current sizes. */
struct sampler_sizes {
	uint64_t index_bytes; /* mapped, not resident */
	uint64_t kallsyms_bytes, profile_bytes, bpf_map_bytes;
	size_t processes, modules;
};
struct sampler_sizes sampler_sizes(const struct sampler *sampler);
uint64_t sampler_samples(const struct sampler *sampler); /* added to profiles so far */
uint64_t sampler_first_sample_ns(const struct sampler *sampler); /* CLOCK_MONOTONIC; 0 = none yet */
/* CPU time of index builds, and the largest one's peak memory. */
uint64_t sampler_builds_cpu_ns(const struct sampler *sampler);
uint64_t sampler_builds_peak_bytes(const struct sampler *sampler);
/* Run time of the BPF programs and number of runs; false before the first run. */
bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs);
