/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns a sealed window into output: symbolizes each distinct frame once, then writes pprof or
 * folded text. Reads the profile, the process table and the symbol sources; changes none of them
 * but the metrics.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/process/modules.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/runtimes/names.h"
#include "agent/sampler/profile/sealed_window.h"
#include "base/buffer.h"
#include "base/metrics.h"
#include "symbolizer/index/index.h"
#include "symbolizer/kallsyms/kallsyms.h"
#include "symbolizer/perf_map/perf_map.h"

struct report_sources {
	const struct profile *profile;
	struct processes *processes;
	struct modules *modules;
	const struct kallsyms *kallsyms; /* NULL: kernel frames stay addresses */
	/* The index of a module, or NULL where there is none. */
	const struct index *(*index)(void *context, const struct module *module);
	/* The perf map of a process, up to date, or NULL. */
	const struct perf_map *(*perf_map)(void *context, struct process *process);
	/* What PROCESS's runtime calls FRAME. NULL: no runtime brings frames of its own. */
	void (*runtime_names)(void *context, struct process *process, const struct abi_frame *frame,
		struct runtime_names *names);
	void *context;
	struct metrics *metrics;
};

struct report_options {
	bool cycles; /* the event was cycles: second value is cycles/count */
	/*
	 * Waits were sampled, too. pprof: two more types, waits/count and off_cpu/nanoseconds, 0 in
	 * all other samples, as the first two are in those of waits. Folded: waits only.
	 */
	bool off_cpu;
	/* ns or cycles; pprof has the samples' mean instead, and says so, where they have another.
	 */
	int64_t period;
	int64_t time_ns; /* start, since 1970 */
	int64_t duration_ns;
	bool no_inlines;
	bool no_demangle;
	bool no_labels; /* samples have no labels: equal stacks are one. pprof only */
	const char *comment; /* or NULL */
	/* A comment on each mapping whose file is known (base/file_hash.h). pprof only. */
	bool file_hashes;
	/* Which samples are in it; NULL: all. pprof only. */
	bool (*include)(void *context, const struct profile_sample *sample);
	void *include_context;
};

/* For a report of all of WINDOW. */
struct report_options report_window_options(const struct sealed_window *window);

/* What the end of `fathom record` says. */
struct report_summary {
	uint64_t samples;
	uint64_t waits, wait_ns; /* of threads that left the CPU; no samples above */
	uint64_t user_stacks, complete_stacks; /* weighted by samples and waits */
	uint64_t user_frames, named_user_frames; /* innermost user frames, as these */
	uint64_t entries; /* of the pprof's sample table */
};

/* Appends a gzip pprof to OUT. */
int report_pprof(const struct report_sources *sources, const struct report_options *options,
	struct buffer *out, struct report_summary *ret_summary);
/*
 * Appends `comm;frame;frame count` lines, root first, sorted. With off_cpu the count is
 * microseconds of waiting.
 */
int report_folded(const struct report_sources *sources, const struct report_options *options,
	struct buffer *out, struct report_summary *ret_summary);

/* The functions with most samples, for the terminal: by self count, descending; without waits. */
struct report_hot {
	const char *name; /* owned by the list, and fit for a terminal */
	const char *module; /* likewise */
	uint64_t self_count;
	uint64_t total_count;
};
int report_hottest(const struct report_sources *sources, struct report_hot **ret_list, size_t max,
	size_t *ret_count);
void report_hottest_free(struct report_hot *list, size_t count);
