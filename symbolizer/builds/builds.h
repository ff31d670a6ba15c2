/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue of index builds: which module waits for its index, which is being built, what came of
 * it. At most MAX_CHILDREN sandboxes run at once; requests for a module that already waits join it.
 * Owns no thread and no event loop: its owner polls the descriptors that `watch` tells it and calls
 * builds_ready(), and calls builds_expire() about once a second, because the limit on CPU time does
 * not end a child that sleeps. The thread that does so has to live as long as the builds do.
 *
 * `watch` and `done` are called from inside the calls below. `done` may ask for more modules; it
 * must not destroy the builds.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"
#include "base/module_id.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/builds/debug_files.h"
#include "symbolizer/sandbox/sandbox.h"

struct builds;
struct debuginfod;

enum { BUILDS_OPEN_DEBUG = 4 };

struct builds_options {
	struct cache *cache;
	struct metrics *metrics;
	/*
	 * Servers that may have the debug file of a module that lacks one (of files of
	 * builds_request_debug() only); borrowed, NULL = none. `done` is called for such a module
	 * as for others, and once more with a better index when the file has come. All files that
	 * are there at once are BUILDS_OPEN_DEBUG modules'.
	 */
	struct debuginfod *debuginfod;
	struct sandbox_limits limits;
	unsigned int max_children;
	unsigned int max_waiting; /* more are refused with -EAGAIN */
	/* FD is to be watched for reading (or, with WATCH false, no longer). May be NULL in tests.
	 */
	void (*watch)(void *context, int fd, bool watch);
	/* A module's index is there (INDEX, now the callee's) or cannot be had (NULL). */
	void (*done)(void *context, uint64_t tag, struct index *index);
	void *context;
};

int builds_create(const struct builds_options *options, struct builds **ret_builds);
/* Kills the children; `done` is not called for what was waiting, `watch` is for what ran. */
void builds_destroy(struct builds *b);
/*
 * Asks for ID's index. From the cache: `done` is called before this returns. Else FD (the module's
 * file, moved in: closed here in any case) waits for a sandbox. FD -1: look in the cache only.
 * A module whose build failed before is done with NULL at once. One whose builder was killed, or
 * could not be started, is tried again after a second, then after four and sixteen; only then it is
 * done with NULL, and may be asked for again. On an error (-EAGAIN, -ENOMEM, -E2BIG for too many
 * requests of one module) `done` is not called.
 */
int builds_request(struct builds *b, const struct module_id *id, int fd, uint64_t tag);
/*
 * The same with the place where debug files are to be looked for, if FD is built; SEARCH is read
 * before this returns. An index from the cache that was built without any is built anew where one
 * is there now.
 */
int builds_request_debug(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search);
/* A watched FD is readable. */
void builds_ready(struct builds *b, int fd);
/*
 * Ends the builds that take longer than four times their CPU limit and five seconds. Remembered as
 * interrupted and not as failed: it may have been the machine. Starts those again whose next try is
 * due. NOW_NS is of CLOCK_MONOTONIC.
 */
void builds_expire(struct builds *b, uint64_t now_ns);
/*
 * Somebody waits for them: the builds that run have this process's priority from now on, where it
 * may give it (CAP_SYS_NICE). Theirs is lower, and on a busy machine that can mean minutes.
 */
void builds_hurry(struct builds *b);
/*
 * One thing more cannot go on without the index of TAG's module. What most wait for, and costs
 * least of those, is built first; a small file at once, beside bigger ones, and with this process's
 * priority.
 */
void builds_want(struct builds *b, uint64_t tag);
/* Modules without an index whose builds wait, run, or are to be tried again within seconds. */
unsigned int builds_pending(const struct builds *b);
/* Tries that came to nothing for a reason that may pass; for the log. */
struct builds_setbacks {
	uint64_t interrupted; /* builders that others ended */
	uint64_t not_started;
	int start_error; /* of the last of these */
};
struct builds_setbacks builds_setbacks(const struct builds *b);
/* Those with one, for which debug files are being asked or built anew; bytes that are coming now.
 */
struct builds_improving {
	unsigned int modules;
	uint64_t bytes;
};
struct builds_improving builds_improving(const struct builds *b);
/* CPU time of all children collected so far (getrusage), and the largest peak RSS in bytes. */
uint64_t builds_cpu_ns(const struct builds *b);
uint64_t builds_peak_bytes(const struct builds *b);
