/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns a sealed window into pprof or folded text, symbolizing each distinct frame once. Reads the
 * profile, its processes and the symbol sources; modifies only the metrics.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "agent/sampler/seam/sealed_window.h"
#include "agent/sampler/seam/symbolized.h"
#include "agent/sampler/seam/window_processes.h"
#include "base/buffer.h"
#include "base/metrics.h"

struct report_sources {
	const struct profile *profile;
	const struct window_processes *processes;
	uint32_t anon_module; /* of struct sealed_window */
	struct symbolize *symbolize; /* is asked for the names of frames */
	struct metrics *metrics;
};

struct report_options {
	/*
	 * What the samples count. pprof has two values for each type; those of other types than a
	 * sample's own are 0. Samples of a type that is not here are left out.
	 */
	struct sample_types types;
	/* ns or cycles. pprof stores the samples' mean, with a comment, if theirs differ. */
	int64_t period;
	int64_t time_ns; /* start, ns since 1970 */
	int64_t duration_ns;
	bool no_inlines;
	bool no_demangle;
	/* Stacks of fibers (goroutines) begin with the function that created the fiber. */
	bool created_by;
	bool no_labels; /* omit labels, merging equal stacks; pprof only */
	bool span_labels; /* with no_labels: but those by which a server finds a span (span_label.h)
			   */
	const char *comment; /* NULL = none */
	/* Adds a comment for each mapping with a known file hash (base/file_hash.h). pprof only. */
	bool file_hashes;
	/*
	 * Leaves code without a symbol as addresses, without the start of their function for a
	 * name: servers only look up what has no name at all. pprof only.
	 */
	bool bare_addresses;
	/* Selects samples; NULL = all. pprof only. */
	bool (*include)(void *context, const struct profile_sample *sample);
	void *include_context;
	/*
	 * The text of the label `fathom_group` of a sample, valid until the next call; NULL = no
	 * sample has that label. pprof only.
	 */
	const char *(*group)(void *context, const struct profile_sample *sample);
	void *group_context;
	/*
	 * Numbers of the samples, ascending, if they are known; NULL = all. Those that `include`
	 * refuses are left out all the same. pprof only.
	 */
	const uint32_t *samples;
	size_t sample_count;
};

/* What a report of WINDOW reads; borrowed. METRICS are counted in. */
struct report_sources report_window_sources(
	const struct sealed_window *window, struct symbolize *symbolize, struct metrics *metrics);
/* Options for a report of all of WINDOW. */
struct report_options report_window_options(const struct sealed_window *window);

/* All samples of one type. */
struct report_total {
	uint64_t count, weight; /* as in struct profile_sample */
};

/* Totals for the summary that `fathom record` prints. */
struct report_summary {
	struct report_total of[SAMPLE_TYPES]; /* by number of the type */
	uint64_t user_stacks, complete_stacks; /* weighted by the samples' counts, of all types */
	uint64_t user_frames, named_user_frames; /* innermost user frames, weighted alike */
	uint64_t entries; /* rows of pprof's sample table */
};

/* Appends a gzipped pprof to OUT. */
int report_pprof(const struct report_sources *sources, const struct report_options *options,
	struct buffer *out, struct report_summary *ret_summary);
/*
 * Appends `comm;frame;frame count` lines of the samples of TYPE, root first, sorted. For other
 * types than ticks the count is the weight, times in microseconds.
 */
int report_folded(const struct report_sources *sources, const struct report_options *options,
	uint32_t type, struct buffer *out, struct report_summary *ret_summary);

/* The hottest functions for the terminal, by descending self count; waits are not counted. */
struct report_hot {
	const char *name; /* owned by the list; control characters replaced */
	const char *module; /* as name */
	uint64_t self_count;
	uint64_t total_count;
};
int report_hottest(const struct report_sources *sources, struct report_hot **ret_list, size_t max,
	size_t *ret_count);
void report_hottest_free(struct report_hot *list, size_t count);
