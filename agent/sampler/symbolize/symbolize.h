/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Answers the questions of a report (agent/sampler/seam/symbolized.h): names a frame from its
 * module's index, its process's perf map or runtime, or the kernel's symbols. Keeps the mappings
 * that it made for the current window, and names of frames in files for the next ones
 * (known_frames.h).
 */
#include "agent/sampler/process/modules.h"
#include "agent/sampler/runtimes/names.h"
#include "agent/sampler/seam/symbolized.h"
#include "symbolizer/index/index.h"
#include "symbolizer/kallsyms/kallsyms.h"
#include "symbolizer/perf_map/perf_map.h"

struct symbolize_options {
	const struct modules *modules; /* borrowed */
	/* The index of a module; NULL if it has none. */
	const struct index *(*index)(void *context, const struct module *module);
	/* The index of the kernel, by link address; NULL, or it returns NULL: names only. */
	const struct index *(*kernel_index)(void *context);
	/* An index is about to be searched, which touches some of its pages; may be NULL. */
	void (*looks_up)(void *context);
	/* The up-to-date perf map of process generation PROCESS; NULL if it has none. */
	const struct perf_map *(*perf_map)(void *context, uint32_t process);
	/* Names FRAME, which PROCESS's runtime provided. NULL: no runtime provides frames. */
	void (*runtime_names)(void *context, uint32_t process, const struct abi_frame *frame,
		struct runtime_names *names);
	void *context;
};

int symbolize_create(const struct symbolize_options *options, struct symbolize **ret_symbolize);
void symbolize_destroy(struct symbolize *s);
/*
 * From now on the questions are about another window: forgets the mappings of the last one.
 * KALLSYMS is borrowed until the next call; NULL = kernel frames stay addresses.
 */
void symbolize_begin(struct symbolize *s, const struct kallsyms *kallsyms);
/* The index of a module is about to be replaced by another: what it said is forgotten. */
void symbolize_index_replaced(struct symbolize *s);
/* Memory is short: forgets what can be asked again. */
void symbolize_shrink(struct symbolize *s);
