/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * State of the debuginfod servers, so that they are not asked too often or in vain: the number of
 * questions in this minute; a pause while none of them answers, from one minute up to a quarter of
 * an hour; and what they do not have, remembered in the cache directory for a day, across restarts.
 * It does not know who asks, or for which module.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/debuginfod/debuginfod_fetch.h"

struct debuginfod;

struct debuginfod_options {
	const char *urls; /* copied */
	struct cache *cache; /* borrowed; NULL = nothing is remembered, files are memfds */
	struct metrics *metrics; /* borrowed; NULL = none */
	uint64_t limit_bytes; /* of one file, at most 1 GiB; 0 = 1 GiB */
	unsigned int per_minute; /* questions; 0 = unlimited */
};

/* Returns -ENOENT if there is no URL in the list. */
int debuginfod_create(const struct debuginfod_options *options, struct debuginfod **ret_debuginfod);
void debuginfod_destroy(struct debuginfod *d);

/* NOW_NS and deadlines: CLOCK_MONOTONIC. */

/* Returns true while servers are not asked because none answered. */
bool debuginfod_is_paused(const struct debuginfod *d, uint64_t now_ns);
/* Returns true if one more question may be asked now. */
bool debuginfod_may_ask(struct debuginfod *d, uint64_t now_ns);
/*
 * Returns true if the servers had nothing usable for ID in the last day, or if ID is paused after
 * an interrupted build.
 */
bool debuginfod_is_absent(const struct debuginfod *d, const struct build_id *id);

/*
 * Returns true if it makes sense to ask for the debug file of INDEX's module: it has no lines and
 * no DWARF of its own, it has a build ID, and the servers are neither paused nor known not to have
 * it.
 */
bool debuginfod_is_wanted(
	const struct debuginfod *d, const struct index *index, struct build_id *ret_id);

/* A pending question; its owner watches child.result_fd. */
struct debuginfod_request {
	struct build_id id;
	struct sandbox child;
	uint64_t deadline_ns;
	int fd; /* of the file; -1 = none */
};

/* Starts a question. */
int debuginfod_ask(
	struct debuginfod *d, const struct build_id *id, struct debuginfod_request *ret_request);
/*
 * To be called when child.result_fd is readable or the deadline has passed. Returns -EAGAIN if
 * there is no answer yet; 0 with the file in *RET_FD, owned by the caller; else struct
 * debuginfod_answer's error (-ETIMEDOUT at the deadline).
 */
int debuginfod_collect(
	struct debuginfod *d, struct debuginfod_request *r, uint64_t now_ns, int *ret_fd);
/* Cancels a question. */
void debuginfod_abandon(struct debuginfod_request *r);
/* Reports that a file from a server was the right one. */
void debuginfod_is_right(struct debuginfod *d);
/* Reports that the file for ID was wrong or unreadable: it is not asked for again for a day. */
void debuginfod_is_wrong(struct debuginfod *d, const struct build_id *id);
/*
 * Reports that the build with the file for ID was interrupted: ID is not asked for again for a
 * while, longer each time, up to a day.
 */
void debuginfod_is_too_much(struct debuginfod *d, const struct build_id *id);
/* Records an answer; called by debuginfod_collect(). */
void debuginfod_note(struct debuginfod *d, const struct build_id *id,
	const struct debuginfod_answer *answer, uint64_t now_ns);

/* For the log. */
struct debuginfod_state {
	unsigned int failures; /* successive questions that no server answered */
	struct debuginfod_answer last; /* the last such answer */
	uint64_t wrong; /* files that were wrong, so far */
};
struct debuginfod_state debuginfod_state(const struct debuginfod *d);
/* Returns a readable text for an answer's error. */
const char *debuginfod_explain(int error);
