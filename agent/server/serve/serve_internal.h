/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by server.c, connections.c, routes.c and reply.c. */
#include <microhttpd.h>

#include "agent/server/serve/address.h"
#include "agent/server/serve/clients.h"
#include "agent/server/serve/serve.h"

enum { SERVE_MAX_CONNECTIONS = 64 };

/* The address, and the socket of serve_add_socket(). */
enum { SERVE_LISTENERS = 2 };

struct listener {
	struct serve *serve;
	struct address address;
	int fd; /* -1 = none */
	int lock_fd; /* of the directory of a socket of serve_add_socket(); -1 = none */
	bool watched; /* the loop watches fd */
};

/* One client, from accept() to close(). */
struct connection {
	struct serve *serve;
	struct connection *next, *previous;
	struct MHD_Connection *mhd;
	int fd; /* owned by the library */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; shut down when it passes; 0 = none */
	bool idle; /* no complete request so far */
	uint64_t idle_since_ns;
	struct serve_reply *held; /* NULL = none */
	/* When the client of HELD shut down its sending side; 0 = it did not. */
	uint64_t half_closed_ns;
	const struct listener *listener; /* which has accepted it */
	bool owner; /* root's or our own: may read without the token */
	enum client_class class; /* whose budget pays; a token sent once makes it the owners' */
	bool waits; /* its request is suspended until its class may cost something again */
};

/* One request of a connection. */
struct serve_reply {
	struct serve *serve;
	struct MHD_Connection *mhd;
	struct connection *connection;
	size_t upload_bytes;
	bool head; /* HEAD: no body */
	bool failed; /* no answer could be queued: close the connection */
};

/* Large answers that several clients are reading. */
struct shared_replies {
	struct shared_reply *newest; /* NULL = none */
	unsigned int count;
};

struct serve {
	struct loop *loop;
	struct serve_handlers handlers;
	struct serve_limits limits; /* defaults applied, never 0 */
	const char *token; /* NULL = none; borrowed */
	struct serve_page page; /* bytes NULL: an agent's page and paths */
	struct MHD_Daemon *mhd;
	struct listener listeners[SERVE_LISTENERS];
	int epoll_fd; /* owned by the library */
	bool stopping;
	struct connection *connections;
	size_t connection_count;
	struct clients clients;
	struct shared_replies metrics;
	int run_timer, deadline_timer, listen_timer, waiting_timer; /* -1 = none */
	uint64_t deadline_timer_ns; /* when deadline_timer fires */
	unsigned int port;
};

/* server.c */
/* Runs the library, which may have work that its epoll descriptor does not report. */
void server_run(struct serve *s);

extern const char microhttpd_missing[]; /* what -ELIBACC means, for the user */

/* -ELIBACC: the library, or one of the functions in use, is missing. */
int microhttpd_load(void);

/* connections.c */
void connections_on_client(void *context, int fd, uint32_t events); /* a loop_fd_fn of a listener */
/* The library's notification that a connection has begun or ended. */
void connections_on_change(void *context, struct MHD_Connection *mhd, void **connection_context,
	enum MHD_ConnectionNotificationCode code);
/* Listens if a client can be accepted now. */
void connections_update_listening(struct serve *s);
void connections_evict_idle(struct serve *s, enum client_class class);
/* Waits for a request for LIMIT_NS at most. */
void connections_become_idle(struct connection *c, uint64_t limit_ns);
void connections_set_deadline(struct connection *c, uint64_t delay_ns); /* 0 = none */

/* listeners.c */
void listeners_init(struct serve *s);
/* No further client is accepted. */
void listeners_unwatch(struct serve *s);
/* Closes them and removes their socket files. */
void listeners_deinit(struct serve *s);
int listeners_open(struct serve *s, const char *address);
/* The listener that accepted FD; NULL if none did. */
const struct listener *listeners_find(const struct serve *s, int fd);

/* routes.c */
/* Answers R at once, or holds it. */
enum MHD_Result routes_answer(struct serve_reply *r, const char *path, const char *method);
bool routes_has_token(const struct serve_reply *r);

/* reply.c: each queues one answer. */
enum MHD_Result reply_text(struct serve_reply *r, unsigned int status, const char *text);
/* Takes ownership of BODY's bytes. TYPE is the content type. */
enum MHD_Result reply_buffer(
	struct serve_reply *r, unsigned int status, const char *type, struct buffer *body);
/* Takes ownership of FD. */
enum MHD_Result reply_file(struct serve_reply *r, const char *type, int fd);
/* As reply_buffer(), with 200, but clients that come soon share a large BODY: reply_shared(). */
enum MHD_Result reply_sharing(struct serve_reply *r, const char *type, struct buffer *body,
	struct shared_replies *replies);
/* Answers with what is shared at present; false if there is none. */
bool reply_shared(
	struct serve_reply *r, const struct shared_replies *replies, enum MHD_Result *ret_result);
enum MHD_Result reply_unauthorized(struct serve_reply *r);
enum MHD_Result reply_wrong_method(struct serve_reply *r, const char *allowed);
enum MHD_Result reply_page(struct serve_reply *r);
/*
 * Suspends R until serve_reply_send(), or until its client is gone. A client that has shut down
 * sending may still wait for its answer (`nc -N`) or have closed its socket; TCP does not tell
 * which. It keeps its slot until another client needs one.
 */
void reply_hold(struct serve_reply *r);
/*
 * Cancels a held request: its owner forgets it, and the client gets 503 if it still reads. Call
 * server_run() afterwards.
 */
void reply_cancel(struct serve_reply *r);
/* Cancels the held request whose client shut down sending first; false if there is none. */
bool reply_cancel_half_closed(struct serve *s);

/* shared_reply.c */
/* Borrowed: valid as long as a client reads it. NULL = a new one is to be made. */
struct MHD_Response *shared_reply_get(const struct shared_replies *all);
bool shared_reply_is_worth_it(const struct buffer *body);
/* Takes the bytes of BODY. Returns NULL if memory is short. The caller's, as any new response. */
struct MHD_Response *shared_reply_make(struct shared_replies *all, struct buffer *body);
