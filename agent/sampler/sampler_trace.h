/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Traced calls in the sampler. Which functions of which files are traced is said by struct
 * sampler_latency_options, as for measuring them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/probes/trace/trace.h"
#include "bpf/abi/trace.h"

struct sampler;
struct function_pattern;
struct probed_chosen;
struct probed_function;
struct argument_plan;
struct cache;

struct sampler_trace_options {
	/* In time order. EVENT's payload follows it. */
	void (*event)(void *context, const struct abi_trace_event *event);
	/* Thread TID of process PID has ended, the process if they are equal. */
	void (*exit)(void *context, uint32_t pid, uint32_t tid);
	/*
	 * As in struct probed_files_options, for sampler_trace_fetch(); NULL = no arguments. Also
	 * called while the sampler is created: for processes that run files with an index.
	 */
	void (*chosen)(void *context, struct sampler *sampler, const struct probed_chosen *file,
		const struct probed_function *functions, size_t count);
	/*
	 * Kernel functions are traced in processes that run the file that this pattern's BIN names,
	 * with latency_options.kernel_by_sets; borrowed, NULL = collect's filters choose them.
	 */
	const struct function_pattern *program;
	void *context;
};

enum sampler_place_kind {
	SAMPLER_PLACE_UNKNOWN, /* the process, or what it maps there, is not known */
	SAMPLER_PLACE_MODULE, /* `module` and `address`; the file is not indexed, or not yet */
	SAMPLER_PLACE_LINE, /* and `file` and `line` */
	SAMPLER_PLACE_KERNEL, /* `symbol` and `address`; `module` if it is in one, else "" */
};

/* Where code of a process or of the kernel is. Texts are valid until the next call into the
 * sampler.
 */
struct sampler_place {
	enum sampler_place_kind kind;
	const char *module; /* path; of the kernel, name */
	const char *symbol; /* function of the kernel */
	uint64_t address; /* file offset; in the kernel, of the return address in the function */
	const char *file;
	uint32_t line;
};

/* Finds the call instruction before RETURN_ADDRESS in process PID, to be called from event(). */
struct sampler_place sampler_trace_place(
	struct sampler *sampler, uint32_t pid, uint64_t return_address);
/* Finds the return address KADDR of a call in the kernel. */
struct sampler_place sampler_trace_kernel_place(struct sampler *sampler, uint64_t kaddr);
/* As trace_fetches_add(), to be called from chosen(). */
int sampler_trace_fetch(struct sampler *sampler, uint32_t number, const struct argument_plan *entry,
	const struct argument_plan *results);
/* The index cache, in which plans are kept as well (symbolizer/builds/kept_arguments.h). */
struct cache *sampler_trace_cache(struct sampler *sampler);
void sampler_trace_counts(const struct sampler *sampler, struct trace_counts *ret_counts);
