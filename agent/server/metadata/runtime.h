/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A container runtime behind one socket: when it is asked, and the last complete answer. Its
 * containers are listed at intervals, soon after it says that something has changed (the stream of
 * events says when; what changed is in the lists), and when somebody misses a container. How it is
 * asked is its protocol's.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/cri_runtime.h"
#include "agent/server/metadata/docker/docker_runtime.h"
#include "base/metrics.h"

enum {
	RUNTIME_SOCKET_BYTES = sizeof(((struct sockaddr_un *)NULL)->sun_path),
	RUNTIME_MESSAGE_BYTES = 200,
	RUNTIME_ANSWER_BYTES = 32 << 20, /* 10,000 pods with two containers each take about 20 MB */
	RUNTIME_EVENT_BYTES_PER_SECOND = 1 << 20, /* of all events: a flood costs little */
};

#define RUNTIME_CALL_NS UINT64_C(10000000000)

struct runtime;

struct runtime_protocol {
	/*
	 * Begins to list into a new table, which runtime_create_table() makes; the end of it is
	 * runtime_finish() or runtime_fail().
	 */
	void (*begin)(struct runtime *r, uint64_t now_ns);
	/* CALL, which may be another's, has ended. */
	void (*on_end)(struct runtime *r, const void *call, CURLcode code, uint64_t now_ns);
	void (*stop)(struct runtime *r); /* ends all calls; event_count() is 0 then */
	bool (*has_events)(const struct runtime *r); /* there is a stream of them */
	uint64_t (*event_count)(const struct runtime *r); /* of this stream */
};

struct runtime {
	const struct runtime_protocol *protocol;
	const char *path; /* of the socket */
	bool anywhere; /* look for it in init's root, too */
	char socket[RUNTIME_SOCKET_BYTES]; /* as found */
	struct metrics *metrics;
	CURLM *multi;
	bool busy; /* it is being asked */
	bool no_events; /* it has no such stream */
	uint64_t event_count; /* of the stream, when last looked */
	uint64_t events_begun_ns;
	char name[CONTAINER_RUNTIME_BYTES]; /* "" = ask */
	struct containers *next; /* being filled */
	struct containers *table; /* the last complete answer; NULL = none yet */
	uint64_t due_ns; /* next list, unless busy */
	uint64_t begun_ns; /* of the last list */
	unsigned int failures; /* in a row */
	bool has_told; /* it has answered before */
	char trouble[RUNTIME_MESSAGE_BYTES]; /* of the last failure, "" = none */
	union { /* of the protocol */
		struct cri_calls cri;
		struct docker_calls docker;
	};
};

/* Borrows PATH and METRICS. R must not move while calls are under way. */
void runtime_init(struct runtime *r, const struct runtime_protocol *protocol, const char *path,
	bool anywhere, struct metrics *metrics);
void runtime_deinit(struct runtime *r);
/* Whether there is a socket to ask and it is time. */
bool runtime_is_due(struct runtime *r, uint64_t now_ns);
/* Begins to ask. MULTI NULL: it cannot. */
void runtime_begin(struct runtime *r, CURLM *multi, uint64_t now_ns);
/* When to call it again, if nothing ends before. */
uint64_t runtime_next_ns(const struct runtime *r);
/* Somebody misses a container. */
void runtime_ask(struct runtime *r, uint64_t now_ns);
/* CALL, which may be another's, has ended: `table` may be new. */
void runtime_on_end(struct runtime *r, const void *call, CURLcode code, uint64_t now_ns);

/* ---- for protocols -------------------------------------------------------------------------- */

/* `next`, for an answer; false if it has failed, which is said. */
bool runtime_create_table(struct runtime *r, uint64_t now_ns);
/* `next` is complete. -E2BIG, -ENOMEM: it is not taken over. */
int runtime_finish(struct runtime *r, uint64_t now_ns);
/* Counts in METRIC and ends all calls. What was known stays, and it is asked again later. */
void runtime_fail(struct runtime *r, enum metric metric, const char *why, uint64_t now_ns);
/* The stream of events begins. */
void runtime_on_events(struct runtime *r, uint64_t now_ns);
/* It has ended. WHY: the runtime will not have one, NULL = it broke, and is opened with the next
 * list. */
void runtime_on_events_end(struct runtime *r, const char *why, uint64_t now_ns);
