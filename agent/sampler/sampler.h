/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sampler: the only place that knows every room. It carries records from collect to the process
 * table and into the profile, resolves each stack at the time of its sample, requests a module's
 * index at its first hit, and tells BPF how to read the state of runtimes.
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
#include "agent/sampler/seam/calls.h"
#include "agent/sampler/seam/sealed_window.h"
#include "base/module_id.h"
#include "symbolizer/builds/builds.h"

struct sampler;
struct sampler_latency_options;
struct sampler_trace_options;

struct sampler_options {
	struct collect_options collect; /* its handlers, probes and metrics are ignored */
	const char *cache_directory;
	uint64_t cache_limit_bytes;
	const char *debug_directories; /* comma-separated (symbolizer/builds/debug_search.h); NULL =
					  none */
	const char *debuginfod_urls; /* servers of debug files; NULL or "" = none */
	unsigned int debuginfod_per_minute; /* requests to them; 0 = no limit */
	bool kernel_debuginfo; /* look for the kernel's own debug file, too */
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
	/* Functions to be measured (agent/sampler/sampler_latency.h); NULL = none. Borrowed. */
	const struct sampler_latency_options *latency;
	/* Trace them instead (agent/sampler/sampler_trace.h); NULL = no. Borrowed. */
	const struct sampler_trace_options *trace;
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
 * Requests the indexes of the programs most likely to be sampled, so that names and fibers are
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
/* Modules that have an index but wait for debug files, and bytes being downloaded. */
struct builds_improving sampler_pending_debug(const struct sampler *sampler);
