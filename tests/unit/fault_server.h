/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server of the tests' own that misbehaves as it is told: it listens on a free port of the
 * loopback and runs a script for each connection, one after the other, in a thread of its own.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ssl_st;

enum { FAULT_REQUEST_BYTES = 8 << 20 };

struct fault_connection {
	int fd;
	struct ssl_st *ssl; /* NULL = plain text */
	void *context;
	unsigned int number; /* of connections so far, from 1 */
	bool h2_begun; /* the preface has come */
	bool broken; /* the peer has gone */
};

typedef void fault_script(struct fault_connection *c);

struct fault_tls {
	const char *certificate, *key; /* PEM files */
	const char *client_ca; /* asks for a client certificate; NULL = none is wanted */
	bool h2; /* ALPN offers h2 */
};

struct fault_server;

/* TLS NULL: plain text. */
struct fault_server *fault_server_start(
	fault_script *script, void *context, const struct fault_tls *tls);
/* Waits for the script that runs. */
void fault_server_stop(struct fault_server *s);
int fault_server_port(const struct fault_server *s);
unsigned int fault_server_connections(const struct fault_server *s);

/* A port of the loopback on which nobody listens. */
int fault_free_port(void);

/* ---- for scripts --------------------------------------------------------------------------- */
struct fault_request {
	char head[8192]; /* up to the empty line, NUL-terminated */
	uint8_t *body; /* the caller's to free */
	size_t body_size;
};

bool fault_read(struct fault_connection *c, void *bytes, size_t size);
bool fault_write(struct fault_connection *c, const void *bytes, size_t size);
bool fault_text(struct fault_connection *c, const char *text);
/* A request of HTTP/1.1 with its body. */
bool fault_read_request(struct fault_connection *c, struct fault_request *request);
/* Closes so that the peer gets a reset. */
void fault_reset(struct fault_connection *c);
/* Until the peer closes. */
void fault_wait_for_end(struct fault_connection *c);

/* ---- HTTP/2, as little as a gRPC client needs ------------------------------------------------ */
struct fault_header {
	const char *name, *value; /* of at most 126 bytes each */
};

/* The preface and one request; RET_REQUEST's head is empty. *RET_STREAM is its number. */
bool fault_h2_read_request(
	struct fault_connection *c, struct fault_request *request, uint32_t *ret_stream);
/* Waits until the client has read all that was sent. */
bool fault_h2_ping(struct fault_connection *c);
/* As much of a larger request as comes before the server has to ask for more. */
bool fault_h2_read_window(struct fault_connection *c, uint32_t *ret_stream);
/* A HEADERS frame; ends the stream with END. Names beginning with ':' first. */
bool fault_h2_headers(struct fault_connection *c, uint32_t stream,
	const struct fault_header *headers, size_t count, bool end);
bool fault_h2_frame(struct fault_connection *c, uint8_t type, uint8_t flags, uint32_t stream,
	const void *payload, size_t size);
