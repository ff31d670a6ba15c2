/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the source files of `fathom latency`. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/sampler.h"
#include "agent/settings/config.h"
#include "agent/settings/sampling_options.h"
#include "bpf/abi/latency.h"

/* The most functions that are probed at once. */
enum { LATENCY_MAX_FUNCTIONS = 10000 };

/* latency_options.c: the settings, checked. Strings are borrowed from the settings. */
struct latency_plan {
	/*
	 * The processes of -p. None and no CMD either: all processes, present and future, that map
	 * a file that a wanted pattern names with BIN.
	 */
	struct sampling_options sampling;
	struct sampler_options sampler; /* all that settings say; collect is that of `sampling` */
	struct function_patterns wanted, unwanted;
	bool exclude_vendor;
	bool dry_run;
	bool json;
	enum abi_latency_by by;
	uint64_t duration_ns; /* 0 = until a signal, or the end of CMD or of the processes of -p */
	uint64_t interval_ns; /* 0 = only the whole run is printed */
	const char *openmetrics; /* path; NULL = none */
	char **command; /* CMD and its arguments; NULL = none */
	char *cache_directory;
};

/*
 * Returns -EINVAL for a usage error, -ESRCH if there is no such process, or another negative errno,
 * after printing the reason to stderr.
 */
int latency_plan(const struct config *config, struct latency_plan *ret_plan);
void latency_plan_deinit(struct latency_plan *plan);
