/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue itself: builds.c, builds_order.c for who is next, builds_postponed.c for those that are
 * tried again, and builds_debug.c for what debuginfod servers may add.
 */
#include "base/cleanup.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/debuginfod/debuginfod.h"

/* One module that waits or is being built. */
struct build {
	struct build *next;
	struct module_id id;
	int elf_fd;
	struct companions companions;
	uint64_t bytes; /* of these files: what the build costs, about */
	uint64_t wanted; /* how often builds_want() was called for it */
	/*
	 * For a second pass with the .dwo files that the first found wanting: where the module is,
	 * "" = none, and what the first made, -1 = it is not over.
	 */
	char *path, *directories;
	int first_fd;
	bool asks_servers; /* for the debug file, if the index lacks one */
	bool improves; /* the requesters have an index; what comes now is a better one */
	struct debuginfod_request debug; /* under way; child.pid -1 = none */
	struct build_id debug_id; /* what the debug file was asked for by */
	unsigned int debug_files; /* that came from servers, and are among the companions */
	struct cache_entry entry;
	struct sandbox sandbox;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC; 0 = none */
	unsigned int setbacks; /* tries that came to nothing for a reason that may pass */
	uint64_t resume_ns; /* CLOCK_MONOTONIC; of a postponed one: when it is tried again */
	uint64_t *tags;
	size_t tag_count, tag_capacity;
};

struct builds {
	struct builds_options options;
	struct build *waiting, **waiting_end; /* the oldest first: builds_take_next() chooses */
	struct build *running;
	struct build *postponed; /* tried in vain, to be tried again */
	unsigned int waiting_count, running_count, postponed_count;
	struct builds_setbacks setbacks;
	unsigned int improving_count; /* of both, those whose requesters have an index */
	/* Those that lack debug information which servers may have. */
	struct {
		struct build *waiting, **waiting_end; /* the oldest first */
		struct build *asking;
		unsigned int waiting_count;
		unsigned int open_count; /* whose files are coming, or there and not yet read */
	} debug;
	uint64_t cpu_ns, peak_bytes;
};

void build_destroy(struct build *build);
DEFINE_AUTO(build);

void builds_watch(struct builds *b, int fd, bool on);
/* Puts a build behind all others that wait for a sandbox. */
void builds_append(struct builds *b, struct build *build);
void builds_start_waiting(struct builds *b);

/* ---- builds_postponed.c --------------------------------------------------------------------- */
/*
 * Puts a build off that was interrupted or could not be started, ERR saying why. False: it has been
 * tried often enough for now, or its failure does not pass.
 */
bool builds_postpone(struct builds *b, struct build *build, int err);
/* What is still to be waited for before a file is tried that interrupted builds before; 0 = none.
 */
uint64_t builds_pause_ns(const struct builds *b, const struct module_id *id);
/* Puts off a build that is new for PAUSE_NS. False: that is too long to keep its file open. */
bool builds_put_off(struct builds *b, struct build *build, uint64_t pause_ns);
/* Lets those wait for a sandbox whose time has come. */
void builds_resume(struct builds *b, uint64_t now_ns);

/* ---- builds_order.c ------------------------------------------------------------------------- */
/* Takes the one that is to start now off those that wait. NULL: none, or too many run. */
struct build *builds_take_next(struct builds *b);

/* ---- builds_debug.c ------------------------------------------------------------------------- */
/* Whether servers may have what INDEX lacks, which was built. */
bool builds_debug_wants(struct builds *b, struct build *build, const struct index *index);
/* Takes a build whose requesters have their index. */
void builds_debug_add(struct builds *b, struct build *build);
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
void builds_debug_turn(struct builds *b, uint64_t now_ns);
