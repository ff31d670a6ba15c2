/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the queue share: builds.c takes requests and events, builds_states.c moves
 * builds from state to state, builds_run.c starts and ends them, builds_order.c chooses the next,
 * builds_postponed.c tries again, builds_debug.c asks debuginfod servers.
 */
#include "base/cleanup.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/debuginfod/debuginfod.h"

/* Drawn in builds_states.c. */
enum build_state {
	BUILD_NEW, /* in no list yet */
	BUILD_WAITING, /* for a sandbox */
	BUILD_RUNNING, /* in a sandbox */
	BUILD_RUNNING_SPLIT, /* once more, with the .dwo files that the first pass wanted */
	BUILD_POSTPONED, /* tried in vain, to be tried again */
	/* From here on the requesters have an index: what comes is a better one. */
	BUILD_QUEUED, /* until servers may be asked for its debug file */
	BUILD_ASKING, /* servers are being asked */
	BUILD_WAITING_BETTER, /* for a sandbox, with files that came from servers */
	BUILD_RUNNING_BETTER, /* in a sandbox, with these */
	BUILD_OVER, /* in no list any more: its result is delivered, then it is destroyed */
	BUILD_STATES
};

/* Sets of states, each a bit. */
enum build_state_set {
	BUILDS_WAITING = 1 << BUILD_WAITING | 1 << BUILD_WAITING_BETTER,
	BUILDS_RUNNING = 1 << BUILD_RUNNING | 1 << BUILD_RUNNING_SPLIT | 1 << BUILD_RUNNING_BETTER,
	BUILDS_POSTPONED = 1 << BUILD_POSTPONED,
	BUILDS_QUEUED = 1 << BUILD_QUEUED,
	BUILDS_ASKING = 1 << BUILD_ASKING,
	/* Their debug files are coming, or there and not yet read. */
	BUILDS_OPEN = 1 << BUILD_ASKING | 1 << BUILD_WAITING_BETTER | 1 << BUILD_RUNNING_BETTER,
	BUILDS_IMPROVING = BUILDS_QUEUED | BUILDS_OPEN,
	/* Their requesters have nothing yet. */
	BUILDS_PENDING = 1 << BUILD_WAITING | 1 << BUILD_RUNNING | 1 << BUILD_RUNNING_SPLIT |
			 BUILDS_POSTPONED,
	BUILDS_ALL = BUILDS_PENDING | BUILDS_IMPROVING,
};

/* One module's build. */
struct build {
	enum build_state state; /* changed by builds_move() only */
	struct build *next, **link; /* in its state's list; link NULL = in none */
	struct module_id id;
	int elf_fd;
	struct companions companions;
	uint64_t bytes; /* of these files: what the build costs, about */
	uint64_t wanted; /* how often builds_want() was called for it */
	/* Where debug files are to be looked for; without it for none. */
	bool searches;
	int root_fd; /* of who maps the module; -1 = our own */
	char *path, *directories;
	int first_fd; /* while RUNNING_SPLIT: the index that the first pass made; else -1 */
	bool asks_servers; /* for the debug file, if the index lacks one */
	struct debuginfod_request debug; /* while ASKING; child.pid -1 = none */
	struct build_id debug_id; /* what the debug file was asked for by */
	unsigned int debug_files; /* that came from servers, and are among the companions */
	bool asked_alternate; /* servers were asked for what dwz moved out of them */
	struct cache_entry entry;
	struct sandbox sandbox;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC; 0 = none */
	unsigned int setbacks; /* tries that came to nothing for a reason that may pass */
	uint64_t resume_ns; /* CLOCK_MONOTONIC; while POSTPONED: when it is tried again */
	uint64_t *tags;
	size_t tag_count, tag_capacity;
};

struct build_list {
	struct build *first, **end; /* the oldest first */
	unsigned int count;
};

struct builds {
	struct builds_options options;
	struct build_list lists[BUILD_OVER]; /* by state; that of NEW stays empty */
	struct builds_setbacks setbacks;
	uint64_t cpu_ns, peak_bytes;
};

/* Of a build that is in no list; NULL is fine. */
void build_destroy(struct build *build);
DEFINE_AUTO(build);

void builds_watch(struct builds *b, int fd, bool on);
void builds_count(struct builds *b, enum metric id);

/* ---- builds_states.c ------------------------------------------------------------------------ */
void builds_lists_init(struct builds *b);
/* Whether a build may go from the state FROM to the state TO. */
bool build_may_become(enum build_state from, enum build_state to);
/* Puts BUILD behind the others of STATE. Any other step than those drawn is a bug: it aborts. */
void builds_move(struct builds *b, struct build *build, enum build_state state);
/* Takes BUILD off its list, whatever its state is: when all of them end. */
void builds_unlink(struct builds *b, struct build *build);
/* The oldest of the first of STATES that MATCHES is true for; NULL = none. */
typedef bool build_matches(const struct build *build, const void *context);
struct build *builds_find(
	const struct builds *b, unsigned int states, build_matches *matches, const void *context);
unsigned int builds_number(const struct builds *b, unsigned int states);
static inline bool build_is_in(const struct build *build, unsigned int states)
{
	return 1u << build->state & states;
}

/* ---- builds_run.c --------------------------------------------------------------------------- */
/* Starts what there is room for. */
void builds_start_waiting(struct builds *b);
/* The child of a running build has ended, as sandbox_receive() says. */
void builds_finish(struct builds *b, struct build *build);
/* A running build's child asks for files. */
void builds_answer(struct builds *b, struct build *build);
/* Kills the child of a running build, whose state is the caller's to change. */
void builds_stop(struct builds *b, struct build *build);
/* Ends a running build that takes too long. */
void builds_expire_build(struct builds *b, struct build *build);
/* Ends a new build whose module cannot be built now: its requester gets nothing. */
void builds_refuse(struct builds *b, struct build *build);

/* ---- builds_postponed.c --------------------------------------------------------------------- */
/*
 * Postpones a build that was interrupted or could not be started, ERR saying why. False: it has
 * been tried often enough for now, or its failure does not pass.
 */
bool builds_postpone(struct builds *b, struct build *build, int err);
/* How long to wait before a file is tried that interrupted builds before; 0 = not at all. */
uint64_t builds_pause_ns(const struct builds *b, const struct module_id *id);
/* Postpones a build for PAUSE_NS. False: that is too long to keep its file open. */
bool builds_postpone_for(struct builds *b, struct build *build, uint64_t pause_ns);
/* Lets those wait for a sandbox whose time has come. */
void builds_resume(struct builds *b, uint64_t now_ns);

/* ---- builds_order.c ------------------------------------------------------------------------- */
/* The one that is to start now. NULL: none, or too many run. */
struct build *builds_next(const struct builds *b);

/* ---- builds_debug.c ------------------------------------------------------------------------- */
/* Whether servers may have what INDEX, which was built or in the cache, lacks. */
bool builds_debug_wants(struct builds *b, struct build *build, const struct index *index);
/* Queues a build whose requesters have, or are about to get, their index. */
void builds_debug_queue(struct builds *b, struct build *build);
/*
 * Asks servers for the file with build ID ID, which the debug file of BUILD, running with it,
 * shares with others. False: it is not to be asked for. Else its child is over: it is built again
 * then.
 */
bool builds_debug_ask_alternate(struct builds *b, struct build *build, const struct build_id *id);
/* What a build says of the files that came from servers. */
enum builds_verdict {
	BUILDS_FILES_RIGHT,
	BUILDS_FILES_USELESS,
	BUILDS_FILES_UNREAD, /* it was not about them */
	BUILDS_FILES_INTERRUPTED, /* it may have been about them */
};
/* The build, with or without such files, is over. */
void builds_debug_over(struct builds *b, struct build *build, enum builds_verdict verdict);
/* True: FD was one of a question. */
bool builds_debug_ready(struct builds *b, int fd);
/* About once a second. */
void builds_debug_tick(struct builds *b, uint64_t now_ns);
