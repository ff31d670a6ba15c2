/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API server, asked about this node's pods from within the cluster: they are listed once, in
 * pages, then watched. A watch goes on where the last one ended; when the server no longer knows
 * that place, the pods are listed again. Only the metadata of pods is asked for.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/metadata/json_call.h"
#include "agent/server/metadata/kubernetes/api_pods.h"
#include "agent/server/metadata/kubernetes/pod_json.h"
#include "base/metrics.h"

enum {
	API_HOST_BYTES = 256,
	API_PORT_BYTES = 6,
	API_NODE_BYTES = 254, /* a DNS subdomain (RFC 1123) */
	API_PATH_BYTES = 256,
};

/* Where the server is and how it is asked. */
struct api_access {
	char host[API_HOST_BYTES]; /* a name or an address */
	char port[API_PORT_BYTES];
	char node[API_NODE_BYTES]; /* as the cluster names it */
	char directory[API_PATH_BYTES]; /* of the service account: token, ca.crt */
};

/*
 * As each pod is told: the environment's KUBERNETES_SERVICE_HOST and _PORT, and the service
 * account's DIRECTORY. Returns -ENOENT if the environment has no such variables, -EINVAL if they
 * make no sense, -EDOM if NODE cannot be a node's name.
 */
int api_access_init(struct api_access *access, const char *directory, const char *node);

enum api_state { API_IDLE, API_LISTING, API_WATCHING };

struct api_server {
	struct api_access access;
	struct metrics *metrics;
	CURLM *multi;
	enum api_state state;
	struct json_call call;
	struct api_pods pods;
	char version[POD_JSON_VERSION_BYTES]; /* where the watch goes on; "" = list */
	char next[POD_JSON_CONTINUE_BYTES]; /* where the list goes on; "" = from its beginning */
	bool wants_newest; /* a list from the server's cache would be too old */
	bool watch_expired, watch_failed; /* what the watch has said at its end */
	bool has_told;
	uint64_t counted_conflicts, counted_over_limit, counted_too_large;
	uint64_t due_ns; /* next request, while idle */
	uint64_t begun_ns; /* of the last request */
	uint64_t watch_seconds; /* after which the server ends the watch */
	uint64_t random;
	unsigned int failures; /* in a row */
	char trouble[CALL_MESSAGE_BYTES]; /* of the last failure, "" = none */
};

void api_server_init(
	struct api_server *s, const struct api_access *access, struct metrics *metrics);
void api_server_deinit(struct api_server *s);
bool api_server_is_due(const struct api_server *s, uint64_t now_ns);
/* Begins to ask. MULTI NULL: it cannot. S must not move from now on. */
void api_server_begin(struct api_server *s, CURLM *multi, uint64_t now_ns);
/* When to call it again, if nothing ends before. */
uint64_t api_server_next_ns(const struct api_server *s);
/* CALL, which may be another's, has ended. */
void api_server_on_end(struct api_server *s, const void *call, CURLcode code, uint64_t now_ns);
/* Call now and then: counts, and forgets pods that are gone for five minutes. */
void api_server_look(struct api_server *s, uint64_t now_ns);
