/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stack walks that the kernel did not finish because a module's tables were not loaded. They are
 * finished here, with the registers and the piece of stack that came with the sample. A walk that
 * needs a module whose index is still being built waits for it, with the mappings as of its sample.
 * Waiting walks are packed and bounded; without room a walk goes on by frame pointer.
 *
 * Each sample that is passed to pending_walks_finish() reaches either `add` or `lost`, once. Does
 * not know windows, profiles or who builds indexes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/samples/attributed_sample.h"
#include "agent/sampler/samples/stack_chunks.h"
#include "base/metrics.h"

struct pending_walk;

/* For pending_walks_retry() after each drain; takes about 10 ms. */
enum { PENDING_WALKS_AT_ONCE = 128 };

struct pending_walks_options {
	struct unwind *unwind; /* borrowed, as all pointers here; NULL: no walk can be finished */
	struct processes *processes;
	struct metrics *metrics;
	size_t limit_bytes; /* pending_walks_limit() */
	bool whole_stacks; /* for tests: MECHANISM_PACKED_STACKS is off */
	/* As in struct unwind_options. */
	enum unwind_module (*module_state)(
		void *context, const struct module *module, const struct index **ret_index);
	/*
	 * A walk of P needs the index of MAPPING's module. Returns true if it was requested, or
	 * soon will be, and pending_walks_module_known() will be called; false if no answer will
	 * come, for instance because the file cannot be opened.
	 */
	bool (*request_module)(void *context, struct process *p, const struct mapping *mapping);
	/* A walk is about to wait for MODULE: build its index before others. */
	void (*want_module)(void *context, const struct module *module);
	/* A walk has read indexes. */
	void (*walked)(void *context);
	/* The walk is finished. */
	void (*add)(void *context, const struct attributed_sample *sample);
	/* SAMPLE's walk cannot be finished: out of memory, or its process was freed. */
	void (*lost)(void *context, const struct abi_sample *sample);
	void *context;
};

/* Threads whose returns have come and whose samples have not: at most one for each CPU. */
enum { PENDING_RETURNS = 64 };

struct pending_walks {
	struct pending_walks_options options;
	struct pending_walk *waiting; /* newest first */
	size_t waiting_bytes; /* without chunks, which have a limit of their own */
	struct stack_chunks chunks;
	struct abi_returns *returns; /* PENDING_RETURNS, by thread; NULL until the first */
	bool module_known; /* since the last retry */
	bool more_ready; /* the last retry left walks for the next one */
	bool resuming; /* walks are being resumed */
};

/*
 * How many bytes may wait: more at a high rate of ticks, HZ, and if OFF_CPU_SHARE of the switches
 * off the CPU are sampled, as these are more frequent than ticks, but at most an eighth of
 * MEMORY_LIMIT_BYTES (0 = no limit).
 */
size_t pending_walks_limit(uint64_t hz, double off_cpu_share, uint64_t memory_limit_bytes);
void pending_walks_init(struct pending_walks *w, const struct pending_walks_options *options);
/* Drops the walks that still wait. Must not be called from a callback. */
void pending_walks_deinit(struct pending_walks *w);
/* Keeps CHUNK for the unfinished samples that refer to it. */
void pending_walks_chunk(struct pending_walks *w, const struct abi_chunk *chunk);
/* Keeps RETURNS for the unfinished sample of that thread, which comes next. */
void pending_walks_returns(struct pending_walks *w, const struct abi_returns *returns);
/* Call it about once a second. */
void pending_walks_tick(struct pending_walks *w);
/*
 * Finishes the walk of UNFINISHED, a sample of P, at once or when the module indexes it needs have
 * arrived. RAW: the frames that the kernel found; NULL if they were lost.
 */
void pending_walks_finish(struct pending_walks *w, struct process *p,
	const struct abi_unfinished *unfinished, const struct abi_stack *raw);
/* The index of a module arrived, or will not arrive. May be called from a callback. */
void pending_walks_module_known(struct pending_walks *w);
/*
 * Resumes about MOST of the walks whose modules are known; the next call continues with the others.
 * Must not be called from a callback.
 */
void pending_walks_retry(struct pending_walks *w, size_t most);
/*
 * Finishes the walks of WINDOW (0 = all) without the indexes they wait for. Must not be called from
 * a callback.
 */
void pending_walks_flush(struct pending_walks *w, uint32_t window);
/* Marks all modules that a waiting walk may need as used at NOW_NS. */
void pending_walks_mark_modules(const struct pending_walks *w, uint64_t now_ns);
