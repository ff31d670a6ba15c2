/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the files of the replay. */
#include "agent/loop/loop.h"
#include "agent/sampler/sampler.h"
#include "base/host.h"
#include "tests/replay/replay.h"

enum {
	/* Placeholder descriptors; never read. */
	REPLAY_RINGS_FD = 1 << 28,
	REPLAY_BUILDS_FD,
	REPLAY_MAX_TAPS = 64,
};

struct replay_handle {
	char *path; /* NULL = not opened by the replay */
	uint32_t object;
	uint32_t written; /* last data record written to the file */
	uint32_t entry; /* next entry of a directory; 0 = start from the first */
	bool entries_ended;
};

struct replay {
	const struct recording *recording;
	uint32_t without; /* enum mechanism values */
	struct host host;
	uint64_t now_ns;
	size_t event; /* index of the next event */
	struct replay_handle *handles; /* indexed by descriptor */
	struct map asked; /* key → record of its last answer */
	struct dirent entry;
	struct loop *loop;
	struct sampler *sampler;
	struct selection *selection; /* NULL = all processes */
	struct windows_tap *taps[REPLAY_MAX_TAPS];
	struct sealed_window returned; /* what the last call returned; no profile = none */
	replay_report_fn *fn;
	void *context;
	struct replay_result result;
	int error;
};

/* The replay that is running. */
static inline struct replay *replay_current(void)
{
	return host_current->context;
}

/* Marks record NUMBER as used and returns it. */
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
 * Returns the record that answers TYPE and KEY at this time: the latest one so far, or the first if
 * none is that early; 0 if there is none. Several answers with one time are given in their order.
 */
uint32_t replay_ask(struct replay *r, enum recording_type type, uint64_t key);

/* replay.c */
/* Return the next event, or NULL; take also advances. */
const struct record *replay_next_event(const struct replay *r);
const struct record *replay_take_event(struct replay *r);
