/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the room's files share: server.c, routes.c, reply.c. */
#include <microhttpd.h>

#include "agent/server/serve/address.h"
#include "agent/server/serve/serve.h"

/* One client, from accept() to close(). */
struct connection {
	struct serve *serve;
	struct connection *next, *previous;
	int fd; /* the library's */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; then it is shut down; 0 = none */
	bool idle; /* it has not asked for anything, or not completely */
	uint64_t idle_since_ns;
	struct serve_reply *held; /* NULL = none */
	/* When the client of HELD said that it sends no more; 0 = it did not. */
	uint64_t half_closed_ns;
};

/* One request of a connection. */
struct serve_reply {
	struct serve *serve;
	struct MHD_Connection *mhd;
	struct connection *connection;
	size_t upload_bytes;
	bool head; /* HEAD: no body */
	bool failed; /* no answer could be made: the connection ends */
};

struct serve {
	struct loop *loop;
	struct serve_handlers handlers;
	struct serve_limits limits; /* none is 0 */
	char *token; /* NULL = none */
	struct address address;
	struct MHD_Daemon *mhd;
	int listen_fd, epoll_fd; /* the latter is the library's */
	bool listening; /* the loop watches listen_fd */
	bool stopping;
	struct connection *connections;
	size_t connection_count;
	int turn_timer, deadline_timer, listen_timer; /* -1 = none */
	uint64_t deadline_timer_ns; /* when it rings */
	unsigned int port;
};

/* server.c */
/* The library has something to do besides what its epoll tells. */
void server_turn(struct serve *s);
void server_set_deadline(struct connection *c, uint64_t delay_ns); /* 0 = none */

/* routes.c */
/* Answers R, now or by holding it. */
enum MHD_Result routes_answer(struct serve_reply *r, const char *path, const char *method);

/* reply.c: each queues one answer. */
enum MHD_Result reply_text(struct serve_reply *r, unsigned int status, const char *text);
/* Takes BODY's bytes. TYPE is the content type. */
enum MHD_Result reply_buffer(
	struct serve_reply *r, unsigned int status, const char *type, struct buffer *body);
/* Takes FD. */
enum MHD_Result reply_file(struct serve_reply *r, const char *type, int fd);
enum MHD_Result reply_unauthorized(struct serve_reply *r);
enum MHD_Result reply_wrong_method(struct serve_reply *r, const char *allowed);
enum MHD_Result reply_page(struct serve_reply *r);
/*
 * Suspends R until serve_reply_send(), or until its client is gone. A client that sends no more may
 * still wait for its answer (`nc -N`) or have closed its socket, which looks the same in TCP: it
 * keeps its place as long as nobody else wants it.
 */
void reply_hold(struct serve_reply *r);
/*
 * Gives up a held request: its owner forgets it, the client hears 503 if it still listens. The
 * library has something to do then (server_turn()).
 */
void reply_cancel(struct serve_reply *r);
/* Gives up that of the client which sends no more for the longest time; false: there is none. */
bool reply_cancel_half_closed(struct serve *s);

/* page.c: the page as built, in gzip; `{{nonce}}` stands where the response's nonce belongs. */
void page_gzip(const char **ret_bytes, size_t *ret_size);
