/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue of index builds: which modules wait for an index, which are being built, and the
 * results. Owners (the control groups whose files are built) take turns, see builds_order.c. At
 * most MAX_CHILDREN sandboxes run at once, and one more for a small file or another owner; requests
 * for a module that is already queued join its build. The queue has no thread and no event loop:
 * its owner polls the descriptors passed to `watch` and calls builds_ready(). It also calls
 * builds_expire() about once a second, because the CPU limit does not end a child that sleeps. The
 * thread that does this has to outlive the builds.
 *
 * `watch` and `done` are called from inside the calls below. `done` may request more modules; it
 * must not destroy the builds.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"
#include "base/module_id.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/sandbox/sandbox.h"

struct builds;
struct debuginfod;

enum { BUILDS_OPEN_DEBUG = 4 };

struct builds_options {
	struct cache *cache;
	struct metrics *metrics;
	/*
	 * Servers to ask for a module's missing debug file, only for modules requested by
	 * builds_request_debug(); borrowed, NULL = none. `done` is called for such a module as for
	 * others, and once more with a better index after the debug file has arrived. Files of at
	 * most BUILDS_OPEN_DEBUG modules are held at once.
	 */
	struct debuginfod *debuginfod;
	struct sandbox_limits limits;
	unsigned int max_children;
	unsigned int max_waiting; /* more are refused with -EAGAIN */
	/* Starts (or, WATCH false, stops) polling FD for reading. May be NULL in tests. */
	void (*watch)(void *context, int fd, bool watch);
	/* A module's index is ready (INDEX, owned by the callee) or unavailable (NULL). */
	void (*done)(void *context, uint64_t tag, struct index *index);
	void *context;
};

int builds_create(const struct builds_options *options, struct builds **ret_builds);
/* Kills the children. `done` is not called for unfinished builds; `watch` is, for running ones. */
void builds_destroy(struct builds *b);
/*
 * Requests ID's index. If it is cached, `done` is called before this returns. Otherwise FD (the
 * module's file; ownership moves in, closed in any case) waits for a sandbox. FD -1: look in the
 * cache only. If the module's build failed before, `done` gets NULL at once. If its builder was
 * killed or could not be started, the build is retried after 1, 4 and 16 seconds; after that `done`
 * gets NULL, and the module may be requested again. On error (-EAGAIN for a
 * full queue or a file that does not answer, -ENOMEM, -E2BIG for too many requests of one module)
 * `done` is not called.
 */
int builds_request(struct builds *b, const struct module_id *id, int fd, uint64_t tag);
/*
 * Like builds_request(); if FD is built, debug files are searched as SEARCH says. SEARCH is copied.
 * A cached index that was built without debug files is rebuilt if one can be found now.
 */
int builds_request_debug(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search);
/*
 * Like builds_request_debug(), but the index is to have functions (symbolizer/index/functions.h). A
 * cached one without them is built again, and so is one that is being built; if that fails, `done`
 * gets the one without. Servers that are being asked to improve such an index are asked again
 * afterwards, and nothing that improves an index with functions loses them. Without the library of
 * the disassembler `done` gets an index without functions.
 */
int builds_request_functions(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search);
/*
 * To be called from within `done`: whether debug files that may belong to its module did not
 * answer, in the search for them or while they were read. Its index is made of the rest, and
 * another request may give a better one later.
 */
bool builds_debug_is_late(const struct builds *b);
/* To be called when a watched FD is readable. */
void builds_ready(struct builds *b, int fd);
/*
 * Ends builds that run longer than four times their CPU limit plus five seconds; they count as
 * interrupted, not as failed, because the machine may have been at fault. So do, after ten calls,
 * builds that only sleep, because their files do not answer; after two calls another build may
 * start beside them. Also restarts postponed builds whose time has come. NOW_NS: CLOCK_MONOTONIC.
 */
void builds_expire(struct builds *b, uint64_t now_ns);
/*
 * Raises running builds to this process's priority, if CAP_SYS_NICE allows it, because somebody
 * waits for them: once for each, and for less than half a second. At its own, lower priority a
 * small build can take minutes on a busy machine; how long another one takes is up to its file.
 */
void builds_hurry(struct builds *b);
/*
 * Reports one more waiter for the index of TAG's module. Of an owner's builds the one with the
 * fewest bytes per waiter starts first. A small file does not wait for bigger ones, and hurries.
 */
void builds_want(struct builds *b, uint64_t tag);
/* Number of modules without an index whose builds wait, run or are postponed. */
unsigned int builds_pending(const struct builds *b);
/* Attempts that failed for a transient reason; for the log. */
struct builds_setbacks {
	uint64_t interrupted; /* builders killed from outside */
	uint64_t not_started;
	int start_error; /* of the last attempt that could not be started */
	uint64_t no_space; /* no room for the index in the cache directory */
	int space_error; /* of the last one of them */
	uint64_t hanging; /* builders that waited too long for a file */
};
struct builds_setbacks builds_setbacks(const struct builds *b);
/*
 * Modules with an index that is being improved by debug files from servers, and the bytes received
 * so far of the files being fetched.
 */
struct builds_improving {
	unsigned int modules;
	uint64_t bytes;
};
struct builds_improving builds_improving(const struct builds *b);
/*
 * Lets the builds use SHARE of a CPU over the long run (0: as much as they want). They may be a
 * minute of CPU time ahead; then they wait until enough of it is charged.
 */
void builds_set_share(struct builds *b, double share);
/* The part of builds_cpu_ns() that is charged so far: it grows by at most the share. */
uint64_t builds_charged_ns(const struct builds *b);
/* CPU time of all children, and the largest peak RSS of those that have ended. */
uint64_t builds_cpu_ns(const struct builds *b);
uint64_t builds_peak_bytes(const struct builds *b);
