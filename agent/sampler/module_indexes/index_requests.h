/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a module's index is asked for: its file is found and opened, its identity read, and both are
 * handed to the builds. When that is done, and what comes of it, is module_indexes.h's affair. The
 * builds may answer from inside of these calls.
 */
#include "agent/sampler/process/processes.h"
#include "base/metrics.h"
#include "symbolizer/builds/builds.h"

/* All pointers are borrowed. */
struct index_requests {
	int proc_fd; /* an open /proc */
	struct processes *processes;
	struct builds *builds;
	const char *debug_directories; /* comma-separated (symbolizer/builds/debug_files.h) */
	struct metrics *metrics;
};

/* As module_open() for the file that P maps in MAPPING; a failure is counted. */
int index_requests_open(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping, int *ret_fd);
/*
 * What the builds know MODULE's file by, without a look at it. -ENOENT: nobody has seen it so far,
 * and what it says of itself is not enough.
 */
int index_requests_identity(const struct index_requests *requests, const struct module *module,
	struct module_id *ret_id);

/*
 * Asks for the index of the file that P maps in MAPPING. A file that cannot be opened is asked for
 * by what is known of it: the cache may have its index. Returns the error of the question,
 * *RET_OPEN_ERR is that of opening (0 = none).
 */
int index_requests_mapped(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping, int *ret_open_err);
/* Asks the cache for the index of a file that was seen elsewhere. -ENOENT: it was not. */
int index_requests_seen(const struct index_requests *requests, const struct module *module);
/* Asks for the index of the vDSO, which MODULE is. */
int index_requests_vdso(const struct index_requests *requests, const struct module *module);
