/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Function latency in the sampler: which functions of which files are measured. The processes are
 * those that collect's filter names, or with `follow` one process and its descendants.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/probed_files/probed_files.h"
#include "agent/sampler/probes/latency/latency.h"

struct sampler;

struct sampler_latency_options {
	struct latency_options probe;
	struct function_patterns wanted, unwanted; /* borrowed */
	bool exclude_vendor;
	bool dry_run; /* chooses functions, but attaches no probe */
	size_t max_functions;
};

/*
 * Probes the file at PATH (absolute, as we see it) before any process maps it. PROGRAM: patterns
 * without BIN apply to it. Returns a negative errno if it cannot be opened.
 */
int sampler_latency_add_path(struct sampler *sampler, const char *path, bool program);
/* The files and functions; valid as long as the sampler. */
const struct probed_files *sampler_probed_files(const struct sampler *sampler);
/* What was measured; NULL in a dry run. */
const struct latency *sampler_latency(const struct sampler *sampler);
/* Writes the name of process PID, "" if it is not known any more. */
void sampler_latency_comm(struct sampler *sampler, uint32_t pid, char *comm, size_t size);
/* Detaches all probes. What was measured stays. */
void sampler_latency_detach(struct sampler *sampler);
