/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The agent's HTTP server, on libmicrohttpd inside the agent's own loop (no thread of its own): the
 * flame graph page, metrics, health, status, stored profiles, profiles on demand. Knows nothing of
 * sampling: it gets its content from its owner through callbacks.
 *
 *   GET /                       the page (one file, no outside requests)
 *   GET /metrics                OpenMetrics text
 *   GET /healthy /-/healthy     200 while the loop runs
 *   GET /ready /-/ready         200 while sampling works and windows end, else 503
 *   GET /status                 JSON
 *   GET /api/profiles?from=&to= JSON list of stored profiles (ms since 1970); with &slices=N, of
 *                               about N slices of time that have any, if that is much time
 *   GET /api/profiles/PATH      one of them, as stored
 *   GET /api/merged?from=&to=   those between two times as one profile, each file's samples apart;
 *                               with &slice_ms=, those of each slice
 *   GET /api/latency?from=&to=  JSON of measured functions in recent windows (ms since 1970)
 *   GET /debug/pprof/           a list of these endpoints, for people
 *   GET /debug/pprof/profile?seconds=N[&pid=P]
 *   GET /debug/pprof/merge?from=T&to=T[&group=NAME][&container=ID][&comm=NAME]
 *   POST /debug/pprof/symbol    resolves no names: pprof requires it to exist
 *   POST /-/reload
 *
 * Limits: connections, header bytes, request time, concurrent profiles on demand (429), seconds (1
 * to 300, 400 otherwise). Everybody may ask for /healthy, /ready and /metrics. The remaining paths
 * are for root and our own user, told by the owner of a client's socket on loopback, for whoever
 * may open a socket file, and for those who send the token: `Authorization: Bearer TOKEN`, or Basic
 * with any user and TOKEN as password, which is what browsers and `go tool pprof
 * http://x:TOKEN@…` send. Others get 401. Other methods are refused with 405, POST from pages of
 * other origins with 403. While listening on loopback, a Host header that is not loopback's (DNS
 * rebinding) is refused with 403.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/loop/loop.h"
#include "base/buffer.h"

struct serve;
struct serve_reply; /* a request to be answered later */

/* A profile on demand. */
struct serve_profile_wish {
	unsigned int seconds;
	uint32_t pid; /* 0 = all */
	unsigned int hz; /* at least so many samples a second on each CPU; 0 = as many as usual */
};

/* Which stored profiles, whose windows overlap [FROM_NS, TO_NS), are to be merged, and how. */
struct serve_merge {
	int64_t from_ns, to_ns; /* since 1970 */
	const char *group, *container, *comm; /* NULL = all */
	bool by_file; /* each file's samples stay apart, */
	int64_t slice_ns; /* or, if it is not 0, those of each slice of this length */
};

struct serve_handlers {
	/* Append the body. Return 0 or a negative errno (→ 500). */
	int (*metrics)(void *context, struct buffer *out);
	const char *metrics_type; /* its content type */
	int (*status)(void *context, struct buffer *out);
	const char *(*not_ready)(void *context); /* why it is not ready; NULL = it is */
	/*
	 * Append a JSON array of the stored profiles in [FROM_NS, TO_NS), or, if SLICES is not 0,
	 * of about so many slices of that time, if it is long.
	 */
	int (*profiles)(void *context, int64_t from_ns, int64_t to_ns, unsigned int slices,
		struct buffer *out);
	/* Append what functions took in the windows that overlap [FROM_MS, TO_MS), as JSON. */
	int (*latency)(void *context, int64_t from_ms, int64_t to_ms, struct buffer *out);
	/* Open a file of the store; -ENOENT → 404. */
	int (*profile_file)(void *context, const char *path, int *ret_fd);
	/*
	 * Begin a profile on demand. Answer REPLY by serve_reply_send() after this call returns,
	 * from the loop. -EAGAIN → 429; -ESRCH → 404 with the text written to WHY.
	 */
	int (*profile_begin)(void *context, struct serve_reply *reply,
		const struct serve_profile_wish *wish, struct buffer *why);
	/*
	 * Begin a merge of stored profiles; answer as for a profile on demand. WANTED is valid
	 * during the call. -EAGAIN → 429; -ENOENT: there is none → 404; -E2BIG: too many → 413.
	 * May be NULL: there are no merges.
	 */
	int (*merge_begin)(
		void *context, struct serve_reply *reply, const struct serve_merge *wanted);
	/* The client left before the answer, or its slot was needed: forget REPLY. */
	void (*profile_cancel)(void *context, struct serve_reply *reply);
	/* Reload the settings. OUT (why not, which key) becomes the body. 0 → 200, else 400. */
	int (*reload)(void *context, struct buffer *out);
	void *context;
};

/* How long a client may take for each step; 0 = the default given here. */
struct serve_limits {
	uint64_t request_ns; /* from the connection to its first request: 10 s */
	uint64_t idle_ns; /* from one answer to the next request: 30 s */
	uint64_t sending_ns; /* until the client has received its answer: 60 s */
};

enum { SERVE_TOKEN_BYTES = 4096 }; /* the longest token */

/* A page that is all there is: every path except `/` is 404, and no handler is called. */
struct serve_page {
	const void *bytes; /* HTML, borrowed until serve_destroy(); NULL = none */
	size_t size;
	const char *policy; /* its Content-Security-Policy, borrowed likewise */
};

struct serve_options {
	/*
	 * `127.0.0.1:7071`, `localhost:7071`, `[::1]:7071`, `:7071` (all), `unix:/path`; NULL =
	 * none
	 */
	const char *address;
	/*
	 * NULL = none: only root and our own user on this machine. Borrowed until
	 * serve_set_token() or serve_destroy().
	 */
	const char *token;
	struct loop *loop;
	struct serve_handlers handlers;
	struct serve_limits limits;
	struct serve_page page; /* instead of an agent's page and paths */
};

/* -EINVAL: invalid address; -ELIBACC: libmicrohttpd cannot be loaded; -EADDRINUSE …. */
int serve_create(const struct serve_options *options, struct serve **ret_serve);

/* As strerror(-ERR), for an error of serve_create(). */
const char *serve_error(int err);
void serve_destroy(struct serve *s);
/*
 * Listens on a socket file as well, for root, our own user and group, whom the kernel names
 * (SO_PEERCRED); all others need the token there, too. Makes its directory, mode 0750, with
 * parents. Returns -EBUSY if another agent has that directory, -EPERM if it is another user's or
 * others may write to it, -EADDRINUSE if PATH is something else than a socket that nobody uses,
 * -EINVAL if it is not an absolute path or too long.
 */
int serve_add_socket(struct serve *s, const char *path);
/* Applies from the next request on; borrows TOKEN as serve_create() does. Cannot fail. */
void serve_set_token(struct serve *s, const char *token);
/* Answers a held request; BYTES are copied. CONTENT_TYPE: e.g. application/octet-stream. */
void serve_reply_send(struct serve_reply *reply, unsigned int status, const char *content_type,
	const void *bytes, size_t size);
/* The same with the content of FD, which is taken. */
void serve_reply_send_file(struct serve_reply *reply, const char *content_type, int fd);
/* The same with a TEXT for people, and another status than 200. */
void serve_reply_refuse(struct serve_reply *reply, unsigned int status, const char *text);
/*
 * What clients have cost since the start. The server limits it: requests that go beyond what their
 * client's class may cost wait (agent/server/serve/clients.h).
 */
struct serve_figures {
	uint64_t cpu_ns; /* of the loop's thread, including what was added by serve_charge() */
	uint64_t delayed; /* requests that had to wait */
	uint64_t refused; /* connections that were one too many */
};

struct serve_figures serve_figures(const struct serve *s);
/* Adds CPU time that the owner spent on a client outside of its handlers. */
void serve_charge(struct serve *s, uint64_t cpu_ns);
unsigned int serve_port(const struct serve *s); /* the bound port, also for port 0 */
