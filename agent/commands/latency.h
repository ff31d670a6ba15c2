/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the source files of `fathom latency`. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/sampler_latency.h"
#include "agent/settings/config.h"
#include "agent/settings/sampling_options.h"
#include "bpf/abi/latency.h"

/* The most functions that are probed at once. */
enum { LATENCY_MAX_FUNCTIONS = 10000 };

struct sampler;

/* What becomes of calls, where they are not measured. Functions return a negative errno. */
struct latency_calls {
	/* Completes the options before the sampler is created. */
	void (*options)(void *context, struct sampler_options *options,
		struct sampler_latency_options *latency);
	/* Before the first function is probed. */
	int (*begin)(void *context, struct sampler *sampler, struct loop *loop);
	/*
	 * Functions are probed, and nothing runs yet. Says on stderr if that is of no use: then the
	 * run ends.
	 */
	int (*probed)(void *context);
	/* All probes are detached, and all events were delivered. */
	int (*finish)(void *context, uint64_t duration_ns);
	void *context;
};

/* latency_options.c: the settings, checked. Strings are borrowed from the settings. */
struct latency_plan {
	const char *name; /* the command's */
	const struct latency_calls *calls; /* NULL: they are measured */
	/*
	 * The processes of -p. None and no CMD either: all processes, present and future, that map
	 * a file that a wanted pattern names with BIN.
	 */
	struct sampling_options sampling;
	struct sampler_options sampler; /* all that settings say; collect is that of `sampling` */
	struct function_patterns wanted, unwanted;
	struct function_patterns kernel_wanted; /* none has a BIN */
	/* The last ones of `wanted` and `kernel_wanted`: nothing is said if they match nothing. */
	size_t optional, kernel_optional;
	bool exclude_vendor;
	bool dry_run;
	bool json;
	bool quiet;
	enum abi_latency_by by;
	uint64_t duration_ns; /* 0 = until a signal, or the end of CMD or of the processes of -p */
	uint64_t interval_ns; /* 0 = only the whole run is printed */
	const char *openmetrics; /* path; NULL = none */
	const char *profile; /* path of the pprof file; NULL = none */
	char **command; /* CMD and its arguments; NULL = none */
	char *cache_directory;
};

/*
 * Returns -EINVAL for a usage error, -ESRCH if there is no such process, or another negative errno,
 * after printing the reason to stderr.
 */
int latency_plan(const struct config *config, struct latency_plan *ret_plan);
/* Sets `sampler` from the settings and what else PLAN has. */
void latency_plan_sampler(const struct config *config, struct latency_plan *plan);
void latency_plan_deinit(struct latency_plan *plan);
