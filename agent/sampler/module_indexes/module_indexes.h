/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The index of each sampled module: whether it is there, and who asks for it when. A module's index
 * is asked for at the first sample in it, while the process that maps it most likely still lives:
 * its file is opened then, so that it may be deleted or replaced afterwards. What the cache has is
 * there at once, even before the first sample, when its program is executed.
 *
 * A module is in one of these states, which say what its next sample does:
 *
 *     UNASKED ───────── file opened ──────────► ASKED ─────── answer ──────► ANSWERED
 *      │  │                                     ▲ ▲ ▲                           │
 *      │  └─ file not to be had ─► UNOPENED ────┘ │ └── sample after again_ns ──┘
 *      └──── no descriptors, … ──► POSTPONED ─────┘
 *
 *     UNASKED    asks, as follows
 *     ASKED      nothing: the builds owe an answer
 *     ANSWERED   asks again from again_ns on: an index without lines may get a debug file, and a
 *                build that did not end may end next time. 0 = never
 *     UNOPENED   asks, if it is of another process than the one that could not give the file;
 *                from again_ns on (0 = never) of any
 *     POSTPONED  asks from again_ns on; the pause grows from one second to a minute
 *
 * A question that fails leads from any state to UNOPENED or POSTPONED, but an index that is there
 * stays in use while a better one is asked for. In UNOPENED and POSTPONED samples of known stacks
 * ask as well, for ten seconds: a program that is all of one loop has no others.
 *
 * Knows modules and processes, the builds and their sources; not what an index is used for. The
 * time is that of the samples (CLOCK_MONOTONIC). One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/module_indexes/index_requests.h"
#include "agent/sampler/process/processes.h"
#include "symbolizer/index/index.h"

struct module_indexes;

struct module_indexes_options {
	struct index_requests requests; /* whose builds answer to module_indexes_answer() */
	struct cache *cache; /* borrowed */
	bool servers_asked; /* by the builds: an index without lines may get them later */
	size_t limit; /* modules; more have no index */
	/* MODULE's first index is there. NULL: none is to be had for now. */
	void (*answered)(void *context, struct module *module, const struct index *index);
	/* INDEX, which has lines, is about to take the place of MODULE's, which is destroyed. */
	void (*replaced)(void *context, const struct module *module, const struct index *index);
	/*
	 * Sampled files that the owner wants for itself. Asked once a minute at most for each; what
	 * it agrees to is opened, and FD is its to close. NULL: none.
	 */
	bool (*wants_file)(void *context, const struct module *module);
	void (*take_file)(void *context, const struct module *module, int fd);
	void *context;
};

int module_indexes_create(
	const struct module_indexes_options *options, struct module_indexes **ret_indexes);
void module_indexes_destroy(struct module_indexes *indexes);

/* The time of the sample that is read now. */
void module_indexes_set_time(struct module_indexes *indexes, uint64_t sample_ns);
/* A sample of P has a frame in MAPPING. */
void module_indexes_hit(
	struct module_indexes *indexes, const struct process *p, const struct mapping *mapping);
/*
 * P's sample has a frame in module NUMBER, but its stack was resolved before. Worth a call for each
 * frame only while module_indexes_wants_known_stacks().
 */
void module_indexes_hit_again(
	struct module_indexes *indexes, const struct process *p, uint32_t number);
bool module_indexes_wants_known_stacks(const struct module_indexes *indexes);
/* As if P's program had been sampled. */
void module_indexes_hit_program(struct module_indexes *indexes, const struct process *p);
/*
 * PROGRAM is executed: takes its index from the cache, if it is complete there. One that is not
 * waits for a sample.
 */
void module_indexes_executed(struct module_indexes *indexes, struct module *program);
/*
 * Before a window is sealed: asks for modules whose files could not be looked at when they were
 * mapped, and were seen elsewhere since.
 */
void module_indexes_identify(struct module_indexes *indexes);
/* builds_options.done: the answer for module TAG. Takes INDEX; NULL = none. */
void module_indexes_answer(struct module_indexes *indexes, uint64_t tag, struct index *index);
/* What wants_file() says has changed: offers all files again. */
void module_indexes_offer_files_again(struct module_indexes *indexes);
/* MODULE is about to be freed: destroys its index. */
void module_indexes_forget(struct module_indexes *indexes, const struct module *module);
/* Gives the resident pages of all indexes back to the system. */
void module_indexes_forget_pages(const struct module_indexes *indexes);

/* NULL: it is not there. Lives until it is replaced or its module forgotten. */
const struct index *module_indexes_get(
	const struct module_indexes *indexes, const struct module *module);
/* There was none to be had when it was last asked for. */
bool module_indexes_is_absent(const struct module_indexes *indexes, const struct module *module);
/* There is no index yet, and an answer will come without a further sample. */
bool module_indexes_is_awaited(const struct module_indexes *indexes, const struct module *module);
/* Of the mappings of all indexes. */
uint64_t module_indexes_bytes(const struct module_indexes *indexes);
