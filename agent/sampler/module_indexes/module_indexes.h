/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The index of each sampled module: whether it is there, and when it is requested. An index is
 * requested at the first sample in its module, while the process that maps it most likely still
 * lives: the file is opened then, so that it may be deleted or replaced afterwards. A cached index
 * is there at once, even before the first sample, when its program is executed.
 *
 * A module is in one of these states, which determine what its next sample does:
 *
 *     UNASKED ───────── file opened ──────────► ASKED ─────── answer ──────► ANSWERED
 *      │  │                                     ▲ ▲ ▲                           │
 *      │  └─ file not available ─► UNOPENED ────┘ │ └── sample after again_ns ──┘
 *      └──── no descriptors, … ──► POSTPONED ─────┘
 *
 *     UNASKED    requests the index, as drawn
 *     ASKED      nothing: the builds owe an answer
 *     ANSWERED   requests again from again_ns on (0 = never): an index without lines may get a
 *                debug file, soon if that is there but does not answer, and a build that was cut
 * off may finish next time UNOPENED   requests, if it is of another process than the one whose file
 * could not be opened; from again_ns on (0 = never), if it is of any POSTPONED  requests from
 * again_ns on; the pause grows from one second to a quarter of a minute
 *
 * A request that fails leads from any state to UNOPENED (ANSWERED if there is an index) or
 * POSTPONED, and an index that is there stays in use while a better one is requested. In UNOPENED
 * and POSTPONED, and while a debug file does not answer, samples with cached stacks also request
 * the index, for ten seconds: a program that is a single loop has no others.
 *
 * module_indexes_want_functions() requests an index with functions (symbolizer/index/functions.h),
 * in any state, even where there is an index without them; the module is ASKED then. If that fails,
 * its state is what it was. Beside the state there is what the owner of functions knows:
 *
 *     UNWANTED ──── wanted ────► WANTED ──── answer ────► TOLD ─┐
 *                                  ▲                            │ wanted again; there were no
 *                                  └────────────────────────────┘ functions a minute ago
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
	struct index_requests requests; /* its builds answer to module_indexes_answer() */
	struct cache *cache; /* borrowed */
	bool servers_asked; /* the builds query servers: an index may get lines later */
	size_t limit; /* modules; more have no index */
	/* MODULE's first index arrived. NULL: none is available for now. */
	void (*answered)(void *context, struct module *module, const struct index *index);
	/*
	 * INDEX, which has lines or functions that MODULE's index lacks, is about to replace that,
	 * which is then destroyed.
	 */
	void (*replaced)(void *context, const struct module *module, const struct index *index);
	/*
	 * The answer to module_indexes_want_functions(), after `answered` or `replaced`: INDEX,
	 * which is MODULE's now, has functions; or NULL, there is none that has them. May be NULL
	 * if functions are never wanted.
	 */
	void (*functions)(void *context, struct module *module, const struct index *index);
	/*
	 * Whether the owner wants the file of a sampled module; asked at most once a minute per
	 * file. If so, the file is opened and passed to take_file(), which must close FD. Both
	 * NULL: no file is wanted.
	 */
	bool (*wants_file)(void *context, const struct module *module);
	void (*take_file)(void *context, const struct module *module, int fd);
	void *context;
};

int module_indexes_create(
	const struct module_indexes_options *options, struct module_indexes **ret_indexes);
void module_indexes_destroy(struct module_indexes *indexes);

/* Sets the time of the sample that is being processed. */
void module_indexes_set_time(struct module_indexes *indexes, uint64_t sample_ns);
/* Sets the control group of the sample that is being processed; 0 = not known. */
void module_indexes_set_cgroup(struct module_indexes *indexes, uint64_t cgroup_id);
/* A sample of P has a frame in MAPPING. */
void module_indexes_hit(
	struct module_indexes *indexes, const struct process *p, const struct mapping *mapping);
/*
 * A sample of P has a frame in module NUMBER, but a cached stack. Only needed while
 * module_indexes_wants_known_stacks() is true.
 */
void module_indexes_hit_again(
	struct module_indexes *indexes, const struct process *p, uint32_t number);
bool module_indexes_wants_known_stacks(const struct module_indexes *indexes);
/*
 * Requests the index with functions of the file that P maps in MAPPING. `functions` is called once,
 * from within this call if the answer is known. While it is not, further calls do nothing. Returns
 * a negative errno, and `functions` is not called, if the file cannot be opened or the request
 * fails: another process, or another time (failure_is_transient()), may do. An answer without
 * functions is repeated for a minute.
 */
int module_indexes_want_functions(
	struct module_indexes *indexes, const struct process *p, const struct mapping *mapping);
/* The same for MODULE, whose file was read and is open as FD, which is taken. */
int module_indexes_want_functions_of(struct module_indexes *indexes, struct module *module, int fd);
/*
 * The index of the kernel is wanted, MODULE, whose text is linked at [START, END): requests it as a
 * sample would.
 */
void module_indexes_hit_kernel(
	struct module_indexes *indexes, struct module *module, uint64_t start, uint64_t end);
/* As if P's program had been sampled, and the vDSO. */
void module_indexes_hit_program(struct module_indexes *indexes, const struct process *p);
/*
 * PROGRAM is executed: takes its index from the cache if a complete one is there. Otherwise the
 * index is requested at the first sample.
 */
void module_indexes_executed(struct module_indexes *indexes, struct module *program);
/*
 * Call before a window is sealed: requests the indexes of modules whose files could not be read
 * when they were mapped, but were read elsewhere since.
 */
void module_indexes_identify(struct module_indexes *indexes);
/* builds_options.done: the answer for module TAG. Takes INDEX; NULL = none. */
void module_indexes_answer(struct module_indexes *indexes, uint64_t tag, struct index *index);
/* The answers of wants_file() may have changed: offers all files again. */
void module_indexes_offer_files_again(struct module_indexes *indexes);
/* MODULE is about to be freed: destroys its index. */
void module_indexes_forget(struct module_indexes *indexes, const struct module *module);
/* Gives the resident pages of all indexes back to the system. */
void module_indexes_forget_pages(const struct module_indexes *indexes);

/* The index of MODULE, or NULL. Valid until it is replaced or its module is forgotten. */
const struct index *module_indexes_get(
	const struct module_indexes *indexes, const struct module *module);
/* Whether the last answer was that there is no index. */
bool module_indexes_is_absent(const struct module_indexes *indexes, const struct module *module);
/* Whether there is no index yet, but an answer will come without a further sample. */
bool module_indexes_is_awaited(const struct module_indexes *indexes, const struct module *module);
/* Whether MODULE's file did not answer just now, and a later sample is about to ask again. */
bool module_indexes_may_come(const struct module_indexes *indexes, const struct module *module);
/*
 * Requests what was postponed and has no index, though no sample comes any more. Returns whether
 * any of it is postponed again.
 */
bool module_indexes_ask_postponed(struct module_indexes *indexes);
/* Mapped size of all indexes. */
uint64_t module_indexes_bytes(const struct module_indexes *indexes);
