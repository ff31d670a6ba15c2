/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A container runtime behind one socket: when it is asked what, and the last complete answer. Its
 * containers and pods are listed at intervals, soon after it says that something has changed (the
 * stream of events says when; what changed is in the lists), and when somebody misses a container.
 *
 * Containers are listed before pods: whichever a container belongs to is then in the later list.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "agent/server/metadata/containers.h"
#include "agent/server/metadata/cri_call.h"
#include "agent/server/metadata/cri_decode.h"
#include "base/metrics.h"

enum { CRI_SOCKET_BYTES = sizeof(((struct sockaddr_un *)NULL)->sun_path) };

enum cri_state { CRI_IDLE, CRI_ASKED_VERSION, CRI_ASKED_CONTAINERS, CRI_ASKED_PODS };

struct cri_runtime {
	const char *path; /* of the socket */
	bool anywhere; /* look for it in init's root, too */
	char socket[CRI_SOCKET_BYTES]; /* as found */
	struct metrics *metrics;
	CURLM *multi;
	enum cri_state state;
	struct cri_call call, events;
	bool no_events; /* it has no such stream */
	uint64_t event_count; /* of the stream, when last looked */
	char name[CRI_RUNTIME_NAME_BYTES]; /* "" = ask */
	struct containers *next; /* being filled */
	struct containers *table; /* the last complete answer; NULL = none yet */
	uint64_t due_ns; /* next list, while idle */
	uint64_t begun_ns; /* of the last list */
	unsigned int failures; /* in a row */
	bool has_told; /* it has answered before */
	char trouble[CRI_MESSAGE_BYTES]; /* of the last failure, "" = none */
};

/* Borrows PATH and METRICS. R must not move while calls are under way. */
void cri_runtime_init(
	struct cri_runtime *r, const char *path, bool anywhere, struct metrics *metrics);
void cri_runtime_deinit(struct cri_runtime *r);
/* Whether there is a socket to ask and it is time. */
bool cri_runtime_is_due(struct cri_runtime *r, uint64_t now_ns);
/* Begins to ask. MULTI NULL: it cannot. */
void cri_runtime_begin(struct cri_runtime *r, CURLM *multi, uint64_t now_ns);
/* When to call it again, if nothing ends before. */
uint64_t cri_runtime_next_ns(const struct cri_runtime *r);
/* Somebody misses a container. */
void cri_runtime_ask(struct cri_runtime *r, uint64_t now_ns);
/* CALL, which may be another's, has ended. Returns true if `table` is new. */
bool cri_runtime_on_end(
	struct cri_runtime *r, struct cri_call *call, CURLcode code, uint64_t now_ns);
