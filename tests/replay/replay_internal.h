/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the replay share. */
#include "agent/loop/loop.h"
#include "agent/sampler/sampler.h"
#include "base/host.h"
#include "tests/replay/replay.h"

enum {
	/* Descriptors that nobody reads. */
	REPLAY_RINGS_FD = 1 << 28,
	REPLAY_BUILDS_FD,
	REPLAY_MAX_TAPS = 64,
};

struct replay_handle {
	char *path; /* NULL = not ours */
	uint32_t object;
	uint32_t written; /* the last record of data that is in the file */
	uint32_t entry; /* the next entry of a directory; 0 = from the first on */
	bool entries_ended;
};

struct replay {
	const struct recording *recording;
	struct host host;
	uint64_t now_ns;
	size_t event; /* the next one */
	struct replay_handle *handles; /* by descriptor */
	struct map asked; /* key → record of the last answer */
	struct dirent entry;
	struct loop *loop;
	struct sampler *sampler;
	struct windows_tap *taps[REPLAY_MAX_TAPS];
	const struct profile *tap_profile; /* the one that was asked for last */
	replay_report_fn *fn;
	void *context;
	struct replay_result result;
	int error;
};

/* The one that runs. */
static inline struct replay *replay_current(void)
{
	return host_current->context;
}

/* Record NUMBER was an answer. */
static inline const struct record *replay_use(struct replay *r, uint32_t number)
{
	r->result.used[number] = 1;
	return &r->recording->records[number];
}

/* replay_host.c */
int replay_host_init(struct replay *r);
void replay_host_deinit(struct replay *r);
void replay_move_clock(struct replay *r, uint64_t time_ns);
/*
 * The answer of TYPE and KEY at this time: the one that was given last, or the first one if none
 * was yet. What was asked more than once at one time has its answers in their order. 0 = none.
 */
uint32_t replay_ask(struct replay *r, enum recording_type type, uint64_t key);

/* replay.c */
/* The next event, or NULL. */
const struct record *replay_next_event(const struct replay *r);
const struct record *replay_take_event(struct replay *r);
