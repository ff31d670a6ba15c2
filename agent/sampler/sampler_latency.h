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
#include "agent/sampler/kernel_functions/kernel_functions.h"
#include "agent/sampler/probed_files/probed_files.h"
#include "agent/sampler/probes/latency/latency.h"

struct sampler;

struct sampler_latency_options {
	struct latency_options probe;
	struct function_patterns wanted, unwanted; /* borrowed */
	struct function_patterns kernel_wanted; /* likewise; of kernel functions, without BIN */
	const struct function_patterns *roots; /* probed_files_options.roots */
	const struct function_patterns *kernel_roots; /* kernel_functions_options.roots */
	bool exclude_vendor;
	bool dry_run; /* chooses functions, but attaches no probe */
	size_t max_functions;
};

/*
 * Probes the file at PATH (absolute, as we see it) before any process maps it. PROGRAM: patterns
 * without BIN apply to it. Returns a negative errno if it cannot be opened.
 */
int sampler_latency_add_path(struct sampler *sampler, const char *path, bool program);
/*
 * Opens the files again that did not answer in time. Returns how many still did not. The sampler
 * does it once a second; who does not want to start without them may do it more often.
 */
size_t sampler_latency_open_again(struct sampler *sampler);
/*
 * Reads those of the measured processes again that could not be read because the machine is busy.
 * Only before the start. Returns how many that still are.
 */
size_t sampler_latency_read_again(struct sampler *sampler);
/*
 * What pattern number PATTERN, which names no function, may have meant: *RET_NAME, a name of a
 * function that differs little, and *RET_LIBRARY, the path of a file that has such a function, but
 * that patterns without BIN do not apply to. NULL = none; free() them.
 */
int sampler_latency_hint(const struct sampler *sampler, const struct function_patterns *wanted,
	size_t pattern, char **ret_name, char **ret_library);
/* Requests the indexes of libraries, which sampler_latency_hint() looks into. */
void sampler_latency_want_libraries(struct sampler *sampler);
/* The files and functions; valid as long as the sampler. */
const struct probed_files *sampler_probed_files(const struct sampler *sampler);
/* The kernel functions; NULL if none are wanted. */
const struct kernel_functions *sampler_kernel_functions(const struct sampler *sampler);
/* What was measured; NULL in a dry run. */
const struct latency *sampler_latency(const struct sampler *sampler);
/* How many measured calls have their stack in a profile; those that thinning left out are not in.
 */
uint64_t sampler_latency_stacks(const struct sampler *sampler);
/* Writes the name of process PID, "" if it is not known any more. */
void sampler_latency_comm(struct sampler *sampler, uint32_t pid, char *comm, size_t size);
/* Detaches all probes. What was measured stays; calls of what has ended are counted as abandoned.
 */
void sampler_latency_detach(struct sampler *sampler);
