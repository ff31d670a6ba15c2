/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Requests a module's index: finds and opens its file, reads its identity and hands both to the
 * builds. module_indexes.h decides when, and handles the answer. The builds may answer from within
 * these calls.
 */
#include "agent/sampler/process/processes.h"
#include "base/metrics.h"
#include "symbolizer/builds/builds.h"

/* All pointers are borrowed. */
struct index_requests {
	struct module_opener opener;
	struct processes *processes;
	struct builds *builds;
	const char *debug_directories; /* comma-separated (symbolizer/builds/debug_search.h) */
	struct metrics *metrics;
	uint64_t cgroup_id; /* of the sample that makes the next requests; 0 = not known */
};

/* As module_open() for the file that P maps in MAPPING; a failure is counted. */
int index_requests_open(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping, struct module_id *ret_id, int *ret_fd);
/*
 * The identity under which the builds know MODULE's file, without a look at it. Returns -ENOENT if
 * the file was never read and its build ID and inode are not enough.
 */
int index_requests_identity(const struct index_requests *requests, const struct module *module,
	struct module_id *ret_id);

/*
 * Requests the index of the file that P maps in MAPPING. A file that cannot be opened is requested
 * by what is known of it, because the cache may have its index. Returns the error of the request;
 * *RET_OPEN_ERR is that of opening the file (0 = none).
 */
int index_requests_mapped(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping, int *ret_open_err);
/*
 * Requests the index with functions (symbolizer/index/functions.h) of the file that P maps in
 * MAPPING. Returns the error of the request, or of opening the file: nothing is requested then.
 */
int index_requests_functions(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping);
/* The same for MODULE, whose file was read and is open as FD, which is taken. */
int index_requests_functions_of(
	const struct index_requests *requests, const struct module *module, int fd);
/* Requests the cached index of a file that was read elsewhere. Returns -ENOENT if it was not. */
int index_requests_seen(const struct index_requests *requests, const struct module *module);
/* Requests the index of the vDSO, whose module is MODULE. */
int index_requests_vdso(const struct index_requests *requests, const struct module *module);
/*
 * Requests the index of the running kernel, whose module is MODULE and whose text is linked at
 * [START, END): what its debug file says of lines and inlined functions.
 */
int index_requests_kernel(const struct index_requests *requests, const struct module *module,
	uint64_t start, uint64_t end);
