/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the source files of `fathom record`. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/commands/output_file.h"
#include "agent/commands/watched_targets.h"
#include "agent/report/nameless.h"
#include "agent/report/report.h"
#include "agent/sampler/sampler.h"
#include "agent/settings/sampling_options.h"
#include "agent/settings/config.h"
#include "base/buffer.h"

/* record_options.c: the command-line settings, resolved into sampler options. */
struct record_plan {
	struct sampler_options sampler;
	uint64_t duration_ns; /* 0 = until a signal or the end of the command */
	const char *output; /* path, or "-"; NULL = only the page */
	const char *html; /* path of the page, or "-"; NULL = none */
	bool folded;
	bool quiet; /* nothing on stderr but errors */
	bool created_by; /* as in struct report_options */
	bool others; /* -a, -p, -t or -G: CMD only sets the duration */
	char *cache_directory;
	struct sampling_options sampling; /* sampler.collect points into it */
};

/* Returns -EINVAL after printing the reason to stderr. */
int record_plan(const struct config *config, struct record_plan *ret_plan);
void record_plan_deinit(struct record_plan *plan);

/* The limit of a profile, and of its page. */
enum { RECORD_OUTPUT_BYTES = 1 << 30 };

/* record_files.c: each prints what is wrong to stderr, then returns the error. */
/* Whether the files can be written, before anything is recorded. */
int record_files_check(const struct record_plan *plan);
/* Writes PROFILE (gzip-compressed pprof, or folded text) and its page. */
int record_files_write(const struct record_plan *plan, const struct buffer *profile);

/* record_output.c */
struct record_result {
	const struct metrics *metrics;
	struct report_summary summary;
	const struct report_hot *hot;
	size_t hot_count;
	uint64_t cpu_ns; /* of fathom itself */
	uint64_t start_cpu_ns; /* of that, until sampling began */
	uint64_t builds_cpu_ns; /* of the index builders */
	uint64_t bpf_ns, bpf_runs; /* 0 = not counted by the kernel */
	uint64_t elapsed_ns;
	const struct report_nameless *nameless;
	size_t nameless_count;
	const char *output; /* NULL = no file to suggest opening */
	const char *html; /* likewise, for a browser */
	bool off_cpu; /* waits were sampled as well */
	bool targets_ended; /* all targets have ended */
	bool contained; /* processes outside of our PID namespace may have been meant, too */
	bool everything; /* all processes were sampled: a profile of many programs */
};
/* Prints the summary of a run to stderr. */
void record_print_result(const struct record_result *result);
