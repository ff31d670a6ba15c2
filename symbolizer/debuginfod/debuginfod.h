/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of the debuginfod servers, so that they are asked neither too often nor in vain:
 * how many questions a minute they get; that none of them answers at the moment, when they are left
 * alone for a minute and then for up to a quarter of an hour; and what they do not have, which is
 * remembered for a day in the cache directory, over restarts too. Not who asks, nor for what.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/debuginfod/debuginfod_fetch.h"

struct debuginfod;

struct debuginfod_options {
	const char *urls; /* copied */
	struct cache *cache; /* borrowed; NULL: nothing is remembered, files are in memory */
	struct metrics *metrics; /* borrowed; NULL = none */
	uint64_t limit_bytes; /* of one file; 0 = as much as the servers have, up to 1 GiB */
	unsigned int per_minute; /* questions; 0 = as many as there are */
};

/* -ENOENT: there is no URL in the list. */
int debuginfod_create(const struct debuginfod_options *options, struct debuginfod **ret_debuginfod);
void debuginfod_destroy(struct debuginfod *d);

/* Times are of CLOCK_MONOTONIC. */

/* The servers do not answer: they are asked again later. */
bool debuginfod_is_paused(const struct debuginfod *d, uint64_t now_ns);
/* Whether one more question may be asked at this moment. */
bool debuginfod_may_ask(struct debuginfod *d, uint64_t now_ns);
/* They were asked for ID within a day and have nothing of use, or it is to be left alone for now.
 */
bool debuginfod_is_absent(const struct debuginfod *d, const struct build_id *id);

/*
 * Whether it makes sense to ask for the debug file of the module that INDEX is of: there are no
 * lines, there is a build ID, and nothing above speaks against it.
 */
bool debuginfod_is_wanted(
	const struct debuginfod *d, const struct index *index, struct build_id *ret_id);

/* A question that is under way: its owner watches child.result_fd. */
struct debuginfod_request {
	struct build_id id;
	struct sandbox child;
	uint64_t deadline_ns;
	int fd; /* of the file; -1 = none */
};

/* Starts to ask. */
int debuginfod_ask(
	struct debuginfod *d, const struct build_id *id, struct debuginfod_request *ret_request);
/*
 * To be called when child.result_fd is readable or the deadline is over. -EAGAIN: not yet; 0:
 * *RET_FD is the file, the caller's; else what the answer says, see there (-ETIMEDOUT at the
 * deadline).
 */
int debuginfod_collect(
	struct debuginfod *d, struct debuginfod_request *r, uint64_t now_ns, int *ret_fd);
/* Ends a question whose answer is of no use any more. */
void debuginfod_abandon(struct debuginfod_request *r);
/* What came turned out to be what was asked for. */
void debuginfod_is_right(struct debuginfod *d);
/* What came for ID is not what was asked for, or cannot be read: not asked for again for a day. */
void debuginfod_is_wrong(struct debuginfod *d, const struct build_id *id);
/*
 * The build with what came for ID was interrupted: ID is not asked for again at once, and after
 * each time for longer, up to a day.
 */
void debuginfod_is_too_much(struct debuginfod *d, const struct build_id *id);
/* What came of a question, as debuginfod_collect() takes it in. */
void debuginfod_note(struct debuginfod *d, const struct build_id *id,
	const struct debuginfod_answer *answer, uint64_t now_ns);

/* For the log. */
struct debuginfod_state {
	unsigned int failures; /* questions in a row that no server answered */
	struct debuginfod_answer last; /* of the last one of them */
	uint64_t wrong; /* files that were of no use, so far */
};
struct debuginfod_state debuginfod_state(const struct debuginfod *d);
/* What an error of an answer means, for people. */
const char *debuginfod_explain(int error);
