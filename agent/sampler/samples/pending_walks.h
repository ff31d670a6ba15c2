/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Walks that the kernel did not finish because a module's tables were not loaded. They are finished
 * here, with the registers and the piece of stack that came with the sample. A walk that needs a
 * module whose index is still being built waits for it, with the mappings of its instant. What
 * waits is packed and bounded; without room a walk goes on by frame pointer.
 *
 * Each sample that is given to pending_walks_finish() reaches either `add` or `lost`, once. Does
 * not know windows, profiles or who builds indexes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/samples/attributed_sample.h"
#include "base/metrics.h"

struct pending_walk;

struct pending_walks_options {
	struct unwind *unwind; /* borrowed, as all pointers here; NULL: no walk can be finished */
	struct processes *processes;
	struct metrics *metrics;
	size_t limit_bytes; /* pending_walks_limit() */
	/* As in struct unwind_options. */
	enum unwind_module (*module_state)(
		void *context, const struct module *module, const struct index **ret_index);
	/*
	 * A walk of P needs the index of MAPPING's module. True: it was asked for, and
	 * pending_walks_module_known() will be called. False: its file is not to be had.
	 */
	bool (*request_module)(void *context, struct process *p, const struct mapping *mapping);
	/* A walk is about to wait for MODULE: build its index before others. */
	void (*want_module)(void *context, const struct module *module);
	/* A walk looked into indexes. */
	void (*walked)(void *context);
	/* The walk is over. */
	void (*add)(void *context, const struct attributed_sample *sample);
	/* There is no memory to finish SAMPLE's walk, or its process is forgotten. */
	void (*lost)(void *context, const struct abi_sample *sample);
	void *context;
};

struct pending_walks {
	struct pending_walks_options options;
	struct pending_walk *waiting; /* the last one first */
	size_t waiting_bytes;
	bool module_known; /* since the last retry */
	bool more_ready; /* the last retry left some for the next one */
	bool resuming; /* walks are being resumed */
};

/*
 * Bytes that may wait: more where threads that leave the CPU are sampled (OFF_CPU_SHARE of their
 * switches), as that happens more often than a timer ticks, and at most an eighth of
 * MEMORY_LIMIT_BYTES (0 = none).
 */
size_t pending_walks_limit(double off_cpu_share, uint64_t memory_limit_bytes);
void pending_walks_init(struct pending_walks *w, const struct pending_walks_options *options);
/* What still waits is dropped. Not from a callback. */
void pending_walks_deinit(struct pending_walks *w);
/*
 * Finishes the walk of UNFINISHED, a sample of P, now or when the module indexes that it needs are
 * there. RAW has the frames that the kernel found; NULL: they were lost.
 */
void pending_walks_finish(struct pending_walks *w, struct process *p,
	const struct abi_unfinished *unfinished, const struct abi_stack *raw);
/* The index of a module came, or will not come. May be called from a callback. */
void pending_walks_module_known(struct pending_walks *w);
/*
 * Resumes walks whose modules are known, about MOST of them; the next call goes on with the others.
 * Not from a callback.
 */
void pending_walks_retry(struct pending_walks *w, size_t most);
/* Finishes the walks of WINDOW (0 = all) without what they wait for. Not from a callback. */
void pending_walks_flush(struct pending_walks *w, uint32_t window);
/* Marks all modules that a waiting walk may need as used at NOW_NS. */
void pending_walks_mark_modules(const struct pending_walks *w, uint64_t now_ns);
