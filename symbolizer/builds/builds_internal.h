/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the queue: builds.c takes requests and events, builds_states.c moves
 * builds from state to state, builds_run.c starts and ends them, builds_order.c chooses the next
 * one, builds_postponed.c retries, builds_debug.c asks debuginfod servers.
 */
#include "base/cleanup.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/debuginfod/debuginfod.h"

/* Drawn in builds_states.c. */
enum build_state {
	BUILD_NEW, /* in no list yet */
	BUILD_WAITING, /* for a sandbox */
	BUILD_RUNNING, /* in a sandbox */
	BUILD_RUNNING_SPLIT, /* in a sandbox again, with the .dwo files that the index wants */
	BUILD_POSTPONED, /* failed for now, to be retried */
	/* From here on the requesters have an index, and the build makes a better one. */
	BUILD_QUEUED, /* waits until servers may be asked for its debug file */
	BUILD_ASKING, /* servers are being asked */
	BUILD_WAITING_BETTER, /* for a sandbox, with files from servers */
	BUILD_RUNNING_BETTER, /* in a sandbox, with files from servers */
	BUILD_OVER, /* in no list; destroyed after its result is delivered */
	BUILD_STATES
};

/* Sets of states, each a bit. */
enum build_state_set {
	BUILDS_WAITING = 1 << BUILD_WAITING | 1 << BUILD_WAITING_BETTER,
	BUILDS_RUNNING = 1 << BUILD_RUNNING | 1 << BUILD_RUNNING_SPLIT | 1 << BUILD_RUNNING_BETTER,
	BUILDS_POSTPONED = 1 << BUILD_POSTPONED,
	BUILDS_QUEUED = 1 << BUILD_QUEUED,
	BUILDS_ASKING = 1 << BUILD_ASKING,
	/* Their debug files are being fetched, or fetched but not yet read. */
	BUILDS_OPEN = 1 << BUILD_ASKING | 1 << BUILD_WAITING_BETTER | 1 << BUILD_RUNNING_BETTER,
	BUILDS_IMPROVING = BUILDS_QUEUED | BUILDS_OPEN,
	/* Their requesters have no index yet. */
	BUILDS_PENDING = 1 << BUILD_WAITING | 1 << BUILD_RUNNING | 1 << BUILD_RUNNING_SPLIT |
			 BUILDS_POSTPONED,
	BUILDS_ALL = BUILDS_PENDING | BUILDS_IMPROVING,
};

enum build_hurry {
	HURRY_NOT_YET,
	HURRY_ON, /* the child has our priority */
	HURRY_OVER,
};

/* One module's build. */
struct build {
	enum build_state state; /* changed by builds_move() only */
	struct build *next, **link; /* in its state's list; link NULL = in none */
	struct module_id id;
	int elf_fd;
	uint64_t elf_bytes; /* its size when the build was requested */
	struct debug_files debug_files;
	uint64_t bytes; /* size of these files, an estimate of the build's cost */
	uint64_t wanted; /* number of builds_want() calls: waiters */
	uint64_t owner; /* key of its owner: whose file it is */
	enum build_hurry hurry; /* of its running child */
	bool wants_functions; /* the index is to have functions */
	bool running_functions; /* the running child was asked for them */
	bool debug_is_late; /* debug files that it may have did not answer */
	bool without_debug; /* a child hung that had some: it is built without them */
	bool is_delivered; /* `done` is being called for its requesters */
	bool is_superseded; /* another build of the module has taken its requesters */
	/* Whether and where debug files are searched. */
	bool searches;
	int root_fd; /* root directory of the mapping process; -1 = our own */
	char *path, *directories;
	const char *also; /* borrowed, as in struct debug_search */
	int first_fd; /* while RUNNING_SPLIT: index of the first pass; else -1 */
	bool asks_servers; /* for the debug file, if the index lacks one */
	struct debuginfod_request debug; /* while ASKING; child.pid -1 = none */
	struct build_id debug_id; /* build ID sent to the servers */
	unsigned int fetched_files; /* how many of the debug files came from servers */
	bool asked_alternate; /* servers were asked for the alternate (dwz) file */
	struct cache_entry entry;
	struct sandbox sandbox;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC; 0 = none */
	unsigned int setbacks; /* attempts that failed for a transient reason */
	uint64_t resume_ns; /* while POSTPONED: time of the next attempt, CLOCK_MONOTONIC */
	uint64_t *tags;
	size_t tag_count, tag_capacity;
};

struct build_list {
	struct build *first, **end; /* oldest first */
	unsigned int count;
};

/* Whose files are built: a control group. */
struct builds_owner {
	uint64_t key;
	uint64_t cpu_ns; /* its share so far; owners that return begin at the others' share */
	uint64_t first_ns; /* its share when it first came */
};

enum { BUILDS_OWNERS = 256 }; /* more share the places of those that used least */

/*
 * A child that was killed but is not gone: the kernel waits for the server of its file. As long as
 * it is there, neither its module is built, nor another file that a user's own server may show.
 */
struct builds_dying {
	struct sandbox sandbox;
	struct module_id id;
	uint64_t owner;
	bool had_debug_files; /* one of which it may wait for */
};

enum {
	BUILDS_DYING = 32, /* together with running ones; then no build starts until one is gone */
	/* Looks, one a second, at a child that sleeps all the time. */
	BUILDS_IDLE_ASIDE = 2, /* then another build takes its place beside it */
	BUILDS_IDLE_END = 10, /* then it is killed */
};

struct builds {
	struct builds_options options;
	struct build_list lists[BUILD_OVER]; /* by state; the one of BUILD_NEW stays empty */
	struct builds_setbacks setbacks;
	uint64_t cpu_ns, peak_bytes;
	struct builds_dying dying[BUILDS_DYING];
	unsigned int dying_count;
	struct builds_owner owners[BUILDS_OWNERS];
	size_t owner_count;
	int calm_fd; /* timer that ends hurries; -1 = none yet */
	bool calm_watched;
	double share; /* of a CPU, for builds_repay(); 0 = not bounded */
	uint64_t charged_ns, charged_at_ns; /* CPU time that was charged, and when */
	bool delivering; /* `done` is being called for a build that may be QUEUED */
	bool debug_is_late; /* `done` is being called, see builds_debug_is_late() */
};

/* Destroys a build that is in no list; NULL is fine. */
void build_destroy(struct build *build);
DEFINE_AUTO(build);

void builds_watch(struct builds *b, int fd, bool on);
void builds_count(struct builds *b, enum metric id);

/* ---- builds_states.c ------------------------------------------------------------------------ */
void builds_lists_init(struct builds *b);
/* Returns true if a build may go from state FROM to state TO. */
bool build_may_become(enum build_state from, enum build_state to);
/* Appends BUILD to the list of STATE. Aborts on a transition that is not in the drawing. */
void builds_move(struct builds *b, struct build *build, enum build_state state);
/* Takes BUILD off its list in any state; for builds_destroy(). */
void builds_unlink(struct builds *b, struct build *build);
/*
 * Returns the oldest build for which MATCHES is true, in the first of STATES that has one; NULL =
 * none.
 */
typedef bool build_matches(const struct build *build, const void *context);
struct build *builds_find(
	const struct builds *b, unsigned int states, build_matches *matches, const void *context);
unsigned int builds_number(const struct builds *b, unsigned int states);
static inline bool build_is_in(const struct build *build, unsigned int states)
{
	return 1u << build->state & states;
}

/* ---- builds_run.c --------------------------------------------------------------------------- */
/* Starts waiting builds while there are free sandboxes. */
void builds_start_waiting(struct builds *b);
/* To be called when the child of a running build has closed its socket (sandbox_receive()). */
void builds_end(struct builds *b, struct build *build);
/* Answers the question of a running build's child. */
void builds_answer(struct builds *b, struct build *build);
/* Kills the child of a running build; the caller changes the build's state. */
void builds_stop(struct builds *b, struct build *build);
/* Ends a running build that exceeds its deadline. */
void builds_expire_build(struct builds *b, struct build *build);
/* Ends a running build whose file does not answer, to be retried later. */
void builds_end_hanging(struct builds *b, struct build *build);
/* Forgets the killed children that are gone by now. */
void builds_reap(struct builds *b);
/* Calls `done`. LATE: see builds_debug_is_late(). */
void builds_done(struct builds *b, uint64_t tag, struct index *index, bool late);
/* Ends a new build that cannot run now: `done` gets NULL. */
void builds_refuse(struct builds *b, struct build *build);

/* ---- builds_postponed.c --------------------------------------------------------------------- */
/*
 * Postpones a build that was interrupted or could not be started because of ERR. Returns false if
 * it has no attempts left or if the failure is permanent.
 */
bool builds_postpone(struct builds *b, struct build *build, int err);
/*
 * Returns how long to wait before building a file whose earlier builds were interrupted; 0 = no
 * wait.
 */
uint64_t builds_pause_ns(const struct builds *b, const struct module_id *id);
/* Postpones a build for PAUSE_NS. Returns false if that is too long to keep its file open. */
bool builds_postpone_for(struct builds *b, struct build *build, uint64_t pause_ns);
/* Queues the postponed builds whose time has come. */
void builds_resume(struct builds *b, uint64_t now_ns);

/* ---- builds_order.c ------------------------------------------------------------------------- */
/* Returns the build to start now, NULL if there is none or too many run. */
struct build *builds_next(const struct builds *b);
/* To be called before BUILD waits for the first time. */
void builds_arrive(struct builds *b, struct build *build);
/* Adds the CPU time of an ended child to its owner's share. */
void builds_charge(struct builds *b, uint64_t owner, uint64_t cpu_ns);
/* Returns true if BUILD's owner has so many waiting builds that no room would be left for others.
 */
bool builds_is_crowded(const struct builds *b, uint64_t owner);
/* OWNER wants BUILD, too: it counts as the file of the one that used less. */
void builds_share(struct builds *b, struct build *build, uint64_t owner);
/* Ends all hurries. */
void builds_calm(struct builds *b);
/* Charges past builds, as far as the share of CPU time allows. */
void builds_repay(struct builds *b, uint64_t now_ns);

/* ---- builds_debug.c ------------------------------------------------------------------------- */
/* Returns true if INDEX, just built or cached, lacks debug information that servers may have. */
bool builds_debug_wants(struct builds *b, struct build *build, const struct index *index);
/* Queues a build for the servers; its requesters have, or are about to get, an index. */
void builds_debug_queue(struct builds *b, struct build *build);
/*
 * Asks servers for the alternate file with build ID ID that BUILD's debug file names, while BUILD's
 * child runs. Returns false if it cannot be asked for; otherwise the child is stopped, and BUILD is
 * built again with the answer.
 */
bool builds_debug_ask_alternate(struct builds *b, struct build *build, const struct build_id *id);
/* What a build found out about the files from servers. */
enum builds_verdict {
	BUILDS_FILES_RIGHT,
	BUILDS_FILES_USELESS,
	BUILDS_FILES_UNREAD, /* the build's result does not depend on them */
	BUILDS_FILES_INTERRUPTED, /* they may have caused the interruption */
};
/* To be called when the build is over, with or without files from servers. */
void builds_debug_over(struct builds *b, struct build *build, enum builds_verdict verdict);
/* Returns true if FD belonged to a question to a server. */
bool builds_debug_ready(struct builds *b, int fd);
/* To be called about once a second. */
void builds_debug_tick(struct builds *b, uint64_t now_ns);
